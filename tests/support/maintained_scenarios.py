"""Scenarios kept by a workspace: its installation and transactions, and its heads by the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

from maintenance import Transaction, Workspace
from support.functions import DivisionByZero, Overflow
from support.reference import FunctionalConflict, Row, evaluate_each
from support.rows import rows_of
from support.sets import load_set
from support.strategies import Loaded, Scenario, any_row
from support.transactions import Staged, Tuples, zset_table

Heads = dict[str, set[Row]]


def heads_of(scenario: Scenario) -> list[str]:
    return list(dict.fromkeys(head.relation for rule in scenario.program for head in rule.heads))


def expected_heads(scenario: Scenario, relations: Tuples) -> Heads | None:
    """Every head by the reference; None where the program fails on these relations."""
    try:
        return evaluate_each(scenario.program, relations, heads_of(scenario))
    except (FunctionalConflict, Overflow, DivisionByZero):
        return None


def installed(
    scenario: Scenario, strategy: str | Mapping[str, str], gap: int = 8, budget: int | None = None
) -> Workspace:
    workspace = Workspace(record_gap=gap, sensitivity_bytes=budget)
    for relation in scenario.loaded:
        load_set(workspace, relation.name, relation.table(), nulls=relation.nulls)
    workspace.install(scenario.text, strategy)
    return workspace


def commit(workspace: Workspace, scenario: Scenario, staged: list[Staged]) -> Transaction:
    with workspace.transaction() as transaction:
        for relation in scenario.loaded:
            changes = [(row, weight) for name, row, weight in staged if name == relation.name]
            if changes:
                transaction.apply(relation.name, zset_table(relation, changes))
    return transaction


def check_heads(workspace: Workspace, expected: Heads) -> None:
    """The heads are what they should be."""
    for name, rows in expected.items():
        held = rows_of(workspace[name].table)
        assert any_row(set(held)) == any_row(rows)
        assert len(held) == len(rows) == workspace[name].count


def check_changes(transaction: Transaction, before: Heads, now: Heads) -> None:
    """The reported change is the new head minus the old one, each tuple once."""
    for name, rows in now.items():
        reported = Counter(rows_of(transaction.changes[name]))
        assert max(reported.values(), default=1) == 1
        came = {row[:-1] for row in reported if row[-1] == 1}
        went = {row[:-1] for row in reported if row[-1] == -1}
        assert any_row(came) == any_row(rows) - any_row(before[name])
        assert any_row(went) == any_row(before[name]) - any_row(rows)
        assert len(came) + len(went) == len(reported)
        stats = transaction.stats.rules.get(name)
        if stats is not None:
            assert stats.regions <= stats.surgeries + stats.matches


def has_functional_reads(scenario: Scenario) -> bool:
    """Changes may break a loaded relation that a rule reads as a function."""
    return "[" in scenario.text


def pool_of(relation: Loaded, random: Random) -> list[Row]:
    """A few dozen rows to insert and erase: those there, mixtures of them, others of the kinds' values."""
    rows = list(dict.fromkeys(relation.rows))
    values = relation.values()
    for _ in range(8):
        rows.append(tuple(random.choice(column) for column in values))
        pair = random.choice(rows), random.choice(rows)
        rows.append(tuple(map(random.choice, zip(*pair, strict=True))))
    return rows
