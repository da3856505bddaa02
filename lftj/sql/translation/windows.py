"""OVER, QUALIFY, DISTINCT ON, and LIMIT where it is not the answer's: heads with windows.

A head has the windows of one PARTITION BY and ORDER BY, over the rows of the head before it.
``row_number() ... <= k`` keeps the first k rows of each partition, which a change costs O(log n)
(docs/language.md).

Source: SQL:2003, 4.14.9 (windowed tables).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lftj.sql import nodes
from lftj.sql.nodes import Column, Compare, Constant, Expression, Variable
from lftj.sql.translation.bodies import Bag, Head, filtered
from lftj.sql.translation.expressions import over
from lftj.sql.translation.translating import Translation

_ORDERED = ("row_number", "rank", "dense_rank", "ntile", "percent_rank", "cume_dist", "lag", "lead")
_FRAMED = ("count", "sum", "avg", "min", "max", "first", "last", "nth")
_MOVED = ("lag", "lead")
_BY = {**dict.fromkeys(_MOVED, 1), "ntile": -1, "nth": -1}
"""Windows by a number of rows, and the place of the argument that says it."""

_NUMBERS = ("row_number", "rank", "dense_rank", "ntile", "count")
"""Windows that are not NULL."""


def windowed(t: Translation, node: nodes.Window) -> Bag:
    """The bag of a window: the child's columns and a value for each call."""
    return [t.read(_heads(t, node, None))]


def tested(t: Translation, node: nodes.Filter) -> Bag:
    """The bag of a filter; over windows ``row_number() <= k`` keeps the first k rows."""
    child, tests = node.child, node.conditions
    if isinstance(child, nodes.Window) and [one.function for one in child.calls if one.order] == [
        "row_number"
    ]:
        n_child = len(t.types_of(child.child))
        for place, test in enumerate(tests if len(child.calls) == 1 else ()):
            most = _most(test, n_child)
            if most is not None:
                return filtered([t.read(_heads(t, child, most))], (*tests[:place], *tests[place + 1 :]))
    return filtered(t.bag(child), tests)


def _most(test: Expression, place: int) -> int | None:
    """The k of ``n <= k``."""
    if not isinstance(test, Compare) or not isinstance(test.left, Column) or test.left.index != place:
        return None
    of = test.right
    if not isinstance(of, Constant) or not isinstance(of.value, int):
        return None
    most = {"<=": of.value, "<": of.value - 1, "=": of.value if of.value == 1 else None}.get(test.operator)
    return most if most is not None and most >= 1 else None


def _heads(t: Translation, node: nodes.Window, most: int | None) -> Head:
    """The heads of the calls, one for each window, and the last of them."""
    types = t.types_of(node.child)
    body = t.materialised("rows", t.bag(node.child), types)
    n_child = len(types)
    windows: dict[object, list[int]] = {}
    for number, call in enumerate(node.calls):
        windows.setdefault(_window(call, types), []).append(number)
    for numbers in windows.values():
        calls = [node.calls[number] for number in numbers]
        terms = [_term(t, call, body.columns[:n_child], most) for call in calls]
        shown = (*body.columns, *(target for target, _ in terms))
        shown_types = [one.type for one in shown]
        place = calls[0].place
        head = t.head("windows", [(body, shown)], types=shown_types, bag=True, windows=terms, place=place)
        body = t.read(head)
    places = [number for numbers in windows.values() for number in numbers]
    order = [*range(n_child), *(n_child + places.index(number) for number in range(len(node.calls)))]
    parts = zip(*((head.columns[at], head.types[at], head.nullable[at]) for at in order), strict=True)
    return Head(head.relation, *parts)


def _window(
    call: nodes.WindowCall, types: Sequence[str]
) -> tuple[tuple[Expression, ...], tuple[nodes.SortKey, ...]]:
    """Partition and order.  Rules ask for one of them: what numbers rows in no order takes any."""
    partition, order = call.partition, call.order
    in_order = call.function in _ORDERED or (call.frame or "range")[0] == "rows"
    if not order and in_order:
        order = tuple(nodes.SortKey(Column(place, type_)) for place, type_ in list(enumerate(types))[:1])
    return partition or (() if order else (Constant(1, "INTEGER"),)), order


def _term(
    t: Translation, call: nodes.WindowCall, columns: Sequence[Expression], most: int | None
) -> tuple[Variable, nodes.WindowCall]:
    name = call.function
    if name not in (*_ORDERED, *_FRAMED):
        raise t.refusal(call.place, f"the window {name}()")
    arguments = tuple(over(one, columns) for one in call.arguments)
    if name in _BY:
        by = arguments[_BY[name]]
        known = by.value if isinstance(by, Constant) else None
        if not isinstance(known, int) or (known < 0 and name in _MOVED):
            raise t.refusal(call.place, f"{name}() by what is no literal")
    if name == "nth" and not call.order:
        raise t.refusal(call.place, "nth_value() without ORDER BY")
    partition, order = _window(call, [one.type for one in columns])
    target = t.variable(name, call.type, name not in _NUMBERS, call.place)
    if most is not None:
        name, arguments = "top", (Constant(most, "BIGINT"),)
    return target, replace(
        call,
        function=name,
        arguments=arguments,
        partition=tuple(over(one, columns) for one in partition),
        order=tuple(replace(key, expression=over(key.expression, columns)) for key in order),
        frame=call.frame if name in _FRAMED else None,
    )


# -- the first rows ----------------------------------------------------------------------------------


def limited(t: Translation, node: nodes.Limit) -> Bag:
    """LIMIT in a statement, and DISTINCT ON: so many rows in the order, or that of the columns."""
    child = node.child
    if node.limit == 0:
        return []
    if node.limit is None and not node.offset:
        return t.bag(child)
    types = t.types_of(child)
    keys = node.keys or tuple(map(nodes.SortKey, nodes.columns_of(child)))
    call = nodes.WindowCall("row_number", (), "BIGINT", order=keys, partition=node.partition)
    number = Column(len(types), "BIGINT")
    tests: list[Expression] = []
    if node.limit is not None:
        tests.append(Compare("<=", number, Constant(node.offset + node.limit, "BIGINT")))
    if node.offset:
        tests.append(Compare(">", number, Constant(node.offset, "BIGINT")))
    rows = tested(t, nodes.Filter(nodes.Window(child, (call,)), tuple(tests)))
    return [body.showing(body.columns[:-1]) for body in rows]
