"""A version of an index as kernels see it: the X_* fields of one flat int64 array.

A header, a row per level of the base, a row per run.  Where things are is said by address
(:mod:`lftj.memory`); :class:`~lftj.storage.index_version.IndexVersion` keeps them alive.
"""

X_LEVELS = 0
X_RUNS = 1
X_RANKS = 2  # address of level 0's int32 rank table, 0 where there is none
X_BASE = 3
X_SPREAD = 4
X_HEADER = 5

XL_KEYS = 0  # address of the level's keys, and how many
XL_LENGTH = 1
XL_CHILDREN = 2  # address of the child offsets, 0 on the last level
XL_LEAVES = 3  # address of the leaf offsets, 0 on the last level
X_LEVEL_FIELDS = 4

XR_ROWS = 0  # address of the run's flat array, and its number of tuples
XR_LENGTH = 1
X_RUN_FIELDS = 2
