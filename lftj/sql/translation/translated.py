"""`translated`: a SELECT as a program of rules, and how its head is shown as SQL's answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lftj.sql import nodes
from lftj.sql.nodes import Column, Limit, Node, Place, Project, With, types_of
from lftj.sql.reading.plans import read_plan
from lftj.sql.translation import aggregates, joins, recursions, windows
from lftj.sql.translation.bodies import Shape
from lftj.sql.translation.rules import Rule
from lftj.sql.translation.translating import Bags, Table, Translation
from lftj.statements.binder import Binder
from lftj.values.names import COPIES, usable_names
from lftj.values.schema import Schema

_BAGS: Bags = {
    nodes.Scan: Translation.scan,
    nodes.Values: Translation.values,
    nodes.Project: Translation.project,
    nodes.SetOperation: joins.set_operation,
    nodes.With: Translation.within,
    nodes.Recall: Translation.recall,
    nodes.Filter: windows.tested,
    nodes.Join: joins.joined,
    nodes.Aggregate: aggregates.aggregated,
    nodes.Window: windows.windowed,
    nodes.Limit: windows.limited,
    nodes.Unnest: recursions.unnested,
    nodes.Recursion: recursions.recursion,
}


@dataclass(frozen=True)
class Translated:
    """``rules``: the program, in which the head ``head`` has the rows; each behind those that it reads.

    ``columns``: those of the head that are shown, ``names``: what SQL calls them, ``types``: what it says
    that they are.  ``order``: columns of the head, descending, NULLs first.  ``reads``: the schemas of the
    tables that it names, ``recursive``: the heads that depend on themselves.
    """

    sql: str
    rules: tuple[Rule, ...]
    head: str
    columns: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    order: tuple[tuple[str, bool, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    reads: Mapping[str, Schema] = field(default_factory=dict)
    recursive: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """The program: a line for each rule."""
        return "\n".join(rule.text for rule in self.rules)

    @property
    def places(self) -> tuple[Place | None, ...]:
        """Of each rule in the SQL."""
        return tuple(rule.place for rule in self.rules)

    def holds_for(self, schemas: Mapping[str, Schema]) -> bool:
        """Whether it is the translation for relations of these schemas too."""
        same = all(schemas.get(name) == schema for name, schema in self.reads.items())
        return same and not any(rule.head in schemas for rule in self.rules)


def tables_of(schemas: Mapping[str, Schema]) -> tuple[dict[str, Table], dict[str, pa.Schema]]:
    """Relations as the translation and as the binder know them."""
    known, bound = {}, {}
    for name, schema in schemas.items():
        shown = schema.shown
        columns = tuple(column.name for column in shown.columns)
        may_be_null = frozenset(column.name for column in shown.columns if column.type.nullable)
        written = dict(zip(columns, usable_names(columns), strict=True))
        key = schema.key or columns
        shape = Shape(None if schema.bag else tuple(written[name] for name in key))
        known[name] = Table(written, may_be_null, shape)
        bound[name] = shown.arrow
    return known, bound


def translated(
    sql: str,
    binder: Binder,
    schemas: Mapping[str, Schema],
    head: str,
    *,
    kept: bool = False,
    taken: Collection[str] = (),
) -> Translated:
    """A SELECT over relations of these schemas.

    ``taken``: names that no head may have.  ``kept``: LIMIT is a part of what is kept; else
    it is one of reading, as ORDER BY is.
    Raises SqlError.
    """
    tables, bound = tables_of(schemas)
    plan = read_plan(sql, binder, bound)
    read, shown = (Limit(plan.node), tuple(range(len(plan.names)))) if kept else _reading(plan.node)
    node = read.child
    translation = Translation(plan, tables, head, _BAGS, taken)
    types = types_of(node)
    wanted = [f"order_{number + 1}" for number in range(len(types))]
    for place, name in zip(shown, plan.names, strict=True):
        wanted[place] = name
    names = usable_names(wanted, [COPIES])
    result = translation.result_head(node, names, types)
    needed = translation.rules.needed(result.relation)
    heads = {rule.head for rule in needed}
    return Translated(
        sql,
        tuple(needed),
        head,
        tuple(result.columns[place] for place in shown),
        plan.names,
        plan.types,
        tuple(
            (names[key.expression.index], key.descending, key.nulls_first)
            for key in read.keys
            if isinstance(key.expression, Column)
        ),
        read.limit,
        read.offset,
        {name: schemas[name] for name in plan.tables},
        frozenset(one for one in heads if any(one in rule.reads for rule in translation.rules.needed(one))),
    )


def _reading(node: Node) -> tuple[Limit, tuple[int, ...]]:
    """The rows of an answer, with columns that they are ordered by, and the places of those that it shows."""
    if isinstance(node, With):
        read, shown = _reading(node.body)
        return replace(read, child=replace(node, body=read.child)), shown
    of, whole = node, tuple(range(len(types_of(node))))
    shown = whole
    if isinstance(node, Project):
        of, shown = node.child, tuple(one.index for one in node.expressions if isinstance(one, Column))
    if not isinstance(of, Limit) or of.partition or len(set(shown)) < len(whole):
        return Limit(node), whole
    return (of, shown) if all(isinstance(key.expression, Column) for key in of.keys) else (Limit(node), whole)
