"""A plan: one key order for one join problem, compiled into the kernel's memory.

:func:`compile_plan` lays a :class:`~lftj.search.problem.JoinProblem` out for one key
order, as the flat array that :mod:`lftj.search.base.layout` describes.

Invariants

1. The order names every variable of the problem once.
2. Two atoms that read one trie along one prefix of variables share iterators.
3. A plan keeps its tries and rank tables alive; the array holds their addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.memory import address
from lftj.search.base import layout as L
from lftj.search.problem import JoinProblem, emit_depth, needs_distinct, segments_of
from lftj.storage.trie import Trie

MARKS_MAX_BITS = 1 << 27
"""Longest bit map of a stage, in keys: 16 MiB."""

MARKS_MAX_SPREAD = 64
"""A bit map has at most this many bits per key of the largest participant."""


@dataclass(frozen=True)
class Plan:
    """A join problem under one key order, ready for the kernel."""

    problem: JoinProblem
    order: tuple[str, ...]
    memory: np.ndarray  # int64, read-only: layout.py
    factor: int  # assignments that every row stands for (atoms without walked columns)
    empty: bool  # an atom without walked columns has no rows, or a negated one has
    segments: tuple[tuple[int, int], ...]  # first and last depth of each short circuit
    needs_distinct: bool
    counter_rows: tuple[int, ...]  # per depth: its counters in a search's state
    iterator_names: dict[int, tuple[str, int]]  # atom and level of each iterator row, for people
    tries: tuple[Trie, ...]
    ranks: tuple[np.ndarray, ...]
    first_trie: Trie | None  # shortest trie whose level 0 takes part at the first depth that no literal pins

    @property
    def depths(self) -> int:
        return len(self.order)

    @property
    def emit(self) -> int:
        return int(self.memory[L.H_EMIT])

    def stages(self, depth: int) -> int:
        """Number of stages of a depth."""
        return int(self.memory[self.memory[L.H_DEPTH_ROWS] + depth * L.DEPTH_FIELDS + L.D_STAGES])

    def new_state(self) -> np.ndarray:
        """The state of a search that has not begun."""
        state = np.zeros(self.memory[L.H_STATE], dtype=np.int64)
        state[L.R_SPLIT_LO], state[L.R_SPLIT_HI] = KEY_MIN, KEY_MAX
        return state


def compile_plan(problem: JoinProblem, order: Sequence[str], write: bool, share: bool = True) -> Plan:
    """Lay a problem out for the kernel under ``order``.

    ``write``: rows are wanted, not only their number; ``share``: atoms may share iterators (invariant 2).
    """
    return _Compilation(problem, tuple(order), share).plan(write)


class _Compilation:
    """Gathers iterators, then writes rows into the plan and hands out places in the state."""

    def __init__(self, problem: JoinProblem, order: tuple[str, ...], share: bool) -> None:
        self.problem = problem
        self.order = order
        self.place = {name: depth for depth, name in enumerate(order)}
        self.memory: list[int] = [0] * L.HEADER
        self.state_length = L.REGISTERS
        self.share = share
        self.shared: dict[tuple[int, tuple[str, ...], bool], int] = {}
        self.levels: dict[int, tuple[Trie, int]] = {}  # of each iterator row
        self.names: dict[int, tuple[str, int]] = {}
        self.participants: list[list[int]] = [[] for _ in order]
        self.negations: list[list[int]] = [[] for _ in order]
        self.factors: list[list[int]] = []
        self.tries: list[Trie] = []
        self.factor, self.empty = 1, False

    # -- memory -------------------------------------------------------------------

    def row(self, fields: Sequence[int]) -> int:
        """Append to the plan; returns the offset."""
        self.memory.extend(int(field) for field in fields)
        return len(self.memory) - len(fields)

    def in_state(self, length: int) -> int:
        """Take ``length`` items of the state; returns the offset."""
        self.state_length += length
        return self.state_length - length

    # -- the whole ------------------------------------------------------------------

    def plan(self, write: bool) -> Plan:
        problem, order = self.problem, self.order
        n = len(order)
        self.add_atoms()
        segments = segments_of(problem, order)
        emit = emit_depth(problem, order)
        tail = L.TAIL_NONE if emit == n else L.TAIL_COUNT if problem.counted else L.TAIL_EXISTS
        conditions, ranks = condition_rows(problem, self.place)
        nodes = [self.in_state(L.NODE_FIELDS) for _ in order]
        rows = [self.depth_fields(depth, nodes, conditions[depth], segments) for depth in range(n)]
        split = next((d for d in range(n) if order[d] not in problem.pinned), 0)
        header = [0] * L.HEADER
        header[L.H_DEPTHS], header[L.H_EMIT], header[L.H_TAIL], header[L.H_WRITE] = n, emit, tail, int(write)
        header[L.H_SPLIT] = split
        header[L.H_DEPTH_ROWS] = self.row([field for fields in rows for field in fields])
        header[L.H_FACTORS] = self.row([field for fields in self.factors for field in fields])
        header[L.H_N_FACTORS] = len(self.factors)
        header[L.H_OUTPUTS] = self.row([self.place[name] for name in problem.emitted])
        header[L.H_N_OUTPUTS] = len(problem.emitted)
        header[L.H_KEYS] = self.in_state(n)
        header[L.H_STATE] = self.state_length
        self.memory[: L.HEADER] = header
        memory = np.array(self.memory, dtype=np.int64)
        memory.setflags(write=False)
        roots = [self.levels[i] for i in (self.participants[split] if n else [])]
        return Plan(
            problem=problem,
            order=order,
            memory=memory,
            factor=self.factor,
            empty=self.empty,
            segments=segments,
            needs_distinct=needs_distinct(problem, order, segments),
            counter_rows=tuple(fields[L.D_COUNTERS] for fields in rows),
            iterator_names=self.names,
            tries=tuple(self.tries),
            ranks=ranks,
            first_trie=min(
                (trie for trie, level in roots if level == 0),
                key=lambda trie: len(trie.keys[0]),
                default=None,
            ),
        )

    # -- atoms --------------------------------------------------------------------------

    def add_atoms(self) -> None:
        problem, last = self.problem, len(self.order) - 1
        for atom in problem.atoms:
            if not atom.variables:
                size = atom.n_rows()
                self.empty = self.empty or size == 0
                self.factor *= size if atom.counted else 1
                continue
            trie, variables = atom.trie(self.order)
            self.empty = self.empty or trie.n_tuples == 0
            iterator = self.add_atom(trie, variables, atom.label, negated=False)
            if atom.counted and trie.multiplicity is not None:
                self.ask_position(iterator)
                inner = int(self.place[variables[-1]] == last)
                self.factors.append([iterator, address(trie.multiplicity), inner])
        for atom in problem.negations:
            if not atom.variables:
                self.empty = self.empty or atom.n_rows() > 0
                continue
            trie, variables = atom.trie(self.order)
            if trie.n_tuples:
                self.add_atom(trie, variables, f"!{atom.label}", negated=True)

    def add_atom(self, trie: Trie, variables: tuple[str, ...], label: str, negated: bool) -> int:
        """Add the iterators of one atom, sharing those that are there; return the last one's row."""
        self.tries.append(trie)
        parent = -1
        for level, name in enumerate(variables):
            key = (address(trie.keys[level]), variables[: level + 1], negated)
            iterator = self.shared.get(key, -1) if self.share and len(trie.keys[level]) else -1
            if iterator < 0:
                iterator = self.shared[key] = self.add_iterator(trie, level, parent, self.place[name])
                self.names[iterator] = (label, level)
                (self.negations if negated else self.participants)[self.place[name]].append(iterator)
            if level + 1 < len(variables):
                self.memory[iterator + L.I_CHILDREN] = address(trie.children[level])
                if not negated:
                    self.ask_position(iterator)
            parent = iterator
        return parent

    def add_iterator(self, trie: Trie, level: int, parent: int, depth: int) -> int:
        fields = [0] * L.ITERATOR_FIELDS
        fields[L.I_KEYS] = address(trie.keys[level])
        fields[L.I_LENGTH] = len(trie.keys[level])
        fields[L.I_PARENT] = parent
        fields[L.I_DEPTH] = depth
        fields[L.I_SLOT] = -1
        fields[L.I_CURSOR] = self.in_state(L.CURSOR_FIELDS)
        if level == 0 and trie.ranks is not None:
            fields[L.I_RANKS] = address(trie.ranks)
            fields[L.I_BASE] = trie.key_ranges[0][0]
            fields[L.I_SPREAD] = len(trie.ranks) - 1
        iterator = self.row(fields)
        self.levels[iterator] = (trie, level)
        return iterator

    def ask_position(self, iterator: int) -> None:
        """Give the iterator a list for the positions of its matches."""
        if self.memory[iterator + L.I_SLOT] < 0:
            self.memory[iterator + L.I_SLOT] = self.in_state(L.BLOCK)

    # -- depths ----------------------------------------------------------------------------

    def depth_fields(
        self, depth: int, nodes: list[int], conditions: list[list[int]], segments: tuple[tuple[int, int], ...]
    ) -> list[int]:
        """One depth row; what it names is written before it."""
        own, stages = self.stages(depth, nodes)
        negations = self.negations[depth]
        filters = any(condition[L.C_OPERATOR] > L.OP_AT_MOST for condition in conditions)
        complete = any(not self.memory[iterator + L.I_CHILDREN] for iterator in negations)
        fields = [0] * L.DEPTH_FIELDS
        fields[L.D_FIRST], fields[L.D_PARTICIPANTS] = self.row(own), len(own)
        fields[L.D_STAGE] = self.row([field for stage in stages for field in stage])
        fields[L.D_STAGES] = len(stages)
        fields[L.D_NEGATION], fields[L.D_NEGATIONS] = self.row(negations), len(negations)
        fields[L.D_CONDITION] = self.row([field for condition in conditions for field in condition])
        fields[L.D_CONDITIONS] = len(conditions)
        fields[L.D_BACK] = _back(depth, segments)
        fields[L.D_SLOT] = self.in_state(L.BLOCK)
        fields[L.D_BLOCK] = 1 if any(first <= depth <= last for first, last in segments) else L.BLOCK
        fields[L.D_NODE] = nodes[depth]
        fields[L.D_COUNTERS] = self.in_state(L.COUNTERS)
        if filters or complete:
            positions = any(self.memory[iterator + L.I_SLOT] >= 0 for iterator in own)
            fields[L.D_FILTERS] = L.FILTERS_POSITIONS if positions else L.FILTERS_KEYS
        return fields

    def stages(self, depth: int, nodes: list[int]) -> tuple[list[int], list[list[int]]]:
        """Participants of a depth, staged ones first, and its stage rows.

        Staged are participants on the last level of their atom whose parent is bound
        before the depth above: they stay the same while that depth varies.
        """
        own = self.participants[depth]

        def bound_at(iterator: int) -> int:
            parent = self.memory[iterator + L.I_PARENT]
            return -1 if parent < 0 else self.memory[parent + L.I_DEPTH]

        staged = [i for i in own if self.memory[i + L.I_SLOT] < 0 and 0 <= bound_at(i) < depth - 1]
        if len(own) < 2 or not staged:
            return own, []
        staged.sort(key=bound_at)
        own = staged + [i for i in own if i not in staged]
        ranges = [trie.key_ranges[level] for trie, level in (self.levels[i] for i in own)]
        low, high = min(r[0] for r in ranges), max(r[1] for r in ranges)
        spread = high - low + 1
        largest = max(self.memory[i + L.I_LENGTH] for i in own)
        dense = spread <= min(MARKS_MAX_BITS, max(1 << 16, MARKS_MAX_SPREAD * largest))
        rows = []
        for covered in range(1, len(staged) + 1):
            if covered < len(staged) and bound_at(staged[covered]) == bound_at(staged[covered - 1]):
                continue
            fields = [0] * L.STAGE_FIELDS
            fields[L.S_COVERED] = covered
            fields[L.S_BOUND_AT] = nodes[bound_at(staged[covered - 1])]
            if covered > 1:
                longest = min(
                    trie.max_fanouts[level] for trie, level in (self.levels[i] for i in staged[:covered])
                )
                fields[L.S_LIST] = self.in_state(1 + longest)  # a rejected last key is written too
            fields[L.S_MARKS] = self.in_state((spread + 63) // 64) if dense else -1
            fields[L.S_BASE] = low
            fields[L.S_STATE] = self.in_state(L.STAGE_STATE_FIELDS)
            rows.append(fields)
        return own, rows


def _back(depth: int, segments: tuple[tuple[int, int], ...]) -> int:
    """The depth to fall back to from ``depth``: the one before, but never into a finished segment."""
    back = depth - 1
    for first, last in reversed(segments):
        if back == last:
            back = first - 1
    return back


_FLIP = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_TABLE_OPERATORS = {
    "<": L.OP_TABLE_LESS,
    "<=": L.OP_TABLE_AT_MOST,
    ">": L.OP_TABLE_GREATER,
    ">=": L.OP_TABLE_AT_LEAST,
}


def condition_rows(
    problem: JoinProblem, place: dict[str, int]
) -> tuple[list[list[list[int]]], tuple[np.ndarray, ...]]:
    """Conditions by the depth at which both sides are bound, as rows of PlanTables.conditions."""
    by_depth: list[list[list[int]]] = [[] for _ in place]
    tables = []
    for condition in problem.conditions:
        left, operator, right, offset = condition.left, condition.operator, condition.right, condition.offset
        if right is not None and place[right] > place[left]:  # x < y + 3  =>  y > x - 3
            left, right, operator, offset = right, left, _FLIP[operator], -offset
        other = -1 if right is None else place[right]
        if condition.table is not None and operator not in ("=", "!="):
            tables.append(condition.table)
            where, length = address(condition.table), len(condition.table)
            by_depth[place[left]].append([_TABLE_OPERATORS[operator], other, offset, where, length])
            continue
        rows = {
            "<": [[L.OP_AT_MOST, other, offset - 1]],
            "<=": [[L.OP_AT_MOST, other, offset]],
            ">": [[L.OP_AT_LEAST, other, offset + 1]],
            ">=": [[L.OP_AT_LEAST, other, offset]],
            "=": [[L.OP_AT_LEAST, other, offset], [L.OP_AT_MOST, other, offset]],
            "!=": [[L.OP_DIFFERS, other, offset]],
        }[operator]
        by_depth[place[left]] += [[*row, 0, 0] for row in rows]
    return by_depth, tuple(tables)
