"""The tail of the region search: depths below which one success is enough (short circuit).

Where all existential variables stand behind the head variables, a binding of the
head variables holds as soon as one binding of the others is found: its
*witness* (docs/design/engine.md sections 3 and 5.5; ILFTJ 2.2.1).  The search of a tail then
ends, and of its records only the witness is kept, as points: nothing else can
make the binding fail.  A tail that fails keeps all its records.

Invariants

1. L_BEFORE <= L_COUNT and L_BEFORE <= L_COUNT in the logs of the tail's depths: what was logged before
   the tail that is being searched, as far as it is in the buffers still.
2. After a success the tail's depths have logged, since then, one point for each stream: the witness.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from indices.compiled import part
from lftj.search.layout import (
    D_LOG,
    D_NODE,
    D_STREAM,
    D_STREAMS,
    DEPTH_FIELDS,
    H_DEPTH_ROWS,
    H_DEPTHS,
    H_KEYS,
    H_TAIL,
    I_CURSOR,
    I_STREAM,
    L_BEFORE,
    L_COUNT,
    N_LOGGED,
    P_FROM,
    P_PENDING,
    P_TO,
)
from lftj.search.regions.cursor import flush
from lftj.search.regions.node import has_room


@part
def enter_tail(plan, log):
    """Note what has been logged before the tail that is searched from now on."""
    for depth in range(plan[H_TAIL], plan[H_DEPTHS]):
        row = plan[H_DEPTH_ROWS] + depth * DEPTH_FIELDS
        if plan[row + D_LOG] >= 0:
            log[plan[row + D_LOG] + L_BEFORE] = log[plan[row + D_LOG] + L_COUNT]
        first = plan[row + D_STREAM]
        for place in range(first, first + plan[row + D_STREAMS]):
            stream = plan[plan[place] + I_STREAM]
            log[stream + L_BEFORE] = log[stream + L_COUNT]


@part
def tail_has_room(plan, log):
    """Whether the logs of the tail's depths take a witness."""
    for depth in range(plan[H_TAIL], plan[H_DEPTHS]):
        if not has_room(plan, log, plan[H_DEPTH_ROWS] + depth * DEPTH_FIELDS):
            return False
    return True


@part
def keep_witness(plan, state, log):
    """After a success: of all records of the tail keep the points of the witness, which the keys are now."""
    for depth in range(plan[H_TAIL], plan[H_DEPTHS]):
        row = plan[H_DEPTH_ROWS] + depth * DEPTH_FIELDS
        if plan[row + D_LOG] >= 0:
            log[plan[row + D_LOG] + L_COUNT] = log[plan[row + D_LOG] + L_BEFORE]
        state[plan[row + D_NODE] + N_LOGGED] = 0
        first = plan[row + D_STREAM]
        last = first + plan[row + D_STREAMS]
        for place in range(first, last):
            stream = plan[plan[place] + I_STREAM]
            log[stream + L_COUNT] = log[stream + L_BEFORE]
        key = state[plan[H_KEYS] + depth]
        for place in range(first, last):
            cursor = plan[plan[place] + I_CURSOR]
            state[cursor + P_PENDING] = 1
            state[cursor + P_FROM] = key
            state[cursor + P_TO] = key
            flush(plan, state, log, row, plan[place])


@part
def same_tail(plan, regions, one, other):
    """Whether two regions are both inside of a tail, below one binding of the head variables."""
    same = regions[one, 0] > plan[H_TAIL] and regions[other, 0] > plan[H_TAIL]
    for column in range(2, 2 + plan[H_TAIL]):
        same = same and regions[one, column] == regions[other, column]
    return same
