"""What the base machine's kernel takes on trust of a plan, looked at when one is made.

Invariants, of plans as their template has them, with offsets from its beginning for addresses

1. Records lie within the template, and apart; nothing else is there.
2. Lists lie behind it, within the memory of a search, and apart, each as long as what is written there,
   results on the way included.  Where an address belongs is among ``addresses``, once.
3. Levels are in order: a cursor hangs below one of the same index and kind that an earlier depth
   binds; `is_last` says whether one hangs below.  So of an atom everything is bound where its last level is
   reached: a negated one is tested there.
4. A depth has participants, or an equality binds its key.
5. A condition compares with a depth before its own.
6. What drops matches, a filter or a negated atom that is complete, is in `filters`, and with it whether
   positions move too.
7. A participant that something hangs or counts below has a list of positions.
8. A stage covers the first of its depth's participants, more than the stage before; they have
   no positions, and the last of their parents, which `bound_at` names, is bound before the depth above.
9. A depth goes back to the one before, or over whole blocks of depths that nothing behind them
   depends on and that are not written.
10. Columns, shares, factors and the tail name depths that there are, and columns those before the tail.
11. Addresses are those of the tables' arrays; what hangs below a level finds its children.

Cost: O(fields of the plan), some tenths of a millisecond; switched off, nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from indices.records import Record
from lftj.search.base.records import (
    BLOCK,
    FILTERS_KEYS,
    FILTERS_NONE,
    FILTERS_POSITIONS,
    TAIL_NONE,
    Cursor,
    Factor,
    Node,
    Search,
    Stage,
)
from lftj.search.plan_check import Extent, PlanReader, apart, holds


@dataclass(frozen=True)
class Level:
    """Of the data that a cursor is bound to: what it may hold, as the kernel needs to know it."""

    index: tuple[int, int]  # number of the index, and which of its levels
    fanout: int  # most keys below one parent
    keys: tuple[int, int]  # least and largest
    places: Set[int]  # addresses at which its keys may stand
    children: int  # address of the base level's child offsets, 0 on the last level


def check_base(template: np.ndarray, addresses: np.ndarray, length: int) -> None:
    """A plan of the base machine, apart from data, but with conditions filled in.

    ``length``: of a search's memory, less the room of stages.
    """
    plan = _Base(template)
    plan.check_memory(length)
    holds(4, all(plan.binds(depth) for depth in range(plan.depths)), "nothing binds a depth")
    plan.check_depths()
    plan.check_positions()
    plan.check_stages()
    plan.check_ways_back()
    plan.check_columns()
    holds(2, sorted(addresses.tolist()) == sorted(plan.named_items()), "{} addresses", len(addresses))


def check_bound(
    memory: np.ndarray, addresses: np.ndarray, levels: Mapping[int, Level], behind: int, length: int
) -> None:
    """What binding a plan of the base machine has filled in.

    ``levels``: by cursor; ``behind``: where the room of stages begins; ``length``: of a search's memory.
    """
    plan = _Base(memory)
    for item, level in levels.items():
        cursor, (use, number) = plan.cursors[item], level.index
        parent = plan.item(cursor.parent)
        in_order = levels[parent].index == (use, number - 1) if parent else number == 0
        holds(3, in_order, "cursor {} is level {} of index {}", item, number, use)
        in_place = cursor.base in level.places and cursor.length >= 0
        holds(11, in_place and cursor.keys in level.places, "cursor {} reads keys at {}", item, cursor.base)
        has_children = cursor.is_last or cursor.children == level.children != 0
        holds(11, has_children, "cursor {} has no children", item)
    apart(2, plan.stage_extents(levels), behind, length)
    named = plan.named_items()
    for item, stage in plan.stages.items():
        named += plan.named(item, stage, "list", "marks")
    holds(2, sorted(addresses.tolist()) == sorted(named), "{} addresses", len(addresses))


class _Base(PlanReader):
    def __init__(self, template: np.ndarray) -> None:
        super().__init__(template, Search, Node)
        self.cursors = self.records(Cursor, "participants", "negations_end")
        self.stages = self.records(Stage, "stages", "stages_end")
        first, count = self.item(self.search.factors), int(self.search.n_factors)
        end = first + count * Factor.LENGTH
        holds(1, 0 <= first <= end <= len(template), "{} factors begin at {}", count, first)
        self.factors = {i: Factor.view(template, i) for i in range(first, end, Factor.LENGTH)}

    def records(self, kind: type[Record], first: str, end: str) -> dict[int, Any]:
        """Those between what two fields of the nodes name, by item."""
        found: dict[int, Any] = {}
        for depth in range(self.depths):
            items = self.between(depth, kind, first, end)
            holds(1, not found.keys() & set(items), "records of depth {} are another's", depth)
            found.update((item, kind.view(self.template, item)) for item in items)
        return found

    def between(self, depth: int, kind: type[Record], first: str, end: str) -> list[int]:
        start, stop = self.item(getattr(self.nodes[depth], first)), self.item(getattr(self.nodes[depth], end))
        holds(1, 0 < start <= stop <= len(self.template), f"`{first}` of depth {{}}", depth)
        return list(range(start, stop, kind.LENGTH))

    def participants(self, depth: int) -> list[int]:
        return self.between(depth, Cursor, "participants", "negations")

    def negations(self, depth: int) -> list[int]:
        return self.between(depth, Cursor, "negations", "negations_end")

    def stages_of(self, depth: int) -> list[int]:
        return self.between(depth, Stage, "stages", "stages_end")

    # -- 1 and 2 -------------------------------------------------------------------------------

    def check_memory(self, length: int) -> None:
        records = list(self.record_extents())
        apart(1, records, 0, len(self.template))
        empty = len(self.template) - sum(size for _, size, _, _ in records)
        holds(1, empty == 0, "{} items belong to nothing", empty)
        apart(2, self.list_extents(), len(self.template), length)

    def record_extents(self) -> Iterator[Extent]:
        yield 0, Search.LENGTH, "the search", 0
        for depth, item in enumerate(self.node_items):
            yield item, Node.LENGTH, "node of depth {}", depth
            yield self.conditions_extent(depth)
        for kind, records in ((Cursor, self.cursors), (Stage, self.stages), (Factor, self.factors)):
            for item in records:
                yield item, kind.LENGTH, f"{kind.__name__} {{}}", item
        yield self.item(self.search.outputs), int(self.search.n_outputs), "outputs", 0

    def list_extents(self) -> Iterator[Extent]:
        yield self.item(self.search.keys), self.depths, "the bound keys", 0
        for depth, node in enumerate(self.nodes):
            yield self.item(node.matches), BLOCK, "matches of depth {}", depth
        for item, cursor in self.cursors.items():
            if cursor.positions:
                yield self.item(cursor.positions), BLOCK, "positions of cursor {}", item

    def stage_extents(self, levels: Mapping[int, Level]) -> Iterator[Extent]:
        """Lists and marks of stages over the data: what build_stage may write."""
        for depth in range(self.depths):
            own = self.participants(depth)
            before = 1
            for item in self.stages_of(depth):
                stage, covered = self.stages[item], self.covered(depth, item)
                if covered > 1:
                    widest = min(levels[cursor].fanout for cursor in own[: before + 1])
                    yield self.item(stage.list), widest + 1, "list of stage {}", item
                before = covered
                if stage.marks_words:
                    first = stage.marks_first
                    after = all(first <= levels[cursor].keys[0] for cursor in own)
                    holds(2, after, "keys before stage {}", item)
                    words = (max(levels[cursor].keys[1] for cursor in own) - first) // 64 + 1
                    holds(2, stage.marks_words == words, "marks of stage {} are {} words", item, words)
                    yield self.item(stage.marks), words, "marks of stage {}", item

    def named_items(self) -> list[int]:
        """Where addresses belong, less those of the room of stages."""
        fields = self.named(0, self.search, "nodes", "keys", "factors", "outputs")
        for item, node in zip(self.node_items, self.nodes, strict=True):
            fields += self.named(item, node, "participants", "negations", "negations_end", "conditions")
            fields += self.named(item, node, "matches", "stages", "stages_end")
        for item, cursor in self.cursors.items():
            fields += self.named(item, cursor, "parent", "positions")
        for item, stage in self.stages.items():
            fields += self.named(item, stage, "rest", "bound_at")
        for item, factor in self.factors.items():
            fields += self.named(item, factor, "parent")
        return fields

    # -- 3 to 10 -------------------------------------------------------------------------------

    def check_depths(self) -> None:
        """Invariants 3, 5 and 6."""
        above = {self.item(cursor.parent) for cursor in self.cursors.values()}
        earlier: tuple[set[int], set[int]] = (set(), set())
        for depth, node in enumerate(self.nodes):
            kinds = self.participants(depth), self.negations(depth)
            for before, items in zip(earlier, kinds, strict=True):
                for item in items:
                    cursor, parent = self.cursors[item], self.item(self.cursors[item].parent)
                    holds(3, cursor.depth == depth, "cursor {} is not one of depth {}", item, depth)
                    holds(3, not parent or parent in before, "what cursor {} hangs below is unbound", item)
                    holds(3, cursor.is_last == (item not in above), "is_last of cursor {}", item)
            for before, items in zip(earlier, kinds, strict=True):
                before.update(items)
            tests = any(self.cursors[item].is_last for item in self.negations(depth))
            moves = any(self.cursors[item].positions for item in self.participants(depth))
            drops = FILTERS_POSITIONS if moves else FILTERS_KEYS
            kind = drops if self.refuses(depth) or tests else FILTERS_NONE
            holds(6, node.filters == kind, "filters of depth {}", depth)

    def check_positions(self) -> None:
        """Invariant 7."""
        positive = {item for depth in range(self.depths) for item in self.participants(depth)}
        read = {self.item(self.cursors[item].parent) for item in positive} - {0}
        read |= {self.item(factor.parent) for factor in self.factors.values()}
        for item in read:
            holds(7, item in positive, "{} is no participant, and something counts below it", item)
            holds(7, self.cursors[item].positions, "cursor {} has no list of positions", item)

    def covered(self, depth: int, stage: int) -> int:
        """How many of a depth's participants a stage intersects."""
        first = self.item(self.nodes[depth].participants)
        return (self.item(self.stages[stage].rest) - first) // Cursor.LENGTH

    def check_stages(self) -> None:
        """Invariant 8."""
        for depth in range(self.depths):
            own, before = self.participants(depth), 0
            for item in self.stages_of(depth):
                covered = self.covered(depth, item)
                holds(8, before < covered <= len(own), "stage {} covers {} of {}", item, covered, len(own))
                bound_at = -1
                for cursor in own[:covered]:
                    parent = self.item(self.cursors[cursor].parent)
                    fixed = parent and not self.cursors[cursor].positions
                    holds(8, fixed, "stage {} covers cursor {}", item, cursor)
                    holds(8, self.cursors[parent].depth >= bound_at, "stage {} is out of order", item)
                    bound_at = int(self.cursors[parent].depth)
                stays = self.item(self.stages[item].bound_at) == self.node_items[bound_at]
                holds(8, stays and bound_at < depth - 1, "bound_at of stage {}", item)
                before = covered

    def outputs(self) -> list[int]:
        first = self.item(self.search.outputs)
        written: list[int] = self.template[first : first + int(self.search.n_outputs)].tolist()
        return written

    def check_ways_back(self) -> None:
        """Invariant 9."""
        for depth, node in enumerate(self.nodes):
            back = int(node.back)
            holds(9, -1 <= back < depth, "depth {} goes back to {}", depth, back)
            holds(9, 1 <= node.first_block <= BLOCK, "depth {} tries no keys, or too many", depth)
            passed = set(range(back + 1, depth))
            if not passed:
                continue
            holds(9, not passed & set(self.outputs()), "depth {} goes back over one that is written", depth)
            for later in range(depth, self.depths):
                items = self.participants(later) + self.negations(later)
                parents = {self.item(self.cursors[item].parent) for item in items} - {0}
                reads = {int(self.cursors[parent].depth) for parent in parents}
                reads |= {int(condition.other) for condition in self.conditions(later)}
                holds(9, not reads & passed, "depth {} depends on what {} goes back over", later, depth)

    def check_columns(self) -> None:
        """Invariant 10."""
        tail, kind = int(self.search.tail), self.search.tail_kind
        holds(10, 0 <= tail <= self.depths, "the tail begins behind the last depth")
        holds(10, (kind == TAIL_NONE) == (tail == self.depths), "tail_kind")
        for depth in self.outputs():
            holds(10, 0 <= depth < tail, "a column is of depth {}, the tail begins at {}", depth, tail)
        holds(10, 0 <= self.search.split < max(self.depths, 1), "split")
        for item, factor in self.factors.items():
            is_inner = self.cursors[self.item(factor.parent)].depth == self.depths - 1
            holds(10, factor.inner == is_inner, "`inner` of factor {}", item)
