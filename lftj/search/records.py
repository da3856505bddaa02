"""The memory of a search: records that name what is joined, and how far the search is.

Each search has one flat int64 array, a copy of the one that its plan wrote.  It begins with the
:class:`Search`; the nodes follow each other by depth, and behind them a depth's cursors: its participants
in the order in which they are opened, then its negations.  Records name each other by address, 0 for
nothing.

A *cursor* is one level of one index under one prefix of variables, of a participant or of a negation.
Atoms that read the same index along the same variables share it.

Invariant: what the plan has written, which stands first in each record, is never written by a search.
"""

from __future__ import annotations

from indices.records import Record, record_at
from lftj.storage.runs import MAX_RUNS


class Search(Record):
    """What all depths have in common."""

    depths: int  # number of walked depths
    nodes: int  # first Node; they follow each other
    keys: int  # list of the bound keys, by depth
    cursors: int  # first Cursor, and how many; they follow each other
    n_cursors: int
    tail: int  # first depth of the tail, below which one success is enough; `depths` where there is none
    listed: int  # depths that rows hold; if not all, assignments below a row are counted into its next column
    gap: int  # a cursor that seeks on by at most this many keys stays one record; 0: the trace's own records
    # -- how far it is ---------------------------------------------------------------------------
    depth: int
    move: int  # MOVE_*
    rows: int  # rows in the output buffer
    work: int  # operations in this call
    opens: int  # cursors opened
    nexts: int  # keys passed over by stepping
    seeks: int  # look-ups of a key
    weight: int  # assignments counted below the present prefix
    region: int  # number of the region
    floor: int  # depth at which the search of this region ends
    low: int  # limits of the keys at the floor, closed
    high: int
    valid: int  # leading depths whose cursors stand on the last region's path
    failed: int  # depth at which the last region's path failed, -1: it did not
    failed_regions: int  # regions whose path failed
    held: int  # number + 1 of the last region, inside of the tail, below which there was a success
    marks: int  # bit map of keys, all clear but for the marked ones, and its length; 0: there is none
    marks_words: int
    marks_first: int  # key of its first bit
    marked_from: int  # base range of the fixed participant that is marked; empty: none is
    marked_to: int
    marked: int  # how many keys are marked, -1: Cursor.marked says nothing
    paths: int  # first Path, one for each region; 0: none are asked for


class Node(Record):
    """The open node of a depth (docs/design/engine.md section 1)."""

    participants: int  # first Cursor, and how many
    n_participants: int
    negations: int  # the Cursors behind those of the participants, up to `end`
    end: int
    conditions: int  # first Condition (lftj.search.conditions), and how many
    n_conditions: int
    filters: int  # 1: a condition may refuse single keys
    lists_matches: int  # 1: last depth, with participants, and all of its matches are asked for
    fixed: int  # where `lists_matches`: number of the one that stays while the depth above varies; -1: none
    matches: int  # list of keys, SHORT_BLOCK + 1; 0 where nodes go step by step
    ring: int  # list of the participants, in the order in which they take turns
    log: int  # NodeLog, 0 where no cursor records
    # -- how far it is ---------------------------------------------------------------------------
    way: int  # WAY_*
    n_matches: int  # in the list
    next: int  # the next of them
    leader: int  # Cursor whose keys are tried
    position: int  # the next of these
    block: int  # how many to try before matches are used next
    high: int  # greatest key that may match
    logged: int  # 1: the node's binding stands in its log
    turn: int  # place in the ring of the participant whose turn it is


class Cursor(Record):
    """One iterator (LFTJ section 3.1) over a version of an index."""

    parent: int  # the Cursor one level up, 0 on level 0
    number: int  # number of the index
    level_number: int
    depth: int  # of the variable that it binds
    is_last: int  # 1: no cursor hangs below; of a negation: its atom is complete here
    is_fixed: int  # 1: its range stays while the depth above varies
    stream: int  # StreamLog, 0: nothing to record
    ranges: int  # first RunRange, MAX_RUNS of them
    # -- the version, written when the search begins ------------------------------------------------
    index: int  # Index (lftj.storage.version_memory)
    level: int  # its Level
    # -- where it stands ------------------------------------------------------------------------
    keys: int  # the level's base keys
    position: int  # position of the search, and one past the last
    end: int
    at: int  # position of the key landed on; -1: the base lacks it
    key: int  # key landed on
    moved: int  # base keys that the last seek moved on by; at least 1
    active: int  # runs with tuples under the prefix
    recording: int  # 1: a record is growing; its ends
    record_low: int
    record_high: int
    stop: int  # where none records: end of the range that is intersected
    marked: int  # of a fixed one where none records: 1 + start of its range that marks are of; 0: none


class RunRange(Record):
    """What a cursor has of one run of its version, half-open."""

    start: int  # what is still ahead
    stop: int
    end: int  # where the tuples of the key landed on end, which begin at `start`


class StreamLog(Record):
    """The records of a stream: intervals."""

    number: int  # of the stream
    count: int
    capacity: int
    before: int  # count when the tail that is being searched was entered
    lows: int  # ends of the intervals, lists
    highs: int


class NodeLog(Record):
    """The bindings of the nodes of a depth at which something recorded."""

    count: int
    capacity: int
    before: int  # as of streams
    bindings: int  # (bound keys + streams, capacity): the binding, each stream's record count before
    bound: int  # number of bound keys


class Path(Record):
    """Of a region that binds single values: what is asked and told of its path."""

    failed: int  # told: depth at which the path failed, `depths`: it held
    matched: int  # asked: number of the stream of a record that names the region, -1: there is none
    low: int  # asked: closed interval around the last coordinate, which such records hold
    high: int
    gap_low: int  # told: the part of it where one that has recorded it has no key; empty: nothing
    gap_high: int


search_at = record_at(Search)
node_at = record_at(Node)
cursor_at = record_at(Cursor)
range_at = record_at(RunRange)
stream_at = record_at(StreamLog)
node_log_at = record_at(NodeLog)
path_at = record_at(Path)

NODE = Node.BYTES
RANGE = RunRange.BYTES
PATH = Path.BYTES
CURSOR = Cursor.BYTES + MAX_RUNS * RANGE
"""Bytes of a cursor with its ranges, which stand behind it."""

SHORT_BLOCK = 128
"""Most leader keys tried at once."""

ROOM = 4
"""Free entries of a log that a step needs."""

MOVE_REGION = 0
MOVE_OPEN = 1
MOVE_ALIGN = 2
MOVE_NEXT = 3

WAY_STEPS = 0  # as the trace goes: lftj.search.regions.node
WAY_BLOCKS = 1  # lftj.search.regions.block
WAY_PLAIN = 2  # lftj.search.regions.plain
WAY_APART = 3  # lftj.search.regions.apart
WAY_EQUAL = 4  # no participants: an equality binds the key

STATUS_DONE = 0
STATUS_FULL = 1  # the output buffer is full
STATUS_PAUSED = 2  # the budget of operations is spent
STATUS_OVERFLOW = 3  # a weight exceeds int64
STATUS_LOG_FULL = 4  # so is a log
