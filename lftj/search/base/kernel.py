"""The search: leapfrog triejoin as one compiled, resumable state machine.

One compilation serves all rules (LFTJ section 3; docs/design/engine.md section 3): the
records of a plan (:mod:`lftj.search.base.records`) say what to join.  :func:`search` walks the depths
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
from lftj.memory import view
from lftj.search.base.block import fill_block
from lftj.search.base.node import all_match, bind, open_node, times_multiplicity
from lftj.search.base.records import (
    BLOCK,
    FACTOR,
    MOVE_FLUSH,
    MOVE_NEXT,
    MOVE_OPEN,
    NODE,
    TAIL_COUNT,
    TAIL_EXISTS,
    cursor_at,
    factor_at,
    node_at,
    search_at,
)
from lftj.search.records import STATUS_DONE, STATUS_FULL, STATUS_OVERFLOW, STATUS_PAUSED


@kernel
def search(where, rows, weights, budget):
    """Run until done, out of room or out of budget; returns a STATUS_*.

    where: address of a Search; what it leads to is written.  rows: int64 (output columns, capacity), written
    from column ``rows`` of the Search on; weights: int64 (capacity,) or (0,) when weights are not asked for;
    budget: operations after which to pause.
    """
    run = search_at(where)
    run.work = 0
    while True:
        if run.move == MOVE_FLUSH:
            if not flush(run, rows, weights):
                return STATUS_FULL
        if run.depth < 0:
            return STATUS_DONE
        if run.work > budget:
            return STATUS_PAUSED
        node = node_at(run.nodes + run.depth * NODE)
        if run.move == MOVE_OPEN:
            open_depth(run, node)
        while node.next == node.n_matches and node.position < node.end and run.work <= budget:
            fill_block(run, node)
        if node.next < node.n_matches:
            status = use_matches(run, node, rows, weights)
            if status != STATUS_DONE:
                return status
        elif node.position == node.end:  # else paused between two blocks
            leave(run, node)


@part(forceinline=True)
def open_depth(search, node):
    """Open the node of the present depth."""
    open_node(search, node, search.depth)
    search.move = MOVE_NEXT
    if search.tail_kind == TAIL_COUNT and search.depth + 1 == search.depths and all_match(node):
        # counted without being listed: as if the whole range were one block
        node.n_matches, node.next = node.end, node.position
        node.position = node.end


@part(forceinline=True)
def leave(search, node):
    """The node has no further match: go back."""
    search.depth = node.back
    if search.tail_kind == TAIL_COUNT and node.back == search.tail - 1:
        search.move = MOVE_FLUSH


@part(forceinline=True)
def use_matches(search, node, rows, weights):
    """Bind the next match, or, at the last depth, emit or count those that wait; a STATUS_*."""
    if search.depth + 1 < search.depths:
        bind(search, node, search.depth)
        search.depth += 1
        search.move = MOVE_OPEN
    elif search.tail_kind == TAIL_EXISTS:
        if not emit_prefix(search, rows, weights, np.int64(1)):
            return STATUS_FULL
        search.depth = search.tail - 1
    elif search.tail_kind == TAIL_COUNT:
        weight = block_weight(search, node)
        if weight < 0 or search.weight > KEY_MAX - weight:
            return STATUS_OVERFLOW
        search.weight += weight
        node.next = node.n_matches
    elif search.writes:
        if not emit_block(search, node, rows, weights):
            return STATUS_OVERFLOW
        if node.next < node.n_matches:
            return STATUS_FULL
    else:
        search.total += node.n_matches - node.next
        node.next = node.n_matches
    return STATUS_DONE


# -- rows and weights --------------------------------------------------------------------------


@part
def match_weight(search, node, match):
    """Assignments that one match of the last walked depth stands for; -1: more than int64 holds."""
    weight = node.weight
    for number in range(search.n_factors):
        factor = factor_at(search.factors + number * FACTOR)
        if factor.inner:
            position = view(cursor_at(factor.parent).positions, BLOCK)[match]
            weight = times_multiplicity(factor, position, weight)
    return weight


@part(forceinline=True)
def block_weight(search, node):
    """Assignments that all unused matches of the last walked depth stand for; -1: overflow."""
    first, last = node.next, node.n_matches
    inner = False
    for number in range(search.n_factors):
        inner = inner or factor_at(search.factors + number * FACTOR).inner == 1
    if not inner:
        weight = node.weight
        if weight < 0 or weight > KEY_MAX // (last - first):
            return np.int64(-1)
        return weight * (last - first)
    total = np.int64(0)
    for match in range(first, last):
        weight = match_weight(search, node, match)
        if weight < 0 or total > KEY_MAX - weight:
            return np.int64(-1)
        total += weight
    return total


@part
def emit_block(search, node, rows, weights):
    """Write unused matches of the last walked depth as rows, as many as fit; False: a weight overflowed."""
    first, at = node.next, search.rows
    count = min(node.n_matches - first, rows.shape[1] - at)
    matches, keys = view(node.matches, BLOCK), view(search.keys, search.depths)
    outputs = view(search.outputs, search.n_outputs)
    for column in range(search.n_outputs):
        source = outputs[column]
        target = rows[column]
        if source + 1 == search.depths:
            for match in range(np.uint64(count)):
                target[np.uint64(at) + match] = matches[np.uint64(first) + match]
        else:
            key = keys[source]
            for match in range(np.uint64(count)):
                target[np.uint64(at) + match] = key
    if weights.shape[0]:
        for match in range(count):
            weight = match_weight(search, node, first + match)
            if weight < 0:
                return False
            weights[at + match] = weight
    node.next = first + count
    search.rows = at + count
    search.total += count
    return True


@part(forceinline=True)
def flush(search, rows, weights):
    """Write the prefix whose tail is counted, if anything was found there; False when there is no room."""
    if search.weight:
        if not emit_prefix(search, rows, weights, search.weight):
            return False
        search.weight = 0
    search.move = MOVE_NEXT
    return True


@part(forceinline=True)
def emit_prefix(search, rows, weights, weight):
    """Write the present binding of the emitted depths as one row; False when there is no room."""
    if search.writes:
        at = search.rows
        if at == rows.shape[1]:
            return False
        outputs, keys = view(search.outputs, search.n_outputs), view(search.keys, search.depths)
        for column in range(search.n_outputs):
            rows[column, at] = keys[outputs[column]]
        if weights.shape[0]:
            weights[at] = weight
        search.rows = at + 1
    search.total += 1
    return True
