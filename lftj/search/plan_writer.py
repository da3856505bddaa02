"""What the plans of both search machines have in common: a problem in one key order, as rows.

A machine's compiler adds the atoms, gets a depth's row with the fields that both machines
have (:mod:`lftj.search.layout`), adds what is its own, and finishes.

Invariants

1. The order names every variable of the problem once.
2. Two atoms that read one index along one prefix of variables share iterators.  Of a negated
   atom, the last level refuses keys and the others lead on: those are not shared.
3. A place of the plan or of the state is handed out once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lftj.search import layout as L
from lftj.search.conditions import CONDITION_FIELDS, ConditionRow, condition_rows
from lftj.search.problem import JoinAtom, JoinProblem
from lftj.storage.catalog import IndexUse


@dataclass(frozen=True)
class AtomLevel:
    """One level of one atom, as an iterator walks it.

    ``places``: depths of the atom's variables up to this level, so a branch of the index is a binding of
    them.
    """

    index: int
    level: int
    places: tuple[int, ...]
    negated: bool
    tested: bool  # of a negated atom: its last level
    label: str

    @property
    def depth(self) -> int:
        return self.places[-1]


class PlanWriter:
    """Writes rows into a plan and hands out places in the state.

    ``cursor_fields``: length of a cursor's row in the state; ``share``: atoms may share iterators
    (invariant 2).
    """

    def __init__(
        self, problem: JoinProblem, order: tuple[str, ...], cursor_fields: int, share: bool = True
    ) -> None:
        self.order = order
        self.place = {name: depth for depth, name in enumerate(order)}
        self.memory: list[int] = [0] * L.HEADER
        self.state_length = L.REGISTERS
        self.indexes: dict[IndexUse, int] = {}
        self.iterators: dict[int, AtomLevel] = {}
        """By row."""
        self.participants: list[list[int]] = [[] for _ in order]
        self.negations: list[list[int]] = [[] for _ in order]
        self.condition_rows: list[tuple[int, ConditionRow]] = []
        """Where each stands, which is a gap as yet, and what it says."""
        self.nodes = [self.in_state(L.NODE_FIELDS) for _ in order]
        self._cursor_fields = cursor_fields
        self._conditions = condition_rows(problem, self.place)
        self._share = share
        self._shared: dict[tuple[object, ...], int] = {}

    def row(self, fields: Sequence[int]) -> int:
        """Append to the plan; returns the offset."""
        self.memory.extend(int(field) for field in fields)
        return len(self.memory) - len(fields)

    def in_state(self, length: int) -> int:
        """Take ``length`` items of the state; returns the offset."""
        self.state_length += length
        return self.state_length - length

    def number_of(self, use: IndexUse) -> int:
        """Of an index that the plan reads."""
        return self.indexes.setdefault(use, len(self.indexes))

    def add_atom(self, atom: JoinAtom, negated: bool, index: int) -> list[int]:
        """The iterator rows of an atom that reads an index, from level 0 on."""
        places = tuple(self.place[name] for name in atom.levels(self.order)[1])
        rows: list[int] = []
        for level in range(len(places)):
            last = level + 1 == len(places)
            walked = AtomLevel(index, level, places[: level + 1], negated, negated and last, atom.label)
            rows.append(self._iterator(walked, rows[-1] if rows else -1))
        return rows

    def _iterator(self, walked: AtomLevel, parent: int) -> int:
        """The row of a level below ``parent``; a new one unless it is shared."""
        key = (walked.index, walked.places, walked.negated, walked.tested)
        if self._share and key in self._shared:
            return self._shared[key]
        fields = [0] * L.ITERATOR_FIELDS
        fields[L.I_PARENT] = parent
        fields[L.I_DEPTH] = walked.depth
        fields[L.I_CURSOR] = self.in_state(self._cursor_fields)
        row = self._shared[key] = self.row(fields)
        self.iterators[row] = walked
        (self.negations if walked.negated else self.participants)[walked.depth].append(row)
        return row

    def names_region(self, iterator: int) -> bool:
        """Whether its atom's variables up to it are the key order's first ones: a branch is a binding."""
        walked = self.iterators[iterator]
        return walked.places == tuple(range(walked.level + 1))

    def opening(self, depth: int) -> list[int]:
        """A depth's participants in the order in which the trace opens them.

        Those whose branches name regions, which need no record; then those whose level above was bound first;
        then as the body lists them.
        """
        return sorted(
            self.participants[depth], key=lambda row: (not self.names_region(row), self.bound_at(row))
        )

    def bound_at(self, iterator: int) -> int:
        """Depth of the level above an iterator; -1 on level 0."""
        parent = self.memory[iterator + L.I_PARENT]
        return -1 if parent < 0 else self.memory[parent + L.I_DEPTH]

    def depth_fields(self, depth: int, participants: Sequence[int], positions: bool) -> list[int]:
        """A depth's row with the fields of both machines; what it names is written before it.

        ``positions``: a match is more than its key.
        """
        conditions, negations = self._conditions[depth], self.negations[depth]
        fields = [0] * L.DEPTH_FIELDS
        fields[L.D_FIRST], fields[L.D_PARTICIPANTS] = self.row(participants), len(participants)
        fields[L.D_NEGATION], fields[L.D_NEGATIONS] = self.row(negations), len(negations)
        fields[L.D_CONDITION] = self.row([0] * (CONDITION_FIELDS * len(conditions)))
        fields[L.D_CONDITIONS] = len(conditions)
        fields[L.D_NODE] = self.nodes[depth]
        self.condition_rows += [
            (fields[L.D_CONDITION] + number * CONDITION_FIELDS, condition)
            for number, condition in enumerate(conditions)
        ]
        filters = any(condition.is_filter for condition in conditions)
        if filters or any(self.iterators[negation].tested for negation in negations):
            fields[L.D_FILTERS] = L.FILTERS_POSITIONS if positions else L.FILTERS_KEYS
        return fields

    def finish(self, depth_rows: Sequence[Sequence[int]], tail: int) -> np.ndarray:
        """The plan, int64, with gaps where conditions stand; ``tail``: its first depth."""
        self.memory[L.H_DEPTHS] = len(self.order)
        self.memory[L.H_DEPTH_ROWS] = self.row([field for fields in depth_rows for field in fields])
        self.memory[L.H_KEYS] = self.in_state(len(self.order))
        self.memory[L.H_TAIL] = tail
        above = {self.memory[row + L.I_PARENT] for row in self.iterators}
        for row in self.iterators:
            self.memory[row + L.I_LAST] = int(row not in above)
        return np.array(self.memory, dtype=np.int64)
