"""`PieceSearch`: a search that is left after so many operations, and goes on later, over other versions.

A whole evaluation with recording is too much for one commit.  A piece of it ends anywhere; what is
searched of an open node so far is recorded, and the rest of it is a region of the next piece::

    left at (3, 7, .):   [3, 7, from the next key on]   [3, from 8 on]   [from 4 on]

Invariants

1. What is left and what was searched hold every binding that was asked for.
2. Coverage (docs/design/engine.md section 4): of every node reached, also of those that are open when the
   search is left, the keys outside of what is left are covered, over the versions that were searched.
3. No tail (:mod:`lftj.search.regions.tail`) is divided.

Cost: a piece takes as many operations as are asked for, and those to the end of the innermost node, or of the
tail, that is being searched then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indices.keys import KEY_MAX, KEY_MIN
from lftj.search import layout as L
from lftj.search.regions.evaluation import Found, Gathered, RegionSearch
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
        memories = self._begin(indexes, regions)
        found = Gathered([], [[] for _ in self.plan.streams])
        status, pause = L.STATUS_PAUSED, operations
        while status != L.STATUS_DONE:
            status = self._search_on(memories, regions, pause, found)
            taken = self._operations().total
            pause = max(ON_AND_ON, operations - taken)
            if status == L.STATUS_PAUSED and taken >= operations and (place := self._place()) is not None:
                self._take(found, status)
                self._close_nodes(place[0], found)
                return self._found(found), self._left(*place, regions)
        return self._found(found), regions[:0]

    def _place(self) -> tuple[int, int | None] | None:
        """The depth of the innermost open node, and the first of its keys that is left, if any.

        The depth is -1 between two regions.  None where the search can't be left.
        """
        plan, state = self.plan.memory, self.state
        depth, move, floor = (int(state[register]) for register in (L.R_DEPTH, L.R_MOVE, L.R_FLOOR))
        if move == L.MOVE_REGION:
            return -1, None
        if move == L.MOVE_OPEN and floor < depth <= self.plan.tail:
            return depth - 1, int(state[plan[L.H_KEYS] + depth - 1])
        row = plan[L.H_DEPTH_ROWS] + depth * L.DEPTH_FIELDS
        in_blocks = plan[row + L.D_SLOT] and state[plan[row + L.D_NODE] + L.N_LEADER] >= 0
        if move != L.MOVE_NEXT or depth >= self.plan.tail or in_blocks or not plan[row + L.D_PARTICIPANTS]:
            return None
        key = int(state[plan[plan[plan[row + L.D_FIRST]] + L.I_CURSOR] + L.P_KEY])
        return depth, key + 1 if key < KEY_MAX else None

    def _close_nodes(self, innermost: int, found: Gathered) -> None:
        """Take the records that are still growing, whose buffers are empty."""
        plan, state = self.plan.memory, self.state
        assert found.records is not None
        for depth in range(int(state[L.R_FLOOR]), innermost + 1):
            row = plan[L.H_DEPTH_ROWS] + depth * L.DEPTH_FIELDS
            path = state[plan[L.H_KEYS] :][:depth, None].copy()
            first = plan[row + L.D_STREAM]
            for participant in plan[first : first + plan[row + L.D_STREAMS]].tolist():
                cursor = plan[participant + L.I_CURSOR]
                if state[cursor + L.P_PENDING]:
                    stream = self.plan.stream_rows.index(int(plan[participant + L.I_STREAM]))
                    ends = state[[cursor + L.P_FROM, cursor + L.P_TO]][:, None]
                    found.records[stream].append(self._records_of(stream, path, ends))

    def _left(self, innermost: int, start: int | None, regions: np.ndarray) -> np.ndarray:
        """What is left of the open nodes, the innermost first, and of the regions."""
        state = self.state
        keys = state[self.plan.memory[L.H_KEYS] :][: self.plan.depths]
        floor = int(state[L.R_FLOOR])
        rows = []
        for depth in range(innermost, floor - 1, -1):
            high = int(state[L.R_HIGH]) if depth == floor else KEY_MAX
            if depth < innermost:
                start = int(keys[depth]) + 1 if keys[depth] < KEY_MAX else None
            if start is not None and start <= high:
                row = np.full(regions.shape[1], KEY_MIN)
                row[:2] = depth + 1, high
                row[2 : 2 + depth], row[2 + depth] = keys[:depth], start
                rows.append(row)
        return np.concatenate(
            [np.array(rows, np.int64).reshape(-1, regions.shape[1]), regions[state[L.R_REGION] :]]
        )
