"""What the search's kernel takes on trust of a plan, looked at when one is made, for those who change that.

A kernel follows addresses and offsets without asking.  Numba's bounds checks see a wrong one only where it
leaves the whole array: a list that is too short writes into its neighbour.  So a plan is read as the kernel
reads it, under ``LFTJ_DEBUG=1`` (:mod:`lftj.process.debug`), and AssertionError names what does not hold.

Invariants, of plans as their template has them, with offsets from its beginning for addresses

1. Records and lists lie within the memory, and apart, each as long as what is written there; nothing else is
   there.
2. Where an address belongs is among ``addresses``, once.
3. Levels are in order: a cursor hangs below one of the same index and kind, one level up, that an earlier
   depth binds; `is_last` says whether one hangs below, `leads` whether one does or a factor.  So of an atom
   everything is bound where its last level is reached: a negated one is tested there.
4. A depth has participants, or an equality binds its key, or a region.
5. A condition compares with a depth before its own.
6. `filters` says whether a condition may refuse single keys.
7. The tail and what is listed name depths that there are.  Where matches are listed, that is the last one;
   where they wait in a list, there are participants.  Columns are of depths that are listed, and the last
   depth's keys have one of their own.
8. A node has a log where one of its cursors records, and there alone; each stream has one cursor.
9. A delta's searches name their plans, and indices, depths and columns that these have.
10. The stages of a depth have participants that are fixed before the depth above, in the order of the depths
   that fix them, which `bound_at` names; those on level 0 belong to the first.
11. A depth goes back to the one before, or over whole blocks of depths that nothing behind them
   depends on and that are not written.
12. Of a plan over data: a stage's list, marks and cuts have room for all that may be written there.
13. The varying cursor of a depth with stages is one that the depth above binds, and nobody asks for its
   position.
14. Where a depth counts what is below its matches, that is the last one, where all participants but the
   varying one are staged, nothing refuses a key, and no key is asked for.

Cost: O(fields of the plan), some milliseconds, for equal plans once; switched off, nothing.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from indices.records import WORD, Record
from lftj.search.conditions import OP_AT_LEAST, OP_AT_MOST, Condition
from lftj.search.records import (
    CURSOR,
    NAMING,
    SHORT_BLOCK,
    Cursor,
    Cut,
    Factor,
    Node,
    NodeLog,
    Search,
    Stage,
    StreamLog,
)

if TYPE_CHECKING:
    from lftj.storage.catalog import SearchView


Extent = tuple[int, int, str, int]
"""Offset, length, and what stands there: a name with a place for a number, and that."""


def holds(number: int, condition: object, what: str, *named: int) -> None:
    """``what``: with a place for each number that is named; put together only where it is told."""
    if not condition:
        raise AssertionError(f"plan invariant {number}: {what.format(*named)}")


def apart(number: int, extents: Iterable[Extent], start: int, end: int) -> None:
    """All of them lie in [start, end), and no two share a place."""
    before, last, of = start, "the start", 0
    for place, length, what, row in sorted(extent for extent in extents if extent[1]):
        if place < before or place + length > end:
            bounds = f"from {before}, where {last.format(of)} ends, to {end}"
            raise AssertionError(f"plan invariant {number}: {what.format(row)} at {place} is not {bounds}")
        before, last, of = place + length, what, row


def check_regions(template: np.ndarray, addresses: np.ndarray) -> None:
    """A plan, before it is bound to data."""
    _check_regions(template.tobytes(), addresses.tobytes())


@functools.lru_cache(maxsize=1 << 11)
def _check_regions(template: bytes, addresses: bytes) -> None:
    """Plans that hold are remembered, for this is all that is looked at; of others each is told."""
    plan = _Plan(np.frombuffer(template, np.int64))
    plan.check_memory(np.frombuffer(addresses, np.int64).tolist())
    plan.check_levels()
    plan.check_depths()
    plan.check_rows()
    plan.check_streams()
    plan.check_stages()
    plan.check_ways_back()


def check_staged(template: np.ndarray, length: int, views: Sequence[SearchView]) -> None:
    """A plan whose stages have their room behind the template, in a memory of ``length`` items, over data."""
    plan = _Plan(template)
    apart(12, plan.stage_rooms(views), len(template), length)


def least_bound(template: np.ndarray) -> int:
    """How many leading depths regions have to bind (invariant 4)."""
    plan = _Plan(template)
    return max((depth + 1 for depth in range(plan.depths) if not plan.binds(depth)), default=0)


def check_bindings(bound: int, least: int) -> None:
    """What regions bind at the least of a plan, whose ``least_bound`` is ``least``."""
    holds(4, bound >= least, "regions bind {} depths, and nothing else binds depth {}", bound, least - 1)


def fixed_by(regions: np.ndarray) -> int:
    """Depths that all of some regions, int64 (n, 2 + depths), bind to single values; n > 0."""
    is_point = regions[:, 1] == regions[np.arange(len(regions)), 1 + regions[:, 0]]
    return int((regions[:, 0] - ~is_point).min())


def check_term(places: Iterable[int], branches: Iterable[Sequence[int]], listed: int, depths: int) -> None:
    """A search of a delta (:mod:`lftj.search.regions.weighted`), whose rows hold the first ``listed`` depths.

    ``places``: the depths of its columns; ``branches``: those that lead to what is counted.
    """
    holds(9, 0 <= listed <= depths, "{} of {} depths are listed", listed, depths)
    for what, named in (("a column", places), *(("a counted branch", branch) for branch in branches)):
        holds(9, all(0 <= place < listed for place in named), f"{what} names a depth that rows lack")


class _Plan:
    """A plan as the kernel reads it, with offsets from its beginning for addresses: a copy.

    Records are known by the items at which they begin.
    """

    def __init__(self, template: np.ndarray) -> None:
        self.template: list[int] = template.tolist()  # an array's items are slow to read one by one
        self.search = self.record(Search, 0)
        self.known: dict[tuple[type[Record], int, int], dict[int, Any]] = {}
        self.depths = int(self.search.depths)
        nodes = self.records(Node, self.search.nodes, self.depths)
        self.node_items, self.nodes = list(nodes), list(nodes.values())
        self.cursors = self.records(Cursor, self.search.cursors, self.search.n_cursors, CURSOR // WORD)
        self.factors = self.records(Factor, self.search.factors, self.search.n_factors)

    @staticmethod
    def item(address: int) -> int:
        return address // WORD

    def records(self, kind: type[Record], first: int, count: int, length: int = 0) -> dict[int, Any]:
        """Records that follow each other, each of ``length`` items, by the items at which they begin."""
        known = self.known.get((kind, first, count))
        if known is None:
            length = length or kind.LENGTH
            start, end = self.item(first), self.item(first) + count * length
            within = 0 <= start <= end <= len(self.template)
            holds(1, within, f"{{}} records of {kind.__name__} begin at {{}}", count, start)
            known = {item: self.record(kind, item) for item in range(start, end, length)}
            self.known[kind, first, count] = known
        return known

    def record(self, kind: type[Record], item: int) -> Any:
        words: Any = self.template[item : item + kind.LENGTH]
        return kind(words)

    def conditions(self, depth: int) -> dict[int, Any]:
        return self.records(Condition, self.nodes[depth].conditions, self.nodes[depth].n_conditions)

    def stages(self, depth: int) -> dict[int, Any]:
        return self.records(Stage, self.nodes[depth].stages, self.nodes[depth].n_stages)

    def refuses(self, depth: int) -> bool:
        """Whether a condition may refuse single keys.  Looks at invariant 5."""
        conditions = self.conditions(depth).values()
        holds(5, all(-1 <= one.other < depth for one in conditions), "a condition of depth {}", depth)
        return any(condition.operator > OP_AT_MOST for condition in conditions)

    def binds(self, depth: int) -> bool:
        """Whether a depth's key is bound by its participants or an equality."""
        operators = {int(condition.operator) for condition in self.conditions(depth).values()}
        return bool(self.participants(depth)) or {OP_AT_LEAST, OP_AT_MOST} <= operators

    def outputs(self) -> list[int]:
        first = self.item(self.search.outputs)
        return self.template[first : first + int(self.search.n_outputs)]

    def participants(self, depth: int) -> list[int]:
        node = self.nodes[depth]
        return self.listed(node.participants, node.negations)

    def negations(self, depth: int) -> list[int]:
        return self.listed(self.nodes[depth].negations, self.nodes[depth].end)

    def listed(self, first: int, end: int) -> list[int]:
        items = list(range(first // WORD, end // WORD, CURSOR // WORD))
        within = all(map(self.cursors.__contains__, items))
        holds(1, within, "cursors of a node begin at {}", first // WORD)
        return items

    # -- 1 and 2 -------------------------------------------------------------------------------

    def extents(self) -> Iterator[Extent]:
        yield 0, Search.LENGTH, "the search", 0
        yield int(self.search.keys) // WORD, self.depths, "the bound keys", 0
        yield int(self.search.outputs) // WORD, int(self.search.n_outputs), "the columns", 0
        for item in self.factors:
            yield item, Factor.LENGTH, "factor {}", item
        for depth, (item, node) in enumerate(zip(self.node_items, self.nodes, strict=True)):
            yield item, Node.LENGTH, "node of depth {}", depth
            for condition in self.conditions(depth):
                yield condition, Condition.LENGTH, "a condition of depth {}", depth
            yield int(node.ring) // WORD, int(node.n_participants), "ring of depth {}", depth
            for stage in self.stages(depth):
                yield stage, Stage.LENGTH, "stage {}", stage
            if node.matches:
                # a refused last key is written too
                yield int(node.matches) // WORD, SHORT_BLOCK + 1, "matches of depth {}", depth
            if node.log:
                yield int(node.log) // WORD, NodeLog.LENGTH, "log of depth {}", depth
        for item, cursor in self.cursors.items():
            yield item, CURSOR // WORD, "cursor {}", item
            if cursor.stream:
                yield int(cursor.stream) // WORD, StreamLog.LENGTH, "stream of cursor {}", item

    def check_memory(self, addresses: list[int]) -> None:
        extents = list(self.extents())
        apart(1, extents, 0, len(self.template))
        empty = len(self.template) - sum(length for _, length, _, _ in extents)
        holds(1, empty == 0, "{} items belong to nothing", empty)
        for item, cursor in self.cursors.items():
            holds(1, cursor.ranges == (item + Cursor.LENGTH) * WORD, "ranges of cursor {}", item)
        nodes = dict(zip(self.node_items, self.nodes, strict=True))
        for item, node in nodes.items():
            count = (int(node.negations) - int(node.participants)) // CURSOR
            holds(1, node.n_participants == count, "participants of node {}", item)
        stages = [self.stages(depth) for depth in range(self.depths)]
        fields = [
            item + record.place(field)
            for records in ({0: self.search}, nodes, self.cursors, self.factors, *stages)
            for item, record in records.items()
            for field in NAMING[type(record)]
            if getattr(record, field)
        ]
        holds(2, sorted(addresses) == sorted(fields), "{} of {} addresses", len(addresses), len(fields))

    # -- 3 to 8 --------------------------------------------------------------------------------

    def check_levels(self) -> None:
        """Invariant 3."""
        above = {int(cursor.parent) // WORD for cursor in self.cursors.values() if cursor.parent}
        asked = above | {int(factor.parent) // WORD for factor in self.factors.values()}
        earlier: list[set[int]] = [set(), set()]
        for depth in range(self.depths):
            kinds = self.participants(depth), self.negations(depth)
            for before, items in zip(earlier, kinds, strict=True):
                for item in items:
                    cursor, parent = self.cursors[item], int(self.cursors[item].parent) // WORD
                    holds(3, cursor.depth == depth, "cursor {} is not one of depth {}", item, depth)
                    holds(3, cursor.is_last == (item not in above), "is_last of cursor {}", item)
                    holds(3, cursor.leads == (item in asked), "leads of cursor {}", item)
                    holds(3, not parent or parent in before, "what cursor {} hangs below is unbound", item)
                    level = int(self.cursors[parent].level_number) + 1 if parent else 0
                    holds(3, cursor.level_number == level, "cursor {} is not of level {}", item, level)
                    same = not parent or self.cursors[parent].number == cursor.number
                    holds(3, same, "cursor {} hangs below one of another index", item)
            for before, items in zip(earlier, kinds, strict=True):
                before.update(items)

    def check_depths(self) -> None:
        """Invariants 5 to 7."""
        search, last = self.search, self.depths - 1
        holds(7, 0 <= search.tail <= self.depths, "the tail begins behind the last depth")
        holds(7, 0 <= search.listed <= self.depths, "{} depths are listed", int(search.listed))
        records = any(node.log for node in self.nodes)
        for depth, node in enumerate(self.nodes):
            holds(6, node.filters == self.refuses(depth), "filters of depth {}", depth)
            own = len(self.participants(depth))
            lists_all = depth == last == search.tail - 1 and own
            holds(7, node.lists_matches == bool(lists_all), "lists_matches of depth {}", depth)
            blocks = own and not lists_all and (depth < search.tail or not records)
            holds(7, not node.matches or blocks, "depth {} can't go in blocks", depth)
            holds(7, 1 <= node.first_block <= SHORT_BLOCK, "depth {} tries no keys, or too many", depth)

    def check_rows(self) -> None:
        """Invariant 7, of what leaves."""
        search, outputs, last = self.search, self.outputs(), self.depths - 1
        for depth in outputs:
            holds(7, 0 <= depth < search.listed, "a column is of depth {}, and that is not listed", depth)
        counts = search.listed < self.depths
        holds(7, search.weighs or not counts, "assignments are counted, and no column has them")
        if last in outputs:
            holds(7, outputs[int(search.scratch)] == last, "the last depth's keys are in another column")
        else:
            alone = search.scratch == len(outputs) and (counts or search.tail < self.depths or last < 0)
            holds(7, alone, "the last depth's keys have no column")
        for item, factor in self.factors.items():
            is_inner = self.cursors[int(factor.parent) // WORD].depth == last
            holds(7, factor.inner == is_inner, "`inner` of factor {}", item)

    def check_stages(self) -> None:
        """Invariant 10."""
        for depth in range(self.depths):
            stages, before = self.stages(depth), -1
            by_number: dict[int, list[Cursor]] = {}
            for item in self.participants(depth):
                by_number.setdefault(int(self.cursors[item].staged), []).append(self.cursors[item])
            numbers = set(by_number) - {0}
            holds(10, numbers == set(range(1, len(stages) + 1)), "cursors of depth {} and its stages", depth)
            for number, (item, stage) in enumerate(stages.items(), 1):
                parents = [int(cursor.parent) // WORD for cursor in by_number[number]]
                bound = {int(self.cursors[parent].depth) for parent in parents if parent}
                holds(10, len(bound) == 1, "stage {} is bound by {} depths", item, len(bound))
                holds(10, number == 1 or all(parents), "stage {} has a level 0", item)
                (bound_at,) = bound
                holds(10, before < bound_at < depth - 1, "stage {} is out of order", item)
                holds(
                    10, self.item(stage.bound_at) == self.node_items[bound_at], "bound_at of stage {}", item
                )
                before = bound_at
            if self.nodes[depth].varying:
                holds(13, stages and self.varies(depth), "the varying cursor of depth {}", depth)
            if self.nodes[depth].counts_below:
                self.check_counted(depth, depth + 1)

    def varies(self, depth: int) -> bool:
        """Whether a depth's varying cursor is what its name says."""
        cursor = self.cursors[self.item(self.nodes[depth].varying)]
        bound = cursor.parent and self.cursors[self.item(cursor.parent)].depth == depth - 1
        return bool(bound and not cursor.leads)

    def check_counted(self, depth: int, last: int) -> None:
        """Invariant 14."""
        search, below, node = self.search, self.nodes[last], self.nodes[depth]
        holds(14, last == self.depths - 1 == search.tail - 1, "depth {} is not above the last", depth)
        alone = [item for item in self.participants(last) if not self.cursors[item].staged]
        holds(14, alone == [self.item(below.varying)], "depth {} has other participants", last)
        refuses = below.n_conditions or self.negations(last) or self.negations(depth)
        holds(
            14,
            not refuses and not search.n_factors and search.listed <= depth,
            "more than a number of depth {}",
            last,
        )
        holds(14, node.matches and node.back == depth - 1, "depth {} can't count below", depth)

    def stage_rooms(self, views: Sequence[SearchView]) -> Iterator[Extent]:
        """Invariant 12: lists and marks of stages over the data, behind the template."""
        for depth in range(self.depths):
            own = [self.cursors[item] for item in self.participants(depth)]
            ranges = [views[int(c.number)].key_ranges[int(c.level_number)] for c in own]
            before: list[int] = []
            for number, (item, stage) in enumerate(self.stages(depth).items(), 1):
                its = [c for c in own if c.staged == number]
                leading = next(c for c in its if c.parent)  # then the others, in their order
                its.sort(key=lambda c: c is not leading)
                fanouts = [views[int(c.number)].max_fanouts[int(c.level_number)] for c in its]
                if len(before[:1] + fanouts) > 1:
                    yield self.item(stage.list), min((before[:1] + fanouts)[:2]) + 1, "list of stage {}", item
                before = before or fanouts
                if stage.marks_words:
                    first = int(stage.marks_first)
                    holds(12, all(first <= low for low, _ in ranges), "keys before stage {}", item)
                    words = (max(high for _, high in ranges) - first) // 64 + 1
                    holds(12, stage.marks_words == words, "marks of stage {} are {} words", item, words)
                    yield self.item(stage.marks), words, "marks of stage {}", item
                if stage.cuts:
                    holds(12, stage.marks_words, "stage {} cuts without marks", item)
                    cut = self.cursors[self.item(self.nodes[depth].varying)]
                    keys = views[int(cut.number)].base.keys[int(cut.level_number) - 1]
                    yield self.item(stage.cuts), len(keys) * Cut.LENGTH, "cuts of stage {}", item
                    yield self.item(stage.room), int(stage.room_length), "room of stage {}", item

    def check_ways_back(self) -> None:
        """Invariant 11."""
        for depth, node in enumerate(self.nodes):
            back = int(node.back)
            holds(11, -1 <= back < depth, "depth {} goes back to {}", depth, back)
            passed = set(range(back + 1, depth))
            if not passed:
                continue
            holds(11, not passed & set(self.outputs()), "depth {} goes back over one that is written", depth)
            for later in range(depth, self.depths):
                items = self.participants(later) + self.negations(later)
                parents = {self.item(self.cursors[item].parent) for item in items} - {0}
                reads = {int(self.cursors[parent].depth) for parent in parents}
                reads |= {int(condition.other) for condition in self.conditions(later).values()}
                holds(11, not reads & passed, "depth {} depends on what {} goes back over", later, depth)

    def check_streams(self) -> None:
        """Invariant 8."""
        for depth, node in enumerate(self.nodes):
            records = any(self.cursors[i].stream for i in self.participants(depth) + self.negations(depth))
            holds(8, bool(node.log) == records, "log of depth {}", depth)
        streams = [int(cursor.stream) // WORD for cursor in self.cursors.values() if cursor.stream]
        holds(8, max(Counter(streams).values(), default=1) == 1, "a stream has several cursors")
        numbers = sorted(self.record(StreamLog, item).number for item in streams)
        holds(8, numbers == list(range(len(numbers))), "streams are numbered otherwise")
