"""The memory of the region search: fields of its plan, its state and its logs.

As in :mod:`lftj.search.base.layout`, all is flat int64 and a row is known by the offset of
its first field.  Three arrays go together:

* the *plan* (read-only): depths, participants, conditions of one rule's body in
  one key order; it names indices by number, so versions can change under it;
* the *state* of one search;
* the *log*: where records go, as addresses of the caller's buffers.
"""

from __future__ import annotations

# -- plan: header ---------------------------------------------------------------------
G_DEPTHS = 0  # number of depths
G_DEPTH_ROWS = 1  # first depth row
G_GAP = 2  # an iterator that skips at most this many keys stays one record
G_TAIL = 3  # first depth of the tail: below a binding of all before, the search stops at its first success
G_KEYS = 4  # state: list of the bound keys, by depth
HEADER = 5

# -- plan: depth rows ---------------------------------------------------------------
E_FIRST = 0  # list of participant rows, the one that steps after a match first; and how many
E_PARTICIPANTS = 1
E_NEGATION = 2  # list of negation rows, and how many
E_CONDITION = 3  # first condition row (lftj.search.conditions), and how many
E_CONDITIONS = 4
E_NEGATIONS = 5
E_NODE = 6  # state: node row
E_LOG = 7  # log: node log row, -1 where no participant records
E_STREAM = 8  # list of the participants and negations that record, in the order of their streams
E_STREAMS = 9
E_MERGES = 10  # 1: last depth with two participants and nothing that drops matches
E_FILTERS = 11  # 1: some condition is no bound
E_FIXED = 12  # where E_MERGES: which of the two, 0 or 1, stays while the depth above varies; -1: none
E_FIELDS = 13

# -- plan: participant and negation rows ------------------------------------------
P_INDEX = 0  # number of the index
P_LEVEL = 1
P_PARENT = 2  # row of the level above, -1 on level 0
P_STREAM = 3  # log: stream row, -1: nothing to record
P_CURSOR = 4  # state: cursor row
P_LAST = 5  # 1 on the atom's last level
P_FIELDS = 6

# -- state: registers -----------------------------------------------------------------
Q_REGION = 0  # number of the region
Q_DEPTH = 1
Q_MOVE = 2
Q_FLOOR = 3  # depth at which the search of this region ends
Q_LOW = 4  # limits of the keys at Q_FLOOR, closed
Q_HIGH = 5
Q_VALID = 6  # leading depths whose cursors stand on the last region's path
Q_FAILED = 7  # depth at which the last region's path failed, -1: it did not
Q_ROWS = 8
Q_RECORD = 9  # 1: records are written
Q_WORK = 10
Q_OPENS = 11
Q_NEXTS = 12
Q_SEEKS = 13
Q_FAILED_REGIONS = 14  # regions whose path failed
Q_MARKS = 15  # address of a bit map of keys, all clear but for the marked ones; 0: there is none
Q_MARKS_WORDS = 16
Q_MARKS_BASE = 17  # key of its first bit
Q_MARKED_FROM = 18  # base range of the fixed participant that is marked; empty: none is
Q_MARKED_TO = 19
Q_HELD = 20  # number + 1 of the last region, inside of the tail, below which there was a success
REGISTERS = 21

MOVE_REGION = 0
MOVE_OPEN = 1
MOVE_ALIGN = 2
MOVE_NEXT = 3

# -- state: node rows -----------------------------------------------------------------
N_HIGH = 0
N_LOGGED = 1  # 1: the node's binding stands in the node log
NODE_FIELDS = 2

# -- state: cursor rows ---------------------------------------------------------------
C_KEYS = 0  # address of the base level's keys
C_POSITION = 1  # base range still ahead
C_END = 2
C_AT = 3  # base position of the key landed on, -1: the base lacks it
C_KEY = 4  # key landed on
C_SKIPPED = 5  # base keys passed over by the last seek
C_ACTIVE = 6  # runs with tuples under the prefix
C_FROM = 7  # record that is still growing
C_TO = 8
C_PENDING = 9
C_RUNS = 10  # per run of the version: range still ahead, and where the tuples of the key landed on end
CURSOR_RUN_FIELDS = 3

# -- log: stream rows, node log rows ------------------------------------------------------
S_LO = 0  # address of the interval's ends, int64 each
S_HI = 1
S_COUNT = 2
S_CAPACITY = 3
S_BEFORE = 4  # S_COUNT when the tail that is being searched was entered
STREAM_FIELDS = 5

L_NODES = (
    0  # address of int64 (bound keys + streams, capacity): binding, and each stream's record count before
)
L_COUNT = 1
L_CAPACITY = 2
L_DEPTH = 3  # number of bound keys
L_BEFORE = 4  # L_COUNT when the tail that is being searched was entered
NODE_LOG_FIELDS = 5

ROOM = 4  # free records per stream that a step needs

STATUS_DONE = 0
STATUS_FULL = 1  # the row buffer is full
STATUS_LOG_FULL = 2
STATUS_PAUSED = 3
