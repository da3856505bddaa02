"""The two small runs before each published index, many and few, as the commit machine steps them.

Invariants

1. The published memory of an index has its version's runs, then many, then few, those that have tuples.
2. What a commit writes is not read before it is published: few of the other side, and the other memory.
3. Many changes only while it is moved to its spare copy, behind what is published.

Cost: of a commit that of few, ``spilled`` tuples and its own; every so many tuples that of many.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.memory import view
from lftj.storage.net_weights import surgeries
from lftj.storage.runs import C_AT, CURSOR_FIELDS, NEVER, _flat_run, _narrowed, add_up
from lftj.storage.signed_rows import _net, first_rows
from lftj.storage.version_memory import RUN, first_run, index_at, run_at
from maintenance.machine.records import DONE, FULL, layered_at, relation_at
from maintenance.strategies.surgery import _branches_of


@part
def memory_of(index, is_b):
    """The address of one of an index's memories."""
    return index.memory_b if is_b else index.memory_a


@part
def write_runs(index, is_b, few, n_few):
    """Let a memory have the runs of the version, many, and these ``few``."""
    memory = memory_of(index, is_b)
    n = index.runs
    if index.n_many > 0:
        run = run_at(first_run(memory) + n * RUN)
        run.rows, run.length = (index.many_b if index.many_is_b else index.many_a), index.n_many
        run.directory, run.first_keys = 0, 0
        n += 1
    if n_few > 0:
        run = run_at(first_run(memory) + n * RUN)
        run.rows, run.length, run.directory, run.first_keys = few, n_few, 0, 0
        n += 1
    index_at(memory).runs = n


@part(makes_arrays=True)
def changed_rows(relation, order, levels, equal, n_equal):
    """A relation's change in an index's order, net: int64 (levels, n), and the weights.

    order, equal: addresses of the column of each level, and of pairs of columns that have to agree.
    """
    n, room = relation.changed, relation.room
    columns, given = view(relation.rows, relation.arity * room), view(relation.weights, n)
    rows, weights = np.empty((levels, n), np.int64), np.empty(n, np.int64)
    places, pairs = view(order, levels), view(equal, 2 * n_equal)
    kept = 0
    for row in range(n):
        agrees = True
        for pair in range(n_equal):
            agrees = agrees and (
                columns[pairs[2 * pair] * room + row] == columns[pairs[2 * pair + 1] * room + row]
            )
        if agrees:
            for level in range(levels):
                rows[level, kept] = columns[places[level] * room + row]
            weights[kept] = given[row]
            kept += 1
    if kept < n:
        rows, weights = first_rows(rows, kept), weights[:kept].copy()
    if kept > 1:
        rows, weights = _net(rows, weights)
    return rows, weights


@part(makes_arrays=True)
def added(older, n_older, younger, n_younger, levels, out, room):
    """Add two runs up into ``out``; how many tuples are left, which are written where there is room for them.

    older, younger: flat arrays; out: the address of one.
    """
    most = n_older + n_younger
    flat = np.empty((levels + 1) * most + 1, np.int64)
    flat[levels * most] = 0
    cursor = np.zeros(CURSOR_FIELDS, np.int64)
    add_up(older, n_older, younger, n_younger, levels, cursor, NEVER, most, flat)
    n = cursor[C_AT]
    if n > room:
        return n
    narrow, written = _narrowed(flat, levels, most, n), view(out, (levels + 1) * n + 1)
    for place in range(len(narrow)):
        written[place] = narrow[place]
    return n


@part(makes_arrays=True)
def run_of(rows, n, levels):
    """The flat array of a run of ``n`` tuples at an address."""
    return view(rows, (levels + 1) * n + 1)


@part(makes_arrays=True)
def step_index(where):
    """Write the other side of an index, with its relation's change; DONE, or FULL."""
    index = layered_at(where)
    relation = relation_at(index.relation)
    if relation.changed == 0:
        return DONE
    rows, weights = changed_rows(relation, index.order, index.levels, index.equal, index.n_equal)
    if len(weights) == 0:
        return DONE
    flat = _flat_run(rows, weights, len(weights))
    if index.is_b:
        few, n_few, other = index.few_b, index.n_few_b, index.few_a
    else:
        few, n_few, other = index.few_a, index.n_few_a, index.few_b
    held = run_of(few, n_few, index.levels)
    n = added(held, n_few, flat, np.int64(len(weights)), index.levels, other, index.few_room)
    if n > index.few_room:
        index.asked_few = n
        return FULL
    if index.is_b:
        index.n_few_a = n
    else:
        index.n_few_b = n
    index.next_is_b = 1 - index.is_b
    write_runs(index, index.next_is_b, other, n)
    return DONE


@part(makes_arrays=True)
def publish_index(where):
    """Let the other side of an index be read; where few has many tuples put them to many; False: no room."""
    index = layered_at(where)
    index.is_b = index.next_is_b
    few, n_few = (index.few_b, index.n_few_b) if index.is_b else (index.few_a, index.n_few_a)
    if n_few <= index.spilled:
        return True
    older, spare = (index.many_b, index.many_a) if index.many_is_b else (index.many_a, index.many_b)
    many, latest = run_of(older, index.n_many, index.levels), run_of(few, n_few, index.levels)
    n = added(many, index.n_many, latest, n_few, index.levels, spare, index.many_room)
    if n > index.many_room:
        index.asked_many = n
        return False
    index.many_is_b, index.n_many = 1 - index.many_is_b, n
    index.n_few_a = index.n_few_b = 0
    write_runs(index, 0, np.int64(0), 0)
    write_runs(index, 1, np.int64(0), 0)
    return True


@part(makes_arrays=True)
def branches(join):
    """The branches that a relation's change is for a JOIN: int64 (bound, n), sorted, and their weights."""
    relation = relation_at(join.relation)
    rows, weights = changed_rows(relation, join.order, join.levels, join.equal, join.n_equal)
    if join.index != 0 and len(weights) > 0:
        index = layered_at(join.index)
        found = np.empty((3, rows.size), np.int64)
        n = surgeries(view(memory_of(index, index.next_is_b), 1), rows, weights, found[0], found[1], found[2])
        rows, weights = _branches_of(rows, first_rows(found, n), join.level)
    if join.bound <= join.level and len(weights) > 0:
        rows, weights = _net(rows[: join.bound].copy(), weights)
    return rows, weights
