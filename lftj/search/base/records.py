"""The memory of a search: records that name what is joined, and how far the search is.

Each search has one flat int64 array.  It begins with a copy of the plan's records, the :class:`Search` first,
then the nodes by depth; behind the records stand the lists.  Records name each other by address, 0 for
nothing.

Three notions keep the work small:

* a *cursor* is one level of one index under one prefix of variables, of a participant or of a negation.
  Atoms that read the same index along the same variables share it;
* a *stage* of a depth is the intersection of those of its participants that are fixed while the
  depth before it varies; it is kept as a list of keys and, where keys are dense, as *marks* (one
  bit per key);
* the *tail* is the depths below which there is nothing to emit.

Invariant: what the plan and its binding have written, which stands first in each record, is never written by
a search.
"""

from __future__ import annotations

from indices.records import Record, record_at


class Search(Record):
    """What all depths have in common."""

    depths: int  # number of walked depths
    nodes: int  # first Node; they follow each other
    keys: int  # list of the bound keys, by depth
    tail: int  # first depth of the tail, `depths` where there is none
    tail_kind: int  # TAIL_*
    writes: int  # 1: rows are written; 0: only counted
    split: int  # depth whose keys are limited to low .. high
    factors: int  # first Factor, and how many; they follow each other
    n_factors: int
    outputs: int  # list of the depths that are written, and how many
    n_outputs: int
    # -- how far it is ---------------------------------------------------------------------------
    depth: int
    move: int  # MOVE_*
    rows: int  # rows in the output buffers
    work: int  # operations in this call
    low: int  # limits of the keys at `split`, closed
    high: int
    weight: int  # gathered below the present prefix
    total: int  # rows emitted so far
    stamp: int  # last one given out


class Node(Record):
    """The open node of a depth (docs/design/engine.md section 1)."""

    participants: int  # first Cursor: staged ones come first, in stage order
    negations: int  # the Cursors behind those of the participants, up to `negations_end`
    negations_end: int
    conditions: int  # first Condition (lftj.search.conditions), and how many
    n_conditions: int
    filters: int  # FILTERS_*: what a filter or a complete negation that drops matches has to move
    matches: int  # list of keys
    back: int  # depth to return to when the node has no further match; -1: the search ends
    stages: int  # first Stage, up to `stages_end`
    stages_end: int
    first_block: int  # leader keys tried before the first match is used
    # -- how far it is ---------------------------------------------------------------------------
    n_matches: int  # in the list
    next: int  # the next of them
    leader: int  # Cursor whose keys are tried; 0: the stage's list
    keys: int  # the leader's
    position: int  # the next of these, and one past the last
    end: int
    block: int  # how many to try before matches are used next
    stage: int  # in use, 0: none
    stage_position: int  # where the stage's list is when it is neither leader nor marked
    stamp: int  # number of the key bound here: differs for every binding of this depth
    weight: int  # last depth: product of the factors that are bound before it
    opens: int  # cursors opened
    nexts: int  # leader keys, listed and marked keys
    seeks: int  # look-ups of a key in another participant: gallop, rank table or mark


class Cursor(Record):
    """One iterator (LFTJ section 3.1) over a version of an index."""

    parent: int  # the Cursor one level up, 0 on level 0
    depth: int  # of the variable that it binds
    is_last: int  # 1: no cursor hangs below; of a negation: its atom is complete here
    positions: int  # list of positions of matches, 0 where nobody asks for them
    # -- the version, written when the plan is bound ----------------------------------------------
    base: int  # the base level's keys
    length: int  # of level 0: number of the root's keys
    children: int  # child offsets of the base level, 0 on the index's last level
    ranks: int  # int32 rank table, 0 where there is none
    first_key: int  # of the table's first entry
    spread: int  # number of keys that the table covers; it has one entry more
    patch: int  # PatchLevel (lftj.storage.patch), 0 where there is none
    # -- where it stands ------------------------------------------------------------------------
    keys: int  # those that positions are of
    in_patch: int  # 1: the patch lists them; 0: they are the base level's
    position: int  # position of the search, and one past the last
    end: int
    at: int  # position of the key bound, or landed on; -1: the list lacks it


class Stage(Record):
    """What stays of a depth's intersection while the depth above varies (lftj.search.base.stage)."""

    rest: int  # first Cursor that it does not intersect: all of the depth's before that one it does
    bound_at: int  # Node that binds the last of their parents; a new key there makes the stage stale
    list: int  # list of its keys; 0: it is one participant's own range
    marks: int  # bit map of its keys, and its length; 0: they are too sparse for marks
    marks_words: int
    marks_first: int  # key of the first bit
    # -- what it holds ---------------------------------------------------------------------------
    stamp: int  # of the node `bound_at`, for which it was built; 0: never
    keys: int
    start: int  # half-open range of them
    end: int
    spent: int  # leader keys tried so far that it might have saved, for `spent_stamp`
    spent_stamp: int


class Factor(Record):
    """Columns that are not walked but counted by multiplicity."""

    parent: int  # Cursor of the level that they hang below
    inner: int  # 1 when it is bound at the last walked depth
    offsets: int  # of its rows, by position in the parent's base level
    column: int  # of the counts of a patch's table


search_at = record_at(Search)
node_at = record_at(Node)
cursor_at = record_at(Cursor)
stage_at = record_at(Stage)
factor_at = record_at(Factor)

NODE = Node.BYTES
CURSOR = Cursor.BYTES
STAGE = Stage.BYTES
FACTOR = Factor.BYTES

BLOCK = 1024
"""Most leader keys tried at once, and the length of every list of matches."""

TAIL_NONE = 0  # the last walked depth is emitted
TAIL_COUNT = 1  # assignments below an emitted prefix are counted: its weight
TAIL_EXISTS = 2  # one assignment below an emitted prefix is enough

FILTERS_NONE = 0  # nothing drops matches
FILTERS_KEYS = 1  # matches are keys alone
FILTERS_POSITIONS = 2  # matches have positions too

MOVE_OPEN = 0
MOVE_NEXT = 1
MOVE_FLUSH = 2  # the tail below a prefix is counted
