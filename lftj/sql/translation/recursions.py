"""WITH RECURSIVE, and UNNEST, which is a recursion over the places of a list.

A recursive head has each row once, which is what UNION says.

Source: SQL:2003, 7.13 (with clause), 7.6 (unnest).
"""

from __future__ import annotations

import itertools

from lftj.sql.nodes import Call, Compare, Constant, Expression, IsNull, Not, Recall, Recursion, Unnest
from lftj.sql.translation.bodies import Bag, Body, Head, Shape, names_of
from lftj.sql.translation.expressions import over
from lftj.sql.translation.translating import Translation

_ONE = Constant(1, "BIGINT")
_LISTS = ("list_value", "unpivot_list")


def recursion(t: Translation, node: Recursion) -> Bag:
    """The rows of a recursive definition."""
    if node.all:
        raise t.refusal(node.place, "UNION ALL in a recursion", "write UNION, which ends where no row is new")
    if not t.bag(node.base):
        return []
    if _recalls(node.step, node.number) > 1:
        raise t.refusal(node.place, "a recursion that reads itself twice", "join it with what begins it")
    return [t.read(t.once(node, lambda: _head(t, node)))]


def _recalls(node: object, number: int) -> int:
    """How often a node reads a definition."""
    if isinstance(node, Recall):
        return int(node.number == number)
    below = (
        vars(node)[part] for part in ("child", "left", "right", "definition", "body") if part in vars(node)
    )
    return sum(_recalls(one, number) for one in below if one is not None)


def _head(t: Translation, node: Recursion) -> Head:
    base = t.bag(node.base)
    relation = t.rules.name(node.name)
    columns = tuple(names_of(base[0].columns))
    head = Head(relation, columns, node.types, (True,) * len(columns))
    t.define(node.number, head)
    t.rules.shapes[relation] = Shape(columns)
    rows = [(body, body.columns) for body in (*base, *t.bag(node.step))]
    return t.head(node.name, rows, types=node.types, names=columns, relation=relation, place=node.place)


def unnested(t: Translation, node: Unnest) -> Bag:
    """The rows of the child, each with the elements of its list; of lists that name them, one for each."""
    n_below = len(t.types_of(node.child))
    bag: Bag = []
    for body in t.bag(node.child):
        lists = [over(one, body.columns) for one in node.lists]
        if all(isinstance(one, Call) and one.function in _LISTS for one in lists):
            elements = itertools.zip_longest(*(one.arguments for one in lists if isinstance(one, Call)))
            for row in elements:
                values = (one or Constant(None, type_) for one, type_ in zip(row, node.types, strict=True))
                bag.append(body.showing((*body.columns[:n_below], *values)))
            continue
        if len(lists) > 1:
            raise t.refusal(node.place, "unnest() of several lists at once", "one in each SELECT")
        rows = t.read(_places(t, body, lists[0]))
        found, place = rows.columns
        pair = body.beside(rows).where(Compare("=", lists[0], found))
        if pair is not None:
            element = Call("list_extract", (found, place), node.types[0], place=node.place)
            bag.append(pair.showing((*pair.columns[:n_below], element)))
    return bag


def _places(t: Translation, body: Body, of: Expression) -> Head:
    """Each list with the places that it has."""
    relation = t.rules.name("elements")
    head = Head(relation, ("list", "place"), (of.type, "BIGINT"), (False, False))
    first = body.where(Not(IsNull(of)), Compare(">", Call("len", (of,), "BIGINT"), Constant(0, "BIGINT")))
    t.rules.shapes[relation] = Shape(head.columns)
    rows: list[tuple[Body, tuple[Expression, ...]]] = [] if first is None else [(first, (of, _ONE))]
    before = t.read(head)
    list_, place = before.columns
    following = Call("+", (place, _ONE), "BIGINT")
    after = before.where(Compare("<", place, Call("len", (list_,), "BIGINT")))
    if after is not None:
        rows.append((after, (list_, following)))
    return t.head("elements", rows, types=head.types, names=head.columns, relation=relation)
