"""Walks: from changed rows on through a partition, as long as the states before rows are not what they were.

A walk goes over what stands between marks of the version before.  What a changed row reaches it reads; from
there it goes on, twice as far with each step, until it comes to a mark whose state is the same in
both versions; then it leaps to what the next changed row reaches.  Steps of all walks are evaluated together.

Invariants

1. Rows that are passed over have the values they had.
2. What a walk has found of marks is right up to where it is.
3. A row whose frame ends before it depends on the state before that end: where states
   become equal, rows so far behind (``late``) are read, too.

Cost: O(sqrt n) rows for each changed row, of n in the partition, twice the rows whose values change,
and what their values depend on; O(log n) rounds for each run of rows whose values change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lftj.aggregates.windows import Known, States
from lftj.storage.support import SupportVersion
from maintenance.groups.window_marks import Key, Marks, spacing
from maintenance.groups.window_pieces import Evaluation, Marked, StoredOrder
from maintenance.groups.window_reach import Neighbourhood, Places, Reach, places_of

GAP = 1 << 11
"""What is so many rows apart, or less, is read at once: a step more takes longer."""


@dataclass
class Walk:
    """Where a walk is."""

    marks: Marks
    """Of the version before."""
    n_rows: int
    """Of the partition, afterwards."""
    end: Key
    """Behind all rows."""
    reached: list[tuple[Key, Key, bool]] = field(default_factory=list)
    """What to read at least: from a key to another, in their order, and whether that is for rows that are
    late alone."""
    at: int = 0
    """The mark it stands at, and the state there after the change."""
    state: States = ()
    keys: list[Key] = field(default_factory=list)
    states: list[States] = field(default_factory=list)
    """Of the marks after the change, up to there."""
    to: int = 0
    width: int = 1
    changes: bool = False
    """Whether something changes on the step that is taken, beside late rows."""
    found: Marks | None = None
    """All marks after the change, when it has come to its end."""

    def begin(self) -> None:
        self._leap(-1)

    def _leap(self, at: int) -> None:
        """Go on from a mark to what is to be read next; the states there are equal."""
        marks = self.marks
        if not self.reached:
            self.found = Marks(
                [*self.keys, *marks.keys[at + 1 :]], [*self.states, *marks.states[at + 1 :]], marks.end
            )
            return
        self.at = max(at, marks.at(self.reached[0][0]))
        self.keys += marks.keys[at + 1 : self.at + 1]
        self.states += marks.states[at + 1 : self.at + 1]
        self.state = marks.states[self.at]
        self.width = 1

    def set_out(self) -> None:
        """Decide how far the next step goes."""
        marks = self.marks
        self.changes = self.state != marks.states[self.at]
        self.to = self.at + self.width
        gap = GAP // spacing(self.n_rows)
        while self.reached and marks.at(self.reached[0][0]) <= self.to + gap:
            _, last, is_late = self.reached.pop(0)
            self.to = max(self.to, marks.at(last) + 1)
            self.changes |= not is_late

    @property
    def begin_key(self) -> Key:
        return self.marks.keys[self.at]

    @property
    def is_last(self) -> bool:
        return self.to >= len(self.marks.keys)

    @property
    def end_key(self) -> Key:
        return self.end if self.is_last else self.marks.keys[self.to]

    def arrive(self, marked: Marked, late: Key | None) -> None:
        """Take what was found on the step.  ``late``: up to where rows depend on a state before its end."""
        self.keys += marked.keys
        self.states += marked.states
        if self.is_last:
            self.found = Marks(self.keys, self.states, marked.end)
            return
        if 4 * marked.left >= spacing(self.n_rows):
            self.keys.append(self.end_key)
            self.states.append(marked.end)
        if marked.end != self.marks.states[self.to]:
            self.at, self.state = self.to, marked.end
            self.width *= 2
            return
        if self.changes and late is not None:
            self.reached.insert(0, (self.end_key, late, True))
        self._leap(self.to)


def walked(
    order: StoredOrder,
    reach: Reach,
    hood: Neighbourhood,
    versions: tuple[SupportVersion, SupportVersion],
    walks: Sequence[Walk],
) -> list[Evaluation]:
    """Take walks to their ends; what to evaluate, before (-1) and after.  ``versions``: before and after."""
    found: list[Evaluation] = []
    for walk in walks:
        walk.begin()
    while numbers := [number for number, walk in enumerate(walks) if walk.found is None]:
        active = [walks[number] for number in numbers]
        for walk in active:
            walk.set_out()
        begins = places_of([walk.begin_key for walk in active], behind=False)
        lasts = np.array([walk.is_last for walk in active])
        ends = Places(places_of([walk.end_key for walk in active], behind=False).keys, lasts)
        late = hood.away(ends, reach.late, backwards=False) if reach.late else None
        read_from = hood.away(begins, reach.back, backwards=True)
        read_to = hood.away(ends, reach.ahead, backwards=False)
        totals = [walk.marks.end for walk in active]
        pieces = None
        for version, sign in zip(versions, (-1, 1), strict=True):
            starts, states = _starts(active, read_from, sign)
            pieces = order.between(version, starts, read_to)
            found.append(Evaluation(pieces, sign, (begins, ends), Known(states, totals), np.array(numbers)))
        apart = [spacing(walk.n_rows) for walk in active]
        assert pieces is not None
        marked = pieces.marked(begins, ends, apart, states)
        keys = [None] * len(active) if late is None else list(map(tuple, late.keys.T.tolist()))
        for walk, its, key in zip(active, marked, keys, strict=True):
            walk.arrive(its, key)
    return found


def _starts(walks: Sequence[Walk], read_from: Places, sign: int) -> tuple[Places, list[States]]:
    """Where what is read of each step begins, at a place whose state is known, and this state."""
    keys, states = [], []
    for walk, key in zip(walks, map(tuple, read_from.keys.T.tolist()), strict=True):
        is_here = key == walk.begin_key
        if sign < 0:
            marks, at = walk.marks, walk.at if is_here else walk.marks.at(key)
            keys.append(marks.keys[at])
            states.append(marks.states[at])
        elif is_here:
            keys.append(key)
            states.append(walk.state)
        else:
            at = Marks(walk.keys, walk.states, ()).at(key)
            keys.append(walk.keys[at])
            states.append(walk.states[at])
    return places_of(keys, behind=False), states
