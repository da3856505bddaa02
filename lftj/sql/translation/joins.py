"""Joins of all kinds, EXISTS, IN, EXCEPT and INTERSECT.

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
from typing import NamedTuple

from lftj.sql.nodes import (
    Call,
    Case,
    Column,
    Compare,
    Constant,
    Exists,
    Expression,
    IsNull,
    Join,
    Logic,
    Node,
    Not,
    Project,
    Recall,
    Term,
    Variable,
    Without,
)
from lftj.sql.translation.bodies import COPIES, Bag, Body, Head, one_each
from lftj.sql.translation.expressions import FALSE, TRUE, UNKNOWN, folded, nullable, over, walked
from lftj.sql.translation.translating import Translation
from lftj.values.operators import FLIPPED

TWO_ROWS = "More than one row returned by a subquery used as an expression"


def joined(t: Translation, node: Join) -> Bag:
    """The bag of a join."""
    if node.kind == "RIGHT":
        n_right = len(t.types_of(node.right))
        found = joined(t, replace(_turned(t, node), kind="LEFT"))
        return [body.showing((*body.columns[n_right:], *body.columns[:n_right])) for body in found]
    lefts = t.bag(node.left)
    if node.kind == "INNER":
        return [row for left in lefts for row in _pairs(node, left, t.bag(node.right))]
    if node.kind in ("SEMI", "ANTI"):
        return [kept for left in lefts for kept in left.where(_not(has(t, node, left), node.kind == "ANTI"))]
    if node.kind == "MARK":
        return [left.showing((*left.columns, mark(t, node, left))) for left in lefts]
    if node.kind == "SINGLE":
        return _single(t, node, lefts)
    bag = _outer(t, node, lefts)
    if node.kind == "FULL":
        back = _turned(t, node)
        nulls = tuple(Constant(None, type_) for type_ in t.types_of(node.left))
        for right in t.bag(node.right):
            for alone in right.where(_not(has(t, back, right))):
                bag.append(alone.showing((*nulls, *alone.columns)))
    return bag


def _not(of: Expression, negated: bool = True) -> Expression:
    return folded(Not(of)) if negated else of


def _turned(t: Translation, node: Join) -> Join:
    """The join of the right with the left."""
    sides = t.types_of(node.left), t.types_of(node.right)
    n_right = len(sides[1])
    columns = [Column(n_right + place, type_) for place, type_ in enumerate(sides[0])]
    columns += [Column(place, type_) for place, type_ in enumerate(sides[1])]
    return Join(
        node.kind,
        node.right,
        node.left,
        tuple(Compare(FLIPPED[one.operator], one.right, one.left) for one in node.conditions),
        None if node.general is None else over(node.general, columns),
        place=node.place,
    )


def _conditions(node: Join, left: Body, right: Body) -> list[Expression]:
    """What a pair of rows has to fulfil."""
    found = [
        folded(replace(one, left=over(one.left, left.columns), right=over(one.right, right.columns)))
        for one in node.conditions
    ]
    if node.general is not None:
        found.append(over(node.general, (*left.columns, *right.columns)))
    return found


def _pairs(node: Join, left: Body, rights: Bag) -> Bag:
    return [pair for right in rights for pair in left.beside(right).where(*_conditions(node, left, right))]


def _outer(t: Translation, node: Join, lefts: Bag) -> Bag:
    bag: Bag = []
    nulls = tuple(Constant(None, type_) for type_ in t.types_of(node.right))
    for left in lefts:
        partner = has(t, node, left)
        for pair in _pairs(node, left, t.bag(node.right)):
            bag.append(replace(pair, sides=(*pair.sides, (partner, True))))
        for alone in left.where(_not(partner)):
            sides = (*alone.sides, (partner, False))
            bag.append(replace(alone, columns=(*alone.columns, *nulls), sides=sides))
    return bag


def _single(t: Translation, node: Join, lefts: Bag) -> Bag:
    """A scalar subquery: a column is that of the only partner, and two are an error."""
    rights = t.bag(node.right)
    keys = [one.right for one in node.conditions]
    if node.general is not None or any(one.operator not in ("=", "<=>") for one in node.conditions):
        raise t.refusal(node.place, "a scalar subquery by such a condition")
    if not rights or one_each(rights, keys, t.rules.shapes):
        return _outer(t, node, lefts)
    types = t.types_of(node.right)
    head = t.once((node, "single"), lambda: _scalar_head(t, rights, keys, types))
    bag: Bag = []
    for left in lefts:
        right = t.read(head)
        found, values, count = right.columns[: len(keys)], right.columns[len(keys) : -1], right.columns[-1]
        several = Compare(">", count, Constant(1, "BIGINT"))
        error = Call("error", (Constant(TWO_ROWS, "VARCHAR"),), "VARCHAR")
        shown = [Case(((several, replace(error, type=of.type)),), of, of.type) for of in values]
        same = (
            folded(Compare(one.operator, over(one.left, left.columns), key))
            for one, key in zip(node.conditions, found, strict=True)
        )
        for pair in left.beside(right).where(*same):
            bag.append(pair.showing((*pair.columns[: len(left.columns)], *shown)))
        for rest in left.where(_not(has(t, node, left))):
            bag.append(rest.showing((*rest.columns, *(Constant(None, type_) for type_ in types))))
    return bag


def _scalar_head(t: Translation, rights: Bag, keys: Sequence[Expression], types: Sequence[str]) -> Head:
    """By the keys of the condition: each column's value, and of how many rows."""
    columns = [Column(number, type_) for number, type_ in enumerate(types)]
    shown = [body.showing([over(one, body.columns) for one in (*keys, *columns)]) for body in rights]
    key_types = [key.type for key in keys]
    body = t.materialised("subquery", shown, [*key_types, *types])
    groups, values = body.columns[: len(keys)], body.columns[len(keys) :]
    counted = Term("count", nullable=False)
    terms = (*groups, *(Term("any_value", (of,), place=of.place) for of in values), counted)
    names = [f"k{number + 1}" for number in range(len(keys))]
    names += [*(f"c{number + 1}" for number in range(len(types))), "n"]
    shown_types = [*key_types, *types, "BIGINT"]
    return t.head("scalar", [(body, terms)], types=shown_types, names=names, key=len(keys))


# -- partners ------------------------------------------------------------------------------------


def has(t: Translation, node: Join, left: Body) -> Expression:
    """Whether a row of the left has a partner, for which all conditions are true."""
    if _surely(t, node, left):
        return TRUE
    if node.general is None and all(one.operator in ("=", "<=>") for one in node.conditions):
        return _among(t, node, left, node.conditions)
    return _asked(t, node, left)


def _surely(t: Translation, node: Join, left: Body) -> bool:
    """Whether each row of the left has a partner, whatever the data.

    So it is where the right is one row; and where the right has all distinct rows of a definition of which
    the left has a row: what a correlated subquery is joined by.
    """
    if node.general is not None:
        return False
    if not node.conditions:
        return any(map(t.is_always_there, t.bag(node.right)))
    if not all(one.operator == "<=>" and isinstance(one.right, Column) for one in node.conditions):
        return False
    found = _source(
        t, node.right, tuple(one.right.index for one in node.conditions if isinstance(one.right, Column))
    )
    if found is None:
        return False
    number, places = found
    of = t.distinct_of(t.definition(number))
    if of is None or sorted(places) != list(range(len(of[1]))):
        return False
    definition, columns = of
    wanted = [over(one.left, left.columns) for one in node.conditions]
    return any(
        row[0] == definition
        and all(row[1][columns[place]] == of for place, of in zip(places, wanted, strict=True))
        for row in left.rows
    )


def _source(t: Translation, node: Node, places: tuple[int, ...]) -> tuple[int, tuple[int, ...]] | None:
    """The definition of whose rows a node keeps each one, and which of its columns these are."""
    if isinstance(node, Project):
        found = [node.expressions[place] for place in places]
        if not all(isinstance(one, Column) for one in found):
            return None
        return _source(t, node.child, tuple(one.index for one in found if isinstance(one, Column)))
    if isinstance(node, Join) and node.kind in ("LEFT", "SINGLE", "MARK"):
        return _source(t, node.left, places) if max(places) < len(t.types_of(node.left)) else None
    return (node.number, places) if isinstance(node, Recall) else None


def _among(t: Translation, node: Join, left: Body, conditions: Sequence[Compare]) -> Expression:
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
    if alone is not None and alone.is_whole:
        relation, columns = alone.relation, alone.columns
    else:
        head = t.once((node.right, "exists", keys, signs), made)
        if head is None:
            return FALSE
        relation, columns = head.relation, head.columns
    terms = [over(one.left, left.columns) for one in conditions]
    for one, of in zip(conditions, terms, strict=True):
        if one.operator == "=" and of == Constant(None, of.type):
            return FALSE
    shown = zip(columns, terms or [Constant(1, "INTEGER")], strict=True)
    return Exists(relation, tuple(shown), alone and (alone.relation, alone.columns), place=node.place)


class _LookedUp(NamedTuple):
    """``is_whole``: its rows are the inner side's, each with other values in these columns."""

    relation: str
    columns: tuple[str, ...]
    is_whole: bool


def _looked_up(t: Translation, right: Node, conditions: Sequence[Compare], left: Body) -> _LookedUp | None:
    """The relation whose rows the inner side has, but for tests that rows with a partner pass anyway.

    So is that they are among what a correlated subquery is asked for, where the left has a row of that.
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
    return _LookedUp(atom.relation, columns, not tests and key is not None and set(key) == set(columns))


def _passes(t: Translation, test: Expression, asked: Mapping[Expression, Expression], left: Body) -> bool:
    if isinstance(test, Not) and isinstance(test.argument, IsNull):
        return not nullable(asked.get(test.argument.argument, UNKNOWN))
    made_of = t.rules.shapes[test.relation].made_of if isinstance(test, Exists) else None
    if made_of is None or not isinstance(test, Exists):
        return False
    number, places = made_of
    wanted = [asked.get(of) for _, of in test.terms]
    return any(of == number and wanted == [row[place] for place in places] for of, row in left.rows)


def _asked(t: Translation, node: Join, left: Body, *, maybe: bool = False) -> Expression:
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
            tests = [Case(((test, TRUE),), folded(IsNull(test)), "BOOLEAN")] if nullable(test) else [test]
        rows += [(kept, keys) for kept in left.beside(right).where(*tests)]
    if not rows:
        return FALSE
    head = t.head("exists", rows, types=[of.type for of in keys])
    if not keys:
        return Exists(head.relation, ((head.columns[0], Constant(1, "INTEGER")),), place=node.place)
    return Exists(head.relation, tuple(zip(head.columns, keys, strict=True)), place=node.place)


def mark(t: Translation, node: Join, left: Body) -> Expression:
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


# -- EXCEPT and INTERSECT -----------------------------------------------------------------------------


def without(t: Translation, node: Without) -> Bag:
    """Rows of the left that the right has, or has not; NULL is a value like others."""
    types = t.types_of(node)
    if node.all:
        return _by_copies(t, node, types)
    lefts = t.distinct(node, t.bag(node.left))
    alike = tuple(
        Compare("<=>", Column(number, type_), Column(number, type_)) for number, type_ in enumerate(types)
    )
    join = Join("SEMI" if node.keeps else "ANTI", node.left, node.right, alike)
    return [kept for left in lefts for kept in left.where(_not(has(t, join, left), not node.keeps))]


def _by_copies(t: Translation, node: Without, types: Sequence[str]) -> Bag:
    """``ALL``: the difference, or the least, of how often each row is there."""

    def made() -> Head:
        left, right = (_counted(t, side, types) for side in (node.left, node.right))
        mine, theirs = t.read(left), t.read(right)
        names = left.columns[:-1]
        same = [
            folded(Compare("<=>", one, other))
            for one, other in zip(mine.columns[:-1], theirs.columns[:-1], strict=True)
        ]
        n, m = mine.columns[-1], theirs.columns[-1]
        number = Call("least" if node.keeps else "-", (n, m), "BIGINT")
        shown = (*mine.columns[:-1], number)
        rows = [(pair, shown) for pair in mine.beside(theirs).where(*same)]
        if not node.keeps:
            gone = Exists(right.relation, tuple(zip(right.columns[:-1], mine.columns[:-1], strict=True)))
            rows += [(rest, mine.columns) for rest in mine.where(_not(gone))]
        head = t.head(
            "copies", rows, types=(*types, "BIGINT"), bag=True, names=(*names, COPIES), place=node.place
        )
        return Head(head.relation, names, tuple(types), head.nullable[:-1])

    return [t.read(t.once((node, "copies"), made))]


def _counted(t: Translation, side: Node, types: Sequence[str]) -> Head:
    body = t.materialised("rows", t.bag(side), types)
    names = [f"c{number + 1}" for number in range(len(types))]
    rows = [(body, (*body.columns, Term("count", nullable=False)))]
    return t.head("counted", rows, types=(*types, "BIGINT"), names=(*names, "n"), key=len(names))
