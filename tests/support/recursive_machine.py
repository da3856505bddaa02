"""The machine of ``test_maintenance_machine.py`` for recursive programs: all strategies in step.

Heads that are not recursive are kept by others, of which each example has some.
"""

from __future__ import annotations

from collections.abc import Collection
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from lftj.language.several_aggregates import shown_name
from maintenance import Workspace
from maintenance.heads.strategies import COMPONENT_STRATEGIES, STRATEGIES
from maintenance.strategies.stages import step
from support.maintained_scenarios import heads_of
from support.maintenance_machine import MERGES, SEEDS, MaintenanceMachine
from support.random_recursion import recursive_scenarios
from support.sets import load_set
from support.strategies import Scenario, any_row


class RecursiveMachine(MaintenanceMachine):
    """Recursive programs, by all strategies that keep recursive heads side by side."""

    @initialize(
        scenario=recursive_scenarios(),
        gap=st.sampled_from((0, 8)),
        merges=MERGES,
        seed=SEEDS,
        others=st.permutations([name for name in STRATEGIES if name != "recompute"]),
        piece=st.sampled_from((1, 3, step.PIECE_FACTS)),
    )
    def install(
        self,
        scenario: Scenario,
        gap: int,
        merges: tuple[int, int],
        seed: int,
        others: list[str],
        piece: int,
    ) -> None:
        """``others``: strategies of the heads that are not recursive; ``piece``: facts that go together."""
        self.patches.enter_context(mock.patch.object(step, "PIECE_FACTS", piece))
        self.recursive = recursive = recursive_heads(scenario)
        heads = heads_of(scenario)
        strategies = [
            {head: kept if head in recursive else other for head in heads}
            for kept, other in zip(COMPONENT_STRATEGIES, others, strict=False)
        ]
        self._begin(scenario, strategies, gap, None, merges, seed)

    def _strategies_of(self, head: str) -> Collection[str]:
        return COMPONENT_STRATEGIES if head in self.recursive else STRATEGIES

    @rule()
    def empty_and_bring_back(self) -> None:
        """A transaction that takes everything out, and one that puts it in again."""
        everything = [(name, row) for name, rows in self.relations.items() for row in rows]
        before = self.heads
        self._commit([(name, row, -1) for name, row in everything], in_tables=True)
        self._commit([(name, row, 1) for name, row in everything], in_tables=True)
        assert {name: any_row(rows) for name, rows in self.heads.items()} == {
            name: any_row(rows) for name, rows in before.items()
        }


def recursive_heads(scenario: Scenario) -> set[str]:
    """The heads that depend on themselves."""
    workspace = Workspace()
    for loaded in scenario.loaded:
        load_set(workspace, loaded.name, loaded.table())
    components = workspace.check(scenario.text).components
    return {shown_name(name) for component in components for name in component}
