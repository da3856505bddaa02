"""What the region machine's kernel takes on trust of a plan, looked at when one is made.

Invariants, of plans as their template has them, with offsets from its beginning for addresses

1. Records and lists lie within the memory, and apart, each as long as what is written there; nothing else is
   there.
2. Where an address belongs is among ``addresses``, once; what is 0 where nothing records, in ``recording``.
3. Levels are in order: a cursor hangs below one of the same index and kind, one level up, that an earlier
   depth binds; `is_last` says whether one hangs below.  So of an atom everything is bound where its last
   level is reached: a negated one is tested there.
4. A depth has participants, or an equality binds its key, or a region.
5. A condition compares with a depth before its own.
6. `filters` says whether a condition may refuse single keys.
7. The tail and what is listed name depths that there are.  Where matches are listed, that is the last one;
   where they wait in a list, there is a depth behind; in both cases there are participants.
8. A node has a log where one of its cursors records, and there alone; each stream has one cursor.
9. A delta's searches name their plans, and indices, depths and columns that these have.

Cost: O(fields of the plan), some tenths of a millisecond; switched off, nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from indices.records import WORD
from lftj.search.plan_check import Extent, PlanReader, apart, holds
from lftj.search.records import CURSOR, SHORT_BLOCK, Cursor, Node, NodeLog, Search, StreamLog


def check_regions(template: np.ndarray, addresses: np.ndarray, recording: np.ndarray) -> None:
    """A plan of the region machine."""
    plan = _Regions(template)
    plan.check_memory(addresses.tolist(), recording.tolist())
    plan.check_levels()
    plan.check_depths()
    plan.check_streams()


def least_bound(template: np.ndarray) -> int:
    """How many leading depths regions have to bind (invariant 4)."""
    plan = _Regions(template)
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


class _Regions(PlanReader):
    def __init__(self, template: np.ndarray) -> None:
        super().__init__(template, Search, Node)
        first, count = self.item(self.search.cursors), int(self.search.n_cursors)
        self.cursor_items = [first + number * (CURSOR // WORD) for number in range(count)]
        within = 0 <= first <= first + count * (CURSOR // WORD) <= len(template)
        holds(1, within, "{} cursors begin at {}", count, first)
        self.cursors = {item: Cursor.view(template, item) for item in self.cursor_items}

    def participants(self, depth: int) -> list[int]:
        node = self.nodes[depth]
        return self.listed(node.participants, node.negations)

    def negations(self, depth: int) -> list[int]:
        return self.listed(self.nodes[depth].negations, self.nodes[depth].end)

    def listed(self, first: int, end: int) -> list[int]:
        start = int(first) // WORD
        items = list(range(start, int(end) // WORD, CURSOR // WORD))
        holds(1, all(item in self.cursors for item in items), "cursors of a node begin at {}", start)
        return items

    # -- 1 and 2 -------------------------------------------------------------------------------

    def extents(self) -> Iterator[Extent]:
        yield 0, Search.LENGTH, "the search", 0
        yield int(self.search.keys) // WORD, self.depths, "the bound keys", 0
        for depth, (item, node) in enumerate(zip(self.node_items, self.nodes, strict=True)):
            yield item, Node.LENGTH, "node of depth {}", depth
            yield self.conditions_extent(depth)
            yield int(node.ring) // WORD, int(node.n_participants), "ring of depth {}", depth
            if node.matches:
                # a refused last key is written too
                yield int(node.matches) // WORD, SHORT_BLOCK + 1, "matches of depth {}", depth
            if node.log:
                yield int(node.log) // WORD, NodeLog.LENGTH, "log of depth {}", depth
        for item, cursor in self.cursors.items():
            yield item, CURSOR // WORD, "cursor {}", item
            if cursor.stream:
                yield int(cursor.stream) // WORD, StreamLog.LENGTH, "stream of cursor {}", item

    def check_memory(self, addresses: list[int], recording: list[int]) -> None:
        extents = list(self.extents())
        apart(1, extents, 0, len(self.template))
        empty = len(self.template) - sum(length for _, length, _, _ in extents)
        holds(1, empty == 0, "{} items belong to nothing", empty)
        fields: list[int] = []
        for item, cursor in self.cursors.items():
            holds(1, cursor.ranges == (item + Cursor.LENGTH) * WORD, "ranges of cursor {}", item)
            fields += self.named(item, cursor, "parent", "stream", "ranges")
        for item, node in zip(self.node_items, self.nodes, strict=True):
            count = (int(node.negations) - int(node.participants)) // CURSOR
            holds(1, node.n_participants == count, "participants of node {}", item)
            fields += self.named(item, node, "participants", "negations", "end", "conditions", "ring")
            fields += self.named(item, node, "matches", "log")
        fields += self.named(0, self.search, "nodes", "keys", "cursors")
        holds(2, sorted(addresses) == sorted(fields), "{} of {} addresses", len(addresses), len(fields))
        logs = [
            field for item, cursor in self.cursors.items() for field in self.named(item, cursor, "stream")
        ]
        for item, node in zip(self.node_items, self.nodes, strict=True):
            logs += self.named(item, node, "log")
        holds(2, sorted(recording) == sorted(logs), "{} of {} logs", len(recording), len(logs))

    # -- 3 to 8 --------------------------------------------------------------------------------

    def check_levels(self) -> None:
        """Invariant 3."""
        above = {int(cursor.parent) // WORD for cursor in self.cursors.values() if cursor.parent}
        earlier: list[set[int]] = [set(), set()]
        for depth in range(self.depths):
            kinds = self.participants(depth), self.negations(depth)
            for before, items in zip(earlier, kinds, strict=True):
                for item in items:
                    cursor, parent = self.cursors[item], int(self.cursors[item].parent) // WORD
                    holds(3, cursor.depth == depth, "cursor {} is not one of depth {}", item, depth)
                    holds(3, cursor.is_last == (item not in above), "is_last of cursor {}", item)
                    holds(3, not parent or parent in before, "what cursor {} hangs below is unbound", item)
                    level = int(self.cursors[parent].level_number) + 1 if parent else 0
                    holds(3, cursor.level_number == level, "cursor {} is not of level {}", item, level)
                    same = not parent or self.cursors[parent].number == cursor.number
                    holds(3, same, "cursor {} hangs below one of another index", item)
            for before, items in zip(earlier, kinds, strict=True):
                before.update(items)

    def check_depths(self) -> None:
        """Invariants 5 to 7."""
        search = self.search
        holds(7, 0 <= search.tail <= self.depths, "the tail begins behind the last depth")
        holds(7, 0 <= search.listed <= self.depths, "{} depths are listed", int(search.listed))
        holds(7, self.depths in (search.tail, search.listed), "a plan with a tail counts")
        for depth, node in enumerate(self.nodes):
            holds(6, node.filters == self.refuses(depth), "filters of depth {}", depth)
            own, last = len(self.participants(depth)), self.depths - 1
            holds(7, -1 <= node.fixed < own or not own, "fixed of depth {}", depth)
            blocks = own and depth < min(int(search.tail), last)
            holds(7, not node.matches or blocks, "depth {} can't go in blocks", depth)
            lists_all = depth == last == search.tail - 1 and own
            holds(7, not node.lists_matches or lists_all, "lists_matches of depth {}", depth)

    def check_streams(self) -> None:
        """Invariant 8."""
        for depth, node in enumerate(self.nodes):
            records = any(self.cursors[i].stream for i in self.participants(depth) + self.negations(depth))
            holds(8, bool(node.log) == records, "log of depth {}", depth)
        streams = [int(cursor.stream) // WORD for cursor in self.cursors.values() if cursor.stream]
        holds(8, max(Counter(streams).values(), default=1) == 1, "a stream has several cursors")
        numbers = sorted(int(StreamLog.view(self.template, item).number) for item in streams)
        holds(8, numbers == list(range(len(numbers))), "streams are numbered otherwise")
