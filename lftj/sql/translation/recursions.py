"""WITH RECURSIVE, and UNNEST, which generates the places of a list.

A recursive head has each row once, which is what UNION says.  For UNION ALL it has each *derivation* once, by
two columns that nothing shows: the level, of which SQL's step reads the last one, and the path, a text of
what tells derivations of one level apart.  That is empty, and no column, where a level has one row at most.

Invariants

1. Level and path say the derivation: which row of the base, and what of the step's atoms at each level.  So
   does the path's text: of a level is known what it begins with, a number ends at a comma, and a text is
   behind its length.
2. Nothing in a step of UNION ALL reads the recursion through another head, which would see all levels.

Source: SQL:2003, 7.13 (with clause), 7.6 (unnest).
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from lftj.sql import nodes
from lftj.sql.nodes import Call, Cast, Compare, Constant, Exists, Expression, Member, Node, Variable
from lftj.sql.translation.bodies import Atom, Bag, Body, Head, Shape, decided, generated, names_of
from lftj.sql.translation.expressions import folded, is_null, over, walked
from lftj.sql.translation.translating import Translation
from lftj.sql.types import kind
from lftj.values.names import usable_names

_ZERO, _ONE = Constant(0, "BIGINT"), Constant(1, "BIGINT")
_NO_PATH = Constant("", "VARCHAR")
_LISTS = ("list_value", "unpivot_list")


def recursion(t: Translation, node: nodes.Recursion) -> Bag:
    """The rows of a recursive definition."""
    if not t.bag(node.base):
        return []
    if not node.all and _recalls(node.step, node.number) > 1:
        raise t.refusal(node.place, "a recursion that reads itself twice", "join it with what begins it")
    return [t.read(_head(t, node), len(node.types))]


def _recalls(node: Node, number: int) -> int:
    """How often a row of a node comes of rows of a definition."""
    if isinstance(node, nodes.Recall):
        return int(node.number == number)
    if isinstance(node, nodes.SetOperation) and node.kind == "UNION":
        return max(_recalls(node.left, number), _recalls(node.right, number))
    parts = {part: _recalls(of, number) for part, of in vars(node).items() if isinstance(of, Node)}
    if isinstance(node, nodes.With) and not node.correlates:
        parts["definition"] *= _recalls(node.body, node.number)
    return sum(parts.values())


def _head(t: Translation, node: nodes.Recursion) -> Head:
    base = t.bag(node.base)
    relation = t.rules.name(node.name)
    shown = names_of(base[0].columns)
    hidden = usable_names(("level", "path"), shown) if node.all else []
    types = (*node.types, *("BIGINT", "VARCHAR")[: len(hidden)])
    head = Head(relation, (*shown, *hidden), types, (*(True for _ in shown), *(False for _ in hidden)))
    t.define(node.number, head)
    t.rules.shapes[relation] = Shape(tuple(hidden or shown))
    step = t.bag(node.step)
    rows = [(body, body.columns) for body in (*base, *step)]
    if node.all:
        for body in step:
            _check_step(t, node, head, body)
        rows = [_derived(t, node, head, bag, number) for bag in (base, step) for number in range(len(bag))]
    return t.head(node.name, rows, types=head.types, names=head.columns, relation=relation, place=node.place)


# -- UNION ALL ---------------------------------------------------------------------------------------


def _derived(
    t: Translation, node: nodes.Recursion, head: Head, bag: Bag, number: int
) -> tuple[Body, tuple[Expression, ...]]:
    """One of the bodies of the base or the step, and the columns, level and path of what it gives."""
    body, width = bag[number], len(node.types)
    parents = [[of for _, of in atom.terms] for atom in body.atoms if atom.relation == head.relation]
    for other in parents[1:]:
        body = replace(body, tests=(*body.tests, Compare("=", parents[0][width], other[width])))
    said = [of for terms in parents for of in terms] + generated(body)
    parts: list[Expression] = [Constant(f"{number}:", "VARCHAR")] if len(bag) > 1 else []
    parts += [terms[width + 1] for terms in parents]
    parts += [part for of in generated(body) for part in _told(of)]
    for place, atom in enumerate(body.atoms):
        known, whole = decided(replace(body, atoms=body.atoms[: place + 1]), said, t.rules.shapes)
        if whole:
            continue
        key = t.rules.shapes[atom.relation].key
        if key is None or not dict(atom.terms).keys() >= set(key):
            atom = _numbered(t, atom)
            body = replace(body, atoms=(*body.atoms[:place], atom, *body.atoms[place + 1 :]))
            key = tuple(name for name, _ in atom.terms)
        values = [of for name, of in atom.terms if name in key and of.number not in known]
        said += values
        parts += [part for of in values for part in _told(of)]
    level = Call("+", (parents[0][width], _ONE), "BIGINT") if parents else _ZERO
    path = Call("concat", tuple(parts), "VARCHAR") if len(parts) > 1 else (*parts, _NO_PATH)[0]
    return body, (*body.columns, level, path)


def _told(of: Variable) -> tuple[Expression, ...]:
    """A value in a path, from which it can be read again."""
    text = folded(Cast(of, "VARCHAR"))
    if kind(of.type) == "integer":
        return text, Constant(",", "VARCHAR")
    length = Cast(Call("length", (text,), "BIGINT"), "VARCHAR")
    return length, Constant(":", "VARCHAR"), text


def _numbered(t: Translation, atom: Atom) -> Atom:
    """One in which rows that are equal in these columns have numbers."""
    found = tuple(of for _, of in atom.terms)

    def made() -> Head:
        number = t.variable("number", "BIGINT", False)
        window = nodes.WindowCall(
            "row_number", (), "BIGINT", order=tuple(map(nodes.SortKey, found)), partition=found
        )
        shown, types = (*found, number), [*(of.type for of in found), "BIGINT"]
        return t.head("numbered", [(Body((atom,)), shown)], types=types, windows=[(number, window)])

    head = t.once(("numbered", atom.relation, tuple(name for name, _ in atom.terms)), made)
    terms = zip(head.columns, (*found, t.variable("number", "BIGINT", False)), strict=True)
    return Atom(head.relation, tuple(terms), place=atom.place)


def _check_step(t: Translation, node: nodes.Recursion, head: Head, body: Body) -> None:
    """Raise UnsupportedSqlError for a body that reads not the last level, or more of the head than that."""
    parts = (one for of in (*body.tests, *body.columns) for one in walked(of))
    direct = {atom.relation for atom in body.atoms}
    others = direct - {head.relation} | {one.relation for one in parts if isinstance(one, Exists)}
    read = (rule for one in others for rule in t.rules.needed(one))
    through = [rule.place for rule in read if head.relation in rule.reads]
    if through or head.relation not in direct:
        what = "a step of UNION ALL that reads the recursion through groups or a subquery, or not at all"
        place = nodes.place_around(through) or body.place
        raise t.refusal(place, what, "join the recursion, and group and order what comes of all")


def unnested(t: Translation, node: nodes.Unnest) -> Bag:
    """The rows of the child, each with the elements of its lists: as many as the longest has."""
    n_below = len(t.types_of(node.child))
    bag: Bag = []
    for body in t.bag(node.child):
        lists = [over(one, body.columns) for one in node.lists]
        if all(isinstance(one, Call) and one.function in _LISTS for one in lists):
            elements = itertools.zip_longest(*(one.arguments for one in lists if isinstance(one, Call)))
            for row in elements:
                values = [one or Constant(None, type_) for one, type_ in zip(row, node.types, strict=True)]
                bag.append(body.showing((*body.columns[:n_below], *values)))
            continue
        among = lists[0]
        if len(lists) == 1 and isinstance(among, Call) and among.function in nodes.SERIES:
            element = t.variable("element", node.types[0], False, node.place)
            values = [element]
        else:
            element = t.variable("place", "BIGINT", False, node.place)
            lengths = tuple(Call("len", (one,), "BIGINT") for one in lists if not is_null(one))
            end = Call("+", (folded(Call("greatest", lengths, "BIGINT")), _ONE), "BIGINT")
            among = Call("range", (_ONE, end), "BIGINT[]") if lengths else lists[0]
            pairs = zip(lists, node.types, strict=True)
            values = [folded(Call("list_extract", (of, element), type_)) for of, type_ in pairs]
        for each in body.where(folded(Member(element, among))):
            bag.append(each.showing((*each.columns[:n_below], *values)))
    return bag
