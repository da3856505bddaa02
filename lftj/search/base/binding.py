"""What of a plan is written when it is bound to data: addresses, and the room of stages.

What its records hold besides stands in the plan's template: :mod:`lftj.search.base.plan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indices.records import WORD
from lftj.memory import address
from lftj.search.base.plan_check import Level
from lftj.search.base.records import Cursor, Factor, Stage
from lftj.search.marks import mark_words
from lftj.search.problem import JoinProblem
from lftj.storage.catalog import SearchView
from lftj.storage.patch import PATCH_PLACES, Patch

_BASE, _IN_PATCH = Cursor.place("base"), Cursor.place("in_patch")
_LIST, _MARKS_FIRST = Stage.place("list"), Stage.place("marks_first")


@dataclass(frozen=True)
class CursorRow:
    """Which level of which index a cursor reads."""

    row: int  # item at which the record begins
    use: int
    level: int
    pinned_by: int | None  # number of the condition with the constant that is sought, if only that is

    def walks_root(self, patch: Patch, problem: JoinProblem) -> bool:
        """Of one on level 0: whether it comes upon keys of the root that the base has otherwise."""
        return self.pinned_by is None or patch.moves_root(problem.conditions[self.pinned_by].offset)

    def fill(self, memory: np.ndarray, view: SearchView) -> None:
        """Write the addresses of the level."""
        level, base, patch = self.level, view.base, view.patch
        where, length, children = base.places[level]
        in_patch, ranks, place = 0, base.ranks, 0
        if patch is not None:
            place = patch.address + PATCH_PLACES * level
            if level == 0 and patch.relists_root:
                in_patch = 1
                where, length = patch.keys_at(0)
                ranks = None if self.pinned_by is not None else patch.root_ranks
        table = (0, 0, 0)
        if level == 0 and ranks is not None:
            where_ranks = address(ranks) if in_patch else base.ranks_place
            first_key = patch.root_low if in_patch and patch else base.key_ranges[0][0]
            table = (where_ranks, first_key, len(ranks) - 1)
        written = (where, length, children, *table, place, where, in_patch)
        memory[self.row + _BASE : self.row + _IN_PATCH + 1] = written

    def level_of(self, view: SearchView) -> Level:
        """What the level holds, for :mod:`lftj.search.base.plan_check`."""
        level, base, patch = self.level, view.base, view.patch
        where, _, children = base.places[level]
        places = {where} | ({patch.keys_at(level)[0]} if patch is not None else set())
        return Level((self.use, level), view.max_fanouts[level], view.key_ranges[level], places, children)


@dataclass(frozen=True)
class FactorRow:
    """A factor: branches of level ``deeper`` below those of ``level`` are counted."""

    row: int
    use: int
    level: int
    deeper: int

    def fill(self, memory: np.ndarray, view: SearchView) -> np.ndarray:
        """Write the address of the offsets, which are returned."""
        offsets = view.base.offsets(self.level, self.deeper)
        memory[self.row + Factor.place("offsets")] = address(offsets)
        return offsets


@dataclass(frozen=True)
class StageRow:
    """A stage, whose room in the memory depends on the data.

    Participants are given by use and level.  Its list holds the results on the way too (invariant 3 of
    :mod:`lftj.search.base.plan`), each a part of the one before: the first of them is the widest.
    """

    row: int
    first_result: tuple[tuple[int, int], ...]  # what that intersects; empty where nothing is listed
    participants: tuple[tuple[int, int], ...]  # of all of the depth

    def list_room(self, views: Sequence[SearchView]) -> int:
        """Items of the list.  A rejected last key is written too."""
        if not self.first_result:
            return 0
        return 1 + min(views[use].max_fanouts[level] for use, level in self.first_result)

    def fill(self, memory: np.ndarray, views: Sequence[SearchView], length: int) -> tuple[int, list[int]]:
        """Give the stage its room behind ``length`` items; the new length, and the items that name it."""
        ranges = [views[use].key_ranges[level] for use, level in self.participants]
        largest = max(len(views[use].base.keys[level]) for use, level in self.participants)
        marks_first, words = mark_words(ranges, largest)
        room = self.list_room(views)
        starts = [length, length + room]
        named = [number for number, size in enumerate((room, words)) if size]
        places = [starts[number] * WORD if number in named else 0 for number in (0, 1)]
        memory[self.row + _LIST : self.row + _MARKS_FIRST + 1] = (*places, words, marks_first)
        return length + room + words, [self.row + _LIST + number for number in named]
