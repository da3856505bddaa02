"""The memory that both search machines read and write, and the names of its fields.

A machine takes two flat int64 arrays: the *plan*, read-only and shared by threads, and the
*state* of one search, which is all that a search needs in order to resume.  The region
machine takes a third, the *log*: where records go, as addresses of the caller's buffers.
All hold rows of named fields; a row is known by the offset of its first field, so
``plan[row + FIELD]`` reads it.  (One flat array and not a table per kind of row: a numba
array is seven words to pass in a call, and the functions of a node are called once per node.)

A kind of row has one prefix, of both machines:

* plan: ``H_`` header, ``D_`` depths, ``I_`` iterators, ``S_`` stages, ``F_`` factors, and ``C_``
  conditions (:mod:`lftj.search.conditions`);
* state: ``R_`` registers, ``N_`` nodes, ``P_`` cursors (positions), ``T_`` stages, and rows of counters;
* log: ``L_``.

Invariants

1. What both machines have in a row stands first and is the same.  Each machine's own fields
   follow, so those of one machine share their places with those of the other.
2. The plan begins with the header; from there depths, and from a depth's row its participants,
   conditions, negations and stages are found.
3. Rows of the plan name the offsets of their rows in the state, so the state needs no header:
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
# base machine
H_TAIL_KIND = 4  # TAIL_*
H_WRITE = 5  # 1: rows are written; 0: only counted
H_SPLIT = 6  # depth whose keys are limited to R_LOW .. R_HIGH
H_FACTORS = 7  # first factor row, and how many
H_N_FACTORS = 8
H_OUTPUTS = 9  # list of the depths that are written, and how many
H_N_OUTPUTS = 10
H_STATE = 11  # length of the state
# region machine
H_GAP = 4  # an iterator that seeks on by at most this many keys stays one record; 0: the trace's own records
H_LISTED = 5  # depths that rows hold; if not all, assignments below a row are counted into its next column
HEADER = 12

TAIL_NONE = 0  # the last walked depth is emitted
TAIL_COUNT = 1  # assignments below an emitted prefix are counted: its weight
TAIL_EXISTS = 2  # one assignment below an emitted prefix is enough

# -- plan: depth rows ----------------------------------------------------------
D_FIRST = 0  # list of participants (iterator rows), and how many: staged ones first, in stage order;
D_PARTICIPANTS = 1  # in the region machine in the order in which a node opens them
D_NEGATION = 2  # list of negations (iterator rows), and how many
D_NEGATIONS = 3
D_CONDITION = 4  # first condition row (lftj.search.conditions), and how many
D_CONDITIONS = 5
D_NODE = 6  # state: node row
D_FILTERS = 7  # FILTERS_*: what a filter condition or a complete negation that drops matches has to move
D_SLOT = 8  # state: list of keys of matches; in the region machine 0 where nodes go step by step
# base machine
D_BACK = 9  # depth to return to when the node has no further match; -1: the search ends
D_STAGE = 10  # first stage row, and how many
D_STAGES = 11
D_BLOCK = 12  # leader keys tried before the first match is used
D_COUNTERS = 13  # state: counter row
# region machine
D_LOG = 9  # log: row of the nodes, -1 where no iterator records
D_STREAM = 10  # list of the iterators that record, in the order of their streams, and how many
D_STREAMS = 11
D_MERGES = 12  # 1: last depth with participants and nothing that drops matches
D_FIXED = 13  # where D_MERGES: which of the two, 0 or 1, stays while the depth above varies; -1: none
D_RING = 14  # state: list of the participants, in the order in which they take turns
DEPTH_FIELDS = 15

FILTERS_NONE = 0  # nothing drops matches
FILTERS_KEYS = 1  # matches are keys alone
FILTERS_POSITIONS = 2  # matches have positions too

# -- plan: iterator rows, participants and negations alike ---------------------
I_PARENT = 0  # iterator row one level up in the same index, -1 on level 0
I_DEPTH = 1  # depth of the variable that it binds
I_CURSOR = 2  # state: cursor row
I_LAST = 3  # 1: no iterator hangs below; of a negation: its atom is complete here
# base machine
I_KEYS = 4  # address of the level's keys
I_LENGTH = 5  # number of keys in the level; on level 0, of the root
I_CHILDREN = 6  # address of the base level's child offsets, 0 on the index's last level
I_RANKS = 7  # address of the int32 rank table, 0 where there is none
I_BASE = 8  # key of the rank table's first entry
I_SPREAD = 9  # number of keys that the rank table covers; it has one entry more
I_SLOT = 10  # state: list of positions of matches; -1 where nobody asks for them
I_PATCH = 11  # address of the level's row of a patch (lftj.storage.patch), 0 where there is none
# region machine
I_INDEX = 4  # number of the index: versions can change under a plan
I_LEVEL = 5
I_STREAM = 6  # log: row of its stream, -1: nothing to record
ITERATOR_FIELDS = 12

# -- plan: stage rows (base machine) -------------------------------------------
S_COVERED = 0  # how many of the depth's participants it intersects (the first ones)
S_BOUND_AT = 1  # state: node row of the last of their parents; a new key there makes the stage stale
S_LIST = 2  # state: list of its keys, unless it is one participant's own range
S_MARKS = 3  # state: its bit map, -1: keys are too sparse for marks
S_BASE = 4  # key of the first mark
S_STATE = 5  # state: stage row
STAGE_FIELDS = 6

# -- plan: factor rows (base machine), columns that are not walked but counted by multiplicity
F_PARENT = 0  # iterator row of the level that they hang below
F_OFFSETS = 1  # address of the offsets of its rows, by position in the parent's base level
F_INNER = 2  # 1 when the parent is bound at the last walked depth
F_COLUMN = 3  # column of the counts of a patch's table
FACTOR_FIELDS = 4

BLOCK = 1024  # most leader keys tried at once, and the length of every list of matches: base machine
SHORT_BLOCK = 128  # the same of the region machine, of which many wait for the next commit

# -- state: registers, at its start --------------------------------------------
R_DEPTH = 0
R_MOVE = 1  # MOVE_*
R_ROWS = 2  # rows in the output buffers
R_WORK = 3  # operations in this call
R_LOW = 4  # limits of the keys at H_SPLIT, in the region machine at R_FLOOR; closed
R_HIGH = 5
R_WEIGHT = 6  # weight gathered below the present prefix
# base machine
R_TOTAL = 7  # rows emitted so far
R_STAMP = 8  # last stamp given out
# region machine
R_REGION = 7  # number of the region
R_FLOOR = 8  # depth at which the search of this region ends
R_VALID = 9  # leading depths whose cursors stand on the last region's path
R_FAILED = 10  # depth at which the last region's path failed, -1: it did not
R_FAILED_REGIONS = 11  # regions whose path failed
R_HELD = 12  # number + 1 of the last region, inside of the tail, below which there was a success
R_MARKS = 13  # address of a bit map of keys, all clear but for the marked ones; 0: there is none
R_MARKS_WORDS = 14
R_MARKS_BASE = 15  # key of its first bit
R_MARKED_FROM = 16  # base range of the fixed participant that is marked; empty: none is
R_MARKED_TO = 17
R_MARKED = 18  # how many keys are marked, -1: P_MARKED says nothing
R_PATHS = 19  # address of the paths, 0: none are asked for
R_COUNTERS = 20  # counter row of all depths together
REGISTERS = 23

MOVE_OPEN = 0
MOVE_NEXT = 1
MOVE_FLUSH = 2  # base machine: the tail below a prefix is counted
MOVE_ALIGN = 3  # region machine
MOVE_REGION = 4

# -- state: node rows, the open node of a depth --------------------------------
N_MATCHES = 0  # matches in the depth's list
N_NEXT = 1  # the next of them
N_LEADER = 2  # iterator row whose keys are tried; -1: the stage's list; in the region machine: step by step
N_POSITION = 3  # next leader key
N_BLOCK = 4  # leader keys to try before the next use of matches
# base machine
N_STAGE = 5  # stage row in use, -1: none
N_LIST = 6  # address of the leader's keys
N_END = 7  # one past the leader's last key
N_STAGE_POSITION = 8  # cursor in the stage's list when it is neither leader nor marked
N_STAMP = 9  # number of the key bound here: differs for every binding of this depth
N_WEIGHT = 10  # last depth: product of the factors that are bound before it
# region machine
N_HIGH = 5  # greatest key that may match
N_LOGGED = 6  # 1: the node's binding stands in its log
N_TURN = 7  # place in D_RING of the participant whose turn it is
N_APART = 8  # 1: last depth, the keys that runs have are looked up apart
NODE_FIELDS = 11

# -- state: cursor rows, one for each iterator ---------------------------------
P_LIST = 0  # address of the keys that positions are of
P_POSITION = 1  # position of the search, and one past the last
P_END = 2
P_AT = 3  # position of the key bound, or landed on; -1: the list lacks it
# base machine
P_PART = 4  # 0: the keys are the base level's; 1: those that a patch lists
CURSOR_FIELDS = 5  # of the base machine's row
# region machine, whose list is always the base level's
P_KEY = 4  # key landed on
P_MOVED = 5  # base keys that the last seek moved on by; at least 1
P_ACTIVE = 6  # runs with tuples under the prefix
P_FROM = 7  # record that is still growing
P_TO = 8
P_STOP = 8  # where none records: end of the range that is intersected
P_PENDING = 9
P_MARKED = 10  # of a fixed one where none records: 1 + start of its range that marks are of; 0: none
P_RUNS = 11  # per run of the version: range still ahead, and where the tuples of the key landed on end
CURSOR_RUN_FIELDS = 3

# -- state: stage rows (base machine) ------------------------------------------
T_STAMP = 0  # N_STAMP of S_BOUND_AT for which the stage was built; 0: never
T_LIST = 1  # address of its keys
T_FROM = 2  # half-open range of them
T_TO = 3
T_SPENT = 4  # leader keys tried so far that the stage might have saved, for T_SPENT_STAMP
T_SPENT_STAMP = 5
STAGE_STATE_FIELDS = 6

# -- state: counter rows -------------------------------------------------------
OPENS = 0  # iterators opened
NEXTS = 1  # keys passed over by stepping; base machine: leader keys, listed and marked keys
SEEKS = 2  # look-ups of a key in another participant: gallop, rank table or mark
COUNTERS = 3

# -- log: rows of a stream, and of a depth's nodes (region machine) ------------
L_COUNT = 0  # entries that are written
L_CAPACITY = 1
L_BEFORE = 2  # L_COUNT when the tail that is being searched was entered
# of a stream: an entry is a record
L_LO = 3  # address of the interval's ends, int64 each
L_HI = 4
# of nodes: an entry is a node's binding
L_NODES = 3  # address of int64 (bound keys + streams, capacity): binding, each stream's record count before
L_DEPTH = 4  # number of bound keys
LOG_FIELDS = 5

ROOM = 4  # free entries per row of the log that a step needs

# -- paths: a row for each region that binds single values (region machine) -----
PATH_FAILED = 0  # told: depth at which the region's path failed, H_DEPTHS: it held
PATH_MATCHED = 1  # asked: log row of the stream of a record that names the region, -1: there is none
PATH_LOW = 2  # asked: closed interval around the last coordinate, which such records hold
PATH_HIGH = 3
PATH_FROM = 4  # told: the part of it where a participant, which has recorded it, has no key; empty: nothing
PATH_TO = 5
PATH_FIELDS = 6

# -- what a call of a kernel returns -------------------------------------------
STATUS_DONE = 0
STATUS_FULL = 1  # the output buffers are full
STATUS_PAUSED = 2  # the budget of operations is spent
STATUS_OVERFLOW = 3  # base machine: a weight exceeds int64
STATUS_LOG_FULL = 4  # region machine
