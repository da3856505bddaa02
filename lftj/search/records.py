"""The memory of a search: records that name what is joined, and how far the search is.

Each search has one flat int64 array, a copy of the one that its plan wrote.  It begins with the
:class:`Search`; the nodes follow each other by depth, and behind them a depth's cursors: its participants
in the order in which they are opened, then its negations.  Records name each other by address, 0 for
nothing.

A *cursor* is one level of one index under one prefix of variables, of a participant or of a negation.
Atoms that read the same index along the same variables share it.

Two notions keep the work small:

* a *stage* of a depth is the intersection of participants that stay while depths above vary; it is kept as a
  list of keys and, where keys are dense, as *marks* (one bit per key);
* the *tail* is the depths below which one success is enough.

What a plan itself writes of records that name others are the fields of the type :class:`Named`.

Invariant: what the plan and its binding have written, which stands first in each record, is never written by
a search, but for the last stamp that was given out.
"""

from __future__ import annotations

from indices.records import Record, record_at
from lftj.storage.runs import MAX_RUNS


class Named(int):
    """Of a field by which a plan names another record or a list: the address of that, 0 for nothing."""


class Search(Record):
    """What all depths have in common."""

    depths: int  # number of walked depths
    nodes: Named  # first Node; they follow each other
    keys: Named  # list of the bound keys, by depth
    cursors: Named  # first Cursor, and how many; they follow each other
    n_cursors: int
    outputs: Named  # list of the depths that are columns of the rows, and how many
    n_outputs: int
    weighs: int  # 1: the column behind those has the number of assignments that a row stands for
    listed: int  # assignments below a binding of so many depths are counted into one row; `depths`: none are
    scratch: int  # column in which the keys of the last depth are listed
    factors: Named  # first Factor, and how many; they follow each other
    n_factors: int
    records: int  # 1: something is recorded
    runs: int  # 1: an index has later runs; written when the search begins
    tail: int  # first depth of the tail, below which one success is enough; `depths` where there is none
    counts_on: int  # 1: operations are counted on from one beginning to the next
    gap: int  # a cursor that seeks on by at most this many keys stays one record; 0: the trace's own records
    stamp: int  # last one given out, in this search and those before it in this memory
    # -- how far it is ---------------------------------------------------------------------------
    depth: int
    move: int  # MOVE_*
    rows: int  # rows in the output buffer
    work: int  # operations in this call, and after how many it pauses
    budget: int
    opens: int  # operations of all depths, at the end of a call (Node)
    nexts: int
    seeks: int
    weight: int  # assignments counted below the present prefix; -1: more than int64 holds
    outer: int  # product of the factors that are bound above the last depth; -1: more than int64 holds
    region: int  # number of the region
    floor: int  # depth at which the search of this region ends
    low: int  # limits of the keys at the floor, closed
    high: int
    valid: int  # leading depths whose cursors stand on the last region's path
    failed: int  # depth at which the last region's path failed, -1: it did not
    failed_regions: int  # regions whose path failed
    held: int  # number + 1 of the last region, inside of the tail, below which there was a success
    paths: int  # first Path, one for each region; 0: none are asked for


class Node(Record):
    """The open node of a depth (docs/design/engine.md section 1)."""

    participants: Named  # first Cursor, and how many
    n_participants: int
    negations: Named  # the Cursors behind those of the participants, up to `end`
    end: Named
    conditions: Named  # first Condition (lftj.search.conditions), and how many
    n_conditions: int
    filters: int  # 1: a condition may refuse single keys
    back: int  # depth to return to when the node has no further match; below the floor: the region is done
    lists_matches: int  # 1: last depth, with participants, and all of its matches are asked for
    matches: Named  # list of keys, SHORT_BLOCK + 1; 0 where nodes go step by step, or all matches are listed
    first_block: int  # leader keys tried before the first match is used
    stages: Named  # first Stage, and how many; they follow each other
    n_stages: int
    varying: (
        Named  # the Cursor, with nothing below it, that the depth above binds, where others are staged; 0
    )
    counts_below: (
        int  # 1: the depth below is the last, and nothing but the number of its matches is asked for
    )
    ring: Named  # list of the participants, in the order in which they take turns
    log: Named  # NodeLog, 0 where no cursor records
    # -- how far it is ---------------------------------------------------------------------------
    way: int  # WAY_*
    stamp: int  # number of the key bound here: differs for every binding of this depth
    staged: int  # how many of the stages take part
    others: int  # how many participants take part beside them and the leader
    n_matches: int  # in the list
    next: int  # the next of them
    leader: int  # Cursor whose keys are tried; 0: the last stage that takes part
    keys: int  # the leader's
    position: int  # the next of these, and one past the last
    stop: int
    block: int  # how many to try before matches are used next
    high: int  # greatest key that may match
    logged: int  # 1: the node's binding stands in its log
    turn: int  # place in the ring of the participant whose turn it is
    opens: int  # cursors opened
    nexts: int  # keys passed over by stepping, or listed
    seeks: int  # look-ups of a key


class Cursor(Record):
    """One iterator (LFTJ section 3.1) over a version of an index."""

    parent: Named  # the Cursor one level up, 0 on level 0
    number: int  # number of the index
    level_number: int
    depth: int  # of the variable that it binds
    is_last: int  # 1: nothing hangs below; of a negation: its atom is complete here
    leads: int  # 1: something hangs or counts below, which asks for its position
    staged: int  # number, from 1 on, of the first of the depth's stages that intersects it; 0: none does
    stream: Named  # StreamLog, 0: nothing to record
    ranges: Named  # first RunRange, MAX_RUNS of them
    # -- the version, written when the search begins ------------------------------------------------
    index: int  # Index (lftj.storage.version_memory)
    level: int  # its Level
    children: int  # the level's child offsets
    patch: int  # its PatchPlaces (lftj.storage.patch), 0 where there is no patch
    # -- where it stands ------------------------------------------------------------------------
    keys: int  # those that positions are of: the level's base keys, or those that its patch lists
    in_patch: int  # 1: the patch lists them
    position: int  # position of the search, and one past the last
    end: int
    at: int  # position of the key landed on; -1: the base lacks it
    key: int  # key landed on
    moved: int  # base keys that the last seek moved on by; at least 1
    active: int  # runs with tuples under the prefix
    recording: int  # 1: a record is growing; its ends
    record_low: int
    record_high: int
    stop: int  # end of the range that is intersected


class Stage(Record):
    """What stays of a depth's intersection while depths above vary (lftj.search.machine.stage)."""

    bound_at: Named  # Node that binds the last of its participants' parents; a new key there makes it stale
    list: int  # room for its keys; 0: they are one participant's own range
    marks: int  # bit map of its keys, and its length; 0: they are too sparse for marks
    marks_words: int
    marks_first: int  # key of the first bit
    cuts: int  # the lists that it has cut: first Cut, by position of the parent's key; 0: it cuts none
    room: int  # list of their keys, and its length
    room_length: int
    # -- what it holds ---------------------------------------------------------------------------
    stamp: int  # of the node `bound_at`, for which it was built; 0: never
    keys: int
    start: int  # half-open range of them
    end: int
    spent: int  # leader keys tried so far that it might have saved, for `spent_stamp`
    spent_stamp: int
    filled: int  # keys in the room that belong to lists cut for `cut_stamp`
    cut_stamp: int


class Cut(Record):
    """What a stage has of the list below one key of a participant's parent."""

    stamp: int  # of the stage, for which the list was met last
    start: int  # half-open range in the stage's room; start -1: it was met once, and not cut
    end: int


class Factor(Record):
    """Columns that are not walked but counted by multiplicity."""

    parent: Named  # Cursor of the level that they hang below
    inner: int  # 1 when that is bound at the last depth
    column: int  # of the counts of a patch's table
    offsets: int  # of its rows, by position in the parent's base level; written when the plan is bound


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


NAMING: dict[type[Record], tuple[str, ...]] = {
    kind: tuple(field for field, its in kind.__annotations__.items() if its == Named.__name__)
    for kind in (Search, Node, Cursor, Stage, Factor, StreamLog, NodeLog)
}
"""By kind the fields by which a plan names others."""

search_at = record_at(Search)
node_at = record_at(Node)
cursor_at = record_at(Cursor)
range_at = record_at(RunRange)
stage_at = record_at(Stage)
cut_at = record_at(Cut)
factor_at = record_at(Factor)
stream_at = record_at(StreamLog)
node_log_at = record_at(NodeLog)
path_at = record_at(Path)

NODE = Node.BYTES
STAGE = Stage.BYTES
CUT = Cut.BYTES
FACTOR = Factor.BYTES
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
MOVE_BEGIN = 4  # the next call begins anew, with the first region

WAY_STEPS = 0  # as the trace goes: lftj.search.machine.node
WAY_BLOCKS = 1  # lftj.search.machine.block
WAY_PLAIN = 2  # all matches in one loop: lftj.search.machine.plain
WAY_APART = 3  # lftj.search.machine.apart
WAY_EQUAL = 4  # no participants: an equality binds the key

STATUS_DONE = 0
STATUS_FULL = 1  # the output buffer is full
STATUS_PAUSED = 2  # the budget of operations is spent
STATUS_OVERFLOW = 3  # a weight exceeds int64
STATUS_LOG_FULL = 4  # so is a log
