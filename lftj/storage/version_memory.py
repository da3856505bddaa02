"""A version of an index as kernels see it: records that follow each other in one flat int64 array.

An :class:`Index`, a :class:`Level` for each level of the base, a :class:`Run` for each later run.  In place
of runs there may be a patch.  Where things are is said by address (:mod:`lftj.memory`);
:class:`~lftj.storage.index_version.IndexVersion` keeps them alive, or :class:`~lftj.storage.trie.Trie` and
:class:`~lftj.storage.patch.Patch` do.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from indices.compiled import part
from indices.records import Record, record_at
from lftj.memory import address, view


class Index(Record):
    levels: int
    runs: int  # how many
    ranks: int  # address of level 0's int32 rank table, 0 where there is none
    first_key: int  # key of the rank table's first entry
    spread: int  # number of keys that the rank table covers; it has one entry more
    in_patch: int  # 1: level 0's keys are those that a patch lists


class Level(Record):
    keys: int  # address of the level's keys, and how many
    length: int
    children: int  # address of the child offsets, 0 on the last level
    leaves: int  # address of the leaf offsets, 0 on the last level, and where there are no runs
    patch: int  # its PatchPlaces (lftj.storage.patch), 0 where there is no patch


class Run(Record):
    rows: int  # address of the run's flat array, and its number of tuples
    length: int
    directory: int  # address of its directory (lftj.storage.runs), and of how many keys; 0 where it has none
    first_keys: int


index_at = record_at(Index)
level_at = record_at(Level)
run_at = record_at(Run)

INDEX = Index.BYTES
LEVEL = Level.BYTES
RUN = Run.BYTES


class Levels(Protocol):
    """The arrays of a trie (:class:`lftj.storage.trie.Trie`)."""

    @property
    def keys(self) -> Sequence[np.ndarray]: ...

    @property
    def children(self) -> Sequence[np.ndarray]: ...

    @property
    def ranks(self) -> np.ndarray | None: ...

    @property
    def key_ranges(self) -> Sequence[tuple[int, int]]: ...


def base_fields(base: Levels, leaves: Sequence[np.ndarray] = ()) -> list[int]:
    """The items of a version without runs or patch; ``leaves``: leaf offsets of all levels but the last."""
    levels, ranks = len(base.keys), base.ranks
    fields = Index.fields(levels=levels)
    if ranks is not None:
        first, spread = base.key_ranges[0][0], len(ranks) - 1
        fields = Index.fields(levels=levels, ranks=address(ranks), first_key=first, spread=spread)
    for level, keys in enumerate(base.keys):
        fields += Level.fields(
            keys=address(keys),
            length=len(keys),
            children=address(base.children[level]) if level + 1 < levels else 0,
            leaves=address(leaves[level]) if level < len(leaves) else 0,
        )
    return fields


@part(makes_arrays=True)
def level_keys(base, level):
    """The keys of a level of a version's base: int64 (n,); base: int64, its memory."""
    its = level_at(base.ctypes.data + INDEX + level * LEVEL)
    return view(its.keys, its.length)


@part(makes_arrays=True)
def child_offsets(base, level):
    """The offsets of the children of a level that is not the last, or of the root, which is level -1."""
    if level < 0:
        return np.array([0, level_at(base.ctypes.data + INDEX).length])
    its = level_at(base.ctypes.data + INDEX + level * LEVEL)
    return view(its.children, its.length + 1)


@part(forceinline=True)
def first_run(index):
    """Address of the first run of the index at an address."""
    return index + INDEX + index_at(index).levels * LEVEL


@part(forceinline=True)
def run_column(run, level):
    """Address of a run's keys of a level."""
    return run.rows + 8 * level * run.length
