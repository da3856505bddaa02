"""What the base machine's kernel takes on trust of a plan, looked at when one is made.

Invariants, of plans

1. Rows and lists of the plan lie within it, and apart.
2. Those of the state lie within it, behind the registers, and apart, each as long as what is written there,
   results on the way included.
3. Levels are in order: an iterator hangs below one of the same index and kind that an earlier depth
   binds; it stands once, in the list of the depth that it binds; I_LAST says whether one hangs below.
   So of an atom everything is bound where its last level is reached: a negated one is tested there.
4. A depth has participants, or an equality binds its key.
5. A condition compares with a depth before its own.
6. What drops matches, a filter or a negated atom that is complete, is in D_FILTERS, and with it whether
   positions move too.
7. A participant that something hangs or counts below has a list of positions.
8. A stage covers the first of its depth's participants, more than the stage before; they have
   no positions, and the last of their parents, which S_BOUND_AT names, is bound before the depth above.
9. A depth goes back to the one before, or over whole blocks of depths that nothing behind them
   depends on and that are not written.
10. Columns, shares, factors and the tail name depths that there are, and columns those before the tail.
11. Addresses are those of the tables' arrays; what hangs below a level finds its children.

Cost: O(fields of the plan), some tenths of a millisecond; switched off, nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from lftj.search.base import layout as L
from lftj.search.conditions import OP_AT_LEAST, OP_AT_MOST, Condition
from lftj.search.plan_check import Extent, apart, holds


@dataclass(frozen=True)
class Level:
    """Of the data that an iterator row is bound to: what it may hold, as the kernel needs to know it."""

    index: tuple[int, int]  # number of the index, and which of its levels
    fanout: int  # most keys below one parent
    keys: tuple[int, int]  # least and largest
    places: Set[int]  # addresses at which its keys may stand
    children: int  # address of the base level's child offsets, 0 on the last level


def check_base(memory: np.ndarray, state_length: int) -> None:
    """A plan of the base machine, apart from data, but with conditions filled in.

    ``state_length``: less the room of stages.
    """
    plan = _Base(memory)
    plan.check_rows()
    apart(2, plan.state_extents(), L.REGISTERS, state_length)
    holds(4, all(plan.binds(depth) for depth in range(plan.depths)), "nothing binds a depth")
    plan.check_depths()
    plan.check_positions()
    plan.check_stages()
    plan.check_ways_back()
    plan.check_columns()


def check_bound(memory: np.ndarray, levels: Mapping[int, Level], state_length: int) -> None:
    """What binding a plan of the base machine has filled in.

    ``levels``: by iterator row; ``state_length``: as of :func:`check_base`, which looks at what is before it.
    """
    fields: list[int] = memory.tolist()
    for row, level in levels.items():
        use, number = level.index
        parent = fields[row + L.I_PARENT]
        in_order = levels[parent].index == (use, number - 1) if parent >= 0 else number == 0
        holds(3, in_order, "iterator {} is level {} of index {}", row, number, use)
        place, length = fields[row + L.I_KEYS], fields[row + L.I_LENGTH]
        holds(11, place in level.places and length >= 0, "iterator {} reads keys at {}", row, place)
        has_children = fields[row + L.I_LAST] or fields[row + L.I_CHILDREN] == level.children != 0
        holds(11, has_children, "iterator {} has no children", row)
    rows = range(fields[L.H_DEPTH_ROWS], fields[L.H_DEPTH_ROWS] + fields[L.H_DEPTHS] * L.DEPTH_FIELDS)
    lists: list[Extent] = []
    if any(fields[row + L.D_STAGES] for row in rows[:: L.DEPTH_FIELDS]):
        lists += _Base(memory).stage_extents(levels)
    apart(2, lists, state_length, fields[L.H_STATE])


class _Base:
    """A plan as the kernel reads it."""

    def __init__(self, memory: np.ndarray) -> None:
        self.array = memory
        self.memory: list[int] = memory.tolist()
        first, self.depths = self.memory[L.H_DEPTH_ROWS], self.memory[L.H_DEPTHS]
        self.rows = [first + depth * L.DEPTH_FIELDS for depth in range(self.depths)]
        apart(1, [(0, L.HEADER, "the header", 0), self.depth_extent()], 0, len(self.memory))
        self.participants = [self.listed(row, L.D_FIRST) for row in self.rows]
        self.negations = [self.listed(row, L.D_NEGATION) for row in self.rows]
        self.iterators = [row for lists in (*self.participants, *self.negations) for row in lists]
        first, count = self.memory[L.H_FACTORS], self.memory[L.H_N_FACTORS]
        self.factors = range(first, first + count * L.FACTOR_FIELDS, L.FACTOR_FIELDS)

    def depth_extent(self) -> Extent:
        return self.memory[L.H_DEPTH_ROWS], self.depths * L.DEPTH_FIELDS, "the depths' rows", 0

    def listed(self, row: int, field: int) -> list[int]:
        """A list that a row names: where it begins, and in the next field how many."""
        first, count = self.memory[row + field], self.memory[row + field + 1]
        holds(1, count >= 0 <= first <= first + count <= len(self.memory), "list {} of row {}", field, row)
        return self.memory[first : first + count]

    def conditions(self, depth: int) -> Iterator[Condition]:
        first = self.memory[self.rows[depth] + L.D_CONDITION]
        count = self.memory[self.rows[depth] + L.D_CONDITIONS]
        return (Condition.view(self.array, first + number * Condition.LENGTH) for number in range(count))

    def plan_extents(self) -> Iterator[Extent]:
        yield 0, L.HEADER, "the header", 0
        yield self.depth_extent()
        for depth, row in enumerate(self.rows):
            fields = self.memory[row : row + L.DEPTH_FIELDS]
            yield fields[L.D_FIRST], fields[L.D_PARTICIPANTS], "participants of depth {}", depth
            yield fields[L.D_NEGATION], fields[L.D_NEGATIONS], "negations of depth {}", depth
            length = fields[L.D_CONDITIONS] * Condition.LENGTH
            yield fields[L.D_CONDITION], length, "conditions of depth {}", depth
        for row in self.iterators:
            yield row, L.ITERATOR_FIELDS, "iterator {}", row
        for depth in range(self.depths):
            stages = self.stages(depth)
            yield stages.start, len(stages) * L.STAGE_FIELDS, "stages of depth {}", depth
        yield self.factors.start, len(self.factors) * L.FACTOR_FIELDS, "factors", 0
        yield self.memory[L.H_OUTPUTS], self.memory[L.H_N_OUTPUTS], "outputs", 0

    def state_extents(self) -> Iterator[Extent]:
        yield self.memory[L.H_KEYS], self.depths, "the bound keys", 0
        for depth, row in enumerate(self.rows):
            yield self.memory[row + L.D_NODE], L.NODE_FIELDS, "node of depth {}", depth
            yield self.memory[row + L.D_SLOT], L.BLOCK, "matches of depth {}", depth
            yield self.memory[row + L.D_COUNTERS], L.COUNTERS, "counters of depth {}", depth
            for stage in self.stages(depth):
                yield self.memory[stage + L.S_STATE], L.STAGE_STATE_FIELDS, "stage {}", stage
        for row in self.iterators:
            yield self.memory[row + L.I_CURSOR], L.CURSOR_FIELDS, "cursor of iterator {}", row
            if self.memory[row + L.I_SLOT] >= 0:
                yield self.memory[row + L.I_SLOT], L.BLOCK, "positions of iterator {}", row

    def check_rows(self) -> None:
        apart(1, self.plan_extents(), 0, len(self.memory))

    def check_depths(self) -> None:
        """Invariants 3, 5 and 6."""
        memory = self.memory
        above = {memory[row + L.I_PARENT] for row in self.iterators}
        for depth in range(self.depths):
            own, negations = self.participants[depth], self.negations[depth]
            for row in (*own, *negations):
                self.check_level(depth, row, self.participants if row in own else self.negations)
                holds(3, memory[row + L.I_LAST] == (row not in above), "I_LAST of iterator {}", row)
            operators = {condition.operator for condition in self.conditions(depth)}
            for condition in self.conditions(depth):
                holds(5, -1 <= condition.other < depth, "a condition of depth {}", depth)
            drops = any(operator > OP_AT_MOST for operator in operators)
            drops = drops or any(self.tests(row) for row in negations)
            kind = self.filters(own) if drops else L.FILTERS_NONE
            holds(6, memory[self.rows[depth] + L.D_FILTERS] == kind, "D_FILTERS of depth {}", depth)

    def binds(self, depth: int) -> bool:
        """Whether a depth's key is bound by its participants or an equality."""
        operators = {condition.operator for condition in self.conditions(depth)}
        return bool(self.participants[depth]) or {OP_AT_LEAST, OP_AT_MOST} <= operators

    def check_level(self, depth: int, row: int, kind: Sequence[Sequence[int]]) -> None:
        parent = self.memory[row + L.I_PARENT]
        holds(3, self.memory[row + L.I_DEPTH] == depth, "iterator {} is not one of depth {}", row, depth)
        earlier = parent == -1 or any(parent in kind[before] for before in range(depth))
        holds(3, earlier, "what iterator {} hangs below is not bound before depth {}", row, depth)

    def tests(self, negation: int) -> bool:
        """Whether a negated atom is complete there."""
        return self.memory[negation + L.I_LAST] == 1

    def stages(self, depth: int) -> range:
        row = self.rows[depth]
        first, count = self.memory[row + L.D_STAGE], self.memory[row + L.D_STAGES]
        return range(first, first + count * L.STAGE_FIELDS, L.STAGE_FIELDS)

    def stage_extents(self, levels: Mapping[int, Level]) -> Iterator[Extent]:
        """Lists and marks of stages over the data: what build_stage may write."""
        for depth in range(self.depths):
            own = self.participants[depth]
            before = 1
            for stage in self.stages(depth):
                covered = self.memory[stage + L.S_COVERED]
                if covered > 1:
                    widest = min(levels[row].fanout for row in own[: before + 1])
                    yield self.memory[stage + L.S_LIST], widest + 1, "list of stage {}", stage
                before = covered
                if self.memory[stage + L.S_MARKS] >= 0:
                    base = self.memory[stage + L.S_BASE]
                    holds(2, all(base <= levels[row].keys[0] for row in own), "keys before stage {}", stage)
                    words = (max(levels[row].keys[1] for row in own) - base) // 64 + 1
                    yield self.memory[stage + L.S_MARKS], words, "marks of stage {}", stage

    def filters(self, own: Sequence[int]) -> int:
        moves = any(self.memory[row + L.I_SLOT] >= 0 for row in own)
        return L.FILTERS_POSITIONS if moves else L.FILTERS_KEYS

    def check_positions(self) -> None:
        """Invariant 7."""
        positive = {row for own in self.participants for row in own}
        read = {self.memory[row + L.I_PARENT] for row in positive} - {-1}
        read |= {self.memory[factor + L.F_PARENT] for factor in self.factors}
        for row in read:
            holds(7, row in positive, "{} is no participant, and something counts below it", row)
            holds(7, self.memory[row + L.I_SLOT] >= 0, "iterator {} has no list of positions", row)

    def check_stages(self) -> None:
        """Invariant 8."""
        memory = self.memory
        for depth in range(self.depths):
            before = 0
            for stage in self.stages(depth):
                covered = memory[stage + L.S_COVERED]
                own = self.participants[depth]
                holds(8, before < covered <= len(own), "stage {} covers {} of {}", stage, covered, len(own))
                bound_at = -1
                for row in own[:covered]:
                    parent = memory[row + L.I_PARENT]
                    holds(8, memory[row + L.I_SLOT] < 0 <= parent, "stage {} covers iterator {}", stage, row)
                    holds(8, memory[parent + L.I_DEPTH] >= bound_at, "stage {} is out of order", stage)
                    bound_at = memory[parent + L.I_DEPTH]
                fixed = memory[stage + L.S_BOUND_AT] == memory[self.rows[bound_at] + L.D_NODE]
                holds(8, fixed and bound_at < depth - 1, "S_BOUND_AT of stage {}", stage)
                before = covered

    def check_ways_back(self) -> None:
        """Invariant 9."""
        memory = self.memory
        written = memory[memory[L.H_OUTPUTS] :][: memory[L.H_N_OUTPUTS]]
        for depth, row in enumerate(self.rows):
            back = memory[row + L.D_BACK]
            holds(9, -1 <= back < depth, "depth {} goes back to {}", depth, back)
            holds(9, 1 <= memory[row + L.D_BLOCK] <= L.BLOCK, "depth {} tries no keys, or too many", depth)
            passed = range(back + 1, depth)
            if not passed[:-1] and back == depth - 1:
                continue
            holds(9, not set(written) & set(passed), "depth {} goes back over one that is written", depth)
            for later in range(depth, self.depths):
                parents = [memory[i + L.I_PARENT] for i in self.participants[later] + self.negations[later]]
                reads = {memory[parent + L.I_DEPTH] for parent in parents if parent >= 0}
                reads |= {condition.other for condition in self.conditions(later)}
                holds(9, not reads & set(passed), "depth {} depends on what {} goes back over", later, depth)

    def check_columns(self) -> None:
        """Invariant 10."""
        memory = self.memory
        holds(10, 0 <= memory[L.H_TAIL] <= self.depths, "the tail begins behind the last depth")
        tail, kind = memory[L.H_TAIL], memory[L.H_TAIL_KIND]
        holds(10, (kind == L.TAIL_NONE) == (tail == self.depths), "H_TAIL_KIND")
        for depth in memory[memory[L.H_OUTPUTS] :][: memory[L.H_N_OUTPUTS]]:
            holds(10, 0 <= depth < tail, "a column is of depth {}, the tail begins at {}", depth, tail)
        holds(10, 0 <= memory[L.H_SPLIT] < max(self.depths, 1), "H_SPLIT")
        for factor in self.factors:
            is_inner = memory[memory[factor + L.F_PARENT] + L.I_DEPTH] == self.depths - 1
            holds(10, memory[factor + L.F_INNER] == is_inner, "F_INNER of factor {}", factor)
