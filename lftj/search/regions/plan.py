"""A join problem in one key order, laid out for the region search, apart from any version of the data.

Invariants

1. Two atoms that share iterators (:mod:`lftj.search.plan_writer`) share their records.
2. A participant has a record stream unless its atom's variables up to its level
   are the first ones of the key order: then a surgery itself names the region
   (docs/design/engine.md section 4; ILFTJ 4.2, last paragraph).  Of a negated atom only the
   last level can have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lftj.process import debug
from lftj.search import layout as L
from lftj.search import plan_check
from lftj.search.conditions import fill_conditions
from lftj.search.plan_writer import AtomLevel, PlanWriter
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.storage.catalog import IndexUse
from lftj.storage.relation_version import levels_of
from lftj.storage.runs import MAX_RUNS

RUNS_CURSOR_FIELDS = L.P_RUNS + L.CURSOR_RUN_FIELDS * MAX_RUNS
"""Length of a cursor's row, which has room for all runs of a version."""


@dataclass(frozen=True)
class Participant(AtomLevel):
    """One level of one atom in the search, as maintenance sees it.

    ``stream``: number of its record stream, or None.  Of a negated atom the branch matters when it goes.
    """

    stream: int | None

    @property
    def context_places(self) -> tuple[int, ...]:
        """Depths bound above this one that the record's prefix does not hold."""
        return tuple(depth for depth in range(self.depth) if depth not in self.places[:-1])


@dataclass(frozen=True, eq=False)
class RegionPlan:
    """``memory``: the kernel's plan; ``unrecorded``: the same with nothing that records.

    ``streams``: the participants that record, by stream number.
    """

    order: tuple[str, ...]
    memory: np.ndarray
    unrecorded: np.ndarray
    state_length: int
    log_length: int
    indexes: tuple[IndexUse, ...]
    participants: tuple[Participant, ...]
    streams: tuple[Participant, ...]
    stream_rows: tuple[int, ...]  # offsets in the log
    node_logs: tuple[tuple[int, int, tuple[int, ...]], ...]  # depth, offset in the log, its streams
    node_rows: tuple[int, ...]  # offsets in the state, by depth
    tail: int  # first depth of the tail; the number of depths where there is none
    listed: int  # depths that rows hold; if not all, the column behind has the assignments below each
    is_one_atom: bool  # and nothing else: no negation, no condition
    counted: tuple[tuple[Participant, str], ...]  # per atom that counts: below whose branches, and its label

    @property
    def depths(self) -> int:
        return len(self.order)

    @cached_property
    def least_bound(self) -> int:
        """Leading depths that regions have to bind to single values, for nothing else does."""
        return plan_check.least_bound(self.memory)

    @property
    def lists_an_index(self) -> bool:
        """Whether the rows are the branches of one index down to the last depth: nothing joins or drops."""
        return self.is_one_atom and self.tail == self.depths and not self.counted

    def new_state(self) -> np.ndarray:
        state = np.zeros(self.state_length, dtype=np.int64)
        state[L.R_MOVE], state[L.R_FAILED] = L.MOVE_REGION, -1
        return state


def compile_regions(
    problem: JoinProblem, order: Sequence[str], gap: int, tail: int | None = None, listed: int | None = None
) -> RegionPlan:
    """Lay a problem out.  Every atom must have a variable.

    ``gap``: an iterator that seeks on by at most this many keys stays one record; with 0 the records are the
    trace's own.  ``tail``: the depth from which on the search stops at its first success
    (docs/design/engine.md section 5.5); or ``listed``: the depth from which on assignments are counted.
    """
    depths = len(order)
    assert tail is None or listed is None
    return _Compiler(
        problem, tuple(order), gap, depths if tail is None else tail, depths if listed is None else listed
    ).run()


class _Compiler:
    """Adds to the rows of both machines what the region machine has alone: streams and node logs."""

    def __init__(
        self, problem: JoinProblem, order: tuple[str, ...], gap: int, tail: int, listed: int
    ) -> None:
        self.problem = problem
        self.order = order
        self.gap = gap
        self.tail = tail
        self.listed = listed
        self.writer = PlanWriter(problem, order, RUNS_CURSOR_FIELDS)
        self.log_length = 0
        self.participants: dict[int, Participant] = {}
        self.stream_rows: list[int] = []
        self.node_logs: list[tuple[int, int, tuple[int, ...]]] = []

    def in_log(self) -> int:
        """Take a row of the log; returns the offset."""
        self.log_length += L.LOG_FIELDS
        return self.log_length - L.LOG_FIELDS

    def run(self) -> RegionPlan:
        problem, writer = self.problem, self.writer
        paths = [self.add_atom(atom, negated=False) for atom in problem.atoms]
        for atom in problem.negations:
            self.add_atom(atom, negated=True)
        for row, walked in writer.iterators.items():
            self.participants[row] = self.participant(row, walked)
        depths = [self.depth_fields(depth) for depth in range(len(self.order))]
        writer.memory[L.H_GAP] = self.gap
        writer.memory[L.H_LISTED] = self.listed
        memory = writer.finish(depths, self.tail)
        tables = fill_conditions(memory, writer.condition_rows, problem)
        assert not tables, "ranks of a dictionary change with it"
        unrecorded = memory.copy()
        unrecorded[[row + L.I_STREAM for row in writer.iterators]] = -1
        depth_rows = memory[L.H_DEPTH_ROWS] + L.DEPTH_FIELDS * np.arange(len(self.order))
        unrecorded[depth_rows + L.D_LOG], unrecorded[depth_rows + L.D_STREAMS] = -1, 0
        for array in (memory, unrecorded):
            array.setflags(write=False)
            if debug.enabled:
                lengths = writer.state_length, self.log_length, RUNS_CURSOR_FIELDS
                plan_check.check_regions(array, *lengths)
        participants = self.participants
        return RegionPlan(
            order=self.order,
            memory=memory,
            unrecorded=unrecorded,
            state_length=writer.state_length,
            log_length=self.log_length,
            indexes=tuple(writer.indexes),
            participants=tuple(participants.values()),
            streams=tuple(one for one in participants.values() if one.stream is not None),
            stream_rows=tuple(self.stream_rows),
            node_logs=tuple(self.node_logs),
            node_rows=tuple(writer.nodes),
            tail=self.tail,
            listed=self.listed,
            counted=tuple(
                (participants[path[-1]], atom.label)
                for atom, path in zip(problem.atoms, paths, strict=True)
                if atom.counted
            ),
            is_one_atom=len(problem.atoms) == 1 and not problem.negations and not problem.conditions,
        )

    def add_atom(self, atom: JoinAtom, negated: bool) -> list[int]:
        columns, _ = atom.levels(self.order)
        use = IndexUse(atom.relation, (levels_of(columns, atom.equal, atom.arity), atom.equal), atom.side)
        return self.writer.add_atom(atom, negated, self.writer.number_of(use))

    def participant(self, row: int, walked: AtomLevel) -> Participant:
        """What an iterator row stands for; it gets what is the region machine's own (invariant 2)."""
        memory = self.writer.memory
        memory[row + L.I_INDEX], memory[row + L.I_LEVEL] = walked.index, walked.level
        memory[row + L.I_STREAM] = -1
        stream = None
        if not self.writer.names_region(row) and (walked.tested or not walked.negated):
            stream = len(self.stream_rows)
            memory[row + L.I_STREAM] = self.in_log()
            self.stream_rows.append(memory[row + L.I_STREAM])
        return Participant(
            walked.index, walked.level, walked.places, walked.negated, walked.tested, walked.label, stream
        )

    def depth_fields(self, depth: int) -> list[int]:
        writer = self.writer

        def records(row: int) -> bool:
            return writer.memory[row + L.I_STREAM] >= 0

        own, negations = writer.opening(depth), writer.negations[depth]
        recording = [row for row in (*own, *negations) if records(row)]
        fields = writer.depth_fields(depth, own, positions=True)
        fields[L.D_STREAM], fields[L.D_STREAMS] = writer.row(recording), len(recording)
        fields[L.D_RING] = writer.in_state(len(own))
        fields[L.D_LOG] = -1
        if own and depth + 1 < len(self.order) and depth < self.tail:
            fields[L.D_SLOT] = writer.in_state(L.SHORT_BLOCK + 1)  # a refused last key is written too
        last = depth + 1 == len(self.order) == self.tail
        merges = last and own and not negations and fields[L.D_FILTERS] == L.FILTERS_NONE
        fields[L.D_MERGES] = int(bool(merges))
        fields[L.D_FIXED] = next((i for i, row in enumerate(own) if writer.bound_at(row) < depth - 1), -1)
        if recording:
            fields[L.D_LOG] = self.in_log()
            streams = [self.participants[row].stream for row in recording]
            self.node_logs.append((depth, fields[L.D_LOG], tuple(s for s in streams if s is not None)))
        return fields
