"""Joins of all kinds, EXISTS, IN, UNION, EXCEPT and INTERSECT.

An outer join is alternatives: rows with a partner, and rows without one, whose other columns are NULL.  That
a row has a partner is an atom of a head.  Where all conditions are equations, the head is of the inner side
alone, and serves every row; else it is of the outer side's values too, of which it has those with a partner
(magic sets: only what is asked for is looked at).

``x IN (...)`` is NULL, not false, where no value is x and one of them, or x, is NULL.

Source: SQL:2003, 8.4 (in predicate), 8.8 (quantified comparison), 7.7 (joined table).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lftj.sql import nodes
from lftj.sql.nodes import Call, Column, Compare, Constant, Exists, Expression, IsNull, Logic, Not, Variable
from lftj.sql.translation.bodies import Bag, Body, Head, one_each
from lftj.sql.translation.expressions import FALSE, TRUE, UNKNOWN, folded, is_null, nullable, over, walked
from lftj.sql.translation.nearest import nearest
from lftj.sql.translation.translating import Translation
from lftj.values.operators import FLIPPED

TWO_ROWS = "More than one row returned by a subquery used as an expression"


def joined(t: Translation, node: nodes.Join) -> Bag:
    """The bag of a join."""
    n_right = len(t.types_of(node.right))
    if node.kind == "RIGHT":
        return _swapped(joined(t, replace(_turned(t, node), kind="LEFT")), n_right)
    if node.kind.startswith("ASOF"):
        return nearest(t, node)
    lefts = t.bag(node.left)
    if node.kind == "INNER":
        return [row for left in lefts for row in _pairs(node, left, t.bag(node.right))]
    if node.kind in ("SEMI", "ANTI"):
        return [kept for left in lefts for kept in left.where(_not(has(t, node, left), node.kind == "ANTI"))]
    if node.kind == "MARK":
        return [left.showing((*left.columns, mark(t, node, left))) for left in lefts]
    if node.kind == "SINGLE":
        return _single(t, node, lefts)
    bag = [row for left in lefts for row in _outer(t, node, left)]
    if node.kind == "FULL":
        back = _turned(t, node)
        alone = [row for right in t.bag(node.right) for row in _alone(t, back, right, has(t, back, right))]
        bag += _swapped(alone, n_right)
    return bag


def _swapped(bag: Bag, n_first: int) -> Bag:
    """With so many columns, the first, behind the others."""
    return [row.showing((*row.columns[n_first:], *row.columns[:n_first])) for row in bag]


def _not(of: Expression, negated: bool = True) -> Expression:
    return folded(Not(of)) if negated else of


def _turned(t: Translation, node: nodes.Join) -> nodes.Join:
    """The join of the right with the left."""
    n_right = len(t.types_of(node.right))
    columns = [replace(one, index=n_right + one.index) for one in nodes.columns_of(node.left)]
    columns += nodes.columns_of(node.right)
    return nodes.Join(
        node.kind,
        node.right,
        node.left,
        tuple(Compare(FLIPPED[one.operator], one.right, one.left) for one in node.conditions),
        None if node.general is None else over(node.general, columns),
        place=node.place,
    )


def _conditions(node: nodes.Join, left: Body, right: Body) -> list[Expression]:
    """What a pair of rows has to fulfil."""
    found = [
        folded(replace(one, left=over(one.left, left.columns), right=over(one.right, right.columns)))
        for one in node.conditions
    ]
    if node.general is not None:
        found.append(over(node.general, (*left.columns, *right.columns)))
    return found


def _pairs(node: nodes.Join, left: Body, rights: Bag) -> Bag:
    return [pair for right in rights for pair in left.beside(right).where(*_conditions(node, left, right))]


def _outer(t: Translation, node: nodes.Join, left: Body) -> Bag:
    """Rows of the left with their partners, and those without."""
    partner = has(t, node, left)
    pairs = _pairs(node, left, t.bag(node.right))
    with_one = [replace(pair, sides=(*pair.sides, (partner, True))) for pair in pairs]
    alone = _alone(t, node, left, partner)
    return with_one + [replace(row, sides=(*row.sides, (partner, False))) for row in alone]


def _alone(t: Translation, node: nodes.Join, left: Body, partner: Expression) -> Bag:
    """The rows of the left that have no partner: NULL in the place of the right's columns."""
    nulls = [Constant(None, type_) for type_ in t.types_of(node.right)]
    return [row.showing((*row.columns, *nulls)) for row in left.where(_not(partner))]


def _single(t: Translation, node: nodes.Join, lefts: Bag) -> Bag:
    """A scalar subquery: a column is that of the only partner, and two are an error."""
    keys = tuple(one.right for one in node.conditions)
    if node.general is not None or any(one.operator not in ("=", "<=>") for one in node.conditions):
        raise t.refusal(node.place, "a scalar subquery by such a condition")
    rights, types = t.bag(node.right), t.types_of(node.right)
    if rights and not one_each(rights, keys, t.rules.shapes):
        only = _only_partners(node, keys)
        ends = zip(node.conditions, nodes.columns_of(only)[len(types) :], strict=True)
        node = replace(node, right=only, conditions=tuple(replace(one, right=key) for one, key in ends))
    n_shown = len(t.types_of(node.left)) + len(types)
    return [row.showing(row.columns[:n_shown]) for left in lefts for row in _outer(t, node, left)]


def _only_partners(node: nodes.Join, keys: Sequence[Expression]) -> nodes.Node:
    """Of the right's rows with equal keys the only one, which fails where there are more; and the keys."""
    columns, n_keys = nodes.columns_of(node.right), len(keys)
    values = (nodes.AggregateCall("any_value", (of,), of.type, place=node.place) for of in columns)
    groups = nodes.Aggregate(node.right, tuple(keys), (*values, nodes.COUNT), (tuple(range(n_keys)),))
    *found, count = nodes.columns_of(groups)
    several = Compare(">", count, Constant(1, "BIGINT"))
    error = Call("error", (Constant(TWO_ROWS, "VARCHAR"),), "VARCHAR")
    only = (nodes.Case(((several, replace(error, type=of.type)),), of, of.type) for of in found[n_keys:])
    return nodes.Project(groups, (*only, *found[:n_keys]))


# -- partners ------------------------------------------------------------------------------------


def has(t: Translation, node: nodes.Join, left: Body) -> Expression:
    """Whether a row of the left has a partner, for which all conditions are true."""
    if _surely(t, node, left):
        return TRUE
    if node.general is None and all(one.operator in ("=", "<=>") for one in node.conditions):
        return _among(t, node, left, node.conditions)
    return _asked(t, node, left)


def _surely(t: Translation, node: nodes.Join, left: Body) -> bool:
    """Whether each row of the left has a partner, whatever the data.

    So it is where the right is one row; and where the right has all distinct rows of a definition of which
    the left has a row: what a correlated subquery is joined by.
    """
    if node.general is not None:
        return False
    if not node.conditions:
        return any(map(t.is_always_there, t.bag(node.right)))
    columns = [one.right for one in node.conditions if one.operator == "<=>"]
    found = _source(t, node.right, columns) if len(columns) == len(node.conditions) else None
    made_of = None if found is None else t.distinct_of(t.definition(found[0]))
    if found is None or made_of is None or sorted(found[1]) != list(range(len(made_of[1]))):
        return False
    values = (over(one.left, left.columns) for one in node.conditions)
    wanted = dict(zip(found[1], values, strict=True))
    return left.has_row(made_of, [wanted[place] for place in range(len(wanted))])


def _source(t: Translation, node: nodes.Node, of: Sequence[Expression]) -> tuple[int, list[int]] | None:
    """The definition of whose rows a node keeps each one, and which of its columns these are."""
    places = [one.index for one in of if isinstance(one, Column)]
    if len(places) < len(of):
        return None
    if isinstance(node, nodes.Project):
        return _source(t, node.child, [node.expressions[place] for place in places])
    if isinstance(node, nodes.Join) and node.kind in ("LEFT", "SINGLE", "MARK"):
        return _source(t, node.left, of) if max(places) < len(t.types_of(node.left)) else None
    return (node.number, places) if isinstance(node, nodes.Recall) else None


def _among(t: Translation, node: nodes.Join, left: Body, conditions: Sequence[Compare]) -> Expression:
    """That the inner side has these values: a head of them serves all rows.  ``=`` meets no NULL."""
    keys = tuple(one.right for one in conditions)
    signs = tuple(one.operator for one in conditions)

    def made() -> Head | None:
        rows = []
        for right in t.bag(node.right):
            values = [over(key, right.columns) for key in keys]
            strict = [of for of, sign in zip(values, signs, strict=True) if sign == "=" and nullable(of)]
            rows += [(kept, values) for kept in right.where(*(folded(Not(IsNull(of))) for of in strict))]
        return t.head("exists", rows, types=[key.type for key in keys]) if rows else None

    alone = _looked_up(t, node.right, conditions, left)
    if alone is not None and alone[2]:
        relation, columns, _ = alone
    else:
        head = t.once((node.right, "exists", keys, signs), made)
        if head is None:
            return FALSE
        relation, columns = head.relation, head.columns
    terms = [over(one.left, left.columns) for one in conditions]
    if any(one.operator == "=" and is_null(of) for one, of in zip(conditions, terms, strict=True)):
        return FALSE
    shown = zip(columns, terms or [Constant(1, "INTEGER")], strict=True)
    return Exists(relation, tuple(shown), alone and alone[:2], place=node.place)


def _looked_up(
    t: Translation, right: nodes.Node, conditions: Sequence[Compare], left: Body
) -> tuple[str, tuple[str, ...], bool] | None:
    """The relation whose rows the inner side has, but for tests that rows with a partner pass anyway.

    So is that they are among what a correlated subquery is asked for, where the left has a row of that.
    With the columns that the conditions ask for, and whether it has just these rows, each with other values.
    """
    bag = t.bag(right)
    if len(bag) != 1 or len(bag[0].atoms) != 1 or not conditions:
        return None
    (atom,), tests = bag[0].atoms, bag[0].tests
    asked = {over(one.right, bag[0].columns): over(one.left, left.columns) for one in conditions}
    names = {variable: name for name, variable in atom.terms}
    columns = tuple(names[of] for of in asked if isinstance(of, Variable))
    if len(columns) < len(conditions) or not all(_passes(t, test, asked, left) for test in tests):
        return None
    if any(
        one.operator == "=" and nullable(of) and nullable(value)
        for one, (of, value) in zip(conditions, asked.items(), strict=True)
    ):
        return None
    key = t.rules.shapes[atom.relation].key
    return atom.relation, columns, not tests and key is not None and set(key) == set(columns)


def _passes(t: Translation, test: Expression, asked: Mapping[Expression, Expression], left: Body) -> bool:
    if isinstance(test, Not) and isinstance(test.argument, IsNull):
        return not nullable(asked.get(test.argument.argument, UNKNOWN))
    if not isinstance(test, Exists):
        return False
    made_of = t.rules.shapes[test.relation].made_of
    return made_of is not None and left.has_row(made_of, [asked.get(of) for _, of in test.terms])


def _asked(t: Translation, node: nodes.Join, left: Body, *, maybe: bool = False) -> Expression:
    """Whether a row of the left has a partner with which the condition is true; ``maybe``: not false.

    The head has those of the left's values that have one.
    """
    n_left = len(left.columns)
    read = {one.index for of in node.conditions for one in walked(of.left) if isinstance(one, Column)}
    if node.general is not None:
        read |= {one.index for one in walked(node.general) if isinstance(one, Column) and one.index < n_left}
    keys = [left.columns[place] for place in sorted(read)]
    rows = []
    for right in t.bag(node.right):
        tests = _conditions(node, left, right)
        if maybe:
            test = folded(Logic("and", tuple(tests)))
            tests = (
                [nodes.Case(((test, TRUE),), folded(IsNull(test)), "BOOLEAN")] if nullable(test) else [test]
            )
        rows += [(kept, keys) for kept in left.beside(right).where(*tests)]
    if not rows:
        return FALSE
    head = t.head("exists", rows, types=[of.type for of in keys])
    shown = zip(head.columns, keys or [Constant(1, "INTEGER")], strict=True)
    return Exists(head.relation, tuple(shown), place=node.place)


def mark(t: Translation, node: nodes.Join, left: Body) -> Expression:
    """Whether a row of the left has a partner: true, false, or NULL where that is not known."""
    equal = [one for one in node.conditions if one.operator == "="]
    same = [one for one in node.conditions if one.operator == "<=>"]
    others = node.general is not None or len(equal) + len(same) < len(node.conditions)
    if not any(nullable(one) for right in t.bag(node.right) for one in _conditions(node, left, right)):
        return has(t, node, left)
    if others or len(equal) != 1:
        maybe = _asked(t, node, left, maybe=True)
        true = has(t, node, left)
        return true if maybe == true else folded(Logic("or", (true, folded(Logic("and", (maybe, UNKNOWN))))))
    (member,) = equal
    true = has(t, node, left)
    value = over(member.left, left.columns)
    any_row = _among(t, node, left, same)
    unknown: list[Expression] = [folded(Logic("and", (folded(IsNull(value)), any_row)))]
    if any(nullable(over(member.right, right.columns)) for right in t.bag(node.right)):
        missing = Compare("<=>", Constant(None, member.left.type), member.right)
        unknown.append(_among(t, node, left, (*same, missing)))
    doubt = folded(Logic("and", (folded(Logic("or", tuple(unknown))), UNKNOWN)))
    return folded(Logic("or", (true, doubt)))


# -- UNION, EXCEPT and INTERSECT -----------------------------------------------------------------------------


def set_operation(t: Translation, node: nodes.SetOperation) -> Bag:
    """Rows of either side, or of the left that the right has, or has not; NULL is a value like others."""
    if node.kind == "UNION":
        both = t.bag(node.left) + t.bag(node.right)
        return both if node.all else t.distinct(node, both)
    keeps = node.kind == "INTERSECT"
    if node.all:
        return _by_copies(t, node, keeps)
    lefts = t.distinct(node, t.bag(node.left))
    alike = tuple(Compare("<=>", one, one) for one in nodes.columns_of(node))
    join = nodes.Join("SEMI" if keeps else "ANTI", node.left, node.right, alike)
    return [kept for left in lefts for kept in left.where(_not(has(t, join, left), not keeps))]


def _by_copies(t: Translation, node: nodes.SetOperation, keeps: bool) -> Bag:
    """``ALL``: the difference, or the least, of how often each row is there."""
    left, right = (nodes.grouped(side, (nodes.COUNT,)) for side in (node.left, node.right))
    *columns, n = nodes.columns_of(left)
    alike = tuple(Compare("<=>", one, one) for one in columns)
    both = nodes.Join("INNER" if keeps else "LEFT", left, right, alike, place=node.place)
    m = replace(n, index=n.index + len(columns) + 1)
    theirs = Call("coalesce", (m, Constant(0, "BIGINT")), "BIGINT")
    number = Call("least", (n, m), "BIGINT") if keeps else Call("-", (n, theirs), "BIGINT")
    copies = nodes.Unnest(both, (Call("range", (number,), "BIGINT[]"),), ("BIGINT",))
    return t.bag(nodes.Project(copies, tuple(columns)))
