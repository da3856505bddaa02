"""Alternatives that differ in tests only, as one body: `(b = 1, q < 5 ; b = 2, q < 9)`.

    b in (1, 2), (b = 1 and q < 5 or b = 2 and q < 9)

so that what changes is joined once and not once for each alternative, and no row comes from two of them.  A
variable that each alternative compares with constants bounds the search by all of these.

Invariants

1. The assignments are those of the alternatives, each once.
2. A test that is merged can't fail, and its variables are never NULL: so it does not matter which of the
   others are done before it.

Cost: nothing; as a condition the tests take a pass over the rows each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lftj.language.body import Body
from lftj.language.conditionals import as_condition, connected
from lftj.language.expressions import variables_of
from lftj.language.syntax import Call, Comparison, Constant, Expression, Variable

_TESTS = ("in", "like")


def merged_tests(bodies: Sequence[Body]) -> tuple[Body, ...]:
    """One body where the bodies of a rule differ in such tests only; else these bodies."""
    first, *others = bodies
    if not others or not all(_reads_alike(first, body) for body in others):
        return tuple(bodies)
    common = [one for one in first.comparisons if all(one in body.comparisons for body in others)]
    own = [[one for one in body.comparisons if one not in common] for body in bodies]
    if not all(own):  # an alternative has no tests but those of all
        return (replace(first, comparisons=tuple(common)),)
    if not all(_is_mergeable(one, first) for tests in own for one in tests):
        return tuple(bodies)
    span = (own[0][0].span[0], own[-1][-1].span[1])
    either = connected("or", [connected("and", [as_condition(one) for one in tests]) for tests in own])
    bounds = [
        Comparison("=", Call("in", (Variable(name), *constants), span), Constant(True), span)
        for name, constants in _constants_by_variable(own).items()
    ]
    condition = Comparison("=", either, Constant(True), span)
    return (replace(first, comparisons=(*common, *bounds, condition)),)


def _reads_alike(first: Body, other: Body) -> bool:
    """Whether they are the same but for their comparisons."""
    return (first.atoms, first.negations, first.assignments) == (
        other.atoms,
        other.negations,
        other.assignments,
    )


def _is_mergeable(comparison: Comparison, body: Body) -> bool:
    """Whether a test compares variables and constants as they are, none of which is NULL."""
    sides: tuple[Expression, ...] = (comparison.left, comparison.right)
    if isinstance(comparison.left, Call) and comparison.left.function in _TESTS:
        sides = *comparison.left.arguments, comparison.right
    is_simple = not comparison.is_null_safe and all(isinstance(side, Variable | Constant) for side in sides)
    return is_simple and not any(body.types[name].nullable for name in _names(sides))


def _names(sides: Sequence[Expression]) -> list[str]:
    return [variable.name for side in sides for variable in variables_of(side)]


def _constants_by_variable(alternatives: Sequence[Sequence[Comparison]]) -> dict[str, list[Constant]]:
    """Of variables that each alternative wants to be one of some constants: all of these."""
    found: list[dict[str, list[Constant]]] = []
    for tests in alternatives:
        named: dict[str, list[Constant]] = {}
        for test in tests:
            left, right = test.left, test.right
            if test.operator != "=" or not isinstance(right, Constant):
                continue
            if isinstance(left, Variable):
                named.setdefault(left.name, [right])
            elif isinstance(left, Call) and left.function == "in" and right.value is True:
                value, *items = left.arguments
                if isinstance(value, Variable):
                    named.setdefault(value.name, [item for item in items if isinstance(item, Constant)])
        found.append(named)
    return {
        name: [constant for named in found for constant in named[name]]
        for name in found[0]
        if all(name in named for named in found)
    }
