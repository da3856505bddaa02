"""oracle: recursive heads that follow transactions, against the brute-force least fixpoint."""

from __future__ import annotations

import io
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from lftj import errors
from lftj.language.several_aggregates import shown_name
from maintenance import Transaction, Workspace
from maintenance.heads.strategies import COMPONENT_STRATEGIES
from maintenance.image import read_image, write_image
from support.maintained_scenarios import (
    Heads,
    check_changes,
    check_heads,
    commit,
    expected_heads,
    has_functional_reads,
)
from support.random_recursion import recursive_scenarios
from support.recursive_programs import TEXTBOOK, inputs_of, random_row
from support.reference import Row, evaluate_each
from support.rows import rows_of
from support.rules import Program, render
from support.sets import load_set
from support.strategies import Scenario
from support.transactions import Staged, Tuples, after, transactions

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

KEPT_BY = list(COMPONENT_STRATEGIES)
CLOSURE = "path(a, b) <- edge(a, b). path(a, c) <- path(a, b), edge(b, c)."


def by_strategy(workspace: Workspace, text: str, strategy: str) -> dict[str, str]:
    """The strategy for the recursive heads of a program; the others have the default."""
    components = workspace.check(text).components
    return {shown_name(name): strategy for component in components for name in component}


def check(workspace: Workspace, transaction: Transaction, before: Heads, now: Heads) -> None:
    """Heads are what they should be, and the reported change is the difference."""
    check_heads(workspace, now)
    check_changes(transaction, before, now)
    workspace.check_invariants()


def random_changes(random: Random, rows: dict[str, set[Row]], values: int) -> dict[str, set[Row]]:
    """Up to four rows of each relation to be put in where they are absent, and taken out where not."""
    changes: dict[str, set[Row]] = {}
    for relation, held in rows.items():
        changes[relation] = set()
        for _ in range(random.choice((0, 0, 1, 1, 2, 4))):
            if random.random() < 0.5 and held:
                changes[relation].add(random.choice(sorted(held)))
            else:
                changes[relation].add(random_row(random, relation, values))
    return changes


def loaded(program: Program, random: Random, values: int) -> tuple[Workspace, dict[str, set[Row]]]:
    rows = {
        relation: {random_row(random, relation, values) for _ in range(random.randrange(1, 9))}
        for relation in inputs_of(program)
    }
    workspace = Workspace()
    for relation, tuples in rows.items():
        columns = [f"c{number}" for number in range(len(next(iter(tuples))))]
        workspace.load(relation, sorted(tuples), columns=columns)
    return workspace, rows


def heads_of(program: Program) -> list[str]:
    return list(dict.fromkeys(one.relation for rule in program for one in rule.heads))


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", KEPT_BY)
@pytest.mark.parametrize("name", TEXTBOOK)
def test_the_textbook_follows(name: str, strategy: str) -> None:
    program = TEXTBOOK[name]
    random = Random(f"{name} {strategy}")
    for _ in range(2):
        values = 4 if name in ("CSPA", "GALEN") else 6
        workspace, rows = loaded(program, random, values)
        workspace.install(render(program), by_strategy(workspace, render(program), strategy))
        heads = evaluate_each(program, rows, heads_of(program))
        for _ in range(6):
            changes = random_changes(random, rows, values)
            with workspace.transaction() as transaction:
                for relation, changed in changes.items():
                    transaction.insert(relation, sorted(changed - rows[relation]) or [])
                    transaction.erase(relation, sorted(changed & rows[relation]) or [])
            rows = {relation: held ^ changes[relation] for relation, held in rows.items()}
            expected = evaluate_each(program, rows, heads_of(program))
            check_heads(workspace, expected)
            check_changes(transaction, heads, expected)
            heads = expected
        workspace.verify()
        workspace.check_invariants()  # a counter that went wrong stays so


def follow(scenario: Scenario, steps: list[list[Staged]], strategy: str) -> None:
    relations: Tuples = scenario.relations
    heads = expected_heads(scenario, relations)
    assume(heads is not None)
    assert heads is not None
    workspace = Workspace()
    for relation in scenario.loaded:
        load_set(workspace, relation.name, relation.table())
    workspace.install(scenario.text, by_strategy(workspace, scenario.text, strategy))
    for staged in steps:
        relations = after(relations, staged)
        expected = expected_heads(scenario, relations)
        try:
            transaction = commit(workspace, scenario, staged)
        except errors.LftjError:
            assert expected is None or has_functional_reads(scenario)
            workspace.verify()
            return
        assert expected is not None
        check(workspace, transaction, heads, expected)
        heads = expected
    workspace.verify()


@pytest.mark.in_turns
@pytest.mark.parametrize("strategy", KEPT_BY)
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_programs_follow(strategy: str, data: st.DataObject) -> None:
    scenario = data.draw(recursive_scenarios())
    steps = data.draw(st.lists(transactions(scenario), min_size=1, max_size=5))
    follow(scenario, steps, strategy)


def closure(edges: list[tuple[int, int]], strategy: str = "auto", **options: int) -> Workspace:
    workspace = Workspace()
    workspace.load("edge", edges, columns=["a", "b"])
    workspace.install(CLOSURE, strategy, **options)
    return workspace


@pytest.mark.parametrize("strategy", KEPT_BY)
def test_everything_goes_and_comes_back(strategy: str) -> None:
    edges = [(1, 2), (2, 3), (3, 1), (3, 4), (5, 5)]
    workspace = closure(edges, strategy)
    before = rows_of(workspace["path"].table)
    with workspace.transaction() as transaction:
        transaction.erase("edge", edges)
    assert workspace["path"].count == 0 and len(rows_of(transaction.changes["path"])) == len(before)
    with workspace.transaction() as transaction:
        transaction.insert("edge", edges)
    assert rows_of(workspace["path"].table) == before
    workspace.verify()


@pytest.mark.parametrize("strategy", KEPT_BY)
def test_snapshots_subscribers_images_and_batches(strategy: str) -> None:
    workspace = closure([(1, 2), (2, 3)], strategy)
    workspace.install("far(a, c) <- path(a, c), !edge(a, c).")
    heard = []
    workspace.subscribe("path", heard.append)
    before = workspace.snapshot()
    with workspace.transaction() as transaction:
        transaction.insert("edge", [(3, 4)])
    (table,) = heard
    assert sorted(rows_of(table)) == [(1, 4, 1), (2, 4, 1), (3, 4, 1)]
    assert before["path"].count == 3 and workspace["path"].count == 6
    assert sorted(rows_of(workspace["far"].table)) == [(1, 3), (1, 4), (2, 4)]
    file = io.BytesIO()
    write_image(workspace, file)
    again = read_image(file.getvalue())
    for one in (workspace, again):
        rows = {"a": [2, 4, 2, 9], "b": [3, 1, 3, 9], "weight": [-1, 1, 1, 1], "txn": [1, 2, 3, 4]}
        applied = one.apply_many({"edge": rows})
        assert [changes["path"].num_rows for changes in applied] == [4, 4, 10, 1]
        one.verify()
        one.check_invariants()


@pytest.mark.parametrize("strategy", KEPT_BY)
def test_a_transaction_that_fails_leaves_all_as_it_was(strategy: str) -> None:
    workspace = Workspace()
    workspace.load("edge", [(1, 2), (2, 3)], columns=["a", "b"])
    text = "d(x, n) <- edge(x, _), x = 1, n = 0. d(y, m) <- d(x, n), edge(x, y), m = n + 1."
    workspace.install(text, strategy, max_rounds=20)
    held = rows_of(workspace["d"].table)
    for _ in range(2):
        with (
            pytest.raises(errors.RoundLimitError, match="after 20 rounds"),
            workspace.transaction() as transaction,
        ):
            transaction.insert("edge", [(3, 1)])
        assert rows_of(workspace["d"].table) == held
        workspace.check_invariants()
    with workspace.transaction() as transaction:
        transaction.insert("edge", [(3, 4)])
        transaction.erase("edge", [(1, 2)])
    assert rows_of(transaction.changes["d"]) == [(1, 0, -1), (2, 1, -1), (3, 2, -1)]
    workspace.verify()


@pytest.mark.parametrize("strategy", KEPT_BY)
def test_a_second_value_for_a_key_is_refused(strategy: str) -> None:
    workspace = Workspace()
    workspace.load("edge", [(1, 2, 5), (2, 3, 1)], columns=["a", "b", "w"])
    text = "d[x] = n <- edge(x, _, _), x = 1, n = 0. d[y] = m <- d[x] = n, edge(x, y, w), m = n + w."
    workspace.install(text, strategy)
    with (
        pytest.raises(errors.FunctionalConflictError, match=r"d\[3\] has two values"),
        workspace.transaction() as transaction,
    ):
        transaction.insert("edge", [(1, 3, 1)])
    workspace.verify()
    with workspace.transaction() as transaction:
        transaction.insert("edge", [(1, 3, 6)])
        transaction.erase("edge", [(2, 3, 1)])
    assert rows_of(transaction.changes["d"]) == []
    workspace.check_invariants()


def test_what_keeps_a_recursive_head() -> None:
    workspace = closure([(1, 2)])
    assert workspace.strategy_of("path") == "auto"
    assert "recursion of path" in str(workspace.explain_maintenance("path"))
    assert "<-* edge, path" in str(workspace.explain_maintenance())
    workspace.set_strategy("path", "recompute")
    assert workspace.strategy_of("path") == "recompute"
    with pytest.raises(errors.StrategyError, match="'path', which depends on itself"):
        workspace.set_strategy("path", "trace")
    mutual = "a(x, y) <- edge(x, y). b(x, z) <- a(x, y), edge(y, z). a(x, z) <- b(x, y), edge(y, z)."
    with pytest.raises(errors.StrategyError, match="'b' and 'a' depend on each other"):
        workspace.install(mutual, {"a": "recompute", "b": "auto"})
    with pytest.raises(errors.OrderError, match="'a', which depends on itself"):
        workspace.install(mutual, order={"a": ["x", "y"]})
    workspace.install(mutual)
    workspace.set_strategy("b", "recompute")
    assert (workspace.strategy_of("a"), workspace.strategy_of("b")) == ("recompute", "recompute")
    with pytest.raises(errors.ChangeError, match="uninstall 'a'"):
        workspace.uninstall("b")
    workspace.uninstall("a", "b")
    workspace.install(CLOSURE, "recompute", replace=True)
    workspace.verify()
