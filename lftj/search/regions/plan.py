"""A join problem in one key order, laid out for the region search, apart from any version of the data.

Invariants

1. The order names every variable of the problem once.
2. Two atoms that read one index along one prefix of variables share participants,
   and so their records.
3. A participant has a record stream unless its atom's variables up to its level
   are the first ones of the key order: then a surgery itself names the region
   (ENGINE.md section 4; ILFTJ 4.2, last paragraph).  Of a negated atom only the
   last level can have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lftj.search import layout as L
from lftj.search.conditions import ConditionRow, condition_rows
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.storage.catalog import IndexUse
from lftj.storage.index_version import MAX_RUNS
from lftj.storage.relation_version import levels_of

CURSOR_FIELDS = L.P_RUNS + L.CURSOR_RUN_FIELDS * MAX_RUNS


@dataclass(frozen=True)
class Participant:
    """One level of one atom in the search, as maintenance sees it.

    ``places``: depths of the atom's variables up to this level, so a branch of the index is a binding of
    them.  ``stream``: number of its record stream, or None.  ``negated``: the branch matters when it goes.
    """

    index: int
    level: int
    depth: int
    places: tuple[int, ...]
    stream: int | None
    negated: bool
    tested: bool  # of a negated atom: its last level
    label: str

    @property
    def context_places(self) -> tuple[int, ...]:
        """Depths bound above this one that the record's prefix does not hold."""
        return tuple(depth for depth in range(self.depth) if depth not in self.places[:-1])


@dataclass(frozen=True, eq=False)
class RegionPlan:
    """``memory``: the kernel's plan.  ``streams``: the participants that record, by stream number."""

    order: tuple[str, ...]
    memory: np.ndarray
    state_length: int
    log_length: int
    indexes: tuple[IndexUse, ...]
    participants: tuple[Participant, ...]
    streams: tuple[Participant, ...]
    stream_rows: tuple[int, ...]  # offsets in the log
    node_logs: tuple[tuple[int, int, tuple[int, ...]], ...]  # depth, offset in the log, its streams
    node_rows: tuple[int, ...]  # offsets in the state, by depth
    tail: int  # first depth of the tail; the number of depths where there is none
    is_one_atom: bool  # and nothing else: no negation, no condition
    counted: tuple[tuple[Participant, str], ...]  # per atom that counts: below whose branches, and its label

    @property
    def depths(self) -> int:
        return len(self.order)

    @property
    def lists_an_index(self) -> bool:
        """Whether the rows are the branches of one index down to the last depth: nothing joins or drops."""
        return self.is_one_atom and self.tail == self.depths and not self.counted

    def new_state(self) -> np.ndarray:
        state = np.zeros(self.state_length, dtype=np.int64)
        state[L.R_MOVE], state[L.R_FAILED] = L.MOVE_REGION, -1
        return state


def compile_regions(
    problem: JoinProblem, order: Sequence[str], gap: int, tail: int | None = None
) -> RegionPlan:
    """Lay a problem out.  Every atom must have a variable.

    ``gap``: an iterator that skips at most this many keys stays one record.  ``tail``: the depth from which
    on the search stops at its first success (ENGINE.md section 5.5).
    """
    return _Compiler(problem, tuple(order), gap, len(order) if tail is None else tail).run()


class _Compiler:
    def __init__(self, problem: JoinProblem, order: tuple[str, ...], gap: int, tail: int) -> None:
        self.problem = problem
        self.order = order
        self.gap = gap
        self.tail = tail
        self.place = {name: depth for depth, name in enumerate(order)}
        self.memory: list[int] = [0] * L.HEADER
        self.state_length = L.REGISTERS
        self.log_length = 0
        self.indexes: dict[IndexUse, int] = {}
        self.shared: dict[tuple[object, ...], int] = {}
        self.rows: dict[int, Participant] = {}
        self.by_depth: list[list[int]] = [[] for _ in order]
        self.negations: list[list[int]] = [[] for _ in order]
        self.streams: list[Participant] = []
        self.stream_rows: list[int] = []
        self.node_logs: list[tuple[int, int, tuple[int, ...]]] = []
        self.node_rows: list[int] = []
        self.counted: list[tuple[int, str]] = []

    def row(self, fields: Sequence[int]) -> int:
        offset = len(self.memory)
        self.memory += fields
        return offset

    def in_state(self, length: int) -> int:
        offset = self.state_length
        self.state_length += length
        return offset

    def in_log(self, length: int) -> int:
        offset = self.log_length
        self.log_length += length
        return offset

    def run(self) -> RegionPlan:
        for atom in self.problem.atoms:
            self.add_atom(atom, negated=False)
        for atom in self.problem.negations:
            self.add_atom(atom, negated=True)
        conditions = condition_rows(self.problem, self.place)
        depths = [field for d in range(len(self.order)) for field in self.depth_fields(d, conditions[d])]
        memory = self.memory
        memory[L.H_DEPTHS] = len(self.order)
        memory[L.H_KEYS] = self.in_state(len(self.order))
        memory[L.H_GAP] = self.gap
        memory[L.H_TAIL] = self.tail
        memory[L.H_DEPTH_ROWS] = self.row(depths)
        array = np.array(memory, dtype=np.int64)
        array.setflags(write=False)
        return RegionPlan(
            order=self.order,
            memory=array,
            state_length=self.state_length,
            log_length=self.log_length,
            indexes=tuple(self.indexes),
            participants=tuple(self.rows.values()),
            streams=tuple(self.streams),
            stream_rows=tuple(self.stream_rows),
            node_logs=tuple(self.node_logs),
            node_rows=tuple(self.node_rows),
            tail=self.tail,
            counted=tuple((self.rows[row], label) for row, label in self.counted),
            is_one_atom=len(self.problem.atoms) == 1
            and not self.problem.negations
            and not self.problem.conditions,
        )

    def add_atom(self, atom: JoinAtom, negated: bool) -> None:
        """Add the participants of one atom, sharing those that are there."""
        columns, variables = atom.levels(self.order)
        places = tuple(self.place[name] for name in variables)
        use = IndexUse(atom.relation, (levels_of(columns, atom.equal, atom.arity), atom.equal), atom.side)
        index = self.indexes.setdefault(use, len(self.indexes))
        parent = -1
        for level, depth in enumerate(places):
            last = level + 1 == len(places)
            # A level of a negated atom counts as its last one or it does not: those are not shared.
            key = (index, places[: level + 1], negated, negated and last)
            row = self.shared.get(key, -1)
            if row < 0:
                is_prefix = places[: level + 1] == tuple(range(level + 1))
                records = not is_prefix and (not negated or last)
                stream = len(self.streams) if records else None
                participant = Participant(
                    index, level, depth, places[: level + 1], stream, negated, last, atom.label
                )
                row = self.shared[key] = self.add_participant(participant, parent, last)
                (self.negations if negated else self.by_depth)[depth].append(row)
            parent = row
        if atom.counted:
            self.counted.append((parent, atom.label))

    def add_participant(self, participant: Participant, parent: int, last: bool) -> int:
        fields = [0] * L.ITERATOR_FIELDS
        fields[L.I_INDEX] = participant.index
        fields[L.I_LEVEL] = participant.level
        fields[L.I_PARENT] = parent
        fields[L.I_DEPTH] = participant.depth
        fields[L.I_CURSOR] = self.in_state(CURSOR_FIELDS)
        fields[L.I_LAST] = int(participant.negated and last)
        fields[L.I_STREAM] = -1
        if participant.stream is not None:
            fields[L.I_STREAM] = self.in_log(L.LOG_FIELDS)
            self.streams.append(participant)
            self.stream_rows.append(fields[L.I_STREAM])
        row = self.row(fields)
        self.rows[row] = participant
        return row

    def bound_at(self, row: int) -> int:
        """Depth of the level above a participant; -1 on level 0."""
        parent = self.memory[row + L.I_PARENT]
        return -1 if parent < 0 else self.rows[parent].depth

    def depth_fields(self, depth: int, conditions: list[ConditionRow]) -> list[int]:
        # Whoever needs no record steps after a match: the others then record points.
        own = sorted(self.by_depth[depth], key=lambda row: self.memory[row + L.I_STREAM] >= 0)
        negations = self.negations[depth]
        recording = [row for row in (*own, *negations) if self.memory[row + L.I_STREAM] >= 0]
        filters = any(condition.is_filter for condition in conditions)
        fields = [0] * L.DEPTH_FIELDS
        fields[L.D_FIRST], fields[L.D_PARTICIPANTS] = self.row(own), len(own)
        fields[L.D_NEGATION], fields[L.D_NEGATIONS] = self.row(negations), len(negations)
        fields[L.D_CONDITION] = self.row(
            [field for row in conditions for field in self.condition_fields(row)]
        )
        fields[L.D_CONDITIONS] = len(conditions)
        fields[L.D_NODE] = self.in_state(L.NODE_FIELDS)
        fields[L.D_STREAM], fields[L.D_STREAMS] = self.row(recording), len(recording)
        fields[L.D_LOG] = -1
        if filters or any(self.memory[row + L.I_LAST] for row in negations):
            fields[L.D_FILTERS] = L.FILTERS_POSITIONS
        last = depth + 1 == len(self.order)
        merges = last and len(own) == 2 and not negations and not filters and self.tail == len(self.order)
        fields[L.D_MERGES] = int(merges)
        fields[L.D_FIXED] = next((i for i, row in enumerate(own) if self.bound_at(row) < depth - 1), -1)
        self.node_rows.append(fields[L.D_NODE])
        if recording:
            fields[L.D_LOG] = self.in_log(L.LOG_FIELDS)
            streams = [self.rows[row].stream for row in recording]
            self.node_logs.append((depth, fields[L.D_LOG], tuple(s for s in streams if s is not None)))
        return fields

    def condition_fields(self, row: ConditionRow) -> list[int]:
        fields, table = row.fields(self.problem)
        assert table is None, "ranks of a dictionary change with it"
        return fields
