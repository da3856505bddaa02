"""The rendered text of random rules parses back to the same structure.

The parser's tree is turned into the tests' own structures and compared, so a
difference found by the oracle tests lies in the evaluation, not in the text.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given

from lftj.language import syntax
from lftj.language.parser import parse
from support import rules
from support.functions import TESTS
from support.kinds import KINDS
from support.rules import arith, atom, compare, head, lookup, no, render
from support.strategies import Scenario, scenarios


def own_expression(node: Any) -> Any:
    if isinstance(node, syntax.Variable):
        return rules.Variable(node.name)
    if isinstance(node, syntax.Wildcard):
        return rules.Wildcard()
    if isinstance(node, syntax.Constant):
        return rules.Constant(node.value)
    if isinstance(node, syntax.Negative):
        operand = own_expression(node.operand)
        if isinstance(operand, rules.Constant):  # `-5` and the negative of 5 say the same
            return rules.Constant(-operand.value)
        return rules.Minus(operand)
    if isinstance(node, syntax.Call):
        return rules.Call(node.function, tuple(map(own_expression, node.arguments)))
    return rules.Arithmetic(node.operator, own_expression(node.left), own_expression(node.right))


def own_literal(node: syntax.Literal) -> rules.Literal:
    if isinstance(node, syntax.Atom):
        terms = tuple(own_expression(term) for term in node.terms)
        if node.relation in TESTS:  # it looks like an atom until it is checked
            return rules.Comparison("=", rules.Call(node.relation, terms), rules.Constant(not node.negated))
        return rules.Atom(node.relation, terms, node.negated, node.functional)
    if isinstance(node, syntax.Comparison):
        return rules.Comparison(node.operator, own_expression(node.left), own_expression(node.right))
    return rules.Either(tuple(tuple(own_literal(n) for n in a) for a in node.alternatives))


def own_column(node: syntax.Variable | syntax.Aggregate) -> rules.Variable | rules.Aggregate:
    if isinstance(node, syntax.Variable):
        return rules.Variable(node.name)
    return rules.Aggregate(node.function, tuple(own_expression(argument) for argument in node.arguments))


def own_head(node: syntax.Head) -> rules.Head:
    value = None if node.value is None else own_column(node.value)
    copies = None if node.copies is None else rules.Variable(node.copies.name)
    return rules.Head(node.relation, tuple(map(own_column, node.terms)), value, node.bag, copies)


def own(program: syntax.Program) -> rules.Program:
    return tuple(
        rules.Rule(tuple(own_head(h) for h in rule.heads), tuple(own_literal(n) for n in rule.body))
        for rule in program.rules
    )


def typed(node: Any) -> str:
    """``repr`` tells 1 from True from 1.0 from Decimal(1), which ``==`` does not."""
    return repr(node)


@given(scenarios(most_atoms=3, most_rules=3))
@example(
    Scenario(
        (),
        (
            rules.Rule(
                (head("h", "x", value="v"), head("g", "x", value=rules.aggregate("count"))),
                (
                    lookup("f", "x", "_"),
                    no("e", "x", "_", -5),
                    compare("v", "=", arith(arith("x", "-", -3), "*", rules.Minus(rules.Variable("y")))),
                    rules.Either(
                        ((atom("d", "y"), compare(1, "<", "y")), (compare("y", "=", Decimal("2.5")),))
                    ),
                ),
            ),
        ),
    )
)
def test_rendered_programs_parse_back(scenario: Scenario) -> None:
    assert typed(own(parse(render(scenario.program)))) == typed(scenario.program)


@pytest.mark.parametrize("value", [v for kind in KINDS for v in kind.literals], ids=repr)
def test_literals_parse_back(value: Any) -> None:
    program = (rules.Rule((head("h", "x"),), (atom("e", "x", rules.Constant(value)),)),)
    assert typed(own(parse(render(program)))) == typed(program)


@pytest.mark.parametrize("text", ["x<y-3", "x < y -3", "x <y - 3", "x < y- 3"])
def test_minus_needs_no_spaces(text: str) -> None:
    expected = (rules.Rule((head("h", "x"),), (atom("e", "x", "y"), compare("x", "<", arith("y", "-", 3)))),)
    assert own(parse(f"h(x) <- e(x, y), {text}.")) == expected
