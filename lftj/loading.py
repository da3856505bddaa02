"""What ``load`` does: a source as a relation, under names that rules can use.

A rule writes names as ``[A-Za-z_][A-Za-z0-9_]*``; ``_``, ``true`` and ``false`` mean something else.  A
relation of another name could be loaded and never be asked for, and a column's name is that of its variable.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lftj.csv_options import CsvOptions
from lftj.domains import Domains
from lftj.errors import SourceError, UnusableNameError
from lftj.relation import Nulls, Relation

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAKEN = ("_", "true", "false")
"""What the rule language reads as something else than a name."""

Columns = Sequence[str] | Mapping[str, str]


def load_relation(
    name: str,
    source: Any,
    columns: Columns | None,
    domains: Domains,
    nulls: Nulls = "refuse",
    progress: bool = False,
    csv: CsvOptions | None = None,
) -> Relation:
    """Load a source as relation ``name``.

    ``columns``: names, as :func:`lftj.sources.read_table` takes them, or new names by old ones.  ``csv``: as
    there.

    Raises DataError: UnusableNameError, SourceError, NullError, UnsupportedTypeError, RangeError.
    """
    from lftj.sources import read_table

    check_relation_name(name)
    if isinstance(columns, Mapping):
        table = _renamed(read_table(source, None, progress, csv), columns)
    else:
        table = read_table(source, columns, progress, csv)
    _check_column_names(name, table.column_names)
    return Relation.from_table(name, table, domains, nulls, progress)


def is_usable(name: object) -> bool:
    """Whether a rule can name a relation or a variable so.

    >>> [is_usable(name) for name in ("edge", "_2", "my edge", "3", "true", "_")]
    [True, True, False, False, False, False]
    """
    return isinstance(name, str) and _NAME.fullmatch(name) is not None and name not in _TAKEN


def nearest_usable(name: str, others: Collection[str] = ()) -> str:
    """The usable name that is most like ``name`` and none of ``others``.

    >>> [nearest_usable(name) for name in ("my edge", "3", "true", "Größe", "count(*)", "é", "日本", "")]
    ['my_edge', '_3', 'true_', 'Grosse', 'count', 'e', 'x', 'x']
    >>> nearest_usable("a b", ["a_b", "a_b_2"])
    'a_b_3'
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss").replace("ẞ", "SS"))
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    near = re.sub(r"[^A-Za-z0-9_]+", "_", plain)
    if near != plain:
        near = near.strip("_")
    if near in ("", "_"):
        near = "x"
    if near in _TAKEN:
        near += "_"
    if near[0].isdigit():
        near = f"_{near}"
    found, number = near, 1
    while found in others:
        number += 1
        found = f"{near}_{number}"
    return found


def check_relation_name(name: str) -> None:
    """Raise UnusableNameError unless rules can use the name for a relation."""
    if not is_usable(name):
        hint = f": call it {nearest_usable(name)!r}" if isinstance(name, str) else ""
        raise UnusableNameError(f"{name!r} cannot be the name of a relation in a rule{hint}")


def _check_column_names(relation: str, names: Sequence[str]) -> None:
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
            near = difflib.get_close_matches(str(old), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, known))}"
            raise SourceError(f"columns= renames {old!r}, and there is no such column; {hint}")
    renamed = [names.get(name, name) for name in table.column_names]
    for name in renamed:
        if renamed.count(name) > 1:
            raise SourceError(f"columns= makes two columns {name!r}: names must differ")
    return table.rename_columns(renamed)
