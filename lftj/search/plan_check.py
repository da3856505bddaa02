"""What kernels take on trust of a plan, looked at when one is made, for those who change that.

A kernel follows offsets without asking.  Numba's bounds checks see a wrong one only where it leaves the
whole array: a list of the state that is too short writes into its neighbour.  So a plan is
read here as the kernels read it (:mod:`lftj.search.layout`), under ``LFTJ_DEBUG=1``
(:mod:`lftj.process.debug`), and AssertionError names what does not hold.

Invariants, of plans

1. Rows and lists of the plan lie within it, and apart.
2. Those of the state lie within it, behind the registers, and apart, each as long as what is written there,
   results on the way included.
3. Levels are in order: an iterator hangs below one of the same index and kind that an earlier depth
   binds; it stands once, in the list of the depth that it binds; I_LAST says whether one hangs below.
   So of an atom everything is bound where its last level is reached: a negated one is tested there.
4. A depth has participants, or an equality binds its key, or a region.
5. A condition compares with a depth before its own.
6. What drops matches, a filter or a negated atom that is complete, is in D_FILTERS, and with it whether
   positions move too.
7. Base machine: a participant that something hangs or counts below has a list of positions.
8. Base machine: a stage covers the first of its depth's participants, more than the stage before; they have
   no positions, and the last of their parents, which S_BOUND_AT names, is bound before the depth above.
9. Base machine: a depth goes back to the one before, or over whole blocks of depths that nothing behind them
   depends on and that are not written.
10. Columns, shares, factors and the tail name depths that there are, and columns those before the tail.
11. Region machine: what records at a depth stands in its list of streams, and its rows of the log apart.
12. Addresses are those of the tables' arrays; what hangs below a level finds its children.
13. A delta's searches name their plans, and indices, depths and columns that these have.

Cost: O(fields of the plan), some tenths of a millisecond; switched off, nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from lftj.search import layout as L
from lftj.search.conditions import C_OPERATOR, C_OTHER, CONDITION_FIELDS, OP_AT_LEAST, OP_AT_MOST

Extent = tuple[int, int, str, int]
"""Offset, length, and what stands there: a name with a place for a number, and that."""


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
    _apart(2, plan.state_extents(), L.REGISTERS, state_length)
    _holds(4, all(plan.binds(depth) for depth in range(plan.depths)), "nothing binds a depth")
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
        _holds(3, in_order, "iterator {} is level {} of index {}", row, number, use)
        place, length = fields[row + L.I_KEYS], fields[row + L.I_LENGTH]
        _holds(12, place in level.places and length >= 0, "iterator {} reads keys at {}", row, place)
        has_children = fields[row + L.I_LAST] or fields[row + L.I_CHILDREN] == level.children != 0
        _holds(12, has_children, "iterator {} has no children", row)
    rows = range(fields[L.H_DEPTH_ROWS], fields[L.H_DEPTH_ROWS] + fields[L.H_DEPTHS] * L.DEPTH_FIELDS)
    lists: list[Extent] = []
    if any(fields[row + L.D_STAGES] for row in rows[:: L.DEPTH_FIELDS]):
        lists += _Base(memory).stage_extents(levels)
    _apart(2, lists, state_length, fields[L.H_STATE])


def check_regions(memory: np.ndarray, state_length: int, log_length: int, cursor_fields: int) -> None:
    """A plan of the region machine, with what records or without."""
    plan = _Regions(memory, cursor_fields)
    plan.check_rows()
    _apart(2, plan.state_extents(), L.REGISTERS, state_length)
    plan.check_depths()
    plan.check_columns()
    plan.check_streams(log_length)


def least_bound(memory: np.ndarray) -> int:
    """Of a plan of the region machine: how many leading depths regions have to bind (invariant 4)."""
    plan = _Regions(memory, 0)
    return max((depth + 1 for depth in range(plan.depths) if not plan.binds(depth)), default=0)


def check_bindings(bound: int, least: int) -> None:
    """What regions bind at the least of a plan, whose ``least_bound`` is ``least``."""
    _holds(4, bound >= least, "regions bind {} depths, and nothing else binds depth {}", bound, least - 1)


def fixed_by(regions: np.ndarray) -> int:
    """Depths that all of some regions, int64 (n, 2 + depths), bind to single values; n > 0."""
    is_point = regions[:, 1] == regions[np.arange(len(regions)), 1 + regions[:, 0]]
    return int((regions[:, 0] - ~is_point).min())


def check_term(places: Iterable[int], branches: Iterable[Sequence[int]], listed: int, depths: int) -> None:
    """A search of a delta (:mod:`lftj.search.regions.weighted`), whose rows hold the first ``listed`` depths.

    ``places``: the depths of its columns; ``branches``: those that lead to what is counted.
    """
    _holds(13, 0 <= listed <= depths, "{} of {} depths are listed", listed, depths)
    for what, named in (("a column", places), *(("a counted branch", branch) for branch in branches)):
        _holds(13, all(0 <= place < listed for place in named), f"{what} names a depth that rows lack")


def _holds(number: int, condition: object, what: str, *named: int) -> None:
    """``what``: with a place for each number that is named; put together only where it is told."""
    if not condition:
        raise AssertionError(f"plan invariant {number}: {what.format(*named)}")


def _apart(number: int, extents: Iterable[Extent], start: int, end: int) -> None:
    """All of them lie in [start, end), and no two share a place."""
    before, last, of = start, "the start", 0
    for place, length, what, row in sorted(extent for extent in extents if extent[1]):
        if place < before or place + length > end:
            bounds = f"from {before}, where {last.format(of)} ends, to {end}"
            raise AssertionError(f"plan invariant {number}: {what.format(row)} at {place} is not {bounds}")
        before, last, of = place + length, what, row


class _Rows:
    """A plan as both kernels read it."""

    def __init__(self, memory: np.ndarray, cursor_fields: int) -> None:
        self.memory: list[int] = memory.tolist()
        self.cursor_fields = cursor_fields
        first, self.depths = self.memory[L.H_DEPTH_ROWS], self.memory[L.H_DEPTHS]
        self.rows = [first + depth * L.DEPTH_FIELDS for depth in range(self.depths)]
        _apart(1, [(0, L.HEADER, "the header", 0), self.depth_extent()], 0, len(self.memory))
        self.participants = [self.listed(row, L.D_FIRST) for row in self.rows]
        self.negations = [self.listed(row, L.D_NEGATION) for row in self.rows]
        self.iterators = [row for lists in (*self.participants, *self.negations) for row in lists]

    def depth_extent(self) -> Extent:
        return self.memory[L.H_DEPTH_ROWS], self.depths * L.DEPTH_FIELDS, "the depths' rows", 0

    def listed(self, row: int, field: int) -> list[int]:
        """A list that a row names: where it begins, and in the next field how many."""
        first, count = self.memory[row + field], self.memory[row + field + 1]
        _holds(1, count >= 0 <= first <= first + count <= len(self.memory), "list {} of row {}", field, row)
        return self.memory[first : first + count]

    def conditions(self, depth: int) -> Iterator[int]:
        first = self.memory[self.rows[depth] + L.D_CONDITION]
        count = self.memory[self.rows[depth] + L.D_CONDITIONS]
        return iter(range(first, first + count * CONDITION_FIELDS, CONDITION_FIELDS))

    def plan_extents(self) -> Iterator[Extent]:
        yield 0, L.HEADER, "the header", 0
        yield self.depth_extent()
        for depth, row in enumerate(self.rows):
            fields = self.memory[row : row + L.DEPTH_FIELDS]
            yield fields[L.D_FIRST], fields[L.D_PARTICIPANTS], "participants of depth {}", depth
            yield fields[L.D_NEGATION], fields[L.D_NEGATIONS], "negations of depth {}", depth
            length = fields[L.D_CONDITIONS] * CONDITION_FIELDS
            yield fields[L.D_CONDITION], length, "conditions of depth {}", depth
        for row in self.iterators:
            yield row, L.ITERATOR_FIELDS, "iterator {}", row

    def state_extents(self) -> Iterator[Extent]:
        yield self.memory[L.H_KEYS], self.depths, "the bound keys", 0
        for depth, row in enumerate(self.rows):
            yield self.memory[row + L.D_NODE], L.NODE_FIELDS, "node of depth {}", depth
        for row in self.iterators:
            yield self.memory[row + L.I_CURSOR], self.cursor_fields, "cursor of iterator {}", row

    def check_rows(self) -> None:
        _apart(1, self.plan_extents(), 0, len(self.memory))

    def check_depths(self) -> None:
        """Invariants 3, 5 and 6."""
        memory = self.memory
        above = {memory[row + L.I_PARENT] for row in self.iterators}
        for depth in range(self.depths):
            own, negations = self.participants[depth], self.negations[depth]
            for row in (*own, *negations):
                self.check_level(depth, row, self.participants if row in own else self.negations)
                _holds(3, memory[row + L.I_LAST] == (row not in above), "I_LAST of iterator {}", row)
            operators = {memory[condition + C_OPERATOR] for condition in self.conditions(depth)}
            for condition in self.conditions(depth):
                _holds(5, -1 <= memory[condition + C_OTHER] < depth, "a condition of depth {}", depth)
            drops = any(operator > OP_AT_MOST for operator in operators)
            drops = drops or any(self.tests(row) for row in negations)
            kind = self.filters(own) if drops else L.FILTERS_NONE
            _holds(6, memory[self.rows[depth] + L.D_FILTERS] == kind, "D_FILTERS of depth {}", depth)

    def binds(self, depth: int) -> bool:
        """Whether a depth's key is bound by its participants or an equality."""
        operators = {self.memory[condition + C_OPERATOR] for condition in self.conditions(depth)}
        return bool(self.participants[depth]) or {OP_AT_LEAST, OP_AT_MOST} <= operators

    def check_level(self, depth: int, row: int, kind: Sequence[Sequence[int]]) -> None:
        parent = self.memory[row + L.I_PARENT]
        _holds(3, self.memory[row + L.I_DEPTH] == depth, "iterator {} is not one of depth {}", row, depth)
        earlier = parent == -1 or any(parent in kind[before] for before in range(depth))
        _holds(3, earlier, "what iterator {} hangs below is not bound before depth {}", row, depth)

    def tests(self, negation: int) -> bool:
        """Whether a negated atom is complete there."""
        return self.memory[negation + L.I_LAST] == 1

    def filters(self, own: Sequence[int]) -> int:
        """What D_FILTERS has to be where something drops matches."""
        raise NotImplementedError

    def check_columns(self) -> None:
        _holds(10, 0 <= self.memory[L.H_TAIL] <= self.depths, "the tail begins behind the last depth")


class _Base(_Rows):
    """A plan of the base machine."""

    def __init__(self, memory: np.ndarray) -> None:
        super().__init__(memory, L.CURSOR_FIELDS)
        first, count = self.memory[L.H_FACTORS], self.memory[L.H_N_FACTORS]
        self.factors = range(first, first + count * L.FACTOR_FIELDS, L.FACTOR_FIELDS)

    def stages(self, depth: int) -> range:
        row = self.rows[depth]
        first, count = self.memory[row + L.D_STAGE], self.memory[row + L.D_STAGES]
        return range(first, first + count * L.STAGE_FIELDS, L.STAGE_FIELDS)

    def plan_extents(self) -> Iterator[Extent]:
        yield from super().plan_extents()
        for depth in range(self.depths):
            stages = self.stages(depth)
            yield stages.start, len(stages) * L.STAGE_FIELDS, "stages of depth {}", depth
        yield self.factors.start, len(self.factors) * L.FACTOR_FIELDS, "factors", 0
        yield self.memory[L.H_OUTPUTS], self.memory[L.H_N_OUTPUTS], "outputs", 0

    def state_extents(self) -> Iterator[Extent]:
        yield from super().state_extents()
        for depth, row in enumerate(self.rows):
            yield self.memory[row + L.D_SLOT], L.BLOCK, "matches of depth {}", depth
            yield self.memory[row + L.D_COUNTERS], L.COUNTERS, "counters of depth {}", depth
            for stage in self.stages(depth):
                yield self.memory[stage + L.S_STATE], L.STAGE_STATE_FIELDS, "stage {}", stage
        for row in self.iterators:
            if self.memory[row + L.I_SLOT] >= 0:
                yield self.memory[row + L.I_SLOT], L.BLOCK, "positions of iterator {}", row

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
                    _holds(2, all(base <= levels[row].keys[0] for row in own), "keys before stage {}", stage)
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
            _holds(7, row in positive, "{} is no participant, and something counts below it", row)
            _holds(7, self.memory[row + L.I_SLOT] >= 0, "iterator {} has no list of positions", row)

    def check_stages(self) -> None:
        """Invariant 8."""
        memory = self.memory
        for depth in range(self.depths):
            before = 0
            for stage in self.stages(depth):
                covered = memory[stage + L.S_COVERED]
                own = self.participants[depth]
                _holds(8, before < covered <= len(own), "stage {} covers {} of {}", stage, covered, len(own))
                bound_at = -1
                for row in own[:covered]:
                    parent = memory[row + L.I_PARENT]
                    _holds(8, memory[row + L.I_SLOT] < 0 <= parent, "stage {} covers iterator {}", stage, row)
                    _holds(8, memory[parent + L.I_DEPTH] >= bound_at, "stage {} is out of order", stage)
                    bound_at = memory[parent + L.I_DEPTH]
                fixed = memory[stage + L.S_BOUND_AT] == memory[self.rows[bound_at] + L.D_NODE]
                _holds(8, fixed and bound_at < depth - 1, "S_BOUND_AT of stage {}", stage)
                before = covered

    def check_ways_back(self) -> None:
        """Invariant 9."""
        memory = self.memory
        written = memory[memory[L.H_OUTPUTS] :][: memory[L.H_N_OUTPUTS]]
        for depth, row in enumerate(self.rows):
            back = memory[row + L.D_BACK]
            _holds(9, -1 <= back < depth, "depth {} goes back to {}", depth, back)
            _holds(9, 1 <= memory[row + L.D_BLOCK] <= L.BLOCK, "depth {} tries no keys, or too many", depth)
            passed = range(back + 1, depth)
            if not passed[:-1] and back == depth - 1:
                continue
            _holds(9, not set(written) & set(passed), "depth {} goes back over one that is written", depth)
            for later in range(depth, self.depths):
                parents = [memory[i + L.I_PARENT] for i in self.participants[later] + self.negations[later]]
                reads = {memory[parent + L.I_DEPTH] for parent in parents if parent >= 0}
                reads |= {memory[condition + C_OTHER] for condition in self.conditions(later)}
                _holds(9, not reads & set(passed), "depth {} depends on what {} goes back over", later, depth)

    def check_columns(self) -> None:
        super().check_columns()
        memory = self.memory
        tail, kind = memory[L.H_TAIL], memory[L.H_TAIL_KIND]
        _holds(10, (kind == L.TAIL_NONE) == (tail == self.depths), "H_TAIL_KIND")
        for depth in memory[memory[L.H_OUTPUTS] :][: memory[L.H_N_OUTPUTS]]:
            _holds(10, 0 <= depth < tail, "a column is of depth {}, the tail begins at {}", depth, tail)
        _holds(10, 0 <= memory[L.H_SPLIT] < max(self.depths, 1), "H_SPLIT")
        for factor in self.factors:
            is_inner = memory[memory[factor + L.F_PARENT] + L.I_DEPTH] == self.depths - 1
            _holds(10, memory[factor + L.F_INNER] == is_inner, "F_INNER of factor {}", factor)


class _Regions(_Rows):
    """A plan of the region machine."""

    def plan_extents(self) -> Iterator[Extent]:
        yield from super().plan_extents()
        for depth, row in enumerate(self.rows):
            yield self.memory[row + L.D_STREAM], self.memory[row + L.D_STREAMS], "streams of depth {}", depth

    def state_extents(self) -> Iterator[Extent]:
        yield from super().state_extents()
        for depth, row in enumerate(self.rows):
            yield self.memory[row + L.D_RING], len(self.participants[depth]), "ring of depth {}", depth
            if self.memory[row + L.D_SLOT]:
                # a refused last key is written too
                yield self.memory[row + L.D_SLOT], L.SHORT_BLOCK + 1, "matches of depth {}", depth

    def filters(self, own: Sequence[int]) -> int:
        return L.FILTERS_POSITIONS

    def check_level(self, depth: int, row: int, kind: Sequence[Sequence[int]]) -> None:
        super().check_level(depth, row, kind)
        memory, parent = self.memory, self.memory[row + L.I_PARENT]
        level = 0 if parent < 0 else memory[parent + L.I_LEVEL] + 1
        _holds(3, memory[row + L.I_LEVEL] == level, "iterator {} is not of level {}", row, level)
        same = parent < 0 or memory[parent + L.I_INDEX] == memory[row + L.I_INDEX]
        _holds(3, same, "iterator {} hangs below one of another index", row)

    def check_columns(self) -> None:
        super().check_columns()
        listed, tail, last = self.memory[L.H_LISTED], self.memory[L.H_TAIL], self.depths - 1
        _holds(10, 0 <= listed <= self.depths, "H_LISTED")
        _holds(10, self.depths in (listed, tail), "a plan with a tail counts")
        for depth, row in enumerate(self.rows):
            own = len(self.participants[depth])
            _holds(10, -1 <= self.memory[row + L.D_FIXED] < own or not own, "D_FIXED of depth {}", depth)
            blocks = self.memory[row + L.D_SLOT] == 0 or (own and depth < min(tail, last))
            _holds(10, blocks, "depth {} can't go in blocks", depth)
            lists_all = depth == last == tail - 1 and own and not self.negations[depth]
            lists_all = lists_all and self.memory[row + L.D_FILTERS] == L.FILTERS_NONE
            _holds(10, not self.memory[row + L.D_MERGES] or lists_all, "D_MERGES of depth {}", depth)

    def check_streams(self, log_length: int) -> None:
        """Invariant 11."""
        extents: list[Extent] = []
        for depth, row in enumerate(self.rows):
            streams = self.listed(row, L.D_STREAM)
            own = [*self.participants[depth], *self.negations[depth]]
            recording = [iterator for iterator in own if self.memory[iterator + L.I_STREAM] >= 0]
            _holds(11, sorted(streams) == sorted(recording), "D_STREAM of depth {}", depth)
            log = self.memory[row + L.D_LOG]
            _holds(11, (log >= 0) == bool(streams), "D_LOG of depth {}", depth)
            extents += [(log, L.LOG_FIELDS, "nodes of depth {}", depth)] * (log >= 0)
            for iterator in streams:
                place = self.memory[iterator + L.I_STREAM]
                extents.append((place, L.LOG_FIELDS, "stream of iterator {}", iterator))
        _apart(11, extents, 0, log_length)
