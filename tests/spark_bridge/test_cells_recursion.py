"""oracle: heads that depend on themselves, by cells, by rounds and kept, against the brute-force reference.

Spark has no part in it (support/cell_pipeline.py, support/stage_pipeline.py): what it does with a recursion
is in ``test_spark_recursion.py``.  Data are dense: cycles, rows that come twice, and NULLs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.placing.recursive_rule import RecursiveRule
from spark_bridge.recursion.step_rules import before, beginning, best_of, following, new
from support.cell_pipeline import head_table, planned_grids, program_text, random_grids, run
from support.random_recursion import recursive_scenarios
from support.recursive_programs import ARITIES, TEXTBOOK, inputs_of, least, plus, rule
from support.reference import FunctionalConflict, Row, evaluate
from support.rows import rows_of
from support.rules import Program, atom, compare, head, lookup, no, render
from support.spark_types import in_spark, spark_tables
from support.stage_pipeline import StagePipeline, signed_table
from support.strategies import Scenario, any_row

pytestmark = [
    pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning"),
]

EDGE = (("edge", pa.schema([("a", pa.int64()), ("b", pa.int64())])),)
Rows = dict[str, set[Row]]


def heads_of(program: Program) -> list[str]:
    return list(dict.fromkeys(one.relation for rule in program for one in rule.heads))


def dense_rows(program: Program, random: Random) -> Rows:
    """As many values as give the largest head some tens of rows; every tenth value is NULL in one of two."""
    most = max(len(one.terms) for rule in program for one in rule.heads)
    values = {1: 30, 2: 8, 3: 5}[most]
    null = random.choice((0.0, 0.1))

    def value() -> int | None:
        return None if random.random() < null else random.randrange(values)

    def rows(arity: int) -> set[Row]:
        n_rows = values // 4 if arity == 1 else 3 * values
        return {tuple(value() for _ in range(arity)) for _ in range(n_rows)}

    return {name: rows(ARITIES[name]) for name in inputs_of(program)}


def table_of(rows: set[Row], arity: int) -> pa.Table:
    ordered = sorted(rows, key=repr)
    columns = [pa.array([row[n] for row in ordered], pa.int64()) for n in range(arity)]
    return pa.table(columns, [f"c{n}" for n in range(arity)])


def tables_of(rows: Rows) -> dict[str, pa.Table]:
    return {name: table_of(of, ARITIES[name]) for name, of in rows.items()}


# -- which columns stay --------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "axes"),
    [
        ("p(a, b) <- edge(a, b). p(a, c) <- p(a, b), edge(b, c).", ("a",)),
        ("p(a, b) <- edge(a, b). p(a, c) <- edge(a, b), p(b, c).", ("b",)),
        ("p(a, b) <- edge(a, b). p(a, c) <- p(a, b), p(b, c).", ()),
        ("p(a, b) <- edge(a, b). p(b, a) <- p(a, b).", ()),
        ("p(a, b) <- edge(a, b). p(a, b) <- p(a, b), edge(b, a).", ("a", "b")),
        ("p(a, a) <- edge(a, _). p(a, b) <- p(a, b), edge(b, a).", ("a",)),
        ("p(a, b) <- edge(a, b). p(a, c) <- (p(a, b) ; edge(a, b)), edge(b, c).", ("a",)),
        ("p(a, b) <- edge(a, b), a = b. p(n, c) <- p(a, b), edge(b, c), n = a + 0.", ()),
        (
            "p[a, b] = min(n) <- edge(a, b), n = 1. p[a, c] = min(m) <- p[a, b] = n, edge(b, c), m = n + 1.",
            ("a",),
        ),
        ("p[] = min(n) <- edge(n, _). p[] = min(m) <- p[] = n, edge(m, _), n < 4.", ()),
        ("q(b, a) <- edge(a, b). p(a, b) <- q(b, a). q(c, a) <- p(a, b), edge(b, c).", ("a",)),
        ("q(b, a) <- edge(a, b). p(a, b) <- q(a, b). q(c, a) <- p(a, b), edge(b, c).", ()),
    ],
)
def test_columns_that_stay_are_cut(rules: str, axes: tuple[str, ...]) -> None:
    (plan,) = ProgramText(rules, "p", EDGE).plans()
    assert plan.rules[0].axes == axes and not plan.crosses
    assert (plan.by_rounds is None) == bool(axes)


# -- once ----------------------------------------------------------------------------


def in_rounds(text: ProgramText, number: int, known: dict[str, pa.Table], random: Random) -> pa.Table:
    """A recursive head by its steps, as the rounds in Spark take them, over Python's sets."""
    plan = text.plans()[number]
    (rule,) = plan.rules
    assert isinstance(rule, RecursiveRule)
    schemas = {name: text.schema_of(name) for name in rule.component}
    best = {name: best_of(rule, name) for name in schemas}
    all_rows: Rows = {name: set() for name in schemas}
    new_rows: Rows = {name: set() for name in schemas}
    first = True
    while first or any(new_rows.values()):
        found: Rows = {}
        for name in schemas:
            changed = [other for other, rows in new_rows.items() if rows]
            trees = beginning(rule, name) if first else following(rule, name, changed)
            relations = {one: text.schemas(number)[one] for one in plan.reads}
            read = {one: known[one] for one in plan.reads}
            for other, schema in schemas.items():
                for called, rows in ((new(other), new_rows[other]), (before(other), all_rows[other])):
                    relations[called] = schema
                    read[called] = as_table(rows, schema)
            found[name] = set()
            for tree in trees:
                step = replace(text, head=name, relations=tuple(relations.items()), tree=tree)
                (of,) = step.plans()
                its = {one: read[one] for one in of.reads}
                choose = random.choice((random_grids, planned_grids))
                grids = choose(step, 0, its, random.choice((1, 3)), random)
                found[name] |= set(rows_of(head_table(step, 0, its, grids, random, "keep")))
        for name, rows in found.items():
            together = all_rows[name] | rows
            if best[name]:
                choice = min if best[name] == "min" else max
                values: dict[Row, list[Any]] = {}
                for *key, value in together:
                    values.setdefault(tuple(key), []).append(value)
                together = {(*key, choice(of_key)) for key, of_key in values.items()}
            new_rows[name], all_rows[name] = together - all_rows[name], together
        first = False
    return as_table(all_rows[plan.name], plan.arrow_schema)


def as_table(rows: set[Row], schema: pa.Schema) -> pa.Table:
    ordered = sorted(rows, key=repr)
    columns = [pa.array([row[n] for row in ordered], field.type) for n, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def by_rounds(text: str, tables: dict[str, pa.Table], head: str, random: Random) -> pa.Table:
    """Recursive heads by rounds, whether a column stays or not, and others by cells."""
    program = program_text(text, tables, head, "keep")
    known = dict(tables)
    for number, plan in enumerate(program.plans()):
        if isinstance(plan.rules[0], RecursiveRule):
            known[plan.name] = in_rounds(program, number, known, random)
        else:
            its = {name: known[name] for name in plan.reads}
            grids = random_grids(program, number, its, 2, random)
            known[plan.name] = head_table(program, number, its, grids, random, "keep")
    return known[program.plans()[-1].name]


@pytest.mark.in_turns
def test_oracle_the_textbook_over_dense_data() -> None:
    sizes = Counter[str]()
    for name, program in TEXTBOOK.items():
        random = Random(name)
        rows = dense_rows(program, random)
        tables = tables_of(rows)
        largest = 0
        for asked in heads_of(program):
            expected = evaluate(program, rows, asked)
            largest = max(largest, len(expected))
            choose = random.choice((random_grids, planned_grids))
            found = rows_of(
                run(render(program), tables, random.choice((1, 3)), random, choose, asked, "keep")
            )
            assert set(found) == expected and len(found) == len(expected), (name, asked)
            found = rows_of(by_rounds(render(program), tables, asked, random))
            assert set(found) == expected and len(found) == len(expected), (name, asked)
        sizes["large" if largest >= 20 else "small"] += 1
    assert sizes["large"] >= 3 * sizes["small"], sizes


N_EXAMPLES = max(1, settings.default.max_examples // 2) if settings.default else 50


@settings(max_examples=N_EXAMPLES)
@given(scenario=recursive_scenarios(), seed=st.integers(0, 2**32 - 1))
def test_oracle_random_recursions(scenario: Scenario, seed: int) -> None:
    random, scenario = Random(seed), in_spark(scenario)
    tables = spark_tables(scenario)
    try:
        expected = evaluate(scenario.program, scenario.relations, scenario.wanted)
    except (FunctionalConflict, ArithmeticError):
        assume(False)
    head = scenario.wanted
    found = rows_of(run(scenario.text, tables, random.choice((1, 2, 3)), random, random_grids, head, "keep"))
    assert any_row(set(found)) == any_row(expected) and len(found) == len(expected)
    found = rows_of(by_rounds(scenario.text, tables, head, random))
    assert any_row(set(found)) == any_row(expected) and len(found) == len(expected)


# -- kept ----------------------------------------------------------------------------

PROGRAMS: dict[str, Program] = {
    **TEXTBOOK,
    "distances from each": (
        rule(head("d", "s", "y", value=least("n")), atom("e", "s", "y"), compare("n", "=", 1)),
        rule(
            head("d", "s", "z", value=least("m")),
            lookup("d", "s", "y", "n"),
            atom("e", "y", "z"),
            compare("m", "=", plus("n", 1)),
        ),
    ),
    "read above": (
        rule(head("w", "x", "y"), atom("t", "x", "y"), no("s", "y")),
        rule(head("t", "x", "y"), atom("e", "x", "y")),
        rule(head("t", "x", "z"), atom("t", "x", "y"), atom("e", "y", "z"), no("s", "x")),
    ),
}


def widest(program: Program) -> str:
    """The first of its heads with most columns before the value."""
    return max((one for rule in program for one in rule.heads), key=lambda one: len(one.terms)).relation


def is_kept(program: Program) -> bool:
    """Whether a column stays of each head that the widest one rests on."""
    relations = tuple((one, table_of(set(), ARITIES[one]).schema) for one in inputs_of(program))
    return all(
        plan.by_rounds is None for plan in ProgramText(render(program), widest(program), relations).plans()
    )


def random_change(random: Random, relation: str, of: set[Row]) -> pa.Table:
    """Some rows go, others come."""
    gone = set(random.sample(sorted(of, key=repr), min(len(of), random.choice((0, 1, 4)))))
    n_come = random.choice((0, 1)) if ARITIES[relation] == 1 else random.choice((1, 4, 6))
    come = {tuple(random.randrange(9) for _ in range(ARITIES[relation])) for _ in range(n_come)}
    gone, come = gone - come, come - of
    ordered = [*sorted(gone, key=repr), *sorted(come)]
    columns = [pa.array([row[n] for row in ordered], pa.int64()) for n in range(ARITIES[relation])]
    weights = [-1] * len(gone) + [1] * len(come)
    return signed_table(pa.table(columns, [f"c{n}" for n in range(ARITIES[relation])]), weights)


@pytest.mark.in_turns
def test_oracle_of_kept_heads_batches_insert_and_erase(tmp_path: Path) -> None:
    """After each batch the head is what the reference finds, and its changes lead there."""
    seen = Counter[str]()
    kept_programs = {name: program for name, program in PROGRAMS.items() if is_kept(program)}
    assert len(kept_programs) >= 6, kept_programs
    for number, (name, program) in enumerate(kept_programs.items()):
        random = Random(name)
        rows = dense_rows(program, random)
        head = widest(program)
        choose = random.choice((random_grids, planned_grids))
        path, partitions = tmp_path / str(number), random.choice((1, 2, 3))
        kept = StagePipeline(
            render(program), tables_of(rows), path, partitions, choose, random, head=head, nulls="keep"
        )
        was = set(rows_of(kept.table()))
        assert was == evaluate(program, rows, head), name
        for _ in range(5):
            changes = {name: random_change(random, name, of) for name, of in rows.items()}
            for name_of, change in changes.items():
                gone, come = ({row[:-1] for row in rows_of(change) if row[-1] == sign} for sign in (-1, 1))
                rows[name_of] = rows[name_of] - gone | come
            told = Counter({row[:-1]: row[-1] for row in rows_of(kept.apply(changes))})
            expected = evaluate(program, rows, head)
            assert {row for row, weight in told.items() if weight > 0} == expected - was, name
            assert {row for row, weight in told.items() if weight < 0} == was - expected, name
            assert set(rows_of(kept.table())) == expected, name
            was = expected
            seen["20 rows" if len(was) >= 20 else "fewer"] += 1
            if random.randrange(3) == 0:
                kept.lose_engines()
        kept.check_files()
    assert seen["20 rows"] >= 3 * seen["fewer"], seen
