"""The stages of a maintained program, and what goes from one to the next.

Each head has a stage that searches its cells and, if it crosses them, one that combines
what they give.  Before them stands one that has the relations with a key, and makes
whole rows of what is said of keys (:mod:`spark_bridge.cells.key_engine`).  All stages stand in
one chain, in the order in which heads read each
other: a stage takes the packets that are for it, and passes on those that are for later
ones.  So a batch is one query with one shuffle before each stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from spark_bridge.cells.cell_search import Contribution, contributed
from spark_bridge.cells.key_engine import Keys
from spark_bridge.placing.grids import HeadGrids
from spark_bridge.placing.head_plan import HeadPlan, ProgramText
from spark_bridge.placing.homes import Homes
from spark_bridge.placing.placing import InputNulls, KeyPlacer, Placer, placed


@dataclass(frozen=True)
class SparkStage:
    """One step of the chain: search of the cells of a head, their combination, or rows of keys.

    ``head``: -1 where it is of none, but ``by_key``.
    """

    number: int
    head: int
    combines: bool
    by_key: bool = False

    @property
    def searches(self) -> bool:
        return not self.combines and not self.by_key


@dataclass(frozen=True)
class StageChain:
    """All stages of a program, with the grids of every head.

    ``keys``: of the relations that have one, its columns.
    """

    text: ProgramText
    grids: tuple[HeadGrids, ...]
    nulls: InputNulls = "refuse"
    keys: Keys = field(default_factory=dict)

    @property
    def plans(self) -> tuple[HeadPlan, ...]:
        return self.text.plans()

    @property
    def partitions(self) -> int:
        return self.grids[0].partitions

    @cached_property
    def stages(self) -> tuple[SparkStage, ...]:
        stages = [SparkStage(0, -1, False, by_key=True)] if self.keys else []
        for head, plan in enumerate(self.plans):
            stages.append(SparkStage(len(stages), head, False))
            if plan.crosses:
                stages.append(SparkStage(len(stages), head, True))
        return tuple(stages)

    def schemas(self, head: int) -> dict[str, pa.Schema]:
        """The schemas of the relations that a head reads, without weights."""
        return self.text.schemas(head)

    def result(self, stage: SparkStage) -> bool:
        """Whether the stage gives the changes of its head, and not of a part of it."""
        return stage.combines or not self.plans[stage.head].crosses

    def homed(self, stage: SparkStage) -> tuple[str, ...]:
        """The relations whose tuples have their homes in the cells of a stage: the first that reads them."""
        if not stage.searches:
            return ()
        before = {name for plan in self.plans[: stage.head] for name in plan.reads}
        names = [name for name, _ in self.text.relations if name in self.plans[stage.head].reads]
        return tuple(name for name in names if name not in before)

    def homes(self, stage: SparkStage) -> Homes:
        """Where these tuples are."""
        return Homes(self.plans[stage.head], self.grids[stage.head], self.homed(stage))

    @property
    def last(self) -> SparkStage:
        return self.stages[-1]

    def placer(self, stage: SparkStage) -> Placer:
        """What places rows for a stage that searches."""
        return Placer(self.plans[stage.head], self.grids[stage.head], self.nulls, stage.number)

    def placed(self, tables: Iterable[tuple[str, pa.Table]]) -> Iterator[pa.RecordBatch]:
        """Packets of signed rows of relations, by name, for every stage that reads them."""
        return placed(tables, [self.placer(stage) for stage in self.stages if stage.searches])

    def given(self, tables: Iterable[tuple[str, pa.Table]]) -> Iterator[pa.RecordBatch]:
        """Packets of changes of relations, of those with a key for the stage that has their rows."""
        placers: list[Placer | KeyPlacer] = [
            replace(self.placer(stage), keyed=frozenset(self.keys)) for stage in self.stages if stage.searches
        ]
        if self.keys:
            names = {name: schema.names for name, schema in self.text.relations}
            places = {name: [names[name].index(label) for label in key] for name, key in self.keys.items()}
            placers.append(KeyPlacer(places, self.partitions, 0))
        return placed(tables, placers)

    def contributed(self, stage: SparkStage, given: list[Contribution]) -> Iterator[pa.RecordBatch]:
        """Packets of what the cells of a stage give, for the stage that combines them."""
        return contributed(given, self.partitions, stage.number + 1)
