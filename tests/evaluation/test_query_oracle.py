"""oracle: every way to run a rule against the brute-force reference, on random rules, programs and data.

`query`, `stream` in tiny batches (so that the kernel stops and resumes
everywhere), `count`, two threads, and pinned key orders must all give the set
of tuples that the reference gives, each tuple once, in the data's own types.
`make test` runs them with numba's bounds checks, and with examples of the day.
"""

from __future__ import annotations

import itertools
from typing import Any

import hypothesis
import pyarrow as pa
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import lftj
from lftj import errors
from support.daily import drawn_daily
from support.reference import FunctionalConflict, Row, evaluate
from support.rows import rows_of
from support.rules import Aggregate, Atom, Either, Variable, literals, variables_of
from support.sets import load_set
from support.strategies import Scenario, any_row, scenarios

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
    pytest.mark.kernel,
]

N_EXAMPLES = settings.default.max_examples if settings.default else 100


def database(scenario: Scenario) -> lftj.Database:
    db = lftj.Database()
    for relation in scenario.loaded:
        load_set(db, relation.name, relation.table(), nulls=relation.nulls)
    return db


def same(got: list[Row], expected: set[Row]) -> None:
    """The right tuples, and each of them once."""
    assert any_row(set(got)) == any_row(expected)
    assert len(got) == len(expected)


def expected_rows(scenario: Scenario) -> set[Row] | None:
    """The reference's answer; None where a functional relation has two values for a key.

    A conflict in a rule that the wanted head does not need may or may not be
    noticed: such scenarios are left out.
    """
    heads = dict.fromkeys(head.relation for rule in scenario.program for head in rule.heads)
    conflicts, found = set(), {}
    for relation in heads:
        try:
            found[relation] = evaluate(scenario.program, scenario.relations, relation)
        except FunctionalConflict:
            conflicts.add(relation)
    if scenario.wanted in conflicts:
        return None
    assume(not conflicts)
    rows = found[scenario.wanted]
    event("some tuples" if rows else "no tuples")
    return rows


def which_head(scenario: Scenario) -> str | None:
    """The argument ``head=``: the wanted head where there is a choice."""
    return None if len(scenario.program[-1].heads) == 1 else scenario.wanted


def compare_with_reference(scenario: Scenario, batch_rows: int, threads: int) -> None:
    expected = expected_rows(scenario)
    db = database(scenario)
    head = which_head(scenario)
    if expected is None:
        event("functional conflict")
        with pytest.raises(errors.FunctionalConflictError):
            db.query(scenario.text, head=head)
        return
    same(rows_of(db.query(scenario.text, threads=threads, head=head)), expected)
    batches = list(db.stream(scenario.text, batch_rows=batch_rows, head=head))
    assert all(batch.num_rows <= batch_rows for batch in batches)
    same([row for batch in batches for row in rows_of(batch)], expected)
    assert db.count(scenario.text, threads=threads, head=head) == len(expected)


ways = given(batch_rows=st.sampled_from((1, 2, 3, 7)), threads=st.sampled_from((1, 2)), data=st.data())


@pytest.mark.parametrize("most_atoms", [2, 3, 4, 5])
@drawn_daily
@ways
def test_rules_agree_with_reference(
    most_atoms: int, batch_rows: int, threads: int, data: st.DataObject
) -> None:
    compare_with_reference(data.draw(scenarios(most_atoms)), batch_rows, threads)


@drawn_daily
@ways
def test_programs_agree_with_reference(batch_rows: int, threads: int, data: st.DataObject) -> None:
    compare_with_reference(data.draw(scenarios(most_atoms=3, most_rules=3, nulls=True)), batch_rows, threads)


@drawn_daily
@ways
def test_conjunctions_agree_with_reference(batch_rows: int, threads: int, data: st.DataObject) -> None:
    compare_with_reference(data.draw(scenarios(most_atoms=4, plain=True, nulls=True)), batch_rows, threads)


def key_variables(scenario: Scenario) -> list[str]:
    atoms = [a for a in scenario.program[-1].body if isinstance(a, Atom) and not a.negated]
    return list(dict.fromkeys(name for atom in atoms for name in variables_of(atom)))


@drawn_daily
@settings(max_examples=N_EXAMPLES // 2)
@given(scenario=scenarios(most_atoms=3, plain=True), seed=st.randoms(use_true_random=False))
def test_every_key_order_gives_the_same_set(scenario: Scenario, seed: Any) -> None:
    # Value variables of functional atoms are given by their keys: no place in the order is asked of them.
    assume(not any(isinstance(a, Atom) and a.functional for a in scenario.program[-1].body))
    names = key_variables(scenario)
    orders = [list(order) for order in itertools.islice(itertools.permutations(names), 720)]
    if len(orders) > 24:
        orders = seed.sample(orders, 24)
    expected = evaluate(scenario.program, scenario.relations, scenario.wanted)
    db = database(scenario)
    for order in orders:
        hypothesis.note(f"order={order}")
        same(rows_of(db.query(scenario.text, order=order)), expected)
        assert db.count(scenario.text, order=order) == len(expected)
        batches = db.stream(scenario.text, batch_rows=2, order=order)
        same([row for batch in batches for row in rows_of(batch)], expected)


@drawn_daily
@settings(max_examples=N_EXAMPLES // 2)
@given(scenario=scenarios(most_atoms=3, plain=True), stop=st.integers(0, 3))
def test_streams_run_side_by_side_and_may_be_left(scenario: Scenario, stop: int) -> None:
    expected = evaluate(scenario.program, scenario.relations, scenario.wanted)
    db = database(scenario)
    left = db.stream(scenario.text, batch_rows=1)
    for _ in itertools.islice(left, stop):
        pass
    first, second = [], []
    pairs = itertools.zip_longest(
        db.stream(scenario.text, batch_rows=2), db.stream(scenario.text, batch_rows=3), fillvalue=None
    )
    for one, other in pairs:
        first += rows_of(one) if one is not None else []
        second += rows_of(other) if other is not None else []
    same(first, expected)
    same(second, expected)
    del left
    same(rows_of(db.query(scenario.text)), expected)


def expected_types(scenario: Scenario) -> list[pa.DataType | None]:
    """Per head column: the type of its variable's first positive occurrence; None for computed ones."""
    rule = scenario.program[-1]
    types: dict[str, pa.DataType] = {}
    by_name = {relation.name: relation for relation in scenario.loaded}
    for literal in literals(rule.body):
        if isinstance(literal, Atom) and not literal.negated:
            for term, arrow in zip(literal.terms, by_name[literal.relation].types, strict=True):
                if isinstance(term, Variable):
                    types.setdefault(term.name, arrow)
    wanted: list[pa.DataType | None] = []
    for column in rule.heads[0].columns:
        if isinstance(column, Aggregate):
            arguments = [types.get(name) for a in column.arguments[:1] for name in variables_of(a)]
            fixed = {"count": pa.int64(), "sum": None, "avg": pa.float64(), "concat": pa.string()}
            wanted.append(fixed[column.function] if column.function in fixed else arguments[0])
        else:
            wanted.append(types.get(column.name))
    return wanted


def expected_names(scenario: Scenario) -> list[str]:
    """Variables' names, a repeated one with ``_2``; an aggregate's column is named after its function."""
    wanted = [
        column.function if isinstance(column, Aggregate) else column.name
        for column in scenario.program[-1].heads[0].columns
    ]
    repeats = [wanted[: place + 1].count(name) for place, name in enumerate(wanted)]
    return [name if nth == 1 else f"{name}_{nth}" for name, nth in zip(wanted, repeats, strict=True)]


@given(scenario=scenarios(most_atoms=3))
def test_columns_have_the_variables_names_and_the_datas_types(scenario: Scenario) -> None:
    assume(not any(isinstance(literal, Either) for literal in scenario.program[-1].body))
    assume(expected_rows(scenario) is not None)
    db = database(scenario)
    table = db.query(scenario.text, head=which_head(scenario))
    assert table.column_names == expected_names(scenario)
    for got, expected in zip(table.schema.types, expected_types(scenario), strict=True):
        assert expected is None or got == expected
