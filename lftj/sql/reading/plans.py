"""Plans: DuckDB's logical operators as nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from lftj.sql import nodes
from lftj.sql.nodes import Column, Compare, Constant, Expression, Node, Plan, types_of
from lftj.sql.reading.constants import read, series, type_name
from lftj.sql.reading.expressions import COMPARISONS, ExpressionReader, Parts, Written
from lftj.statements.binder import Binder

_DELIM = "__duckdb_delim"
"""What the names of CTEs begin with that DuckDB makes of correlated subqueries."""

_JOINS = ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "MARK", "SINGLE", "ASOF", "ASOF LEFT")
_FRAME_UNITS = ("rows", "range", "groups")


_ALIASES = {
    "count_star": "count",
    "countif": "count_if",
    "mean": "avg",
    "sum_no_overflow": "sum",
    "array_agg": "list",
    "stddev_samp": "stddev",
    "var_samp": "variance",
    "quantile_disc": "quantile",
    "rank_dense": "dense_rank",
    "first_value": "first",
    "last_value": "last",
    "nth_value": "nth",
    **dict.fromkeys(("first", "arbitrary"), "any_value"),
    **dict.fromkeys(("group_concat", "listagg"), "string_agg"),
    **dict.fromkeys(("min_by", "argmin"), "arg_min"),
    **dict.fromkeys(("max_by", "argmax"), "arg_max"),
}
"""Aggregates and windows that DuckDB has by several names, and the one that they have here."""


def read_plan(sql: str, binder: Binder, tables: Mapping[str, pa.Schema]) -> Plan:
    """The plan of a SELECT over tables of these names and columns.

    Raises SqlError; UnsupportedSqlError for what has no node here.
    """
    written, columns = binder.plan(sql, tables)
    reader = _Reader(sql, binder)
    node = reader.node(written)
    names, types = zip(*columns, strict=True)
    return Plan(node, names, types, frozenset(reader.tables), sql)


class _Reader(ExpressionReader):
    def __init__(self, sql: str, binder: Binder) -> None:
        super().__init__(sql, binder)
        self.tables: set[str] = set()

    def node(self, written: Written) -> Node:
        name = written["type"].removeprefix("LOGICAL_")
        if name not in _NODES:
            raise self.refusal(written, f"a plan with '{name.lower().replace('_', ' ')}'")
        below = map(self.node, written.get("children", ()))
        return self._mapped(_NODES[name](self, written, *below), written.get("projection_map"))

    def _mapped(self, node: Node, places: list[int] | None) -> Node:
        if not places or places == list(range(len(types_of(node)))):
            return node
        return nodes.Project(node, tuple(Column(place, "") for place in places))

    # -- rows ------------------------------------------------------------------------

    def _get(self, written: Written, *below: Node) -> Node:
        names, types = written["names"], written["returned_types"]
        places = [one.get("index", 0) for one in written.get("column_indexes", ())]
        table = (written.get("function_data") or {}).get("table")
        if table is None:
            return self._table_function(written, below, len(places), type_name(types[0]))
        self.tables.add(table)
        if max(places, default=0) >= len(names) and "rowid" in self.sql.lower():
            for asked in _row_numbers(self.binder.parsed(self.sql)):
                raise self.refusal(asked, "rowid", "load the numbers of rows as a column")
        return nodes.Scan(
            table,
            tuple(names[at] if at < len(names) else None for at in places),
            tuple(type_name(types[at]) if at < len(names) else "BIGINT" for at in places),
            place=self.place(written),
        )

    def _table_function(self, written: Written, below: tuple[Node, ...], n_columns: int, type_: str) -> Node:
        """Lists of constants or of the rows below: their elements, and columns of these rows."""
        name, place = written["qname"]["path"][-1], self.place(written)
        if name not in ("unnest", *nodes.SERIES) or "source_ordinality" in written:
            raise self.refusal(written, f"the table function {name}()", "load its rows as a relation")
        arguments: Parts = tuple(read(one, place) for one in written.get("parameters", ()))
        if below:
            arguments = tuple(Column(*one) for one in enumerate(map(type_name, written["input_table_types"])))
        of = arguments[0] if name == "unnest" else series(self.binder, name, arguments, f"{type_}[]")
        child = below[0] if below else _ONE_ROW
        kept = [Column(at, "") for at in written.get("projected_input", ())]
        element = [Column(len(types_of(child)), type_)] * n_columns
        return nodes.Project(nodes.Unnest(child, (of,), (type_,), place=place), (*element, *kept))

    def _values(self, written: Written, child: Node) -> Node:
        rows = tuple(map(self.all, written["expressions"]))
        return nodes.Values(child, rows, tuple(map(type_name, written["expr_types"])))

    # -- one child -------------------------------------------------------------------

    def _limit(self, written: Written, child: Node) -> Node:
        limit, offset = (self._number_of_rows(written, f"{part}_val") for part in ("limit", "offset"))
        is_ordered = isinstance(child, nodes.Limit) and child.limit is None and not child.offset
        of = child if isinstance(child, nodes.Limit) and is_ordered else nodes.Limit(child)
        return replace(of, limit=limit, offset=offset or 0)

    def _number_of_rows(self, written: Written, part: str) -> int | None:
        found = written.get(part, {"type": "UNSET"})
        if found["type"] == "UNSET":
            return None
        if found["type"] != "CONSTANT_VALUE":
            raise self.refusal(written, "LIMIT by an expression or a share", "write the number")
        return int(found.get("constant_integer", 0))

    def _distinct(self, written: Written, child: Node) -> Node:
        targets = self.all(written["distinct_targets"])
        if written.get("distinct_type", "DISTINCT") == "DISTINCT" and len(targets) == len(types_of(child)):
            return nodes.grouped(child)
        order = written.get("order_by", {}).get("orders", ())
        return nodes.Limit(child, self.keys(order), 1, partition=targets)

    def _aggregate(self, written: Written, child: Node) -> Node:
        groups = self.all(written.get("groups", ()))
        return nodes.Aggregate(
            child,
            groups,
            tuple(map(self._aggregate_call, written.get("expressions", ()))),
            tuple(map(tuple, written.get("grouping_sets", ()))) or (tuple(range(len(groups))),),
            tuple(map(tuple, written.get("grouping_functions", ()))),
        )

    def _aggregate_call(self, written: Written) -> nodes.AggregateCall:
        said = written["qname"]["path"][-1]
        name = _ALIASES.get(said, said)
        orders = (written.get("order_bys") or {}).get("orders", ())
        if orders and name in _FIRST:
            raise self.refusal(written, f"ORDER BY of {said}()", "list(x ORDER BY y)[1] is the first")
        arguments = self._arguments(name, written, written.get("filter"))
        return nodes.AggregateCall(
            name,
            arguments,
            self.type(written["return_type"], written),
            written.get("aggregate_type") == "DISTINCT",
            self.keys(orders) if name in ("list", "string_agg") else (),
            place=self.place(written) or nodes.place_around(one.place for one in arguments),
        )

    def _arguments(self, name: str, written: Written, condition: Written | None) -> Parts:
        """Of an aggregate: NULL where FILTER leaves a row out, numbers for booleans that are summed."""
        arguments = self.all(written.get("children", ()))
        if name in ("sum", "avg") and arguments[0].type == "BOOLEAN":
            arguments = (nodes.Cast(arguments[0], "INTEGER"),)
        if condition is None:
            return arguments
        if name == "list":
            raise self.refusal(written, "FILTER of list()", "select the rows in a subquery")
        first, *others = arguments or (Constant(1, "BIGINT"),)
        kept = nodes.Case(((self.read(condition), first),), Constant(None, first.type), first.type)
        return kept, *others

    def _window_call(self, written: Written) -> nodes.WindowCall:
        said = written["type"].removeprefix("WINDOW_").lower()
        said = written["qname"]["path"][-1] if said == "aggregate" else said
        name = _ALIASES.get(said, said)
        for part, what, instead in _NO_WINDOWS:
            if written.get(part, "NO_OTHER") not in ("NO_OTHER", False, []):
                raise self.refusal(written, what, instead)
        order = self.keys(written.get("orders", ()))
        if "sql_range_order_casts" in written:  # dates among which an interval counts
            order = tuple(replace(key, expression=_uncast(key.expression)) for key in order)
        return nodes.WindowCall(
            name,
            self._arguments(name, written, written.get("filters")),
            self.type(written["return_type"], written),
            order=order,
            partition=self.all(written.get("partitions", ())),
            frame=self._frame(written, bool(order)),
            place=self.place(written),
        )

    def _frame(self, written: Written, ordered: bool) -> tuple[str, Any, Any] | None:
        start, end = written["start"], written["end"]
        if (start, end) == ("UNBOUNDED_PRECEDING", "CURRENT_ROW_RANGE"):
            return None
        first = self._bound(written, start, "start_expr")
        last = self._bound(written, end, "end_expr")
        zero = type(first or last or 0)(0)
        if None not in (first, last) and (first or zero) > (last or zero):
            raise self.refusal(written, "a frame that ends before it begins")
        for unit in _FRAME_UNITS:
            if start.lower().endswith(unit) or end.lower().endswith(unit):
                return unit, first, last
        return ("rows", None, None) if ordered else None  # from end to end

    def _bound(self, written: Written, bound: str, part: str) -> Any:
        if bound.startswith("UNBOUNDED"):
            return None
        if bound.startswith("CURRENT_ROW"):
            return 0
        found = self.read(written[part])
        if isinstance(found, nodes.Call) and len(found.arguments) == 2:  # the order, plus or minus a constant
            found = found.arguments[1]
        value = found.value if isinstance(found, Constant) else None
        if isinstance(value, tuple) and value[0] == 0:
            value = timedelta(days=value[1], microseconds=value[2])
        if value is None or isinstance(value, tuple):
            what = "a frame between expressions or months"
            raise self.refusal(written, what, "RANGE takes a number, or an interval of days and less")
        return -value if "PRECEDING" in bound else value

    def _unnest(self, written: Written, child: Node) -> Node:
        calls = written["expressions"]
        return nodes.Unnest(
            child,
            tuple(self.read(call["child"]) for call in calls),
            tuple(type_name(call["return_type"]) for call in calls),
            place=self.place(calls[0]),
        )

    # -- two children ------------------------------------------------------------------

    def _join(self, written: Written, left: Node, right: Node) -> Node:
        kind, conditions = written["join_type"], []
        if written["type"] == "LOGICAL_ASOF_JOIN":
            kind = "ASOF" if kind == "INNER" else f"ASOF {kind}"
        maps = [written.get(f"{side}_projection_map") for side in ("left", "right")]
        general = [self.read(written["condition"])] if "condition" in written else []
        if general:  # over the columns that stay
            left, maps[0] = self._mapped(left, maps[0]), None
            if kind not in ("SEMI", "ANTI"):
                right, maps[1] = self._mapped(right, maps[1]), None
        for one in written.get("conditions", ()):
            sign = COMPARISONS.get(one["comparison"])
            if sign is None:  # of both sides, by the columns of both
                general.append(self.read(one["left"]))
            elif sign in ("=", "<=>") and (row := self._row(one["left"])):
                pairs = zip(row, self._row(one["right"]), strict=True)
                conditions += [Compare("<=>", *pair) for pair in pairs]
            else:
                conditions.append(Compare(sign, self.read(one["left"]), self.read(one["right"])))
        if kind not in _JOINS:
            raise self.refusal(written, f"a join of kind {kind.lower().replace('_', ' ')}")
        more = nodes.Logic("and", tuple(general)) if len(general) > 1 else next(iter(general), None)
        node = nodes.Join(kind, left, right, tuple(conditions), more, place=self.place(written))
        n_left, n_all = len(types_of(left)), len(types_of(node))
        lefts, rights = maps[0] or range(n_left), maps[1] or range(n_all - n_left)
        return self._mapped(node, [*lefts, *(n_left + place for place in rights)])

    def _set_operation(self, written: Written, left: Node, *others: Node) -> Node:
        kind = written["type"].removeprefix("LOGICAL_")
        for right in others:
            left = nodes.SetOperation(kind, left, right, written.get("setop_all", True))
        return left

    # -- names ---------------------------------------------------------------------------

    def _with(self, written: Written, definition: Node, body: Node) -> Node:
        name = written["ctename"]
        return nodes.With(written.get("table_index", 0), name, definition, body, name.startswith(_DELIM))

    def _recursion(self, written: Written, base: Node, step: Node) -> Node:
        for part, what in (("key_targets", "USING KEY"), ("ref_recurring", "recurring.")):
            if written.get(part):
                raise self.refusal(written, f"{what} in a recursion")
        return nodes.Recursion(
            written.get("table_index", 0),
            written["ctename"],
            base,
            step,
            tuple(map(type_name, written["internal_types"])),
            written.get("union_all", False),
            place=self.place(written),
        )


def _row_numbers(tree: Any) -> Iterator[Written]:
    """Where a text asks for numbers of rows.  Plans have them, too, where no column of a table is read."""
    if isinstance(tree, dict) and tree.get("class") == "COLUMN_REF":
        if tree["column_names"][-1].lower() == "rowid":
            yield tree
    elif isinstance(tree, dict | list):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _row_numbers(part)


_ONE_ROW = nodes.Values(None, ((Constant(0, "INTEGER"),),), ("INTEGER",))


def _uncast(of: Expression) -> Expression:
    return of.argument if isinstance(of, nodes.Cast) else of


_FIRST = ("any_value", "last", "quantile_cont", "quantile", "mode")
"""Aggregates whose value depends on an order that rules don't say."""

_NO_WINDOWS = (
    ("ignore_nulls", "IGNORE NULLS", "ask for the rows that are not NULL in a subquery"),
    ("distinct", "DISTINCT in a window", "group in a subquery and join it"),
    ("arg_orders", "ORDER BY among the arguments of a window", "order the window"),
    ("exclude_clause", "EXCLUDE in a frame", "take two frames, or the row's value off"),
)
"""Parts of windows that no rule says, and what to write instead."""

_NODES: dict[str, Callable[..., Node]] = {
    "GET": _Reader._get,
    "DUMMY_SCAN": lambda self, written: _ONE_ROW,
    "EMPTY_RESULT": lambda self, written: nodes.Values(
        None, (), tuple(map(type_name, written.get("return_types", ())))
    ),
    "EXPRESSION_GET": _Reader._values,
    "FILTER": lambda self, written, child: nodes.Filter(child, self.all(written["expressions"])),
    "PROJECTION": lambda self, written, child: nodes.Project(child, self.all(written.get("expressions", ()))),
    "ORDER_BY": lambda self, written, child: nodes.Limit(child, self.keys(written["orders"])),
    "LIMIT": _Reader._limit,
    "DISTINCT": _Reader._distinct,
    "AGGREGATE_AND_GROUP_BY": _Reader._aggregate,
    "WINDOW": lambda self, written, child: nodes.Window(
        child, tuple(map(self._window_call, written["expressions"]))
    ),
    "UNNEST": _Reader._unnest,
    "CROSS_PRODUCT": lambda self, written, left, right: nodes.Join("INNER", left, right),
    **dict.fromkeys(("COMPARISON_JOIN", "ANY_JOIN", "ASOF_JOIN"), _Reader._join),
    **dict.fromkeys(("UNION", "EXCEPT", "INTERSECT"), _Reader._set_operation),
    "MATERIALIZED_CTE": _Reader._with,
    "CTE_REF": lambda self, written: nodes.Recall(
        written.get("cte_index", 0), tuple(map(type_name, written["chunk_types"]))
    ),
    "RECURSIVE_CTE": _Reader._recursion,
}
"""The node of an operator, over those of its children."""
