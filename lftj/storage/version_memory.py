"""A version of an index as kernels see it: records that follow each other in one flat int64 array.

An :class:`Index`, a :class:`Level` for each level of the base, a :class:`Run` for each later run.  Where
things are is said by address (:mod:`lftj.memory`); :class:`~lftj.storage.index_version.IndexVersion` keeps
them alive.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from indices.compiled import part
from indices.records import Record, record_at


class Index(Record):
    levels: int
    runs: int  # how many
    ranks: int  # address of level 0's int32 rank table, 0 where there is none
    first_key: int  # key of the rank table's first entry
    spread: int  # number of keys that the rank table covers; it has one entry more


class Level(Record):
    keys: int  # address of the level's keys, and how many
    length: int
    children: int  # address of the child offsets, 0 on the last level
    leaves: int  # address of the leaf offsets, 0 on the last level


class Run(Record):
    rows: int  # address of the run's flat array, and its number of tuples
    length: int


index_at = record_at(Index)
level_at = record_at(Level)
run_at = record_at(Run)

INDEX = Index.BYTES
LEVEL = Level.BYTES
RUN = Run.BYTES


@part(forceinline=True)
def first_run(index):
    """Address of the first run of the index at an address."""
    return index + INDEX + index_at(index).levels * LEVEL


@part(forceinline=True)
def run_column(run, level):
    """Address of a run's keys of a level."""
    return run.rows + 8 * level * run.length
