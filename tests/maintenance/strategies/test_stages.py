"""oracle: what `stages` counts, against a recount and against the bound of exact iterations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from random import Random
from typing import NoReturn
from unittest import mock

import pytest

from maintenance import Workspace
from maintenance.strategies.stages import stage_table, stages, step
from maintenance.strategies.stages.stage_table import StageTable
from maintenance.strategies.stages.step import OverInstances, Step
from support.recursive_programs import TEXTBOOK, inputs_of, random_row
from support.reference import Row, best_rows, conjunctions, head_rows, solve
from support.rows import rows_of
from support.rules import Aggregate, Atom, Program, Variable, render

CLOSURE = "path(a, b) <- edge(a, b). path(a, c) <- path(a, b), edge(b, c)."
VALUES = [
    name
    for name, program in TEXTBOOK.items()
    if any(isinstance(one.value, Aggregate) for rule in program for one in rule.heads)
]
PLAIN = [
    name
    for name in TEXTBOOK
    if name not in VALUES and "computed" not in name and name != "constants and comparisons"
]


def instances_of(program: Program, rows: dict[str, set[Row]]) -> dict[object, int]:
    """Every assignment of every rule, with the iteration in which its last recursive fact comes."""
    derived = {one.relation for rule in program for one in rule.heads}
    facts: dict[str, set[Row]] = {name: set() for name in derived}
    level: dict[tuple[str, Row], int] = {}
    number = 0
    while True:
        number += 1
        found: dict[object, int] = {}
        new: set[tuple[str, Row]] = set()
        for place, rule in enumerate(program):
            for body in conjunctions(rule.body):
                for binding in solve(body, {**rows, **facts}):
                    read = [
                        (atom.relation, tuple(binding[t.name] for t in atom.terms if isinstance(t, Variable)))
                        for atom in body
                        if isinstance(atom, Atom) and not atom.negated and atom.relation in derived
                    ]
                    for head in rule.heads:
                        key = place, head.relation, tuple(sorted(binding.items()))
                        found[key] = max((level[one] for one in read), default=0)
                        fact = head.relation, tuple(binding[variable.name] for variable in head.variables)
                        if fact not in level:
                            new.add(fact)
        if not new:
            return found
        for name, row in new:
            level[name, row] = number
            facts[name].add(row)


def histories_of(program: Program, rows: dict[str, set[Row]]) -> dict[object, dict[int, int]]:
    """Every assignment, with the iterations in which it comes, 1, and goes, -1, as best values get better."""
    values = {one.relation: one.value for rule in program for one in rule.heads}
    facts: dict[str, set[Row]] = {name: set() for name in values}
    history: dict[object, dict[int, int]] = {}
    before: set[object] = set()
    for number in itertools.count():
        there: set[object] = set()
        found: dict[str, set[Row]] = {name: set() for name in values}
        for place, rule in enumerate(program):
            for body in conjunctions(rule.body):
                for binding in solve(body, {**rows, **facts}):
                    for head in rule.heads:
                        there.add((place, head.relation, tuple(sorted(binding.items()))))
                        found[head.relation] |= head_rows(head, [binding])
        for key in there ^ before:
            history.setdefault(key, {})[number] = 1 if key in there else -1
        for name, value in values.items():
            found[name] = (
                best_rows(found[name], value.function) if isinstance(value, Aggregate) else found[name]
            )
        if found == facts and there == before:
            return history
        facts, before = found, there
    raise AssertionError


RUN = Step.run


def given_up(self: Step, tables: Mapping[str, StageTable], top: int) -> NoReturn:
    """A step that has done all when it is found to be too dear."""
    RUN(self, tables, top)
    raise OverInstances


def churned(
    name: str, strategy: str, n_changes: int
) -> Iterator[tuple[Workspace, Program, dict[str, set[Row]], dict[str, set[Row]], int]]:
    """A program whose relations are changed one row at a time: before, after, and instances counted."""
    program, random = TEXTBOOK[name], Random(name)
    values = {"CSPA": 4, "GALEN": 4, "same generation": 9}.get(name, 12)
    n_rows = {"CSPA": 4, "GALEN": 4}.get(name, 16)
    rows = {
        relation: {random_row(random, relation, values) for _ in range(n_rows)}
        for relation in inputs_of(program)
    }
    workspace = Workspace()
    for relation, tuples in rows.items():
        columns = [f"c{number}" for number in range(len(next(iter(tuples))))]
        workspace.load(relation, sorted(tuples), columns=columns)
    text = render(program)
    components = workspace.check(text).components
    workspace.install(text, {head: strategy for component in components for head in component})
    for _ in range(n_changes):
        relation = random.choice(list(rows))
        erases = random.random() < 0.5 and rows[relation]
        row = random.choice(sorted(rows[relation])) if erases else random_row(random, relation, values)
        following = {**rows, relation: rows[relation] ^ {row}}
        with workspace.transaction() as transaction:
            (transaction.erase if row in rows[relation] else transaction.insert)(relation, [row])
        counted = sum(figures.instances for figures in transaction.stats.rules.values())
        yield workspace, program, rows, following, counted
        rows = following


@pytest.mark.in_turns
@pytest.mark.parametrize("name", PLAIN)
def test_counters_stay_exact_and_work_near_the_bound(name: str) -> None:
    """DBSP and differential dataflow look at every assignment whose iteration changes: their lower bound."""
    counted, bound = 0, 0
    new: dict[object, int] = {}
    for workspace, program, before, after, instances in churned(name, "stages", 25):
        workspace.check_invariants()
        old, new = new or instances_of(program, before), instances_of(program, after)
        counted += instances
        bound += sum(
            (key in old) + (key in new) for key in old.keys() | new.keys() if old.get(key) != new.get(key)
        )
    workspace.verify()
    assert counted <= 2.5 * bound + 40


@pytest.mark.parametrize("name", [name for name in VALUES if name != "no key"])
def test_work_on_best_values_is_near_the_bound(name: str) -> None:
    """Here each assignment counts for every iteration in which it comes or goes in one of both runs only."""
    counted, bound = 0, 0
    new: dict[object, dict[int, int]] = {}
    for _, program, before, after, instances in churned(name, "stages", 15):
        old, new = new or histories_of(program, before), histories_of(program, after)
        counted += instances
        bound += sum(
            abs(old.get(key, {}).get(number, 0) - new.get(key, {}).get(number, 0))
            for key in old.keys() | new.keys()
            for number in old.get(key, {}).keys() | new.get(key, {}).keys()
        )
    assert 0 < counted <= 2.5 * bound + 40


@pytest.mark.parametrize("name", ["closure, not linear", "GALEN", "a negation inside", "mutual"])
def test_facts_in_small_pieces(name: str) -> None:
    with mock.patch.object(step, "PIECE_FACTS", 1):
        for workspace, *_ in churned(name, "stages", 14):
            workspace.check_invariants()
    workspace.verify()


def test_a_commit_that_would_cost_more_is_evaluated_again() -> None:
    workspace = Workspace()
    workspace.load("edge", [(1, 2), (2, 3)], columns=["a", "b"])
    workspace.install(CLOSURE)
    cycle = [(number, (number + 1) % 12) for number in range(12)]
    recomputed = []
    with mock.patch.object(stages, "LEAST_BUDGET", 20):
        for change in ("insert", "erase", "insert"):
            for edges in (cycle, [(0, 5)]):
                with workspace.transaction() as transaction:
                    getattr(transaction, change)("edge", edges)
                recomputed.append(transaction.stats["path"].recomputed)
                workspace.check_invariants()
                workspace.verify()
    # What is inserted first is more than there was; after that the budget is what evaluating that took.
    assert recomputed[:2] == [1, 0]


def test_a_commit_beyond_its_budget_leaves_no_trace() -> None:
    """The counters of a step that was given up are as they were."""
    for workspace, *_ in churned("closure, not linear", "auto", 12):
        workspace.check_invariants()
    with mock.patch.object(stages, "LEAST_BUDGET", 0), mock.patch.object(Step, "run", autospec=True) as run:
        run.side_effect = given_up
        with workspace.transaction() as transaction:
            transaction.insert("e", [(100, number) for number in range(12)])
    assert transaction.stats["t"].recomputed == 1
    workspace.check_invariants()
    workspace.verify()


def test_insertions_keep_no_counters_until_something_is_erased() -> None:
    workspace = Workspace()
    workspace.load("edge", [(1, 2), (2, 3)], columns=["a", "b"])
    workspace.install(CLOSURE, "stages")
    with workspace.transaction() as transaction:
        transaction.insert("edge", [(3, 4), (4, 1)])
    assert transaction.changes["path"].num_rows == 13
    assert "insertions are followed" in str(workspace.explain_maintenance("path"))
    with workspace.transaction() as transaction:
        transaction.erase("edge", [(4, 1)])
    assert "two counters per tuple" in str(workspace.explain_maintenance("path"))
    assert transaction.changes["path"].num_rows == 10
    workspace.check_invariants()


def test_the_first_erasure_counts_each_assignment_once_and_finds_room_once() -> None:
    """It takes one evaluation: no assignment comes twice, and no table grows or sorts its facts again."""
    random = Random(5)
    edges = sorted({(random.randrange(40), random.randrange(40)) for _ in range(90)})
    workspace = Workspace()
    workspace.load("edge", edges, columns=["a", "b"])
    workspace.install(CLOSURE, "stages")
    facts = {tuple(row.values()) for row in workspace["path"].to_pylist()}
    n_assignments = len(edges) + sum((y, z) in edges for _, y in facts for z in range(40))
    with (
        mock.patch.object(StageTable, "gain", autospec=True, side_effect=StageTable.gain) as gain,
        mock.patch.object(stage_table.RowTable, "of", side_effect=stage_table.RowTable.of) as room,
        mock.patch.object(StageTable, "_make_room", side_effect=AssertionError),
        mock.patch.object(stage_table, "row_order", side_effect=stage_table.row_order) as ordered,
        mock.patch.object(Step, "_lose", side_effect=OverInstances),  # here the counting is over
        workspace.transaction() as transaction,
    ):
        transaction.erase("edge", edges[:1])
    assert sum(len(call.args[2]) for call in gain.call_args_list) == n_assignments
    assert [call.args[1] for call in room.call_args_list] == [len(facts) + len(facts) // 4]
    assert ordered.call_count == 0
    workspace.verify()
    with workspace.transaction() as transaction:
        transaction.erase("edge", edges[1:2])
    workspace.check_invariants()
    workspace.verify()


def test_an_erasure_with_another_way_round_changes_nothing_behind_it() -> None:
    """Two edges to the head of a long path: either of them may go."""
    n = 50
    workspace = Workspace()
    path = [(i, i + 1) for i in range(n)]
    workspace.load("edge", [*path, (-1, 0), (-1, -2), (-2, 0)], columns=["a", "b"])
    workspace.load("start", [(-1,)], columns=["a"])
    workspace.install("r(x) <- start(x). r(y) <- r(x), edge(x, y).", "stages")
    counted = []
    for _ in range(4):
        for change in ("erase", "insert"):
            with workspace.transaction() as transaction:
                getattr(transaction, change)("edge", [(-2, 0)])
            counted.append(transaction.stats["r"].instances)
            assert rows_of(transaction.changes["r"]) == []
    assert max(counted) <= 2
    workspace.check_invariants()


def test_a_constant_beside_tests_of_rows() -> None:
    """A rule whose rows are finished behind the search, and whose negated atom has a constant."""
    ws = Workspace()
    ws.load("r", [(-1, 3, 1)], columns=["a", "b", "c"])
    ws.install(
        """
        h(d, b, c) <- r(a, b, c), d = 1 = a, b <=> 7.
        g(b, c, a) <- (a * 1) + c >= c, r(a, b, c), !h(false, _, _), c + 1 <=> a.
        g(d, a, b) <- h(_, d, _), g(_, a, b).
        """,
        {"g": "stages"},
    )
    for change, rows in (("erase", [(-1, 3, 1)]), ("insert", [(2, 4, 1)]), ("erase", [(2, 4, 1)])):
        with ws.transaction() as tx:
            getattr(tx, change)("r", rows)
        assert len(ws["g"]) == (change == "insert")
        ws.verify()
