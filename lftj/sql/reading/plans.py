"""Plans: DuckDB's logical operators as nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lftj.sql.errors import unsupported
from lftj.sql.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Cast,
    Column,
    Compare,
    Constant,
    Distinct,
    Expression,
    Filter,
    Join,
    Limit,
    Logic,
    Node,
    Ordered,
    Place,
    Plan,
    Project,
    Recall,
    Recursion,
    Scan,
    Union,
    Unnest,
    Values,
    Window,
    WindowCall,
    With,
    Without,
    types_of,
)
from lftj.sql.reading.binder import Binder, character_place
from lftj.sql.reading.constants import MOST_ROWS, read, series, type_name
from lftj.sql.reading.expressions import COMPARISONS, ExpressionReader

Written = Mapping[str, Any]

_DELIM = "__duckdb_delim"
"""What the names of CTEs begin with that DuckDB makes of correlated subqueries."""

_JOINS = {
    "OUTER": "FULL",
    "FULL": "FULL",
    **{k: k for k in ("INNER", "LEFT", "RIGHT", "SEMI", "ANTI", "MARK", "SINGLE")},
}
_FRAME_UNITS = {"ROWS": "rows", "RANGE": "range", "GROUPS": "groups"}


def read_plan(sql: str, binder: Binder, tables: Mapping[str, pa.Schema]) -> Plan:
    """The plan of a SELECT over tables of these names and columns.

    Raises SqlError; UnsupportedSqlError for what has no node here.
    """
    written, columns = binder.plan(sql, tables)
    reader = _Reader(sql, binder)
    node = reader.node(written)
    names, types = zip(*columns, strict=True)
    return Plan(node, names, types, frozenset(reader.tables), sql)


class _Reader:
    def __init__(self, sql: str, binder: Binder) -> None:
        self._sql, self._binder = sql, binder
        self._of = ExpressionReader(sql, binder)
        self.tables: set[str] = set()

    def node(self, written: Written) -> Node:
        name = written["type"].removeprefix("LOGICAL_")
        if name not in _NODES:
            what = name.lower().replace("_", " ")
            raise unsupported(self._sql, character_place(self._sql, written), f"a plan with '{what}'")
        return _NODES[name](self, written)

    def _child(self, written: Written) -> Node:
        return self.node(written["children"][0])

    def _both(self, written: Written) -> tuple[Node, Node]:
        left, right = written["children"]
        return self.node(left), self.node(right)

    # -- rows ------------------------------------------------------------------------

    def _get(self, written: Written) -> Node:
        place = character_place(self._sql, written)
        data = written.get("function_data") or {}
        names, types = written["names"], written["returned_types"]
        places = [one.get("index", 0) for one in written.get("column_indexes", [])]
        if "table" not in data:
            return self._table_function(written, place, len(places), type_name(types[0]))
        self.tables.add(data["table"])
        return Scan(
            data["table"],
            tuple(names[at] if at < len(names) else None for at in places),
            tuple(type_name(types[at]) if at < len(names) else "BIGINT" for at in places),
            place,
        )

    def _table_function(self, written: Written, place: Place | None, n_columns: int, type_: str) -> Node:
        """Of constants: their rows; ``unnest`` of lists of the rows below: elements and its columns."""
        name = written["qname"]["path"][-1]
        if name == "unnest" and "source_ordinality" not in written:
            of: Expression = Column(0, type_name(written["input_table_types"][0]))
            child = self._child(written) if "children" in written else self._one_row(written)
            if "children" not in written:
                of = read(written["parameters"][0], place)
            kept = [Column(at, "") for at in written.get("projected_input", ())]
            element = [Column(len(types_of(child)), type_)] * n_columns
            return Project(Unnest(child, (of,), (type_,), place), (*element, *kept))
        if name in ("range", "generate_series") and "children" not in written:
            arguments = [read(one, place) for one in written["parameters"]]
            constants = [one for one in arguments if isinstance(one, Constant)]
            found = series(self._binder, name, constants, type_)
            if len(found) <= MOST_ROWS:
                return Values(None, tuple((one,) * n_columns for one in found), (type_,) * n_columns)
        raise unsupported(self._sql, place, f"the table function {name}()", "load its rows as a relation")

    def _one_row(self, written: Written) -> Node:
        return Values(None, ((Constant(0, "INTEGER"),),), ("INTEGER",))

    def _no_rows(self, written: Written) -> Node:
        return Values(None, (), tuple(map(type_name, written.get("return_types", ()))))

    def _values(self, written: Written) -> Node:
        rows = tuple(self._of.all(row) for row in written["expressions"])
        return Values(self._child(written), rows, tuple(map(type_name, written["expr_types"])))

    # -- one child -------------------------------------------------------------------

    def _filter(self, written: Written) -> Node:
        node: Node = Filter(self._child(written), self._of.all(written["expressions"]))
        return self._mapped(node, written.get("projection_map"))

    def _project(self, written: Written) -> Node:
        return Project(self._child(written), self._of.all(written.get("expressions", ())))

    def _mapped(self, node: Node, places: list[int] | None) -> Node:
        if not places or places == list(range(len(types_of(node)))):
            return node
        return Project(node, tuple(Column(place, "") for place in places))

    def _order(self, written: Written) -> Node:
        node: Node = Ordered(self._child(written), self._of.keys(written["orders"]))
        return self._mapped(node, written.get("projection_map"))

    def _limit(self, written: Written) -> Node:
        limit = self._number_of_rows(written, "limit_val")
        return Limit(self._child(written), limit, self._number_of_rows(written, "offset_val") or 0)

    def _number_of_rows(self, written: Written, part: str) -> int | None:
        found = written.get(part, {"type": "UNSET"})
        if found["type"] == "UNSET":
            return None
        if found["type"] != "CONSTANT_VALUE":
            raise unsupported(self._sql, None, "LIMIT by an expression or a share", "write the number")
        return int(found.get("constant_integer", 0))

    def _distinct(self, written: Written) -> Node:
        child = self._child(written)
        if written.get("distinct_type", "DISTINCT") == "DISTINCT":
            return Distinct(child)
        order = written.get("order_by", {}).get("orders", ())
        return Distinct(child, self._of.all(written["distinct_targets"]), self._of.keys(order))

    def _aggregate(self, written: Written) -> Node:
        groups = self._of.all(written.get("groups", ()))
        sets = [tuple(found) for found in written.get("grouping_sets", ())]
        return Aggregate(
            self._child(written),
            groups,
            tuple(map(self._aggregate_call, written.get("expressions", ()))),
            tuple(sets) if len(sets) > 0 else (tuple(range(len(groups))),),
            tuple(tuple(found) for found in written.get("grouping_functions", ())),
        )

    def _aggregate_call(self, written: Written) -> AggregateCall:
        orders = (written.get("order_bys") or {}).get("orders", ())
        return AggregateCall(
            written["qname"]["path"][-1],
            self._of.all(written.get("children", ())),
            type_name(written["return_type"]),
            written.get("aggregate_type") == "DISTINCT",
            self._of.read(written["filter"]) if written.get("filter") else None,
            self._of.keys(orders),
            character_place(self._sql, written),
        )

    def _window(self, written: Written) -> Node:
        return Window(self._child(written), tuple(map(self._window_call, written["expressions"])))

    def _window_call(self, written: Written) -> WindowCall:
        place = character_place(self._sql, written)
        name = written["type"].removeprefix("WINDOW_").lower()
        if name == "aggregate":
            name = written["qname"]["path"][-1]
        for part, what, instead in _NO_WINDOWS:
            if written.get(part, "NO_OTHER") not in ("NO_OTHER", False, []):
                raise unsupported(self._sql, place, what, instead)
        arguments = self._of.all(written.get("children", ()))
        for part in ("offset_expr", "default_expr"):
            if part in written:
                arguments = (*arguments, self._of.read(written[part]))
        order = self._of.keys(written.get("orders", ()))
        if "sql_range_order_casts" in written:  # dates among which an interval of days counts
            order = tuple(replace(key, expression=_uncast(key.expression)) for key in order)
        return WindowCall(
            name,
            arguments,
            self._of.all(written.get("partitions", ())),
            order,
            type_name(written["return_type"]),
            self._frame(written, bool(order)),
            self._of.read(written["filters"]) if written.get("filters") else None,
            place,
        )

    def _frame(self, written: Written, ordered: bool) -> tuple[str, Any, Any] | None:
        start, end = written["start"], written["end"]
        if (start, end) == ("UNBOUNDED_PRECEDING", "CURRENT_ROW_RANGE"):
            return None
        first = self._bound(written, start, "start_expr")
        last = self._bound(written, end, "end_expr")
        units = [unit for unit in _FRAME_UNITS if start.endswith(unit) or end.endswith(unit)]
        if not units:  # from end to end
            return ("rows", None, None) if ordered else None
        return _FRAME_UNITS[units[0]], first, last

    def _bound(self, written: Written, bound: str, part: str) -> Any:
        if bound.startswith("UNBOUNDED"):
            return None
        if bound.startswith("CURRENT_ROW"):
            return 0
        found = self._of.read(written[part])
        if isinstance(found, Call) and len(found.arguments) == 2:  # the order, plus or minus a constant
            found = found.arguments[1]
        value = found.value if isinstance(found, Constant) else None
        if isinstance(value, tuple) and "sql_range_order_casts" in written and value[0] == value[2] == 0:
            value = value[1]
        if value is None or isinstance(value, tuple):
            place, what = character_place(self._sql, written), "a frame between expressions or intervals"
            raise unsupported(self._sql, place, what, "RANGE takes a number, or days of a DATE")
        return -value if "PRECEDING" in bound else value

    def _unnest(self, written: Written) -> Node:
        calls = written["expressions"]
        return Unnest(
            self._child(written),
            tuple(self._of.read(call["child"]) for call in calls),
            tuple(type_name(call["return_type"]) for call in calls),
            character_place(self._sql, calls[0]),
        )

    # -- two children ------------------------------------------------------------------

    def _product(self, written: Written) -> Node:
        left, right = self._both(written)
        return Join("INNER", left, right)

    def _comparison_join(self, written: Written) -> Node:
        conditions, general = [], []
        for one in written.get("conditions", ()):
            if one["comparison"] not in COMPARISONS:  # of both sides, by the columns of both
                general.append(self._of.read(one["left"]))
                continue
            conditions.append(
                Compare(
                    COMPARISONS[one["comparison"]], self._of.read(one["left"]), self._of.read(one["right"])
                )
            )
        return self._join(written, tuple(conditions), Logic("and", tuple(general)) if general else None)

    def _any_join(self, written: Written) -> Node:
        return self._join(written, (), self._of.read(written["condition"]))

    def _join(self, written: Written, conditions: tuple[Compare, ...], general: Expression | None) -> Node:
        left, right = self._both(written)
        kind = written["join_type"]
        if kind not in _JOINS:
            what = f"a join of kind {kind.lower().replace('_', ' ')}"
            raise unsupported(self._sql, character_place(self._sql, written), what)
        node = Join(_JOINS[kind], left, right, conditions, general, character_place(self._sql, written))
        lefts = written.get("left_projection_map")
        rights = written.get("right_projection_map")
        if kind in ("SEMI", "ANTI"):
            return self._mapped(node, lefts)
        n_left, n_all = len(types_of(left)), len(types_of(node))
        if kind == "MARK":
            return self._mapped(node, [*lefts, n_left]) if lefts else node
        if not lefts and not rights:
            return node
        kept = list(lefts or range(n_left))
        kept += [n_left + place for place in rights] if rights else range(n_left, n_all)
        return self._mapped(node, kept)

    def _union(self, written: Written) -> Node:
        left, *others = map(self.node, written["children"])
        for right in others:
            left = Union(left, right, written.get("setop_all", True))
        return left

    def _except(self, written: Written) -> Node:
        left, right = self._both(written)
        keeps = written["type"] == "LOGICAL_INTERSECT"
        return Without(left, right, keeps, written.get("setop_all", True))

    # -- names ---------------------------------------------------------------------------

    def _with(self, written: Written) -> Node:
        definition, body = self._both(written)
        name = written["ctename"]
        return With(written.get("table_index", 0), name, definition, body, name.startswith(_DELIM))

    def _recall(self, written: Written) -> Node:
        return Recall(written.get("cte_index", 0), tuple(map(type_name, written["chunk_types"])))

    def _recursion(self, written: Written) -> Node:
        place = character_place(self._sql, written)
        if written.get("key_targets"):
            raise unsupported(self._sql, place, "USING KEY in a recursion")
        base, step = self._both(written)
        types = tuple(map(type_name, written["internal_types"]))
        union_all = written.get("union_all", False)
        return Recursion(
            written.get("table_index", 0), written["ctename"], base, step, types, union_all, place
        )


def _uncast(of: Expression) -> Expression:
    return of.argument if isinstance(of, Cast) else of


_NO_WINDOWS = (
    ("ignore_nulls", "IGNORE NULLS", "ask for the rows that are not NULL in a subquery"),
    ("distinct", "DISTINCT in a window", "group in a subquery and join it"),
    ("arg_orders", "ORDER BY among the arguments of a window", "order the window"),
    ("exclude_clause", "EXCLUDE in a frame", "take two frames, or the row's value off"),
)
"""Parts of windows that no rule says, and what to write instead."""

_NODES: dict[str, Callable[[_Reader, Written], Node]] = {
    "GET": _Reader._get,
    "DUMMY_SCAN": _Reader._one_row,
    "EMPTY_RESULT": _Reader._no_rows,
    "EXPRESSION_GET": _Reader._values,
    "FILTER": _Reader._filter,
    "PROJECTION": _Reader._project,
    "ORDER_BY": _Reader._order,
    "LIMIT": _Reader._limit,
    "DISTINCT": _Reader._distinct,
    "AGGREGATE_AND_GROUP_BY": _Reader._aggregate,
    "WINDOW": _Reader._window,
    "UNNEST": _Reader._unnest,
    "CROSS_PRODUCT": _Reader._product,
    "COMPARISON_JOIN": _Reader._comparison_join,
    "ANY_JOIN": _Reader._any_join,
    "UNION": _Reader._union,
    "EXCEPT": _Reader._except,
    "INTERSECT": _Reader._except,
    "MATERIALIZED_CTE": _Reader._with,
    "CTE_REF": _Reader._recall,
    "RECURSIVE_CTE": _Reader._recursion,
}
