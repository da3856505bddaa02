"""The rows of a plan that hold addresses, and what fills them in when the plan is bound to data.

What rows hold besides stands in the plan's template: :mod:`lftj.search.base.plan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lftj.memory import address
from lftj.search.base import layout as L
from lftj.search.base.plan_check import Level
from lftj.search.marks import mark_words
from lftj.search.problem import JoinProblem
from lftj.storage.catalog import SearchView
from lftj.storage.patch import PATCH_FIELDS, Patch


@dataclass(frozen=True)
class IteratorRow:
    """Which level of which index an iterator row reads."""

    row: int
    use: int
    level: int
    cursor: int
    pinned_by: int | None  # number of the condition with the constant that is sought, if only that is

    def walks_root(self, patch: Patch, problem: JoinProblem) -> bool:
        """Of one on level 0: whether it comes upon keys of the root that the base has otherwise."""
        return self.pinned_by is None or patch.moves_root(problem.conditions[self.pinned_by].offset)

    def fill(self, memory: np.ndarray, view: SearchView) -> list[tuple[int, int]]:
        """Write the addresses of the level; what its cursor starts with, as (place in the state, value)."""
        row, level, base, patch = self.row, self.level, view.base, view.patch
        where, length, children = base.places[level]
        part, ranks = 0, base.ranks
        if patch is not None:
            memory[row + L.I_PATCH] = patch.address + 8 * PATCH_FIELDS * level
            if level == 0 and patch.relists_root:
                part = 1
                where, length = patch.keys_at(0)
                ranks = None if self.pinned_by is not None else patch.root_ranks
        memory[row + L.I_KEYS] = where
        memory[row + L.I_LENGTH] = length
        memory[row + L.I_CHILDREN] = children
        if level == 0 and ranks is not None:
            memory[row + L.I_RANKS] = address(ranks) if part else base.ranks_place
            memory[row + L.I_BASE] = patch.root_low if part and patch else base.key_ranges[0][0]
            memory[row + L.I_SPREAD] = len(ranks) - 1
        return [(self.cursor + L.P_LIST, where), (self.cursor + L.P_PART, part)]

    def level_of(self, view: SearchView) -> Level:
        """What the level holds, for :mod:`lftj.search.base.plan_check`."""
        level, base, patch = self.level, view.base, view.patch
        where, _, children = base.places[level]
        places = {where} | ({patch.keys_at(level)[0]} if patch is not None else set())
        return Level((self.use, level), view.max_fanouts[level], view.key_ranges[level], places, children)


@dataclass(frozen=True)
class FactorRow:
    """A factor row: branches of level ``deeper`` below those of ``level`` are counted."""

    row: int
    use: int
    level: int
    deeper: int

    def fill(self, memory: np.ndarray, view: SearchView) -> np.ndarray:
        """Write the address of the offsets, which are returned."""
        offsets = view.base.offsets(self.level, self.deeper)
        memory[self.row + L.F_OFFSETS] = address(offsets)
        memory[self.row + L.F_COLUMN] = self.deeper
        return offsets


@dataclass(frozen=True)
class StageRow:
    """A stage row, whose room in the state depends on the data.

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

    def fill(self, memory: np.ndarray, views: Sequence[SearchView], length: int) -> int:
        """Give the stage its room in the state, behind ``length`` items; returns the new length."""
        ranges = [views[use].key_ranges[level] for use, level in self.participants]
        largest = max(len(views[use].base.keys[level]) for use, level in self.participants)
        if self.first_result:
            memory[self.row + L.S_LIST] = length
            length += self.list_room(views)
        memory[self.row + L.S_BASE], words = mark_words(ranges, largest)
        memory[self.row + L.S_MARKS] = length if words else -1
        return length + words
