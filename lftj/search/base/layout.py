"""The memory that the base machine reads and writes, and the names of its fields.

The machine takes two flat int64 arrays: the *plan*, read-only and shared by threads, and the
*state* of one search, which is all that a search needs in order to resume.
Both hold rows of named fields; a row is known by the offset of its first field, so
``plan[row + FIELD]`` reads it.  (One flat array and not a table per kind of row: a numba
array is seven words to pass in a call, and the functions of a node are called once per node.)

A kind of row has one prefix:

* plan: ``H_`` header, ``D_`` depths, ``I_`` iterators, ``S_`` stages, ``F_`` factors, and conditions
  (:mod:`lftj.search.conditions`);
* state: ``R_`` registers, ``N_`` nodes, ``P_`` cursors (positions), ``T_`` stages, and rows of counters.

Invariants

1. The plan begins with the header; from there depths, and from a depth's row its participants,
   conditions, negations and stages are found.
2. Rows of the plan name the offsets of their rows in the state, so the state needs no header:
   it begins with the registers.

Three notions keep the work small:

* an *iterator* is one level of one index under one prefix of variables, of a participant or of
  a negation.  Atoms that read the same index along the same variables share it;
* a *stage* of a depth is the intersection of those of its participants that are fixed while the
  depth before it varies; it is kept as a list of keys and, where keys are dense, as *marks* (one
  bit per key);
* the *tail* is the depths below which there is nothing to emit.
"""

from __future__ import annotations

# -- plan: header --------------------------------------------------------------
H_DEPTHS = 0  # number of walked depths
H_DEPTH_ROWS = 1  # first depth row; they follow each other
H_KEYS = 2  # state: list of the bound keys, by depth
H_TAIL = 3  # first depth of the tail, H_DEPTHS where there is none
H_TAIL_KIND = 4  # TAIL_*
H_WRITE = 5  # 1: rows are written; 0: only counted
H_SPLIT = 6  # depth whose keys are limited to R_LOW .. R_HIGH
H_FACTORS = 7  # first factor row, and how many
H_N_FACTORS = 8
H_OUTPUTS = 9  # list of the depths that are written, and how many
H_N_OUTPUTS = 10
H_STATE = 11  # length of the state
HEADER = 12

TAIL_NONE = 0  # the last walked depth is emitted
TAIL_COUNT = 1  # assignments below an emitted prefix are counted: its weight
TAIL_EXISTS = 2  # one assignment below an emitted prefix is enough

# -- plan: depth rows ----------------------------------------------------------
D_FIRST = 0  # list of participants (iterator rows), and how many: staged ones first, in stage order
D_PARTICIPANTS = 1
D_NEGATION = 2  # list of negations (iterator rows), and how many
D_NEGATIONS = 3
D_CONDITION = 4  # first condition row (lftj.search.conditions), and how many
D_CONDITIONS = 5
D_NODE = 6  # state: node row
D_FILTERS = 7  # FILTERS_*: what a filter condition or a complete negation that drops matches has to move
D_SLOT = 8  # state: list of keys of matches
D_BACK = 9  # depth to return to when the node has no further match; -1: the search ends
D_STAGE = 10  # first stage row, and how many
D_STAGES = 11
D_BLOCK = 12  # leader keys tried before the first match is used
D_COUNTERS = 13  # state: counter row
DEPTH_FIELDS = 14

FILTERS_NONE = 0  # nothing drops matches
FILTERS_KEYS = 1  # matches are keys alone
FILTERS_POSITIONS = 2  # matches have positions too

# -- plan: iterator rows, participants and negations alike ---------------------
I_PARENT = 0  # iterator row one level up in the same index, -1 on level 0
I_DEPTH = 1  # depth of the variable that it binds
I_CURSOR = 2  # state: cursor row
I_LAST = 3  # 1: no iterator hangs below; of a negation: its atom is complete here
I_KEYS = 4  # address of the level's keys
I_LENGTH = 5  # number of keys in the level; on level 0, of the root
I_CHILDREN = 6  # address of the base level's child offsets, 0 on the index's last level
I_RANKS = 7  # address of the int32 rank table, 0 where there is none
I_BASE = 8  # key of the rank table's first entry
I_SPREAD = 9  # number of keys that the rank table covers; it has one entry more
I_SLOT = 10  # state: list of positions of matches; -1 where nobody asks for them
I_PATCH = 11  # address of the level's row of a patch (lftj.storage.patch), 0 where there is none
ITERATOR_FIELDS = 12

# -- plan: stage rows -------------------------------------------
S_COVERED = 0  # how many of the depth's participants it intersects (the first ones)
S_BOUND_AT = 1  # state: node row of the last of their parents; a new key there makes the stage stale
S_LIST = 2  # state: list of its keys, unless it is one participant's own range
S_MARKS = 3  # state: its bit map, -1: keys are too sparse for marks
S_BASE = 4  # key of the first mark
S_STATE = 5  # state: stage row
STAGE_FIELDS = 6

# -- plan: factor rows, columns that are not walked but counted by multiplicity
F_PARENT = 0  # iterator row of the level that they hang below
F_OFFSETS = 1  # address of the offsets of its rows, by position in the parent's base level
F_INNER = 2  # 1 when the parent is bound at the last walked depth
F_COLUMN = 3  # column of the counts of a patch's table
FACTOR_FIELDS = 4

BLOCK = 1024  # most leader keys tried at once, and the length of every list of matches

# -- state: registers, at its start --------------------------------------------
R_DEPTH = 0
R_MOVE = 1  # MOVE_*
R_ROWS = 2  # rows in the output buffers
R_WORK = 3  # operations in this call
R_LOW = 4  # limits of the keys at H_SPLIT; closed
R_HIGH = 5
R_WEIGHT = 6  # weight gathered below the present prefix
R_TOTAL = 7  # rows emitted so far
R_STAMP = 8  # last stamp given out
REGISTERS = 9

MOVE_OPEN = 0
MOVE_NEXT = 1
MOVE_FLUSH = 2  # the tail below a prefix is counted

# -- state: node rows, the open node of a depth --------------------------------
N_MATCHES = 0  # matches in the depth's list
N_NEXT = 1  # the next of them
N_LEADER = 2  # iterator row whose keys are tried; -1: the stage's list
N_POSITION = 3  # next leader key
N_BLOCK = 4  # leader keys to try before the next use of matches
N_STAGE = 5  # stage row in use, -1: none
N_LIST = 6  # address of the leader's keys
N_END = 7  # one past the leader's last key
N_STAGE_POSITION = 8  # cursor in the stage's list when it is neither leader nor marked
N_STAMP = 9  # number of the key bound here: differs for every binding of this depth
N_WEIGHT = 10  # last depth: product of the factors that are bound before it
NODE_FIELDS = 11

# -- state: cursor rows, one for each iterator ---------------------------------
P_LIST = 0  # address of the keys that positions are of
P_POSITION = 1  # position of the search, and one past the last
P_END = 2
P_AT = 3  # position of the key bound, or landed on; -1: the list lacks it
P_PART = 4  # 0: the keys are the base level's; 1: those that a patch lists
CURSOR_FIELDS = 5

# -- state: stage rows ------------------------------------------
T_STAMP = 0  # N_STAMP of S_BOUND_AT for which the stage was built; 0: never
T_LIST = 1  # address of its keys
T_FROM = 2  # half-open range of them
T_TO = 3
T_SPENT = 4  # leader keys tried so far that the stage might have saved, for T_SPENT_STAMP
T_SPENT_STAMP = 5
STAGE_STATE_FIELDS = 6

# -- state: counter rows -------------------------------------------------------
OPENS = 0  # iterators opened
NEXTS = 1  # leader keys, listed and marked keys
SEEKS = 2  # look-ups of a key in another participant: gallop, rank table or mark
COUNTERS = 3
