"""Merges in pieces: how sorted runs of any kind stay few although no change pays for a large merge.

Whoever has runs, the oldest first, merges the youngest at once as long as that is little work.  Two
larger neighbours stay as they are while a :class:`Merge` makes one of them, a piece with each change, and
give way to it when it is complete::

    runs    (5,000  3,100)  900  260  31  1          in brackets: on their way to being one

Invariants

1. Of two neighbours that no merge has, the older is longer than twice the younger.
2. Merges are in the order of the runs; each has two neighbours among them, and none has a run of another.

Cost: a merge reads its runs twice, ``PIECE_PER_ROW`` rows for each row of a change: it is complete before
half as many rows have come as its younger run has.  So there are O(log n) runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from itertools import pairwise
from typing import Any, Protocol, TypeVar

AT_ONCE = 1 << 10
AT_ONCE_PER_ROW = 4
PIECE_ROWS = 1 << 9
PIECE_PER_ROW = 16

Run = TypeVar("Run", bound=Sized)


class Merge(Protocol):
    """Two neighbouring runs on their way to being one; it may be advanced by whoever has it."""

    older: Any
    younger: Any

    def advance(self, n_rows: int) -> Any:
        """Read about so many rows more; the run, which may be empty, if it is complete, else None."""


Begun = TypeVar("Begun", bound=Merge)


def at_once(n_rows: int) -> int:
    """How many rows may be merged at once with a change of so many."""
    return AT_ONCE + AT_ONCE_PER_ROW * n_rows


def piece(n_rows: int) -> int:
    """How many rows each merge reads with a change of so many."""
    return PIECE_ROWS + PIECE_PER_ROW * n_rows


def n_busy(runs: tuple[Run, ...], merges: tuple[Begun, ...]) -> int:
    """How many of the first runs it takes to have all that are in merges."""
    return runs.index(merges[-1].younger) + 1 if merges else 0


def advanced(
    runs: tuple[Run, ...], merges: tuple[Begun, ...], n_rows: int
) -> tuple[tuple[Run, ...], tuple[Begun, ...]]:
    """The runs after so many rows more of each merge, and the merges that are left."""
    left: list[Begun] = []
    for merge in merges:
        merged = merge.advance(n_rows)
        if merged is None:
            left.append(merge)
            continue
        place = runs.index(merge.older)
        runs = (*runs[:place], *((merged,) if len(merged) else ()), *runs[place + 2 :])
    return runs, tuple(left)


def with_begun(
    runs: tuple[Run, ...], merges: tuple[Begun, ...], first: int, begin: Callable[[Run, Run], Begun]
) -> tuple[Begun, ...]:
    """The merges, and those that invariant 1 wants of the runs from number ``first`` on."""
    of_older = {id(merge.older): merge for merge in merges}
    found: list[Begun] = []
    place = first
    while place < len(runs):
        merge = of_older.get(id(runs[place]))
        if merge is None and place + 1 < len(runs) and id(runs[place + 1]) not in of_older:
            older, younger = runs[place : place + 2]
            if len(older) <= 2 * len(younger):
                merge = begin(older, younger)
        if merge is not None:
            found.append(merge)
        place += 1 if merge is None else 2
    return tuple(found)


def check_merges(runs: tuple[Run, ...], merges: tuple[Begun, ...], first: int) -> None:
    """Assert the module's invariants of the runs from number ``first`` on; for tests."""
    busy: set[int] = set()
    places = [runs.index(merge.older) for merge in merges]
    for merge, place in zip(merges, places, strict=True):
        assert runs[place + 1] is merge.younger and place >= first
        busy |= {id(merge.older), id(merge.younger)}
    assert all(place + 2 <= following for place, following in pairwise(places))
    for older, younger in pairwise(runs[first:]):
        is_free = busy.isdisjoint((id(older), id(younger)))
        assert not is_free or len(older) > 2 * len(younger), "geometric"
