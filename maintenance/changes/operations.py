"""Operations: what feeds of other systems say in a column ``op`` instead of a weight.

| op                       | of a table with a key          | of another            | written by            |
|--------------------------|--------------------------------|-----------------------|-----------------------|
| I, c, insert             | the row comes                  | the row comes         | DMS, Debezium, Delta  |
| U, u                     | the row replaces that of its key | refused             | DMS, Debezium         |
| r                        | the row replaces that of its key | the row comes       | Debezium's snapshots  |
| D, d                     | whatever row of its key goes   | the row goes          | DMS, Debezium         |
| delete, update_preimage  | the row goes                   | the row goes          | Delta                 |
| update_postimage         | the row comes                  | the row comes         | Delta                 |

Delta's words come with whole rows on both sides, and in any order: they add up as a Z-set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import ChangeError
from lftj.language.diagnostics import quoted_list
from lftj.values.schema import Schema
from maintenance.changes.labels import op_label


class Operation(NamedTuple):
    """``weight``: of the row, 0 where its key alone counts; ``resets``: whether the row of the key goes."""

    weight: int
    resets: bool


_COMES, _GOES = Operation(1, False), Operation(-1, False)
_REPLACES, _GOES_BY_KEY = Operation(1, True), Operation(0, True)

OPERATIONS = {
    **dict.fromkeys(("I", "c", "insert", "update_postimage"), _COMES),
    **dict.fromkeys(("U", "u", "r"), _REPLACES),
    **dict.fromkeys(("D", "d"), _GOES_BY_KEY),
    **dict.fromkeys(("delete", "update_preimage"), _GOES),
}

BY_KEY = tuple(word for word, operation in OPERATIONS.items() if operation == _GOES_BY_KEY)
"""Of a relation with a key these say nothing of the other columns."""

_WITHOUT_KEY = {**OPERATIONS, "r": _COMES, "D": _GOES, "d": _GOES}


def operations(name: str, schema: Schema, column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """The weight of each row, and whether it resets its key.

    Raises ChangeError, which names the row, for NULL, other words, and what needs a key where there is none.
    """
    label = op_label(schema)
    try:
        words = column.cast(pa.string())
    except pa.ArrowException:
        raise ChangeError(f"changes of {name!r}: {label} is of type {column.type}, not a string") from None
    found = pc.index_in(words, value_set=pa.array(list(OPERATIONS)))
    if found.null_count:
        row = int(np.argmax(found.is_null().to_numpy()))
        given = words[row].as_py()
        raise ChangeError(
            f"changes of {name!r}: the {label} of row {row} (counting from 0) is"
            f" {'NULL' if given is None else repr(given)}; there are {quoted_list(list(OPERATIONS), 'and')}"
        )
    meanings = list((OPERATIONS if schema.key else _WITHOUT_KEY).values())
    numbers = found.to_numpy()
    resets = np.array([one.resets for one in meanings])[numbers]
    if not schema.key and resets.any():
        row = int(resets.argmax())
        raise ChangeError(
            f"changes of {name!r}: the {label} of row {row} (counting from 0) is {words[row].as_py()!r},"
            f" which replaces the row of a key, and {name!r} has none: load it with key=[...]"
        )
    return np.array([one.weight for one in meanings], np.int64)[numbers], resets
