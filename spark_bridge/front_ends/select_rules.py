"""A SELECT over DataFrames as rules, by the translator of :mod:`lftj.sql`; nothing is run.

DuckDB binds the text over the names and types of the DataFrames.  A column of a type that can't be joined on
is text to it: what reads the column is refused when its DataFrame is taken.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from lftj.errors import SourceError, UnsupportedTypeError, UnusableNameError
from lftj.language.parser import parse
from lftj.language.strata import atoms_of
from lftj.sql.errors import unsupported
from lftj.sql.translation.rules import Rule
from lftj.sql.translation.translated import Translated, translated
from lftj.statements.binder import Binder
from lftj.values.domains import Domains
from lftj.values.names import nearest_usable, usable_names
from lftj.values.schema import Column, ColumnType, Schema, copy_column
from spark_bridge.placing.schemas import column_names, column_type

HEAD = "answer"
_BETWEEN = ";\n"


def select_rules(sql: str, relations: Mapping[str, DataFrame]) -> Translated:
    """A SELECT over DataFrames, whose rows count as often as they are there.

    Raises SqlError, UnsupportedSqlError for what needs all rows again and again, and SourceError; ImportError
    without DuckDB.
    """
    return _translated(sql, relations, bags=True)


def each_translated(
    sql: str | Mapping[str, str], relations: Mapping[str, DataFrame], translate: Callable[..., Translated]
) -> list[Translated]:
    """A SELECT, or several by name: programs whose heads have different names.

    ``translate``: :func:`kept_rules` or :func:`workspace_rules`, which may raise.  Raises UnusableNameError
    and SourceError for names that heads can't have.
    """
    if isinstance(sql, str):
        return [translate(sql, relations)]
    if not sql:
        raise SourceError("there is no SELECT")
    found: list[Translated] = []
    for name, text in sql.items():
        if nearest_usable(name) != name:
            raise UnusableNameError(f"{name!r} cannot name a head: take {nearest_usable(name)!r}")
        if name in relations:
            raise SourceError(f"{name!r} is a relation already: call the SELECT otherwise")
        taken = {*sql, *(rule.head for of in found for rule in of.rules)} - {name}
        found.append(translate(text, relations, head=name, taken=taken))
    return found


def together(found: Sequence[Translated]) -> Translated:
    """Several programs as one, of a SQL in which theirs stand below each other: errors have places there."""
    if len(found) == 1:
        return found[0]
    rules: list[Rule] = []
    start = 0
    for of in found:
        for rule in of.rules:
            place = None if rule.place is None else (start + rule.place[0], start + rule.place[1])
            rules.append(replace(rule, place=place))
        start += len(of.sql) + len(_BETWEEN)
    return replace(found[0], sql=_BETWEEN.join(of.sql for of in found), rules=tuple(rules))


def kept_rules(
    sql: str,
    relations: Mapping[str, DataFrame],
    keys: Mapping[str, Sequence[str]],
    head: str | None = None,
    taken: Collection[str] = (),
) -> Translated:
    """A SELECT over DataFrames without equal rows, as a program that a state keeps.

    ``keys``: by relation, columns in which no two of its rows agree: what shows them has no equal rows.
    ``head``: what the result is called, ``taken``: names that no other head may have.
    Raises as :func:`select_rules` does, and UnsupportedSqlError for what is not kept.
    """
    found = _named(_translated(sql, relations, bags=False, keys=keys, head=head, taken=taken), relations)
    if found.order or found.limit is not None or found.offset:
        raise unsupported(sql, None, "ORDER BY or LIMIT in what is kept", "order what table() gives")
    for rule in found.rules:
        for there, what, instead in (
            (rule.windows, "a window or LIMIT in what is kept", "take join_sql of the relations"),
            (rule.defaults, "an aggregate without GROUP BY in what is kept", "group by a column"),
            (rule.bag, "what has equal rows", "write SELECT DISTINCT, or show a key of each table"),
            (not rule.reads, "a row of constants in what is kept", "load it as a relation"),
        ):
            if there:
                raise unsupported(sql, rule.place, what, instead)
    return found


def workspace_rules(
    sql: str, relations: Mapping[str, DataFrame], head: str | None = None, taken: Collection[str] = ()
) -> Translated:
    """A SELECT over DataFrames without equal rows, as a program that a workspace keeps.

    ``head`` and ``taken`` as for :func:`kept_rules`.
    Raises SqlError, UnsupportedSqlError, UnusableNameError and SourceError; ImportError without DuckDB.
    """
    found = _named(_translated(sql, relations, bags=False, kept=True, head=head, taken=taken), relations)
    if not any(rule.reads & relations.keys() for rule in found.rules):
        raise unsupported(sql, None, "a row of constants in what is kept", "load it as a relation")
    return found


def _named(found: Translated, relations: Mapping[str, DataFrame]) -> Translated:
    """The same, where all names are such as rules can write."""
    for atom in (atom for rule in parse(found.text).rules for atom in atoms_of(rule.body)):
        if atom.relation in relations:
            columns = relations[atom.relation].columns
            for column, written in zip(columns, usable_names(columns), strict=True):
                if column != written and written in [named.name for named in atom.names]:
                    raise UnusableNameError(
                        f"relation {atom.relation!r}: column {column!r} can't be kept under a name that no"
                        f" rule can write: rename it with toDF(), as in {written!r}"
                    )
    return found


def _translated(
    sql: str,
    relations: Mapping[str, DataFrame],
    *,
    bags: bool,
    kept: bool = False,
    keys: Mapping[str, Sequence[str]] | None = None,
    head: str | None = None,
    taken: Collection[str] = (),
) -> Translated:
    column_names(relations)
    for names, where in (
        (list(relations), "relations"),
        *((frame.columns, f"relation {name!r}") for name, frame in relations.items()),
    ):
        once: dict[str, str] = {}
        for name in names:
            other = once.setdefault(name.lower(), name)
            if other != name:
                raise SourceError(f"{where}: {other!r} and {name!r} are one name in SQL: rename one")
    schemas = {name: _schema(name, frame, bags) for name, frame in relations.items()}
    schemas |= {name: schemas[name].with_key(key) for name, key in (keys or {}).items()}
    if head is None:
        head = HEAD
        while head in relations:
            head += "_"
    found = translated(sql, _binder(), schemas, head, kept=kept, taken=taken)
    for name in relations:
        if nearest_usable(name) != name and any(name in rule.reads for rule in found.rules):
            raise UnusableNameError(
                f"relation {name!r} cannot be named in a rule: give it as {nearest_usable(name)!r}"
            )
    return found


@functools.cache
def _binder() -> Binder:
    return Binder()


def _schema(name: str, frame: DataFrame, bag: bool) -> Schema:
    domains = Domains()
    columns = []
    for field in frame.schema:
        try:
            arrow = column_type(name, field.name, field.dataType)
        except UnsupportedTypeError:
            arrow = pa.string()
        columns.append(Column(field.name, ColumnType(domains.of(arrow), arrow, field.nullable)))
    return Schema((*columns, copy_column(domains)) if bag else tuple(columns), bag=bag)
