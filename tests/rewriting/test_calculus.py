"""laws: what the calculus of sums promises, for random expressions and views, by brute force.

Sums of products are what was written, whatever the values; two views are one exactly where one is the
other with its variables renamed.  That views give the sums of their rules is in ``test_view_trees.py``, the
delta of a product in the tests of the delta rules.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

import pyarrow as pa

from lftj.language.body import Body
from lftj.language.checker import check
from lftj.language.expressions import text_of, variables_of
from lftj.language.parser import parse
from lftj.language.syntax import Aggregate, Atom, Comparison, Variable
from lftj.rewriting.shared_views import ViewBody, canonical
from lftj.rewriting.summand import MOST_PRODUCTS, NotRewritten, products
from lftj.values.domains import Domains
from lftj.values.schema import Column, ColumnType, Schema

ATOMS = (frozenset("ab"), frozenset("bc"), frozenset("cd"))


def drawn_expression(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.2:
        return random.choice(["a", "b", "c", "d", "2"])
    if random.random() < 0.15:
        return f"-({drawn_expression(random, depth - 1)})"
    operator = random.choice("+-**")
    return f"({drawn_expression(random, depth - 1)} {operator} {drawn_expression(random, depth - 1)})"


def body_of(expression: str) -> Body:
    domains = Domains()
    whole = ColumnType(domains.of(pa.int64()), pa.int64())
    schema = Schema((Column("x", whole), Column("y", whole)))
    rule = f"h[] = sum(v) <- r(a, b), s(b, c), t(c, d), v = a - a + {expression}."
    checked = check(parse(rule), dict.fromkeys("rst", schema), domains)
    return checked.rules_of("h")[0][0].bodies[0]


def test_products_add_up_to_what_was_written() -> None:
    random = Random(3)
    many = 0
    for _ in range(150):
        expression = drawn_expression(random, 4)
        try:
            found = products(Aggregate("sum", (Variable("v"),)), body_of(expression))
        except NotRewritten:  # more than MOST_PRODUCTS
            continue
        assert len(found) <= MOST_PRODUCTS
        many += len(found) > 2
        for product in found:
            for factor in product.factors:
                names = {variable.name for variable in variables_of(factor)}
                assert any(names <= atom for atom in ATOMS), text_of(factor)
        for _ in range(3):
            values = {name: random.randint(-9, 9) for name in "abcd"}
            total = 0
            for product in found:
                term = (-1) ** product.negations
                for factor in product.factors:
                    term *= eval(text_of(factor), {}, values)
                total += term
            assert total == eval(expression, {}, values), expression
    assert many >= 40


def drawn_view(random: Random) -> ViewBody:
    names = "wxyz"[: random.randint(2, 4)]
    atoms = tuple(
        Atom(random.choice("RRS"), (Variable(random.choice(names)), Variable(random.choice(names))))
        for _ in range(random.randint(1, 2))
    )
    used = sorted({term.name for atom in atoms for term in atom.terms if isinstance(term, Variable)})
    compared = Comparison("<", Variable(used[0]), Variable(used[-1]), (0, 0))
    return ViewBody(
        atoms,
        (),
        (compared,) if random.random() < 0.3 else (),
        (Variable(random.choice(used)),) if random.random() < 0.5 else (),
        frozenset(name for name in used if random.random() < 0.5),
    )


def described(view: ViewBody, names: dict[str, str]) -> tuple[object, ...]:
    """A view with its variables renamed, whatever the order of its atoms."""
    return (
        sorted(
            (a.relation, *(names[t.name] for t in a.terms if isinstance(t, Variable))) for a in view.atoms
        ),
        [[names[v.name] for side in (c.left, c.right) for v in variables_of(side)] for c in view.comparisons],
        [names[v.name] for factor in view.factors for v in variables_of(factor)],
        sorted(names[key] for key in view.keys),
    )


def variables(view: ViewBody) -> list[str]:
    return sorted({term.name for atom in view.atoms for term in atom.terms if isinstance(term, Variable)})


def is_renamed(first: ViewBody, second: ViewBody) -> bool:
    here, there = variables(first), variables(second)
    wanted = described(second, {name: name for name in there})
    return len(here) == len(there) and any(
        described(first, dict(zip(here, names, strict=True))) == wanted
        for names in itertools.permutations(there)
    )


def test_views_are_one_where_one_is_the_other_renamed() -> None:
    random = Random(5)
    views = [drawn_view(random) for _ in range(70)]
    texts = [canonical(view)[0] for view in views]
    equal = 0
    for (view, text), (other, other_text) in itertools.combinations(zip(views, texts, strict=True), 2):
        assert (text == other_text) == is_renamed(view, other), (view, other)
        equal += text == other_text
    assert equal >= 10


def test_a_set_is_not_the_count_of_the_same_join() -> None:
    random = Random(8)
    for view in (drawn_view(random) for _ in range(20)):
        assert canonical(view)[0] != canonical(replace(view, is_set=True))[0]
