"""The tail of a search: depths below which one success is enough (short circuit).

Where all existential variables stand behind the head variables, a binding of the
head variables holds as soon as one binding of the others is found: its
*witness* (docs/design/engine.md sections 3 and 5.5; ILFTJ 2.2.1).  The search of a tail then
ends, and of its records only the witness is kept, as points: nothing else can
make the binding fail.  A tail that fails keeps all its records.

Invariants

1. ``before`` <= ``count`` in the logs of the tail's depths: what was logged before
   the tail that is being searched, as far as it is in the buffers still.
2. After a success the tail's depths have logged, since then, one point for each stream: the witness.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from indices.compiled import part
from lftj.memory import view
from lftj.search.machine.cursor import flush
from lftj.search.machine.node import has_room
from lftj.search.records import CURSOR, NODE, cursor_at, node_at, node_log_at, stream_at


@part
def enter_tail(search):
    """Note what has been logged before the tail that is searched from now on."""
    for depth in range(search.tail, search.depths):
        node = node_at(search.nodes + depth * NODE)
        if node.log:
            log = node_log_at(node.log)
            log.before = log.count
            for where in range(node.participants, node.end, CURSOR):
                if cursor_at(where).stream:
                    stream = stream_at(cursor_at(where).stream)
                    stream.before = stream.count


@part
def tail_has_room(search):
    """Whether the logs of the tail's depths take a witness."""
    room = True
    for depth in range(search.tail, search.depths):
        room = room and has_room(node_at(search.nodes + depth * NODE))
    return room


@part
def keep_witness(search):
    """After a success: of all records of the tail keep the points of the witness, which the keys are now."""
    keys = view(search.keys, search.depths)
    for depth in range(search.tail, search.depths):
        node = node_at(search.nodes + depth * NODE)
        node.logged = 0
        if not node.log:
            continue
        log = node_log_at(node.log)
        log.count = log.before
        for where in range(node.participants, node.end, CURSOR):
            if cursor_at(where).stream:
                stream = stream_at(cursor_at(where).stream)
                stream.count = stream.before
        for where in range(node.participants, node.end, CURSOR):
            cursor = cursor_at(where)
            if cursor.stream:
                cursor.recording = 1
                cursor.record_low = keys[depth]
                cursor.record_high = keys[depth]
                flush(search, node, cursor)


@part
def same_tail(search, regions, one, other):
    """Whether two regions are both inside of a tail, below one binding of the head variables."""
    same = regions[one, 0] > search.tail and regions[other, 0] > search.tail
    for column in range(2, 2 + search.tail):
        same = same and regions[one, column] == regions[other, column]
    return same
