"""The stages of a maintained program, and what goes from one to the next.

Each head has a stage that searches its cells and, if it crosses them, one that combines
what they give; heads of one rule have one search, in cells that hold the relations once.
Before them stand one that has the relations with a key, and makes whole rows of what is
said of keys (:mod:`spark_bridge.cells.key_engine`), and two of streams: a task that finds
the clock (:mod:`spark_bridge.stages.clock_stage`), and the streams' rows, which leave by it
(:mod:`spark_bridge.cells.stream_engine`); where the result is rows that have closed, the last
stage has those.  All stages stand in one chain, in the order in which heads read each
other: a stage takes the packets that are for it, and passes on those that are for later
ones.  So a batch is one query with one shuffle before each stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import pyarrow as pa

from spark_bridge.cells.cell_search import Contribution, contributed
from spark_bridge.cells.key_engine import Keys
from spark_bridge.cells.stream_engine import held
from spark_bridge.placing.grids import HeadGrids
from spark_bridge.placing.head_plan import HeadPlan, ProgramText, search_leaders
from spark_bridge.placing.homes import Homes
from spark_bridge.placing.placing import InputNulls, KeyPlacer, Placer, placed

Kind = Literal["keys", "clock", "streams", "search", "combine", "close"]


@dataclass(frozen=True)
class SparkStage:
    """One step of the chain: ``kind`` says what it does.

    ``head``: that of which cells are searched, or what they give combined; else -1.
    """

    number: int
    head: int
    kind: Kind

    @property
    def searches(self) -> bool:
        return self.kind == "search"


@dataclass(frozen=True)
class StageChain:
    """All stages of a program, with the grids of every head: None, where the cells of a head before it give
    it, too (:func:`~spark_bridge.placing.head_plan.search_leaders`).

    ``keys``: of the relations that have one, its columns.
    """

    text: ProgramText
    grids: tuple[HeadGrids | None, ...]
    nulls: InputNulls = "refuse"
    keys: Keys = field(default_factory=dict)

    @property
    def plans(self) -> tuple[HeadPlan, ...]:
        return self.text.plans()

    @property
    def partitions(self) -> int:
        return self.grids_of(0).partitions

    def grids_of(self, head: int) -> HeadGrids:
        """Those of a head that has some of its own."""
        grids = self.grids[head]
        assert grids is not None
        return grids

    @cached_property
    def stages(self) -> tuple[SparkStage, ...]:
        kinds: list[tuple[int, Kind]] = [(-1, "keys")] if self.keys else []
        if self.text.streams:
            kinds += [(-1, "clock"), (-1, "streams")]
        for head, plan in enumerate(self.plans):
            if not self.grids or self.grids[head] is not None:
                kinds.append((head, "search"))
            if plan.crosses:
                kinds.append((head, "combine"))
        if self.text.final is not None:
            kinds.append((-1, "close"))
        return tuple(SparkStage(number, *kind) for number, kind in enumerate(kinds))

    def stage_of(self, kind: Kind) -> SparkStage:
        """The one stage of a kind of which there is one."""
        return next(stage for stage in self.stages if stage.kind == kind)

    def schemas(self, head: int) -> dict[str, pa.Schema]:
        """The schemas of the relations that a head reads, without weights."""
        return self.text.schemas(head)

    def searched(self, stage: SparkStage) -> tuple[int, ...]:
        """The heads whose cells a stage searches."""
        leaders = search_leaders(self.plans)
        others = (n for n, grids in enumerate(self.grids) if grids is None and leaders[n] == stage.head)
        return (stage.head, *others)

    def result(self, stage: SparkStage) -> bool:
        """Whether the stage gives the changes of its head, and not of a part of it."""
        return stage.kind == "combine" or not self.plans[stage.head].crosses

    @cached_property
    def giving(self) -> dict[str, SparkStage]:
        """By result the stage that has its rows, the asked one first."""
        if self.text.final is not None:
            return {self.text.final.name: self.stages[-1]}
        of = {self.plans[stage.head].name: stage for stage in self.stages if stage.head >= 0}
        return {name: of[name] for name in self.text.targets}

    def result_of(self, stage: int) -> str | None:
        """The result whose rows a stage has."""
        return next((name for name, giving in self.giving.items() if giving.number == stage), None)

    def homed(self, stage: SparkStage) -> tuple[str, ...]:
        """The relations whose tuples have their homes in the cells of a stage: the first that reads them."""
        if not stage.searches:
            return ()
        before = {name for plan in self.plans[: stage.head] for name in plan.reads}
        names = [name for name, _ in self.text.sources if name in self.plans[stage.head].reads]
        return tuple(name for name in names if name not in before)

    def homes(self, stage: SparkStage) -> Homes:
        """Where these tuples are."""
        return Homes(self.plans[stage.head], self.grids_of(stage.head), self.homed(stage))

    @property
    def last(self) -> SparkStage:
        return self.stages[-1]

    def placer(self, stage: SparkStage) -> Placer:
        """What places rows for a stage that searches."""
        return Placer(self.plans[stage.head], self.grids_of(stage.head), self.nulls, stage.number)

    def placed(self, tables: Iterable[tuple[str, pa.Table]]) -> Iterator[pa.RecordBatch]:
        """Packets of signed rows of relations and heads, by name, for every stage that reads them."""
        placers: list[Placer | KeyPlacer] = [self.placer(stage) for stage in self.stages if stage.searches]
        if self.text.final is not None:
            placers.append(self._close_placer(self.plans[-1].name))
        return placed(tables, placers)

    def given(self, tables: Iterable[tuple[str, pa.Table]]) -> Iterator[pa.RecordBatch]:
        """Packets of changes of relations, of those with a key or a time for the stage that has their rows.

        Of a stream late rows are a table of their own (:func:`late`), and rows that have closed are given
        only where all partitions are made anew.
        """
        streams = [name for name, _ in self.text.streams]
        apart = frozenset((*self.keys, *streams))
        placers: list[Placer | KeyPlacer] = [
            replace(self.placer(stage), keyed=apart) for stage in self.stages if stage.searches
        ]
        schemas = dict(self.text.relations)
        if self.keys:
            places = {
                name: [schemas[name].names.index(label) for label in key] for name, key in self.keys.items()
            }
            placers.append(KeyPlacer(places, self.partitions, 0))
        if streams:
            of_rows = {
                label: hashed(schemas[name])
                for name in streams
                for label in (late(name), *([name] if name in self.timed.values() else []))
            }
            placers.append(KeyPlacer(of_rows, self.partitions, self.stage_of("streams").number))
        if self.text.final is not None:
            placers.append(self._close_placer(held(self.plans[-1].name)))
        return placed(tables, placers)

    @cached_property
    def timed(self) -> dict[str, str]:
        """By relation that a rule reads and that has a stream's rows, the stream."""
        read = {name for plan in self.plans for name in plan.reads}
        of = {name: name for name, _ in self.text.streams}
        of |= {recent.name: recent.stream for recent in self.text.recents}
        return {name: stream for name, stream in of.items() if name in read}

    def _close_placer(self, label: str) -> KeyPlacer:
        columns = hashed(self.plans[-1].arrow_schema)
        return KeyPlacer({label: columns}, self.partitions, self.stage_of("close").number)

    def contributed(self, given: Mapping[int, Sequence[Contribution]]) -> Iterator[pa.RecordBatch]:
        """Packets of what cells give, by head, for the stages that combine them."""
        combining = {stage.head: stage.number for stage in self.stages if stage.kind == "combine"}
        for head, its in given.items():
            yield from contributed(its, self.partitions, combining[head])


def hashed(schema: pa.Schema) -> list[int]:
    """The columns by which rows are spread: all but floats, which may be NaN."""
    return [n for n, field in enumerate(schema) if not pa.types.is_floating(field.type)]


def late(stream: str) -> str:
    """The label of a stream's late rows."""
    return f"late {stream}"
