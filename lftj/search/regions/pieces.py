"""`PieceSearch`: a search that is left after so many operations, and goes on later, over other versions.

A whole evaluation with recording is too much for one commit.  A piece of it ends anywhere; what is
searched of an open node so far is recorded, and the rest of it is a region of the next piece::

    left at (3, 7, .):   [3, 7, from the next key on]   [3, from 8 on]   [from 4 on]

Invariants

1. What is left and what was searched hold every binding that was asked for.
2. Coverage (docs/design/engine.md section 4): of every node reached, also of those that are open when the
   search is left, the keys outside of what is left are covered, over the versions that were searched.
3. No tail (:mod:`lftj.search.machine.tail`) is divided.

Cost: a piece takes as many operations as are asked for, and those to the end of the innermost node, or of the
tail, that is being searched then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.search.records import (
    CURSOR,
    MOVE_NEXT,
    MOVE_OPEN,
    MOVE_REGION,
    STATUS_DONE,
    STATUS_PAUSED,
    WAY_STEPS,
    Node,
)
from lftj.search.regions.evaluation import Found, Gathered, RegionSearch, SearchMemory, operations_of
from lftj.storage.index_version import IndexVersion

ON_AND_ON = 64
"""Operations after which a search that could not be left is asked again."""


class PieceSearch(RegionSearch):
    """One search at a time of one plan, whole or in pieces."""

    def run_piece(
        self, indexes: Sequence[IndexVersion], regions: np.ndarray, operations: int
    ) -> tuple[Found, np.ndarray]:
        """As :meth:`run` with recording, and the regions that are left after so many operations.

        ``regions``: as of :meth:`run`; those that a piece has left are.  None is inside of a tail, unless
        everything is.
        """
        memory = self._begin(indexes, regions, record=True)
        found = Gathered([], [[] for _ in self.plan.streams])
        status, pause = STATUS_PAUSED, operations
        while status != STATUS_DONE:
            status = self._search_on(memory, regions, pause, found)
            taken = operations_of(memory).total
            pause = max(ON_AND_ON, operations - taken)
            if status == STATUS_PAUSED and taken >= operations and (place := self._place(memory)) is not None:
                self._take(memory, found, status)
                self._close_nodes(memory, place[0], found)
                return self._found(memory, found), self._left(memory, *place, regions)
        return self._found(memory, found), regions[:0]

    def _place(self, memory: SearchMemory) -> tuple[int, int | None] | None:
        """The depth of the innermost open node, and the first of its keys that is left, if any.

        The depth is -1 between two regions.  None where the search can't be left.
        """
        search = memory.search
        depth, move = int(search.depth), search.move
        if move == MOVE_REGION:
            return -1, None
        if move == MOVE_OPEN and search.floor < depth <= self.plan.tail:
            return depth - 1, int(memory.keys_above(depth)[-1])
        node = memory.nodes[depth]
        if move != MOVE_NEXT or depth >= self.plan.tail or node.way != WAY_STEPS:
            return None
        key = int(memory.cursors[self._first_cursor(memory, node)].key)
        return depth, key + 1 if key < KEY_MAX else None

    @staticmethod
    def _first_cursor(memory: SearchMemory, node: Node) -> int:
        """The number of a node's first participant."""
        return int(node.participants - memory.search.cursors) // CURSOR

    def _close_nodes(self, memory: SearchMemory, innermost: int, found: Gathered) -> None:
        """Take the records that are still growing, whose buffers are empty."""
        assert found.records is not None
        for depth in range(int(memory.search.floor), innermost + 1):
            node = memory.nodes[depth]
            path = memory.keys_above(depth)[:, None].copy()
            first, end = self._first_cursor(memory, node), int(node.end - memory.search.cursors) // CURSOR
            for cursor in memory.cursors[first:end]:
                if cursor.stream and cursor.recording:
                    stream = memory.stream_of(cursor)
                    ends = np.array([[cursor.record_low], [cursor.record_high]], np.int64)
                    found.records[stream].append(memory.records_of(stream, path, ends))

    def _left(
        self, memory: SearchMemory, innermost: int, start: int | None, regions: np.ndarray
    ) -> np.ndarray:
        """What is left of the open nodes, the innermost first, and of the regions."""
        search, keys = memory.search, memory.keys_above(self.plan.depths)
        floor = int(search.floor)
        rows = []
        for depth in range(innermost, floor - 1, -1):
            high = int(search.high) if depth == floor else KEY_MAX
            if depth < innermost:
                start = int(keys[depth]) + 1 if keys[depth] < KEY_MAX else None
            if start is not None and start <= high:
                row = np.full(regions.shape[1], KEY_MIN)
                row[:2] = depth + 1, high
                row[2 : 2 + depth], row[2 + depth] = keys[:depth], start
                rows.append(row)
        return np.concatenate(
            [np.array(rows, np.int64).reshape(-1, regions.shape[1]), regions[search.region :]]
        )
