"""ASOF JOIN: each row of the left with the row of the right whose key is nearest.

::

    trade ASOF JOIN quote ON trade.s = quote.s AND trade.t >= quote.t

is the greatest key, or the least, for each distinct (s, t) of the left, which the engine finds by one search
(:mod:`lftj.rewriting.nearest_join`), joined with the right's row of that key and with the left's rows.
Of several rows of the right with that key there is the first in the order of all its columns, so that the
answer depends on the data alone; which one DuckDB takes is left open by it.
"""

from __future__ import annotations

from lftj.sql import nodes
from lftj.sql.nodes import Compare, Constant
from lftj.sql.translation.bodies import Bag, one_each
from lftj.sql.translation.expressions import over
from lftj.sql.translation.translating import Translation

_EXTREMA = {">=": "max", ">": "max", "<=": "min", "<": "min"}
"""Of the right's key, by how the left's compares with it."""


def nearest(t: Translation, node: nodes.Join) -> Bag:
    """The bag of a join of kind ASOF or ASOF LEFT."""
    compared = [one for one in node.conditions if one.operator in _EXTREMA]
    equal = [one for one in node.conditions if one.operator in ("=", "<=>")]
    if node.general is not None or len(compared) != 1 or len(equal) + 1 != len(node.conditions):
        raise t.refusal(node.place, "an ASOF join by such a condition")
    (by,) = compared
    keys = (*(one.right for one in equal), by.right)
    right = node.right
    if not one_each(t.bag(right), keys, t.rules.shapes):
        columns = nodes.columns_of(right)
        order = tuple(map(nodes.SortKey, [one for one in columns if one not in keys] or columns))
        right = nodes.Limit(right, order, 1, partition=keys, place=node.place)
    n_left, n_right = len(t.types_of(node.left)), len(t.types_of(right))
    pairs = nodes.Join("INNER", node.left, node.right, node.conditions, place=node.place)
    asking = (*(one.left for one in equal), by.left)
    key = over(by.right, nodes.columns_of(pairs)[n_left:])
    call = nodes.AggregateCall(_EXTREMA[by.operator], (key,), by.right.type)
    found = nodes.Aggregate(pairs, asking, (call,), (tuple(range(len(asking))),))
    columns, signs = nodes.columns_of(found), [*(one.operator for one in equal), "="]
    places = (*columns[: len(equal)], columns[-1])
    alike = tuple(Compare(*one) for one in zip(signs, places, keys, strict=True))
    there = nodes.Join("INNER", found, right, alike)
    asks = tuple(Compare(*one) for one in zip(signs, asking, columns[:-1], strict=True))
    joined = nodes.Join("INNER", node.left, there, asks, place=node.place)
    every = nodes.columns_of(joined)
    bag = t.bag(nodes.Project(joined, (*every[:n_left], *every[len(every) - n_right :])))
    if node.kind == "ASOF LEFT":
        nulls = [Constant(None, type_) for type_ in t.types_of(right)]
        alone = t.bag(nodes.Join("ANTI", node.left, found, asks, place=node.place))
        bag = bag + [row.showing((*row.columns, *nulls)) for row in alone]
    return bag
