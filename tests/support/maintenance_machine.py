"""The machine of ``test_maintenance_machine.py``: random transactions on workspaces of different strategies.

The brute-force reference says what the relations and heads have to be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, event
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from lftj import errors
from maintenance import Snapshot, Transaction, Workspace
from maintenance.heads.strategies import STRATEGIES
from support.maintained_scenarios import Heads, expected_heads, has_functional_reads, pool_of
from support.rows import rows_of
from support.sets import load_set
from support.small_limits import small_limits
from support.strategies import Scenario, any_row, scenarios
from support.transactions import Staged, Tuples, after, zset_table

MERGES = st.sampled_from(((4096, 8), (0, 100), (2, 2), (0, 1)))
"""BASE_LEAST and BASE_FRACTION."""

SIZES = (1, 1, 1, 2, 3, 8, 30, 200)
SEEDS = st.integers(0, 2**32 - 1)


class Stop(Exception):
    """Raised inside of a transaction's block."""


@dataclass
class Held:
    """A snapshot, and what it has to hold for ever."""

    snapshot: Snapshot
    relations: Tuples
    heads: Heads


def ignore(*_: Any) -> None:
    """For workspaces whose changes nobody looks at."""


def read(source: Snapshot | Workspace, name: str) -> set[Any]:
    rows = rows_of(source[name].table)
    assert len(set(map(str, rows))) == len(rows) == source[name].count
    return set(any_row(set(rows)))


class MaintenanceMachine(RuleBasedStateMachine):
    """What relations and heads are by the reference, and workspaces that have to agree."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = ExitStack()
        self.workspaces: list[Workspace] = []
        self.summed: dict[str, Counter[Any]] = {}
        self.snapshots: list[Held] = []

    @initialize(
        scenario=scenarios(most_atoms=3, most_rules=4, nulls=True),
        gap=st.sampled_from((0, 8)),
        budget=st.sampled_from((None, None, 0, 400)),
        merges=MERGES,
        seed=SEEDS,
        other=st.sampled_from([name for name in STRATEGIES if name != "trace"]),
    )
    def install(
        self,
        scenario: Scenario,
        gap: int,
        budget: int | None,
        merges: tuple[int, int],
        seed: int,
        other: str,
    ) -> None:
        self._begin(scenario, ["trace", other], gap, budget, merges, seed)

    def _begin(
        self,
        scenario: Scenario,
        strategies: Sequence[str | Mapping[str, str]],
        gap: int,
        budget: int | None,
        merges: tuple[int, int],
        seed: int,
    ) -> None:
        """Install the scenario by each of some strategies, or of strategies per head."""
        self.scenario = scenario
        self.relations: Tuples = scenario.relations
        heads = expected_heads(scenario, self.relations)
        assume(heads is not None)
        assert heads is not None
        self.heads = heads
        self.pools = {loaded.name: pool_of(loaded, Random(seed)) for loaded in scenario.loaded}
        self.patches.enter_context(small_limits(merges))
        self.workspaces = [Workspace(record_gap=gap, sensitivity_bytes=budget) for _ in strategies]
        for workspace, strategy in zip(self.workspaces, strategies, strict=True):
            for loaded in scenario.loaded:
                load_set(workspace, loaded.name, loaded.table(), nulls=loaded.nulls)
            workspace.install(scenario.text, strategy)
        for name, rows in heads.items():
            self.summed[name] = Counter(any_row(rows))
            self.workspaces[0].subscribe(name, self._adder(name))

    def _adder(self, head: str) -> Callable[[pa.Table], None]:
        def add(changes: pa.Table) -> None:
            for row in rows_of(changes):
                self.summed[head][next(iter(any_row({row[:-1]})))] += row[-1]

        return add

    # -- transactions ---------------------------------------------------------------

    @rule(size=st.sampled_from(SIZES), seed=SEEDS, in_tables=st.booleans())
    def commit(self, size: int, seed: int, in_tables: bool) -> None:
        self._commit(self._random_changes(size, Random(seed)), in_tables)

    @rule(seed=SEEDS, first=st.sampled_from((1, -1)))
    def insert_and_erase_one_tuple(self, seed: int, first: int) -> None:
        """They add up to nothing, whatever their order, and whether it is there."""
        random = Random(seed)
        loaded = random.choice(self.scenario.loaded)
        row = random.choice(self.pools[loaded.name])
        before = self.heads
        self._commit([(loaded.name, row, first), (loaded.name, row, -first)], in_tables=False)
        assert self.heads == before

    @rule()
    def commit_nothing(self) -> None:
        self._commit([], in_tables=True)

    @rule(size=st.sampled_from(SIZES[:-1]), seed=SEEDS)
    def undo(self, size: int, seed: int) -> None:
        """A transaction, and one that takes back what it did."""
        before, heads = self.relations, self.heads
        self._commit(self._random_changes(size, Random(seed)), in_tables=True)
        back = [(name, row, 1) for name, rows in before.items() for row in rows - self.relations[name]]
        back += [(name, row, -1) for name, rows in before.items() for row in self.relations[name] - rows]
        self._commit(back, in_tables=True)
        assert self.relations == before
        assert {name: any_row(rows) for name, rows in self.heads.items()} == {
            name: any_row(rows) for name, rows in heads.items()
        }

    @rule(size=st.sampled_from(SIZES), seed=SEEDS)
    def raise_inside_the_block(self, size: int, seed: int) -> None:
        staged = self._random_changes(size, Random(seed))
        for workspace in self.workspaces:
            with pytest.raises(Stop), workspace.transaction() as transaction:
                self._stage(transaction, staged, in_tables=True)
                raise Stop

    @rule(size=st.sampled_from(SIZES), seed=SEEDS)
    def refuse_a_change_inside_the_block(self, size: int, seed: int) -> None:
        """A refused change stages nothing, and the others are committed."""
        random = Random(seed)
        loaded = random.choice(self.scenario.loaded)
        wide = loaded.table().append_column("more", pa.array([0] * len(loaded.rows), pa.int64()))
        head = random.choice(list(self.heads))

        def refused(transaction: Transaction) -> None:
            with pytest.raises(errors.ChangeError):
                transaction.insert(loaded.name, wide)
            with pytest.raises(errors.ChangeError):
                transaction.erase(loaded.name, [(0,) * (len(loaded.kinds) + 1)])
            with pytest.raises(errors.ChangeError):
                transaction.insert(head, [(0,)])
            with pytest.raises(errors.UnknownRelationError):
                transaction.insert("nowhere", [(0,)])

        self._commit(self._random_changes(size, random), in_tables=True, also=refused)

    def _random_changes(self, size: int, random: Random) -> list[Staged]:
        """Weights beyond 1, repetitions, and changes of nothing are among them."""
        names = [loaded.name for loaded in self.scenario.loaded]
        chosen = random.choices(names, k=size)
        weights = random.choices((1, -1, 1, -1, 2, -2), k=size)
        return [(n, random.choice(self.pools[n]), w) for n, w in zip(chosen, weights, strict=True)]

    def _stage(self, transaction: Transaction, staged: list[Staged], in_tables: bool) -> None:
        for loaded in self.scenario.loaded:
            changes = [(row, weight) for name, row, weight in staged if name == loaded.name]
            if in_tables:
                if changes:
                    transaction.apply(loaded.name, zset_table(loaded, changes))
                continue
            for row, weight in changes:
                table = zset_table(loaded, [(row, 1)] * abs(weight)).drop_columns("weight")
                (transaction.insert if weight > 0 else transaction.erase)(loaded.name, table)

    def _commit(
        self, staged: list[Staged], in_tables: bool, also: Callable[[Transaction], None] = ignore
    ) -> None:
        relations = after(self.relations, staged)
        heads = expected_heads(self.scenario, relations)
        refused = 0
        for workspace in self.workspaces:
            try:
                with workspace.transaction() as transaction:
                    self._stage(transaction, staged, in_tables)
                    also(transaction)
            except errors.LftjError:
                assert heads is None or has_functional_reads(self.scenario)
                refused += 1
                continue
            assert heads is not None, "the reference refuses this"
            self._check_changes(transaction, heads)
        assert refused in (0, len(self.workspaces))
        event("refused" if refused else "committed")
        if not refused:
            assert heads is not None
            self.relations, self.heads = relations, heads

    def _check_changes(self, transaction: Transaction, heads: Heads) -> None:
        """The reported change is the new head minus the old one."""
        for name, rows in heads.items():
            reported = rows_of(transaction.changes[name])
            now, before = any_row(rows), any_row(self.heads[name])
            came = any_row({row[:-1] for row in reported if row[-1] == 1})
            went = any_row({row[:-1] for row in reported if row[-1] == -1})
            assert (came, went) == (now - before, before - now), name
            assert len(reported) == len(came) + len(went)
            stats = transaction.stats.rules.get(name)
            if stats is not None:
                assert stats.regions <= stats.surgeries + stats.matches

    # -- how heads are kept -----------------------------------------------------------

    @rule(seed=SEEDS)
    def keep_a_head_otherwise(self, seed: int) -> None:
        """From one commit to the next, in one workspace; its tuples stay, and nobody hears of it."""
        random = Random(seed)
        workspace = random.choice(self.workspaces)
        head = random.choice(sorted(self.heads))
        strategy = random.choice(sorted(self._strategies_of(head)))
        workspace.set_strategy(head, strategy)
        assert workspace.strategy_of(head) == strategy
        event(f"kept by {strategy} from here on")

    def _strategies_of(self, head: str) -> Collection[str]:
        return STRATEGIES

    # -- readers and checks -----------------------------------------------------------

    @rule()
    def take_a_snapshot(self) -> None:
        held = Held(self.workspaces[0].snapshot(), dict(self.relations), dict(self.heads))
        self.snapshots.append(held)

    @rule()
    def read_the_snapshots(self) -> None:
        """What they hold is what was there when they were taken."""
        for held in self.snapshots:
            for name, rows in (*held.relations.items(), *held.heads.items()):
                assert read(held.snapshot, name) == any_row(rows), name

    @rule()
    def verify(self) -> None:
        for workspace in self.workspaces:
            workspace.verify()

    @invariant()
    def heads_are_right(self) -> None:
        for workspace in self.workspaces:
            workspace.check_invariants()
            for name, rows in (*self.relations.items(), *self.heads.items()):
                assert read(workspace, name) == any_row(rows), name
        for name in self.summed:  # the head as it was installed, and all changes that were told
            assert {row for row, count in self.summed[name].items() if count} == any_row(self.heads[name])
            assert set(self.summed[name].values()) <= {0, 1}

    def teardown(self) -> None:
        try:
            self.read_the_snapshots()
        finally:
            self.patches.close()
