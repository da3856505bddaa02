"""differential: the maintained stages (support/stage_pipeline.py) against a ``Workspace``, random programs.

After every batch the changes of the head are those of the workspace's transaction, the table that the files
hold is the workspace's head, and the relations that they hold are its own: sets of tuples, floats exactly.  A
batch that the workspace refuses is refused, and later ones work as if it had not been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from support.rows import rows_of

pytest.importorskip("pyspark")

from lftj import errors
from maintenance import Workspace
from spark_bridge.placing.grids import HeadGrids, given_grids
from spark_bridge.placing.head_plan import ProgramText
from spark_bridge.stages import worker as stage_worker
from support.cell_pipeline import ChooseGrids, planned_grids, program_text, random_grids
from support.maintained_scenarios import pool_of
from support.reference import Row
from support.sets import load_set
from support.spark_types import in_spark, spark_tables
from support.stage_pipeline import StagePipeline, signed_table
from support.strategies import Scenario, any_row, scenarios

pytestmark = pytest.mark.filterwarnings("ignore::lftj.errors.CartesianProductWarning")

N_EXAMPLES = 2 * settings.default.max_examples if settings.default else 100

INT64 = pa.int64()
SOURCES = {"new", "kept", "caught up", "image", "evaluated"}
SIZES = (0, 1, 1, 2, 3, 8, 20)


def needed(scenario: Scenario) -> Scenario:
    """The scenario with the rules that the last head depends on, for data as Spark has it."""
    scenario = in_spark(scenario)
    tables = spark_tables(scenario)
    wanted = scenario.program[-1].heads[-1].relation
    plans = program_text(scenario.text, tables, wanted, "keep").plans()
    names = {plan.name for plan in plans}
    read = {name for plan in plans for name in plan.reads}
    program = (
        replace(rule, heads=tuple(head for head in rule.heads if head.relation in names))
        for rule in scenario.program
    )
    loaded = tuple(it for it in scenario.loaded if it.name in read)
    return Scenario(loaded, tuple(rule for rule in program if rule.heads))


class Followed:
    """A workspace and a pipeline over the same relations."""

    def __init__(
        self,
        text: str,
        tables: dict[str, pa.Table],
        path: Path,
        partitions: int,
        choose: ChooseGrids,
        seed: int,
    ) -> None:
        """Raises what the workspace raises, when the pipeline raises it too."""
        self.random = Random(seed)
        self.workspace = Workspace()
        for name, table in tables.items():
            load_set(self.workspace, name, table, nulls="keep")
        self.workspace.install(text)
        self.pipeline = StagePipeline(text, tables, path, partitions, choose, self.random, nulls="keep")
        self.head = self.pipeline.chain.plans[-1].name

    def batch(self, changes: dict[str, pa.Table]) -> bool:
        """Apply a batch to both; returns whether it was taken."""
        before = self.pipeline.manifest
        try:
            with self.workspace.transaction() as transaction:
                for name, table in changes.items():
                    transaction.apply(name, table)
        except errors.LftjError as error:
            with pytest.raises(type(error)):
                self.pipeline.apply(changes)
            assert self.pipeline.manifest is before
            return False
        same(self.pipeline.apply(changes), transaction.changes[self.head])
        return True

    def check(self) -> None:
        same(self.pipeline.table(), self.workspace[self.head].table)
        for name in self.pipeline.relations:
            same(self.pipeline.relation(name), self.workspace[name].table)
            assert self.pipeline.rows[name] == self.workspace[name].count


def same(found: pa.Table, expected: pa.Table) -> None:
    """The same rows, each once, and the same types; NaN is NaN."""
    assert found.schema.types == expected.schema.types
    rows = rows_of(found)
    assert any_row(set(rows)) == any_row(set(rows_of(expected)))
    assert len(rows) == len(expected)


def random_batch(scenario: Scenario, pools: dict[str, list[Row]], random: Random) -> dict[str, pa.Table]:
    """Signed rows of some relations: repeated, cancelling each other, of what is there and what is not."""
    changes = {}
    for loaded in random.sample(scenario.loaded, random.randint(1, len(scenario.loaded))):
        rows = random.choices(pools[loaded.name], k=random.choice(SIZES))
        if rows and random.randrange(4) == 0:
            rows += rows[:2]
        weights = [random.choice((1, -1, 1, -1, 2, -2)) for _ in rows]
        columns = [pa.array([row[n] for row in rows], arrow) for n, arrow in enumerate(loaded.types)]
        changes[loaded.name] = signed_table(pa.table(columns, loaded.table().column_names), weights)
    return changes


def small_logs(random: Random) -> ExitStack:
    """Snapshots are taken anew after every batch, after a few, or as the defaults say."""
    patches = ExitStack()
    most = random.choice((0, 1, 2, 32, 32))
    patches.enter_context(mock.patch.object(stage_worker, "MOST_LOGGED", most))
    return patches


def follow(
    scenario: Scenario, partitions: int, choose: ChooseGrids, seed: int, n_batches: int, seen: Counter[str]
) -> None:
    random = Random(seed)
    scenario = needed(scenario)
    tables = spark_tables(scenario)
    pools = {loaded.name: pool_of(loaded, random) for loaded in scenario.loaded}
    with TemporaryDirectory() as folder, small_logs(random):
        try:
            followed = Followed(scenario.text, tables, Path(folder), partitions, choose, seed)
        except errors.LftjError:
            event("refused from the start")
            return
        followed.check()
        for _ in range(n_batches):
            taken = followed.batch(random_batch(scenario, pools, random))
            seen["taken" if taken else "refused"] += 1
            followed.check()
            if random.randrange(6) == 0:
                followed.pipeline.lose_engines()
        followed.workspace.verify()
        followed.pipeline.check_files()
        seen.update(followed.pipeline.seen)
        seen["snapshots taken anew"] += followed.pipeline.replaced


WAYS: dict[str, Any] = {
    "partitions": st.sampled_from((1, 2, 3, 5)),
    "choose": st.sampled_from((random_grids, planned_grids, random_grids)),
    "seed": st.integers(0, 2**32 - 1),
    "n_batches": st.sampled_from((1, 8, 5)),
}
RULES, PROGRAMS = scenarios(most_atoms=3, nulls=True), scenarios(most_atoms=2, most_rules=4, nulls=True)
CONJUNCTIONS = scenarios(most_atoms=4, plain=True, nulls=True)
KINDS: tuple[tuple[st.SearchStrategy[Scenario], int], ...] = ((RULES, 10), (PROGRAMS, 6), (CONJUNCTIONS, 12))
"""With the part of the examples that each gets: making a first version takes longest, batches little."""


@pytest.mark.in_turns
def test_differential_batches_change_the_head_as_transactions_do() -> None:
    seen: Counter[str] = Counter()
    for strategy, part in KINDS:

        @settings(max_examples=N_EXAMPLES // part)
        @given(scenario=strategy, **WAYS)
        def check(
            scenario: Scenario, partitions: int, choose: ChooseGrids, seed: int, n_batches: int
        ) -> None:
            follow(scenario, partitions, choose, seed, n_batches, seen)

        check()
    expected = {*SOURCES, "taken", "snapshots taken anew", "joined anew"}
    assert all(seen[what] for what in expected), seen
    print(seen)


# -- worked cases -------------------------------------------------------------------


MakeFollowed = Callable[..., Followed]


@pytest.fixture
def make(tmp_path: Path) -> MakeFollowed:
    """Makes a workspace and a pipeline over the same tables, cut by the ``shares`` of axes that there are."""

    def make(text: str, shares: dict[str, int], **tables: pa.Table) -> Followed:
        def choose(program: ProgramText, number: int, *_: Any) -> HeadGrids:
            return given_grids(program.plans()[number], shares, 3)

        return Followed(text, tables, tmp_path / "state", 3, choose, 0)

    return make


def pairs(*rows: tuple[Any, Any], a: pa.DataType = INT64, b: pa.DataType = INT64) -> pa.Table:
    return pa.table({"a": pa.array([row[0] for row in rows], a), "b": pa.array([row[1] for row in rows], b)})


def test_a_cell_that_is_new_takes_a_batch_as_a_whole(make: MakeFollowed) -> None:
    """Only with what is erased applied, too, has its functional head one value for a key."""
    followed = make("h[a] = b <- r(a, b), !s(a, b).", {"a": 50}, r=pairs((0, 0)), s=pairs((0, 1), (1, 5)))
    changes = {
        "r": signed_table(pairs((7, 1), (7, 2), (8, 3), (8, 3)), [1, 1, 1, -1]),
        "s": signed_table(pairs((7, 1), (7, 9)), [1, -1]),
    }
    assert followed.batch(changes)
    followed.check()


@pytest.mark.in_turns
@pytest.mark.parametrize("most_logged", [0, 1, 32])
def test_engines_of_tries_with_other_input_are_not_gone_on_with(
    make: MakeFollowed, monkeypatch: pytest.MonkeyPatch, most_logged: int
) -> None:
    """What is kept in memory is what the committed try wrote, though others of its batch stepped, too."""
    monkeypatch.setattr(stage_worker, "MOST_LOGGED", most_logged)
    random = Random(most_logged)

    def some() -> dict[str, pa.Table]:
        rows = [(random.randrange(5), random.randrange(5)) for _ in range(4)]
        return {"e": signed_table(pairs(*rows), [random.choice((1, -1)) for _ in rows])}

    followed = make("n[a] = count() <- e(a, b), e(b, c), e(a, c).", {"b": 2}, e=pairs((0, 1), (1, 2), (0, 2)))
    for _ in range(6):
        changes = some()
        with followed.workspace.transaction() as transaction:
            transaction.apply("e", changes["e"])
        found = followed.pipeline.apply(changes, [some() for _ in range(random.randint(1, 3))])
        same(found, transaction.changes["n"])
        followed.check()
    assert followed.pipeline.seen["kept"]
