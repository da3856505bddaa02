"""`Translation`: a plan's nodes as bags of bodies, and the heads that they stand on.

What joins, filters and projects stays in bodies; groups, distinct rows, windows and the inner side of EXISTS
are heads.  A node's head is made once, however often the node is read; definitions (WITH) are read where they
are named, unless that would repeat much.

Invariants

1. Bodies of a bag show columns of the same number and types.
2. Each call of :meth:`Translation.bag` gives variables that no other has: a bag can be joined with itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lftj.errors import UnsupportedSqlError
from lftj.sql import nodes
from lftj.sql.errors import unsupported
from lftj.sql.nodes import Column, Compare, Constant, Defined, Exists, Expression, Node, Place, Plan, Variable
from lftj.sql.translation.bodies import Atom, Bag, Body, Head, Shape, apart, determined, names_of, projected
from lftj.sql.translation.expressions import exists_in, nullable, walked
from lftj.sql.translation.rules import Rules, Window

MOST_BODIES = 4
"""Of a bag that is read as it is; with more it is a head."""

MOST_EXISTS = 3
"""In the columns of a body, each of which doubles the alternatives."""

MOST_PARTS = 32
"""Of a column's value that is written wherever it is read."""


@dataclass(frozen=True)
class Table:
    """What is known of a relation that SQL reads: its columns, with what rules call them, those that may hold
    NULL, its shape.
    """

    columns: Mapping[str, str]
    nullable: frozenset[str]
    shape: Shape


Bags = Mapping[type, Callable[["Translation", Any], Bag]]
"""What gives the bags of nodes, by their class."""


class Translation:
    """One statement.

    ``name``: that its result has; ``tables``: all relations by name; ``bags``: what nodes give; ``taken``:
    names that no head may have.
    """

    def __init__(
        self, plan: Plan, tables: Mapping[str, Table], name: str, bags: Bags, taken: Collection[str] = ()
    ) -> None:
        self.sql = plan.sql
        self.tables = tables
        self.rules = Rules(name, {name, *tables, *taken}, self.refusal)
        self.rules.shapes.update({relation: table.shape for relation, table in tables.items()})
        self.result = name
        self._bags = bags
        self._numbers = itertools.count()
        self._heads: dict[object, Any] = {}
        self._definitions: dict[int, nodes.With | Head] = {}

    def refusal(self, place: Place | None, what: str, instead: str = "") -> UnsupportedSqlError:
        return unsupported(self.sql, place, what, instead)

    # -- variables and heads ------------------------------------------------------------------

    def variable(
        self, name: str, type_: str, may_be_null: bool = True, place: Place | None = None
    ) -> Variable:
        return Variable(next(self._numbers), name, type_, may_be_null, place=place)

    def once(self, key: object, make: Callable[[], Any]) -> Any:
        """What is made for a node or an expression of one, the first time."""
        if key not in self._heads:
            self._heads[key] = make()
        return self._heads[key]

    def head(
        self,
        wanted: str,
        rows: Sequence[tuple[Body, Sequence[Expression]]],
        *,
        types: Sequence[str],
        bag: bool = False,
        names: Sequence[str] | None = None,
        relation: str | None = None,
        key: int | None = None,
        always: bool = False,
        windows: Sequence[Window] = (),
        place: Place | None = None,
    ) -> Head:
        """A head of what bodies give: distinct tuples, of a bag all; one of a constant without columns.

        ``key``: how many columns, the first, say the others; ``always``: it has one row, whatever the data.
        """
        relation = relation or self.rules.name(wanted)
        columns = tuple(
            names or names_of(rows[0][1] if rows else [Constant(None, type_) for type_ in types])
        ) or ("c1",)
        may_be_null = [False] * len(columns)
        shown = (body.showing(tuple(values) or (Constant(1, "INTEGER"),)) for body, values in rows)
        for each in [one for body in shown for one in apart(body)] or [self.nothing(types or ("INTEGER",))]:
            terms = list(zip(columns, each.columns, strict=True))
            self.rules.add(relation, terms, each, bag=bag, windows=windows, place=place)
            for number, of in enumerate(each.columns):
                may_be_null[number] |= nullable(of)
        self.rules.shapes.setdefault(relation, Shape(None if bag else columns[:key], always))
        return Head(relation, columns, tuple(types) or ("INTEGER",), tuple(may_be_null))

    def read(self, head: Head, n_shown: int | None = None) -> Body:
        """A body that reads a head, of which it shows the first columns."""
        found = [
            self.variable(name, type_, may_be_null)
            for name, type_, may_be_null in zip(head.columns, head.types, head.nullable, strict=True)
        ]
        atom = Atom(head.relation, tuple(zip(head.columns, found, strict=True)))
        return Body((atom,), (), tuple(found[:n_shown]))

    def materialised(self, wanted: str, bag: Bag, types: Sequence[str], place: Place | None = None) -> Body:
        """A bag as one body: itself, or a head of its rows, in which equal columns are one."""
        bag = [each for body in bag for each in apart(body)]
        if not bag:
            return self.nothing(types)
        if len(bag) == 1:
            return bag[0]
        columns = list(zip(*(body.columns for body in bag), strict=True))
        kept = dict(zip(columns, types, strict=True))
        bag = [body.showing(column[number] for column in kept) for number, body in enumerate(bag)]
        found = self.read(self._rows_head(wanted, bag, list(kept.values()), place=place), len(kept))
        shown = dict(zip(kept, found.columns, strict=True))
        return found.showing(shown[column] for column in columns)

    def _rows_head(self, wanted: str, bag: Bag, types: Sequence[str], **options: Any) -> Head:
        rows = [(body, body.columns) for body in bag]
        return self.head(wanted, rows, types=types, bag=not self._is_set(bag), **options)

    def _is_set(self, bag: Bag) -> bool:
        """Whether it has no equal rows, as far as that is seen."""
        return len(bag) == 1 and determined(bag[0], bag[0].columns, self.rules.shapes)

    def types_of(self, node: Node) -> tuple[str, ...]:
        """The types of a node's columns."""
        return self.once((node, "types"), lambda: nodes.types_of(node))

    # -- nodes ------------------------------------------------------------------------------------

    def bag(self, node: Node) -> Bag:
        """What a node gives."""
        if (node, "bag") in self._heads:
            return [self._again(body) for body in self._heads[node, "bag"]]
        found = self._bags[type(node)](self, node)
        asked = [
            {one for of in body.computed for one in walked(of) if isinstance(one, Exists)} for body in found
        ]
        few = len(found) <= MOST_BODIES and max(map(len, asked), default=0) <= MOST_EXISTS
        if not few and not isinstance(node, nodes.Values):
            types = self.types_of(node)
            found = [self.read(self._rows_head("rows", found, types), len(types))]
        return self.once((node, "bag"), lambda: found)

    def _again(self, body: Body) -> Body:
        """With other variables."""
        known: dict[int, Variable] = {}

        def change(one: Expression) -> Expression | None:
            if not isinstance(one, Variable):
                return None
            if one.number not in known:
                known[one.number] = self.variable(one.name, one.type, one.nullable, one.place)
            return replace(known[one.number], nullable=one.nullable)

        return body.mapped(change)

    def scan(self, node: nodes.Scan) -> Bag:
        table = self.tables[node.table]
        shown: list[Expression] = []
        terms: list[tuple[str, Variable]] = []
        for name, type_ in zip(node.columns, node.types, strict=True):
            if name is None:
                shown.append(_NO_VALUE)
            else:
                of = self.variable(name, type_, name in table.nullable, node.place)
                terms.append((table.columns[name], of))
                shown.append(of)
        if not terms:
            first = next(iter(table.columns.values()))
            terms = [(first, self.variable(first, ""))]
        return [Body((Atom(node.table, tuple(terms), place=node.place),), (), tuple(shown))]

    def values(self, node: nodes.Values) -> Bag:
        below = [Body()] if node.child is None else self.bag(node.child)
        return [each for row in node.rows for each in projected(below, row)]

    def project(self, node: nodes.Project) -> Bag:
        return [self._short(body) for body in projected(self.bag(node.child), node.expressions)]

    def _short(self, body: Body) -> Body:
        """With variables in the place of long values, which else are written wherever they are read."""
        defined: dict[Expression, Variable] = {}
        for of in body.computed:
            if len(list(itertools.islice(walked(of), MOST_PARTS + 1))) > MOST_PARTS and not exists_in(of):
                defined[of] = self.variable("v", of.type, nullable(of))
        if not defined:
            return body
        tests = tuple(Defined(variable, of) for of, variable in defined.items())
        return replace(body, tests=body.tests + tests).showing(defined.get(of, of) for of in body.columns)

    def distinct(self, node: Node, bag: Bag) -> Bag:
        """The distinct rows of a node's bag."""
        types = self.types_of(node)
        if not bag or self._is_set(bag):
            return bag
        rows = [(body, body.columns) for body in bag]
        return [self.read(self.head("distinct", rows, types=types), len(types))]

    # -- definitions ------------------------------------------------------------------------------

    def within(self, node: nodes.With) -> Bag:
        self._definitions[node.number] = node
        return self.bag(node.body)

    def recall(self, node: nodes.Recall) -> Bag:
        of = self._definitions[node.number]
        if isinstance(of, Head):
            return [self.read(of, len(node.types))]
        found = self.bag(of.definition)
        if of.correlates:
            return [replace(body, rows=(*body.rows, (node.number, body.columns))) for body in found]
        if not found or (len(found) == 1 and len(found[0].atoms) <= 1):
            return found
        head = self.once(of, lambda: self._rows_head(of.name, found, node.types))
        return [self.read(head, len(node.types))]

    def define(self, number: int, head: Head) -> None:
        """What a definition is from now on."""
        self._definitions[number] = head

    def definition(self, number: int) -> Node | None:
        of = self._definitions.get(number)
        return of.definition if isinstance(of, nodes.With) else None

    def distinct_of(self, node: Node | None) -> tuple[int, tuple[int, ...]] | None:
        """The definition of a correlated subquery whose distinct rows a node has, and the columns' places."""
        if not isinstance(node, nodes.Aggregate) or node.calls or not isinstance(node.child, nodes.Recall):
            return None
        of = self._definitions[node.child.number]
        places = tuple(one.index for one in node.groups if isinstance(one, Column))
        if len(places) < len(node.groups) or not isinstance(of, nodes.With) or not of.correlates:
            return None
        return of.number, places

    def is_always_there(self, body: Body) -> bool:
        """Whether it has one row, whatever the data."""
        return not body.tests and all(self.rules.shapes[atom.relation].always for atom in body.atoms)

    # -- the result -------------------------------------------------------------------------------

    def result_head(self, node: Node, names: Sequence[str], types: Sequence[str]) -> Head:
        """The head with the name of the result: its rows, as often as SQL has them."""
        bag = self.bag(node) or [self.nothing(types)]
        if len(bag) == 1 and self.rules.becomes_result(bag[0], names):
            return Head(self.result, tuple(names), tuple(types), tuple(map(nullable, bag[0].columns)))
        return self._rows_head(self.result, bag, types, names=names, relation=self.result)

    def nothing(self, types: Sequence[str]) -> Body:
        """A body without rows, of columns of these types."""
        head = self.once(
            "one", lambda: self.head("one", [(Body(), (Constant(1, "INTEGER"),))], types=("INTEGER",))
        )
        body = self.read(head)
        (one,) = body.columns
        never = replace(body, tests=(Compare("<", one, Constant(1, "INTEGER")),))
        return never.showing(Constant(None, type_) for type_ in types)


_NO_VALUE = Constant(0, "BIGINT")
"""Of a column that nobody reads."""
