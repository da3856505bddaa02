"""GROUP BY: heads with several aggregates among their terms, one for each grouping set.

Aggregates skip NULL each for itself, and a head without groups has its row over nothing, both as in SQL
(docs/language.md); so an aggregate is what it is in a rule, but for counts of what may be NULL: sums of
ones.

Over alternatives (outer joins, unions) each has a rule of the head where no group is of two of them, and
else a row for each group of its own, of which the whole is made; a head of rows is only there for what is not
made of parts (avg, DISTINCT).

Source: SQL:2003, 10.9 (aggregate function), 7.9 (group by clause).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lftj.sql import nodes
from lftj.sql.nodes import Case, Compare, Constant, Expression, IsNull, Logic, Not, Term
from lftj.sql.translation.bodies import Bag, Body, Head, apart, names_of, separate
from lftj.sql.translation.expressions import folded, is_null, nullable, over
from lftj.sql.translation.text import literal
from lftj.sql.translation.translating import Translation
from lftj.sql.types import kind
from lftj.values.names import nearest_usable, usable_names

_ONE, _ZERO = Constant(1, "BIGINT"), Constant(0, "BIGINT")

_KNOWN = (
    *("sum", "avg", "min", "max", "bool_and", "bool_or", "any_value", "median", "mode", "quantile"),
    *("arg_min", "arg_max", "var_pop", "stddev_pop", "variance", "stddev", "list", "string_agg"),
)
"""Aggregates that rules call as SQL does; counts are others."""

_COVARIANCE = "(var_pop(x + y) - var_pop(x - y)) / 4 is the covariance"
_INSTEAD = {
    **dict.fromkeys(("corr", "covar_pop", "covar_samp"), _COVARIANCE),
    **dict.fromkeys(("regr_slope", "regr_intercept", "regr_r2"), _COVARIANCE),
    "quantile_cont": "median() is between two values, quantile_disc() one of them",
    "product": "exp(sum(ln(x))) of numbers above 0",
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), "max(x & 1), max(x & 2), ... of each bit"),
    "approx_count_distinct": "count(DISTINCT x)",
}
"""What to write instead of aggregates that no rule has."""

_COUNTS = ("count", "count_if")

_SET = ("string_agg", "quantile", "quantile_cont")
"""Aggregates whose second argument is a literal that belongs to them: a separator, a share."""


def aggregated(t: Translation, node: nodes.Aggregate) -> Bag:
    """The bag of an aggregate: a body for each grouping set."""
    for call in node.calls:
        _known(t, call)
    if not node.calls and not node.groupings and len(node.sets) == 1 and node.groups:
        return _distinct_groups(t, node)
    alone = _only_row(t, node)
    if alone is not None:
        return alone
    if not node.groups and not t.bag(node.child):
        return [Body().showing(_of_nothing(call) for call in node.calls)] * len(node.sets)
    orders = list(dict.fromkeys(call.order for call in node.calls if call.order))
    if len(orders) > 1:
        return _by_order(t, node, orders)
    bag: Bag = []
    for groups in node.sets:
        found = t.read(_head(t, node, groups))
        keys = dict(zip(groups, found.columns, strict=False))
        values = found.columns[len(groups) : len(groups) + len(node.calls)]
        shown = [keys.get(place, Constant(None, of.type)) for place, of in enumerate(node.groups)]
        marks = [Constant(_grouping(one, groups), "BIGINT") for one in node.groupings]
        bag.append(found.showing((*shown, *values, *marks)))
    return bag


def _by_order(t: Translation, node: nodes.Aggregate, orders: Sequence[tuple[nodes.SortKey, ...]]) -> Bag:
    """The aggregates of a rule are of one order: a node for each, joined by the groups."""
    n_groups = len(node.groups)
    parts: list[tuple[list[int], Bag]] = []
    for order in orders:
        mine = [n for n, call in enumerate(node.calls) if call.order == order or not (call.order or parts)]
        parts.append((mine, aggregated(t, replace(node, calls=tuple(node.calls[n] for n in mine)))))
    bag: Bag = []
    for bodies in zip(*(bag for _, bag in parts), strict=True):
        first, *others = bodies
        values = dict(zip(parts[0][0], first.columns[n_groups:], strict=False))
        keys, body = first.columns[:n_groups], first
        for (mine, _), other in zip(parts[1:], others, strict=True):
            same = (folded(Compare("<=>", a, b)) for a, b in zip(keys, other.columns, strict=False))
            (body,) = body.beside(other).where(*same)
            values |= dict(zip(mine, other.columns[n_groups:], strict=False))
        marks = first.columns[n_groups + len(parts[0][0]) :]
        bag.append(body.showing((*keys, *(values[n] for n in range(len(node.calls))), *marks)))
    return bag


def _grouping(arguments: Sequence[int], groups: Sequence[int]) -> int:
    """GROUPING(a, b): a bit for each that is not grouped by."""
    return sum((one not in groups) << bit for bit, one in enumerate(reversed(arguments)))


def _distinct_groups(t: Translation, node: nodes.Aggregate) -> Bag:
    bag = [body.showing(over(one, body.columns) for one in node.groups) for body in t.bag(node.child)]
    found = t.distinct(node, bag)
    made_of = t.distinct_of(node)
    if made_of is not None and found is not bag:
        relation = found[0].atoms[0].relation
        t.rules.shapes[relation] = replace(t.rules.shapes[relation], made_of=made_of)
    return found


def _only_row(t: Translation, node: nodes.Aggregate) -> Bag | None:
    """The value of a subquery that always has one row, and their number: the row itself."""
    if node.groups or not all(call.function == "any_value" or _is_ones(call) for call in node.calls):
        return None
    bag = t.bag(node.child)
    if len(bag) != 1 or not t.is_always_there(bag[0]):
        return None
    (body,) = bag
    row = body.showing(
        _ONE if _is_ones(call) else over(call.arguments[0], body.columns) for call in node.calls
    )
    return [row] * len(node.sets)


def _is_ones(call: nodes.AggregateCall) -> bool:
    """Whether it counts the rows."""
    return call.function == "count" and not any(map(nullable, call.arguments))


def _head(t: Translation, node: nodes.Aggregate, groups: Sequence[int]) -> Head:
    grouped = [node.groups[place] for place in groups]
    calls = node.calls or (nodes.COUNT,)
    asked: list[Expression] = [*grouped]
    for call in calls:
        asked += _read_by(call)
    bag = [body.showing(over(one, body.columns) for one in asked) for body in t.bag(node.child)]
    bag = [each for body in bag for each in apart(body)]
    types = [one.type for one in asked]
    bag = bag or [t.nothing(types)]
    n_groups, alone = len(grouped), not grouped
    place = nodes.place_around(call.place for call in calls)
    terms = [_terms(t, calls, body.columns[n_groups:], alone and len(bag) == 1) for body in bag]
    shown = [*(one.type for one in grouped), *(call.type for call in calls)]
    named = _named(calls, bag[0].columns[:n_groups])
    if len(bag) > 1:
        terms = [list(map(_of_constants, each, calls)) for each in terms]
        if alone or not separate(bag, [body.columns[:n_groups] for body in bag], t.rules.shapes):
            if all(_has_parts(one) for each in terms for one in each):
                numbered = [
                    (body, (Constant(number, "BIGINT"), *body.columns[:n_groups], *each))
                    for number, (body, each) in enumerate(zip(bag, terms, strict=True))
                ]
                columns, key = (nearest_usable("part", named), *named), n_groups + 1
                told = ("BIGINT", *shown)
                body = t.read(t.head("parts", numbered, types=told, names=columns, key=key, place=place))
                bag = [body.showing(body.columns[1:])]
                values = body.columns[key:]
                terms = [[_sum_of(call, of, alone) for call, of in zip(calls, values, strict=True)]]
            else:
                bag = [t.materialised("rows", bag, types)]
                terms = [_terms(t, calls, bag[0].columns[n_groups:], alone)]
    rows = [(body, (*body.columns[:n_groups], *each)) for body, each in zip(bag, terms, strict=True)]
    wanted = "totals" if alone else "groups"
    return t.head(wanted, rows, types=shown, names=named, key=n_groups, always=alone, place=place)


def _named(calls: Sequence[nodes.AggregateCall], keys: Sequence[Expression]) -> list[str]:
    names = names_of(keys)
    return names + usable_names((call.function for call in calls), names)


def _terms(
    t: Translation, calls: Sequence[nodes.AggregateCall], values: Sequence[Expression], alone: bool
) -> list[Expression]:
    """The aggregates over what they read of a body."""
    left, terms = iter(values), list[Expression]()
    for call in calls:
        read = [next(left) for _ in _read_by(call)]
        place = nodes.place_around(one.place for one in read)
        terms.append(replace(_term(t, call, read, alone), place=place))
    return terms


# -- aggregates of alternatives ----------------------------------------------------------------------


_WHOLES = {
    "count": "sum",
    **{name: name for name in ("sum", "min", "max", "bool_and", "bool_or", "any_value")},
}
"""What an aggregate of all rows is, of those of parts of them."""


def _has_parts(term: Expression) -> bool:
    return not isinstance(term, Term) or (term.function in _WHOLES and not term.distinct and not term.order)


def _sum_of(call: nodes.AggregateCall, of: Expression, alone: bool) -> Term:
    """The aggregate of those of the parts; of one that has none, all of which are NULL then, any."""
    counts = call.function in _COUNTS
    default = ("0" if counts else "null") if alone else None
    whole = "sum" if counts else _WHOLES.get(call.function, "any_value")
    return Term(whole, (of,), default=default, nullable=not counts)


def _of_constants(term: Expression, call: nodes.AggregateCall) -> Expression:
    """What an aggregate is over rows that all say NULL, or count nothing."""
    if not isinstance(term, Term) or not term.arguments:
        return term
    first = term.arguments[0]
    nothing = is_null(first) or (call.function in _COUNTS and first == _ZERO)
    return replace(_of_nothing(call), place=term.place) if nothing else term


def _of_nothing(call: nodes.AggregateCall) -> Constant:
    """The value of an aggregate over no rows."""
    return _ZERO if call.function in _COUNTS else Constant(None, call.type)


def _read_by(call: nodes.AggregateCall) -> list[Expression]:
    """What a call reads of each row."""
    if call.function in _COUNTS and not call.distinct:
        counted = _counted(call)
        found = [] if counted is None else [counted]
    else:
        found = [*(call.arguments[:1] if call.function in _SET else call.arguments)]
    return found + [key.expression for key in call.order]


def _counted(call: nodes.AggregateCall) -> Expression | None:
    """What is summed where not every row is counted."""
    tests = list(call.arguments) if call.function == "count_if" else []
    for of in call.arguments if not tests else ():
        while isinstance(of, Case) and len(of.branches) == 1 and is_null(of.otherwise):
            ((test, of),) = of.branches
            tests.append(test)
        if nullable(of):
            tests.append(Not(IsNull(of)))
    if not tests:
        return None
    return Case(((folded(Logic("and", tuple(tests))), _ONE),), _ZERO, "BIGINT")


def _term(t: Translation, call: nodes.AggregateCall, values: Sequence[Expression], alone: bool) -> Term:
    """The aggregate over what it reads; ``alone``: without groups, so that it has a row over nothing."""
    n_order = len(call.order)
    arguments = list(values[: len(values) - n_order])
    order = tuple(
        replace(key, expression=of)
        for key, of in zip(call.order, values[len(values) - n_order :], strict=True)
    )
    name, default = _known(t, call), "null" if alone else None
    if name in _COUNTS:
        counted = tuple(one for one in arguments if call.distinct or one != _ONE)
        function = "sum" if counted and not call.distinct else "count"
        return Term(function, counted, call.distinct, default="0" if alone else None, nullable=False)
    settings = (_setting(t, call),) if name in _SET else ()
    if call.distinct and order and name in ("list", "string_agg"):
        if [(key.expression, key.descending) for key in order] != [(arguments[0], False)]:
            raise t.refusal(call.place, f"{name}(DISTINCT) in another order", "take a subquery")
        order = ()  # that of the values
    distinct = call.distinct and name not in ("min", "max", "bool_and", "bool_or", "any_value")
    return Term(name, tuple(arguments), distinct, order, default, settings)


def _known(t: Translation, call: nodes.AggregateCall) -> str:
    """An aggregate as rules call it."""
    name = call.function
    type_ = call.arguments[0].type if call.arguments else ""
    if name == "quantile_cont" and kind(type_) in ("integer", "float", "decimal"):
        share = call.arguments[1]
        name = "median" if isinstance(share, Constant) and share.value == 0.5 else name
    if name not in (*_KNOWN, *_COUNTS):
        raise t.refusal(call.place, f"the aggregate {name}()", _INSTEAD.get(name, ""))
    pairs = name in ("arg_min", "arg_max")
    if len(call.arguments) > 1 + pairs and name not in ("string_agg", "quantile", "median"):
        instead = "QUALIFY row_number() OVER (...) <= n"
        raise t.refusal(call.place, f"{call.function}() of so many rows", instead)
    if name == "median" and kind(type_) == "decimal":  # DuckDB cuts the mean of two off
        raise t.refusal(call.place, f"median() of {type_}", "quantile_disc(x, 0.5), median(x::DOUBLE)")
    if name in ("avg", "median") and kind(type_) in ("date", "timestamp", "text"):
        raise t.refusal(call.place, f"{name}() of {type_}", "quantile_disc(x, 0.5), avg(epoch(x))")
    if call.distinct and pairs:
        raise t.refusal(call.place, f"{call.function}(DISTINCT)")
    return name


def _setting(t: Translation, call: nodes.AggregateCall) -> str:
    if len(call.arguments) == 1:
        return '","'
    of = call.arguments[1]
    if not isinstance(of, Constant) or of.value is None:
        raise t.refusal(call.place, f"{call.function}() by what is no literal")
    if not isinstance(of.value, str) and not 0 < of.value <= 1:
        what = f"the share {of.value} of {call.function}()"
        raise t.refusal(call.place, what, "order by the negative, or min()")
    return literal(of.value, of.type) or "null"
