"""The full trace of an evaluation: every iterator operation of plain leapfrog triejoin.

The search of :mod:`lftj.search.machine.search` takes shortcuts (blocks, stages, marks, shared
iterators), and which ones depends on sizes.  The trace is defined without them
(LFTJ section 3; docs/design/engine.md section 1), so a change of the data changes it only
where the join really took another course; the maintenance claims are measured
in the edit distance of two such traces.

What is logged at one node, in this order:

* every participant's ``open``, and where it lands below the node's lower bound
  (comparisons and literals put bounds on keys) its ``seek`` to that bound;
* the leapfrog: participants take turns in the order of the keys that they landed on (those on one key as
  they were opened): a ``seek`` of the least participant to the greatest key, until
  all agree (a match), one has ended, or the greatest key is above the node's
  upper bound;
* at a match, for every negated atom with a column here whose branch is there:
  its ``seek`` to the key;
* the ``next`` of the participant whose turn it is, once the search is back from
  the depths below the match; then the leapfrog goes on.

A node opens its participants in one order, that of
:meth:`lftj.search.outline.Outline.opening`.  The search keeps to the same turns
(:mod:`lftj.search.machine.node`), so what it records exactly is what this trace is sensitive to.

A node whose bounds leave no key does nothing.  A body that has no assignment
whatever the order has no trace: an atom that no tuple fits, a literal that does
not occur.  For an aggregate all assignments are walked, else existential
variables short-circuit as in the search.

The walk is over plans, cursors and rings of the search, its operations are those of
:mod:`lftj.search.machine.cursor`; when which of them comes is said here, without the search's shortcuts.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indices.compiled import kernel, part
from indices.keys import KEY_MAX, KEY_MIN
from indices.records import WORD
from lftj.errors import LimitError, RuleError
from lftj.memory import address, view
from lftj.search.conditions import condition_bounds, filters_hold
from lftj.search.machine.cursor import bind_indexes, hide_branch, open_cursor, seek
from lftj.search.machine.node import give_turn
from lftj.search.queries.plan import BoundPlan, compile_plan
from lftj.search.records import CURSOR, NODE, cursor_at, node_at, search_at
from lftj.values.dictionary import DECIMAL
from lftj.values.domain import NULL_CODE
from lftj.values.kinds import kind, plain_type
from lftj.values.spelling import spelled

if TYPE_CHECKING:
    from lftj.evaluation.evaluation import Evaluation
    from lftj.search.problem import JoinProblem
    from lftj.values.schema import ColumnType

OPEN, NEXT, SEEK = 0, 1, 2
OPERATIONS = ("open", "next", "seek")

# -- a row of the log ----------------------------------------------------------
G_DEPTH = 0
G_CURSOR = 1  # item at which it begins in the plan
G_OPERATION = 2
G_FROM = 3  # key that the iterator stood on (next) or sought (seek); nothing of an open
G_TO = 4  # key that it landed on, KEY_MAX when it ended
G_ENDED = 5  # 1: it passed its last key
G_BINDING = 6  # first of the keys bound at the depths before

SCHEMA = pa.schema(
    {
        "depth": pa.int32(),
        "binding": pa.string(),
        "atom": pa.string(),
        "level": pa.int32(),
        "operation": pa.string(),
        "from": pa.string(),
        "to": pa.string(),
    }
)
"""Of the table that :func:`trace` makes."""

ROWS_AT_ONCE = 1 << 18
"""Operations that are turned into text together."""


@part
def _move(search, where, operation, start, key, log, row):
    """Let the Cursor at an address seek ``key``, and append that as an operation that comes from ``start``.

    Returns whether it has landed, and the log's length: rows beyond its room are only counted.
    """
    cursor = cursor_at(where)
    landed = seek(cursor, key, np.int64(0))
    if row < log.shape[0]:
        log[row, G_DEPTH] = search.depth
        log[row, G_CURSOR] = where
        log[row, G_OPERATION] = operation
        log[row, G_FROM] = start
        log[row, G_TO] = cursor.key
        log[row, G_ENDED] = not landed
        keys = view(search.keys, search.depth)
        for before in range(search.depth):
            log[row, G_BINDING + before] = keys[before]
    return landed, row + 1


@part
def _open(search, node, low, log, row):
    """Open all participants of a node and lead them to ``low``; whether none ended, and the log's length."""
    found = True
    for number in range(node.n_participants):
        where = node.participants + number * CURSOR
        cursor = cursor_at(where)
        open_cursor(cursor)
        landed, row = _move(search, where, OPEN, KEY_MIN, KEY_MIN, log, row)
        if landed and cursor.key < low:
            landed, row = _move(search, where, SEEK, low, low, log, row)
        found = found and landed
        give_turn(node, number, where)
    node.turn = 0
    return found, row


@part
def _align(search, node, log, row):
    """Leapfrog search (LFTJ 3.1) on from where the participants stand.

    Returns whether all agree on a key that is not above the node's, and the log's length.
    """
    count = node.n_participants
    ring = view(node.ring, count)
    greatest = cursor_at(ring[(node.turn + count - 1) % count]).key
    while greatest <= node.high:
        where = ring[node.turn]
        if cursor_at(where).key == greatest:
            return True, row
        landed, row = _move(search, where, SEEK, greatest, greatest, log, row)
        if not landed:
            break
        greatest = cursor_at(where).key
        node.turn = (node.turn + 1) % count
    return False, row


@part
def _next(search, node, log, row):
    """After a match, move the participant on whose turn it is; whether it has a key, and the log's length."""
    count = node.n_participants
    where = view(node.ring, count)[node.turn]
    node.turn = (node.turn + 1) % count
    cursor = cursor_at(where)
    cursor.position += 1
    return _move(search, where, NEXT, cursor.key, KEY_MIN, log, row)


@part
def _accept(search, node, key, log, row):
    """Whether conditions and negated atoms, which are led to it, let ``key`` pass; and the log's length."""
    if not filters_hold(search.keys, node.conditions, node.n_conditions, key):
        return False, row
    allowed = True
    for where in range(node.negations, node.end, CURSOR):
        negation = cursor_at(where)
        open_cursor(negation)
        held = False
        if negation.position < negation.end:
            landed, row = _move(search, where, SEEK, key, key, log, row)
            held = landed and negation.key == key
        if not held:
            hide_branch(negation)
        elif negation.is_last:
            allowed = False
    return allowed, row


@kernel
def trace_search(where, indexes, log):
    """Plain leapfrog triejoin; returns the number of operations, of which the first ones are in ``log``.

    It stops soon after the log is full: then the number is above the log's length, and says no more.

    where: address of a Search.  indexes: int64, the address of the memory of each index.  log: int64
    (rows, G_BINDING + depths).
    """
    search = search_at(where)
    bind_indexes(search, indexes)
    row = 0
    opening = True
    while search.depth >= 0 and row <= log.shape[0]:
        depth = search.depth
        node = node_at(search.nodes + depth * NODE)
        low, high = condition_bounds(search.keys, node.conditions, node.n_conditions, KEY_MIN, KEY_MAX)
        node.high, key = high, low
        found = low <= high
        if found and node.n_participants == 0:
            found = opening  # a depth without participants has one key
        elif found:
            if opening:
                found, row = _open(search, node, low, log, row)
            else:
                found, row = _next(search, node, log, row)
            if found:
                found, row = _align(search, node, log, row)
            key = cursor_at(node.participants).key
        opening = False
        if not found:
            search.depth = node.back
            continue
        held, row = _accept(search, node, key, log, row)
        if held:
            view(search.keys, search.depths)[depth] = key
            if depth + 1 < search.depths:
                search.depth, opening = depth + 1, True
            elif search.tail < search.depths:
                search.depth = search.tail - 1
    return row


def trace_codes(plan: BoundPlan, limit: int) -> np.ndarray:
    """The log of a plan in codes: int64 (operations, G_BINDING + depths).

    Raises LimitError when there are more than ``limit`` operations.
    """
    rows = min(1 << 12, limit)
    while not plan.empty and plan.depths:
        memory = plan.new_memory()
        where = address(memory)
        log = np.zeros((rows, G_BINDING + plan.depths), dtype=np.int64)
        wanted = trace_search(where, plan.versions, log)
        if wanted <= rows:
            log[:, G_CURSOR] = (log[:, G_CURSOR] - where) // WORD
            return log[:wanted]
        if rows == limit:
            raise LimitError(
                f"the trace has more than limit={limit:,} operations: take a smaller input or a higher limit"
            )
        rows = min(rows << 4, limit)
    return np.empty((0, G_BINDING + plan.depths), dtype=np.int64)


def trace(evaluation: Evaluation, limit: int) -> pa.Table:
    """The trace of the target's only body as a table.

    Columns: ``depth`` (1 for the first key variable), ``binding`` (``a=1, b=2``: the node; a literal stands
    for itself), ``atom``, ``level`` (0-based), ``operation`` (open, next, seek), ``from`` and ``to``: keys as
    text, ``from`` NULL for an open, ``to`` NULL where the iterator ended.
    """
    evaluation.derive()
    if limit < 0:
        raise ValueError(f"limit is a number of operations, not {limit}")
    name = evaluation.request.target
    rules = evaluation.program.rules_of(name)
    if len(rules) != 1 or len(rules[0][0].bodies) != 1:
        raise RuleError(f"{name} has several bodies; a trace is of one rule without disjunction")
    rule, head = rules[0]
    run = evaluation.search_of(rule, head)
    lowered, searched = run.planned.lowered, run.planned.plan
    tables = lowered.tables(evaluation.relations)
    plan = compile_plan(searched.problem, searched.order, write=True, share=False).bind(tables)
    if lowered.empty is not None:
        return SCHEMA.empty_table()
    log = trace_codes(plan, limit)
    pieces = [_table(plan, log[at : at + ROWS_AT_ONCE]) for at in range(0, len(log), ROWS_AT_ONCE)]
    return pa.concat_tables([SCHEMA.empty_table(), *pieces])


def _table(plan: BoundPlan, log: np.ndarray) -> pa.Table:
    """A part of the log with names and values for codes."""
    columns: dict[str, list[pa.Array]] = {"binding": [], "from": [], "to": []}
    rows_by_depth = [np.flatnonzero(log[:, G_DEPTH] == depth) for depth in range(plan.depths)]
    types = [_type_of(plan.problem, name) for name in plan.order]
    for depth, rows in enumerate(rows_by_depth):
        here = log[rows]
        columns["from"].append(_texts(types[depth], here[:, G_FROM], here[:, G_OPERATION] == OPEN))
        columns["to"].append(_texts(types[depth], here[:, G_TO], here[:, G_ENDED] == 1))
        pieces = [pa.array([""] * len(rows), pa.string())]
        for before, name in enumerate(plan.order[:depth]):
            values = _texts(types[before], here[:, G_BINDING + before])
            comma = ", " if before else ""
            named = comma if name in plan.problem.labels else f"{comma}{name}="
            pieces.append(pc.binary_join_element_wise(named, values, ""))
        columns["binding"].append(pc.binary_join_element_wise(*pieces, ""))
    names = [plan.plan.layout.names[cursor] for cursor in log[:, G_CURSOR].tolist()]
    columns["depth"] = [pa.array(log[:, G_DEPTH] + 1, pa.int32())]
    columns["atom"] = [pa.array([atom for atom, _ in names], pa.string())]
    columns["level"] = [pa.array([level for _, level in names], pa.int32())]
    columns["operation"] = [pa.array([OPERATIONS[i] for i in log[:, G_OPERATION].tolist()], pa.string())]
    in_order = pa.array(np.argsort(np.concatenate(rows_by_depth)))
    joined = {name: pa.concat_arrays(parts) for name, parts in columns.items()}
    for name in ("binding", "from", "to"):
        joined[name] = joined[name].take(in_order)
    return pa.table([joined[name] for name in SCHEMA.names], schema=SCHEMA)


def _type_of(problem: JoinProblem, name: str) -> ColumnType:
    """The type of the first column that a variable, or the variable of a literal, stands for."""
    return next(
        atom.schema.columns[column].type
        for atom in (*problem.atoms, *problem.negations)
        for column, variable in zip(atom.columns, atom.variables, strict=True)
        if variable == name
    )


def _texts(type_: ColumnType, codes: np.ndarray, missing: np.ndarray | None = None) -> pa.Array:
    """Codes as text; NULL where ``missing``."""
    there = codes if missing is None else codes[~missing]
    known = np.unique(there)
    return _spelled(known, type_).take(pa.array(np.searchsorted(known, codes), mask=missing))


def _spelled(codes: np.ndarray, type_: ColumnType) -> pa.Array:
    """Codes as text, also of keys that the column's own type is too narrow for, which another's may be."""
    domain = type_.domain
    if domain.keeps_null and len(codes) and codes.min() <= NULL_CODE + 1:  # and what lies beside it
        beside = codes[codes <= NULL_CODE + 1]
        names = ["NULL" if code == NULL_CODE else "not NULL" for code in beside.tolist()]
        others = _spelled(codes[len(beside) :], type_)
        return pa.concat_arrays([pa.array(names, pa.string()), others])
    if domain.name == "binary":
        values = domain.decode(codes, pa.binary()).to_pylist()
        return pa.array([f'x"{value.hex()}"' for value in values], pa.string())
    if domain.name == "decimal":
        digits = [format(value, "f") for value in domain.decode(codes, DECIMAL).to_pylist()]
        values = [text.rstrip("0").rstrip(".") if "." in text else text for text in digits]
        return pa.array(values, pa.string())
    if domain.name == "boolean":  # a strict bound may lie beside both
        values = [{0: "false", 1: "true"}.get(code, str(code)) for code in codes.tolist()]
        return pa.array(values, pa.string())
    values = domain.decode(codes, _widest(type_.arrow))
    if kind(values.type) == "list":
        return pa.array([spelled(values[place : place + 1]) for place in range(len(values))], pa.string())
    return values.cast(pa.string())


def _widest(arrow: pa.DataType) -> pa.DataType:
    """A plain type of the same domain that is too narrow for no value."""
    plain, name = plain_type(arrow), kind(arrow)
    if name == "list":
        return pa.large_list(_widest(plain.value_type))
    widest = {"integer": pa.int64(), "float": pa.float64(), "date": pa.date32(), "string": pa.string()}
    return {**widest, "binary": pa.binary(), "decimal": DECIMAL}.get(name, plain)
