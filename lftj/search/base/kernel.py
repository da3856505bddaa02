"""The search: leapfrog triejoin as one compiled, resumable state machine.

One compilation serves all rules (LFTJ section 3; docs/design/engine.md section 3): the
rows of :mod:`lftj.search.base.layout` say what to join.  :func:`search` walks the depths
in key order; at each it opens the node (:mod:`lftj.search.base.node`), binds its matches one
after the other and goes deeper.  It returns when the output buffers are full,
when its budget of operations is spent, or when it is done, and goes on where
it stopped when it is called again with the same state.

What it departs from in the paper: the iteration order inside a node (blocks of
the leader's keys instead of one leapfrog step at a time), and a match at the
last walked depth is a block of rows, not one row.

Invariants

1. Between two calls the state describes the search completely.
2. A row is emitted once; rows come in key order within one search.
3. After the last emitted depth either nothing is walked (TAIL_NONE), every
   assignment is counted into the row's weight (TAIL_COUNT), or the search below
   a row stops at its first success (TAIL_EXISTS; ILFTJ section 2.2.1).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import kernel, part
from indices.keys import KEY_MAX
from lftj.search.base.block import fill_block
from lftj.search.base.layout import (
    D_BACK,
    D_NODE,
    D_SLOT,
    DEPTH_FIELDS,
    F_INNER,
    F_PARENT,
    FACTOR_FIELDS,
    H_DEPTH_ROWS,
    H_DEPTHS,
    H_FACTORS,
    H_KEYS,
    H_N_FACTORS,
    H_N_OUTPUTS,
    H_OUTPUTS,
    H_TAIL,
    H_TAIL_KIND,
    H_WRITE,
    I_SLOT,
    MOVE_FLUSH,
    MOVE_NEXT,
    MOVE_OPEN,
    N_END,
    N_MATCHES,
    N_NEXT,
    N_POSITION,
    N_WEIGHT,
    R_DEPTH,
    R_MOVE,
    R_ROWS,
    R_TOTAL,
    R_WEIGHT,
    R_WORK,
    TAIL_COUNT,
    TAIL_EXISTS,
)
from lftj.search.base.node import all_match, bind, open_node, times_multiplicity
from lftj.search.records import STATUS_DONE, STATUS_FULL, STATUS_OVERFLOW, STATUS_PAUSED


@part
def match_weight(plan, state, node, match):
    """Assignments that one match of the last walked depth stands for; -1: more than int64 holds."""
    weight = state[node + N_WEIGHT]
    factor = plan[H_FACTORS]
    for _ in range(plan[H_N_FACTORS]):
        if plan[factor + F_INNER]:
            position = state[plan[plan[factor + F_PARENT] + I_SLOT] + match]
            weight = times_multiplicity(plan, state, factor, position, weight)
        factor += FACTOR_FIELDS
    return weight


@part(forceinline=True)
def block_weight(plan, state, node):
    """Assignments that all unused matches of the last walked depth stand for; -1: overflow."""
    first, last = state[node + N_NEXT], state[node + N_MATCHES]
    inner = False
    factor = plan[H_FACTORS]
    for _ in range(plan[H_N_FACTORS]):
        inner = inner or plan[factor + F_INNER] == 1
        factor += FACTOR_FIELDS
    if not inner:
        weight = state[node + N_WEIGHT]
        if first == last:
            return np.int64(0)
        if weight < 0 or weight > KEY_MAX // (last - first):
            return np.int64(-1)
        return weight * (last - first)
    total = np.int64(0)
    for match in range(first, last):
        weight = match_weight(plan, state, node, match)
        if weight < 0 or total > KEY_MAX - weight:
            return np.int64(-1)
        total += weight
    return total


@part
def emit_block(plan, state, depth, row, rows, weights):
    """Write unused matches of the last walked depth as rows, as many as fit; False: a weight overflowed."""
    node = plan[row + D_NODE]
    slot = plan[row + D_SLOT]
    first = state[node + N_NEXT]
    at = state[R_ROWS]
    count = min(state[node + N_MATCHES] - first, rows.shape[1] - at)
    for column in range(plan[H_N_OUTPUTS]):
        source = plan[plan[H_OUTPUTS] + column]
        target = rows[column]
        if source == depth:
            for match in range(np.uint64(count)):
                target[np.uint64(at) + match] = state[np.uint64(slot + first) + match]
        else:
            key = state[plan[H_KEYS] + source]
            for match in range(np.uint64(count)):
                target[np.uint64(at) + match] = key
    if weights.shape[0]:
        for match in range(count):
            weight = match_weight(plan, state, node, first + match)
            if weight < 0:
                return False
            weights[at + match] = weight
    state[node + N_NEXT] = first + count
    state[R_ROWS] += count
    state[R_TOTAL] += count
    return True


@part(forceinline=True)
def emit_prefix(plan, state, rows, weights, weight):
    """Write the present binding of the emitted depths as one row; False when there is no room."""
    if plan[H_WRITE]:
        at = state[R_ROWS]
        if at == rows.shape[1]:
            return False
        for column in range(plan[H_N_OUTPUTS]):
            rows[column, at] = state[plan[H_KEYS] + plan[plan[H_OUTPUTS] + column]]
        if weights.shape[0]:
            weights[at] = weight
        state[R_ROWS] = at + 1
    state[R_TOTAL] += 1
    return True


@kernel
def search(plan, state, rows, weights, budget):
    """Run until done, out of room or out of budget; returns a STATUS_*.

    plan, state: int64, C order, as lftj.search.base.layout says; only state is written.
    rows: int64 (output columns, capacity), written from column R_ROWS on; weights: int64 (capacity,)
    or (0,) when weights are not asked for; budget: operations after which to pause.
    """
    last = plan[H_DEPTHS] - 1
    tail, kind = plan[H_TAIL], plan[H_TAIL_KIND]
    depth = state[R_DEPTH]
    move = state[R_MOVE]
    state[R_WORK] = 0
    status = STATUS_DONE
    while True:
        if move == MOVE_FLUSH:  # the tail below a prefix is counted: its weight is known
            if state[R_WEIGHT]:
                if not emit_prefix(plan, state, rows, weights, state[R_WEIGHT]):
                    status = STATUS_FULL
                    break
                state[R_WEIGHT] = 0
            move = MOVE_NEXT
        if depth < 0:
            break
        if state[R_WORK] > budget:
            status = STATUS_PAUSED
            break
        row = plan[H_DEPTH_ROWS] + depth * DEPTH_FIELDS
        node = plan[row + D_NODE]
        if move == MOVE_OPEN:
            open_node(plan, state, depth, row)
            move = MOVE_NEXT
            if depth == last and kind == TAIL_COUNT and all_match(plan, state, row):
                # counted without being listed: as if the whole range were one block
                state[node + N_MATCHES] = state[node + N_END]
                state[node + N_NEXT] = state[node + N_POSITION]
                state[node + N_POSITION] = state[node + N_END]
        while (
            state[node + N_NEXT] == state[node + N_MATCHES] and state[node + N_POSITION] < state[node + N_END]
        ):
            fill_block(plan, state, row)
            if state[R_WORK] > budget:
                break
        if state[node + N_NEXT] == state[node + N_MATCHES]:
            if state[node + N_POSITION] < state[node + N_END]:
                continue  # paused between two blocks
            depth = plan[row + D_BACK]
            if kind == TAIL_COUNT and depth == tail - 1:
                move = MOVE_FLUSH
            continue
        if depth < last:
            bind(plan, state, depth, row)
            depth += 1
            move = MOVE_OPEN
        elif kind == TAIL_EXISTS:
            if not emit_prefix(plan, state, rows, weights, np.int64(1)):
                status = STATUS_FULL
                break
            depth = tail - 1
        elif kind == TAIL_COUNT:
            weight = block_weight(plan, state, node)
            if weight < 0 or state[R_WEIGHT] > KEY_MAX - weight:
                status = STATUS_OVERFLOW
                break
            state[R_WEIGHT] += weight
            state[node + N_NEXT] = state[node + N_MATCHES]
        elif plan[H_WRITE]:
            if not emit_block(plan, state, depth, row, rows, weights):
                status = STATUS_OVERFLOW
                break
            if state[node + N_NEXT] < state[node + N_MATCHES]:
                status = STATUS_FULL
                break
        else:
            state[R_TOTAL] += state[node + N_MATCHES] - state[node + N_NEXT]
            state[node + N_NEXT] = state[node + N_MATCHES]
    state[R_DEPTH] = depth
    state[R_MOVE] = move
    return status
