"""The full trace of an evaluation: every iterator operation of plain leapfrog triejoin.

The search of :mod:`lftj.kernel` takes shortcuts (blocks, stages, marks, shared
iterators), and which ones depends on sizes.  The trace is defined without them
(LFTJ section 3; ENGINE.md section 1): at each node all participants are opened,
then the leapfrog alternates seeks, and ``next`` follows a match.  So a change of
the data changes the trace only where the join really took another course; the
maintenance claims are measured in the edit distance of two such traces.

A row of the log: depth, iterator, operation, from, to, and the binding of the
depths before.  ``to`` is ``END`` when the iterator passed its last key.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lftj.compiled import kernel
from lftj.errors import LimitError, RuleError
from lftj.layout import (
    C_OPERATOR,
    CONDITION_FIELDS,
    D_BACK,
    D_CONDITION,
    D_CONDITIONS,
    D_FIRST,
    D_NEGATION,
    D_NEGATIONS,
    D_PARTICIPANTS,
    DEPTH_FIELDS,
    H_DEPTH_ROWS,
    H_DEPTHS,
    H_EMIT,
    H_KEYS,
    H_TAIL,
    I_CHILDREN,
    I_CURSOR,
    I_KEYS,
    KEY_MAX,
    KEY_MIN,
    OP_AT_MOST,
    P_BOUND,
    P_CURSOR,
    P_END,
    TAIL_EXISTS,
)
from lftj.memory import view
from lftj.node import bounds, condition_holds
from lftj.plan import Plan, compile_plan
from lftj.seek import child_range, gallop

if TYPE_CHECKING:
    from lftj.body import ColumnType
    from lftj.evaluation import Evaluation

OPEN, NEXT, SEEK = 0, 1, 2
OPERATIONS = ("open", "next", "seek")
END = KEY_MAX
"""What ``to`` holds where an iterator ended."""

LOG_FIELDS = 5


@kernel(_nrt=False)
def _write(plan, state, log, row, depth, iterator, operation, start, landed):
    """Append one operation; rows beyond the log's length are only counted."""
    if row < log.shape[0]:
        log[row, 0] = depth
        log[row, 1] = iterator
        log[row, 2] = operation
        log[row, 3] = start
        log[row, 4] = landed
        for before in range(depth):
            log[row, LOG_FIELDS + before] = state[plan[H_KEYS] + before]
    return row + 1


@kernel(_nrt=False)
def _key_at(plan, state, iterator):
    """The iterator's present key, END when it has passed its last."""
    cursor = plan[iterator + I_CURSOR]
    position, end = state[cursor + P_CURSOR], state[cursor + P_END]
    if position >= end:
        return END
    return view(plan[iterator + I_KEYS], end)[position]


@kernel(_nrt=False)
def _ended(plan, state, iterator):
    cursor = plan[iterator + I_CURSOR]
    return state[cursor + P_CURSOR] >= state[cursor + P_END]


@kernel(_nrt=False)
def _open(plan, state, iterator):
    """Put the iterator on its first key below its parent's bound key; returns that key, or END."""
    cursor = plan[iterator + I_CURSOR]
    start, end = child_range(plan, state, iterator)
    state[cursor + P_CURSOR] = start
    state[cursor + P_END] = end
    return _key_at(plan, state, iterator)


@kernel(_nrt=False)
def _seek(plan, state, iterator, key):
    """Move the iterator to the least key >= ``key``; returns it, or END."""
    cursor = plan[iterator + I_CURSOR]
    end = state[cursor + P_END]
    state[cursor + P_CURSOR] = gallop(view(plan[iterator + I_KEYS], end), state[cursor + P_CURSOR], end, key)
    return _key_at(plan, state, iterator)


@kernel(_nrt=False)
def _negations_allow(plan, state, depth, first, count, key, log, row):
    """Walk the negated atoms' iterators of a depth to ``key``; whether none is complete, and the log's length."""
    allowed = True
    for place in range(first, first + count):
        iterator = plan[place]
        _open(plan, state, iterator)
        held = False
        if not _ended(plan, state, iterator):
            landed = _seek(plan, state, iterator, key)
            row = _write(plan, state, log, row, depth, iterator, SEEK, key, landed)
            held = landed == key and not _ended(plan, state, iterator)
        cursor = plan[iterator + I_CURSOR]
        state[cursor + P_BOUND] = state[cursor + P_CURSOR] if held else np.int64(-1)
        if held and plan[iterator + I_CHILDREN] == 0:
            allowed = False
    return allowed, row


@kernel(_nrt=False)
def _accept(plan, state, depth, at, key, log, row):
    """Bind ``key`` when conditions and negated atoms allow it; whether they do, and the log's length."""
    condition = plan[at + D_CONDITION]
    for _ in range(plan[at + D_CONDITIONS]):
        if plan[condition + C_OPERATOR] > OP_AT_MOST and not condition_holds(plan, state, condition, key):
            return False, row
        condition += CONDITION_FIELDS
    allowed, row = _negations_allow(plan, state, depth, plan[at + D_NEGATION], plan[at + D_NEGATIONS], key, log, row)
    if allowed:
        state[plan[H_KEYS] + depth] = key
        first = plan[at + D_FIRST]
        for place in range(first, first + plan[at + D_PARTICIPANTS]):
            cursor = plan[plan[place] + I_CURSOR]
            state[cursor + P_BOUND] = state[cursor + P_CURSOR]
    return allowed, row


@kernel(_nrt=False)
def _open_ring(plan, state, depth, at, low, ring, log, row):
    """Open all participants of a node and sort them by key; whether none ended, and the log's length."""
    first = plan[at + D_FIRST]
    found = True
    for place in range(plan[at + D_PARTICIPANTS]):
        iterator = plan[first + place]
        landed = _open(plan, state, iterator)
        row = _write(plan, state, log, row, depth, iterator, OPEN, KEY_MIN, landed)
        if landed < low:
            landed = _seek(plan, state, iterator, low)
            row = _write(plan, state, log, row, depth, iterator, SEEK, low, landed)
        found = found and not _ended(plan, state, iterator)
        to = place
        while to > 0 and _key_at(plan, state, ring[to]) > landed:
            ring[to + 1] = ring[to]
            to -= 1
        ring[to + 1] = iterator
    ring[0] = 0
    return found, row


@kernel(_nrt=False)
def _leapfrog(plan, state, depth, count, high, ring, log, row):
    """Leapfrog search (LFTJ 3.1) from the ring's present state: whether all agree on a key <= high, log's length."""
    highest = _key_at(plan, state, ring[1 + (ring[0] + count - 1) % count])
    while highest <= high:
        iterator = ring[1 + ring[0]]
        if _key_at(plan, state, iterator) == highest:
            return True, row
        sought = highest
        highest = _seek(plan, state, iterator, sought)
        row = _write(plan, state, log, row, depth, iterator, SEEK, sought, highest)
        if _ended(plan, state, iterator):
            return False, row
        ring[0] = (ring[0] + 1) % count
    return False, row


@kernel(_nrt=False)
def trace_search(plan, state, rings, log):
    """Plain leapfrog triejoin; returns the number of operations, of which the first ones are in ``log``.

    rings: int64 (depths, 1 + participants): per depth the place in the ring, then its iterators by key.
    log: int64 (rows, LOG_FIELDS + depths).
    """
    row = 0
    depth = np.int64(0)
    opening = True
    while depth >= 0:
        at = plan[H_DEPTH_ROWS] + depth * DEPTH_FIELDS
        count = plan[at + D_PARTICIPANTS]
        ring = rings[depth]
        low, high = bounds(plan, state, depth, at)
        found = low <= high
        if found and count == 0:
            found = opening  # a depth without participants has one key
        elif found and opening:
            found, row = _open_ring(plan, state, depth, at, low, ring, log, row)
        elif found:
            iterator = ring[1 + ring[0]]
            before = _key_at(plan, state, iterator)
            state[plan[iterator + I_CURSOR] + P_CURSOR] += 1
            row = _write(plan, state, log, row, depth, iterator, NEXT, before, _key_at(plan, state, iterator))
            found = not _ended(plan, state, iterator)
            ring[0] = (ring[0] + 1) % count
        key = low
        if found and count > 0:
            found, row = _leapfrog(plan, state, depth, count, high, ring, log, row)
            key = _key_at(plan, state, ring[1 + ring[0]])
        if found:
            opening = False
            held, row = _accept(plan, state, depth, at, key, log, row)
            if held and depth + 1 < plan[H_DEPTHS]:
                depth += 1
                opening = True
            elif held and plan[H_TAIL] == TAIL_EXISTS:
                depth = plan[H_EMIT] - 1
        else:
            depth = plan[at + D_BACK]
            opening = False
    return row


def trace_codes(plan: Plan, limit: int) -> np.ndarray:
    """The log of a plan, int64 (operations, LOG_FIELDS + depths), in codes.

    Raises LimitError when there are more than ``limit`` operations.
    """
    if plan.empty or not plan.depths:
        return np.empty((0, LOG_FIELDS + plan.depths), dtype=np.int64)
    rows = 1 << 12
    while True:
        log = np.zeros((min(rows, limit), LOG_FIELDS + plan.depths), dtype=np.int64)
        rings = np.zeros((plan.depths, 2 + len(plan.iterator_names)), dtype=np.int64)
        wanted = trace_search(plan.memory, plan.new_state(), rings, log)
        if wanted <= len(log):
            return log[:wanted]
        if wanted > limit:
            raise LimitError(
                f"the trace has {wanted:,} operations, more than limit={limit:,}: take a smaller input or a higher limit"
            )
        rows = wanted


def trace(evaluation: Evaluation, name: str, limit: int) -> pa.Table:
    """The trace of one head's only body as a table.

    Columns: ``depth`` (1 for the first key variable), ``binding`` (``a=1, b=2``: the node), ``atom``, ``level``
    (0-based), ``operation`` (open, next, seek), ``from`` and ``to``: keys as text, ``from`` NULL for an open,
    ``to`` NULL where the iterator ended.
    """
    from lftj.evaluation import wanted_variables

    rules = evaluation.rules_of(name)
    if len(rules) != 1 or len(rules[0][0].bodies) != 1:
        raise RuleError(f"{name} has several bodies; a trace is of one rule without disjunction")
    rule, head = rules[0]
    run = evaluation.plan_body(rule, head, rule.bodies[0], wanted_variables(head), counted=False)
    problem = run.lowered.problem
    plan = compile_plan(problem, run.plan.order, write=True, share=False)
    log = trace_codes(plan, limit)
    return _table(run.body.types, plan, log)


def _table(types: dict[str, ColumnType], plan: Plan, log: np.ndarray) -> pa.Table:
    """The log with names and values for codes."""
    labels = plan.problem.labels

    def texts(codes: np.ndarray, name: str) -> list[str | None]:
        """Codes of a variable as text; END as None."""
        if name in labels:
            return [None if code == END else labels[name] if code == pinned[name] else str(code) for code in codes]
        type_ = types[name]
        known = np.unique(codes[(codes != END) & (codes != KEY_MIN)])
        shown = dict(zip(known.tolist(), type_.domain.decode(known, type_.arrow).to_pylist(), strict=True))
        return [str(shown[code]) if code in shown else None for code in codes.tolist()]

    pinned = {c.left: c.offset for c in plan.problem.conditions if c.left in labels}
    depths = log[:, 0]
    start = np.full(len(log), None, dtype=object)
    landed = np.full(len(log), None, dtype=object)
    binding = np.full(len(log), "", dtype=object)
    for depth, name in enumerate(plan.order):
        here = depths == depth
        start[here] = texts(log[here, 3], name)
        landed[here] = texts(log[here, 4], name)
        below = depths > depth
        joint = np.where(binding[below] == "", "", ", ")
        bound = np.array(texts(log[below, LOG_FIELDS + depth], name), dtype=object)
        binding[below] = binding[below] + joint + f"{labels.get(name, name)}=" + bound
    return pa.table(
        {
            "depth": pa.array(depths + 1, pa.int32()),
            "binding": pa.array(binding, pa.string()),
            "atom": pa.array([plan.iterator_names[i][0] for i in log[:, 1]], pa.string()),
            "level": pa.array([plan.iterator_names[i][1] for i in log[:, 1]], pa.int32()),
            "operation": pa.array([OPERATIONS[i] for i in log[:, 2]], pa.string()),
            "from": pa.array(start, pa.string()),
            "to": pa.array(landed, pa.string()),
        }
    )
