"""What a commit changed: ``tx.changes``, the change table of each head.

Invariants

1. Changes never change: a table is decoded when it is first asked for, and is the same one for every
   thread and ever after.
2. Before the commit, and where there is none, :class:`Outstanding` stands there and says why.

Cost: none for a head that nobody asks about.  Pickling and the repr look at every head.
"""

from __future__ import annotations

import html
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from lftj.errors import TransactionError
from lftj.language.diagnostics import unknown_name
from lftj.process.interrupts import interruptible


class Changes(Mapping[str, pa.Table]):
    """Changes of heads by name: the head's columns and a weight, +1 or -1.

    Every installed head has one; where nothing changed it has no rows.

    Examples:
        >>> changes = Changes(("tri",), lambda name: pa.table({"a": [1, 2, 3], "weight": [1, 1, -1]}))
        >>> changes, changes["tri"].num_rows, changes.get("tir")
        (<changes: tri +2 -1>, 3, None)
    """

    def __init__(self, names: Collection[str], table_of: Callable[[str], pa.Table]) -> None:
        """``table_of``: builds the change of one of the heads ``names``, which never change; its last column
        is the weight."""
        self._names = names
        self._table_of = table_of
        self._tables: dict[str, pa.Table] = {}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> pa.Table:
        """The change of a head.  Raises UnknownRelationError, which is a KeyError too."""
        if name not in self:
            raise unknown_name("head", name, self._names)
        with self._lock:
            table = self._tables.get(name)
        if table is None:
            built = self._built(name)
            with self._lock:  # of two threads that built it, both return the first one's
                table = self._tables.setdefault(name, built)
        return table

    @interruptible()
    def _built(self, name: str) -> pa.Table:
        return self._table_of(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __copy__(self) -> Changes:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Changes:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as plain tables, without the workspace."""
        return _of_tables, (dict(self),)

    def _counts(self) -> list[tuple[str, str, str]]:
        """Per head how many rows came and went; ``?`` where its values can't be shown."""
        counts = []
        for name in self._names:
            try:
                weights = self[name].columns[-1].to_numpy()
            except Exception:  # a repr does not raise
                counts.append((name, "?", "?"))
                continue
            came, went = np.count_nonzero(weights > 0), np.count_nonzero(weights < 0)
            counts.append((name, f"{came:,}", f"{went:,}"))
        return counts

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} +{came} -{went}" for name, came, went in self._counts())
        return f"<changes: {shown or 'no head is installed'}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{came}</td><td>{went}</td></tr>"
            for name, came, went in self._counts()
        )
        return (
            "<table><thead><tr><th>head</th><th>rows that came</th><th>rows that went</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )


def _of_tables(tables: dict[str, pa.Table]) -> Changes:
    return Changes(tuple(tables), tables.__getitem__)


class Outstanding(Mapping[str, Any]):
    """Stands for the changes and figures of a transaction that has none: whatever is asked raises.

    >>> Outstanding("changes", lambda: "the transaction is not committed yet")
    <no changes: the transaction is not committed yet>
    """

    def __init__(self, what: str, why: Callable[[], str]) -> None:
        """``what`` is asked for; ``why`` there is none, at the moment of asking."""
        self._what = what
        self._why = why

    def _refuse(self, *arguments: object) -> NoReturn:
        raise TransactionError(f"there are no {self._what}: {self._why()}")

    __getitem__ = __iter__ = __len__ = __contains__ = get = keys = items = values = _refuse
    __reduce_ex__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # what Python, pickles and notebooks look for
            raise AttributeError(name)
        self._refuse()

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<no {self._what}: {self._why()}>"
