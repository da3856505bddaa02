"""What ``load`` does: a source as a relation, under names that rules can use (:mod:`lftj.values.names`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lftj.errors import EqualRowsWarning, NullError, SourceError, UnnamedIndexWarning, UnusableNameError
from lftj.files.csv_options import CsvOptions
from lftj.language.diagnostics import suggestion, warn_caller
from lftj.storage.relation import Nulls, Relation
from lftj.values.domain import null_mask, where_null
from lftj.values.domains import Domains
from lftj.values.names import check_relation_name, is_usable, nearest_usable
from lftj.values.schema import is_wide
from lftj.values.shown_text import counted

Columns = Sequence[str] | Mapping[str, str]


def load_relation(
    name: str,
    source: Any,
    columns: Columns | None,
    domains: Domains,
    nulls: Nulls = "refuse",
    progress: bool | None = None,
    csv: CsvOptions | None = None,
    row_number: str | None = None,
    bag: bool = False,
    not_null: Sequence[str] = (),
    key: Sequence[str] = (),
    time: str | None = None,
) -> Relation:
    """Load a source as relation ``name``.

    ``columns``: names, as :func:`lftj.files.sources.read_table` takes them, or new names by old ones.
    ``csv``: as there.  ``row_number``: a last column of this name has each row's number, from 0.
    ``bag``: equal rows are kept as often as they are there.  ``not_null``: columns that hold no NULL, beside
    those whose fields say so.  ``key``: columns that tell rows apart.  ``time``: a stream's column.

    Rows that equal others are told of by an EqualRowsWarning; the sort that leaves them out has counted them.

    Raises DataError: UnusableNameError, SourceError, NullError, UnsupportedTypeError, RangeError,
    KeyConflictError.
    """
    from lftj.files.sources import read_table

    check_relation_name(name)
    if isinstance(columns, Mapping):
        table = _renamed(read_table(source, None, progress, csv), columns)
    else:
        table = read_table(source, columns, progress, csv)
    _warn_of_index(name, source)
    if row_number is not None:
        if bag:
            raise SourceError(
                f"relation {name!r}: bag=True keeps equal rows, row_number= leaves none: choose one"
            )
        if row_number in table.column_names:
            raise SourceError(
                f"relation {name!r} has a column {row_number!r} already: row_number= names a new one"
            )
        table = table.append_column(row_number, pa.array(np.arange(table.num_rows)))
    check_column_names(name, table.column_names)
    table = _without_nullable(table, not_null, "not_null")
    if key:
        table = _without_nullable(table, key, "key")
        _refuse_key(name, table, key, bag, nulls)
    if time is not None:
        table = _without_nullable(table, [time], "time")
    wide = not bag and is_wide(table.schema.types)
    relation = Relation.from_table(name, table, domains, nulls, progress, bag, wide, key)
    if relation.duplicate_rows:
        equal = counted(relation.duplicate_rows, "equal row")
        warn_caller(
            f"relation {name!r} is a set: {equal} of its source left out; bag=True keeps such rows (--bag in"
            " the shell), row_number= tells them apart",
            EqualRowsWarning,
        )
    return relation


def _warn_of_index(relation: str, source: Any) -> None:
    """An index of numbers without a name is what a filter leaves of a frame; one of days or texts is data."""
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        index = source.index
        if index.nlevels == 1 and index.name is None and index.dtype.kind not in "iu" and len(index):
            warn_caller(
                f"relation {relation!r}: the frame's index has no name and was left out: name it, as in"
                ' frame.rename_axis("day"), and it is a column',
                UnnamedIndexWarning,
            )


def _without_nullable(table: pa.Table, names: Sequence[str], option: str) -> pa.Table:
    """The table with these columns declared NOT NULL."""
    if isinstance(names, str):
        raise ValueError(f"{option} is {names!r}; it can be a list of columns, as [{names!r}]")
    for label in names:
        if label not in table.column_names:
            hint = suggestion(str(label), table.column_names)
            raise SourceError(f"{option}= names {label!r}, and there is no such column{hint}")
    fields = [field.with_nullable(field.nullable and field.name not in names) for field in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields))


def _refuse_key(relation: str, table: pa.Table, key: Sequence[str], bag: bool, nulls: Nulls) -> None:
    """Raise SourceError or NullError for a key that a relation with these rows can't have."""
    if bag:
        raise SourceError(f"relation {relation!r}: bag=True keeps equal rows, key= leaves none: choose one")
    if twice := [label for place, label in enumerate(key) if label in key[:place]]:
        raise SourceError(f"key= names {twice[0]!r} twice")
    for label in key:
        missing = None if nulls == "drop" else null_mask(table[label])
        if missing is not None:
            raise NullError(
                f"relation {relation!r}, column {label!r}: {where_null(missing)}, and a key has no NULL:"
                ' pass nulls="drop" to leave such rows out'
            )


def check_column_names(relation: str, names: Sequence[str]) -> None:
    renames: dict[str, str] = {}
    usable = [name for name in names if is_usable(name)]
    for name in names:
        if not is_usable(name):
            renames[name] = nearest_usable(name, [*usable, *renames.values()])
    if renames:
        first, *more = map(repr, renames)
        others = f", nor can {', '.join(more)}" if more else ""
        raise UnusableNameError(
            f"relation {relation!r}: column {first} cannot be a variable in a rule{others}:"
            f" give other names, as in columns={renames!r}",
            renames,
        )


def _renamed(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    known = table.column_names
    for old in names:
        if old not in known:
            hint = suggestion(str(old), known)
            raise SourceError(f"columns= renames {old!r}, and there is no such column{hint}")
    renamed = [names.get(name, name) for name in table.column_names]
    for name in renamed:
        if renamed.count(name) > 1:
            raise SourceError(f"columns= makes two columns {name!r}: names must differ")
    return table.rename_columns(renamed)
