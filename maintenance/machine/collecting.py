"""The rows of a commit: a relation's change, and what JOINs and RANGEs collect for the head behind them."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from lftj.memory import view
from lftj.storage.signed_rows import _net
from maintenance.machine.computing import ASKS, FAILS, PASSES, run
from maintenance.machine.records import ASKED, DONE, LEFT, relation_at, rows_at


@part(makes_arrays=True)
def take(relation, rows, weights):
    """Let these be a relation's change; LEFT where there are too many.  rows: int64 (arity, n)."""
    n, room = len(weights), relation.room
    if n > room:
        return LEFT
    columns, kept = view(relation.rows, relation.arity * room), view(relation.weights, n)
    for column in range(relation.arity):
        for row in range(n):
            columns[column * room + row] = rows[column, row]
    for row in range(n):
        kept[row] = weights[row]
    relation.changed = n
    return DONE


@part(makes_arrays=True)
def collect(program, found, weights, its):
    """Put rows to those collected, as ``its`` has them.

    LEFT where there are too many, or one fails; ASKED where one asks.
    """
    n, at, room = len(weights), program.collected, program.room
    if at + n > room:
        return LEFT
    places, columns = view(its.places, its.n_places), view(program.rows, its.columns * room)
    kept = view(program.weights, room)
    if its.registers == 0:
        for column in range(its.columns):
            for row in range(n):
                columns[column * room + at + row] = found[places[column], row]
        for row in range(n):
            kept[at + row] = weights[row]
        program.collected = at + n
        return DONE
    registers, wanted = view(its.registers, its.n_registers), view(its.wanted, its.columns)
    for row in range(n):
        for place in range(its.n_places):
            registers[place] = found[places[place], row]
        end = run(its.code, its.n_instructions, registers)
        if end == FAILS:
            return LEFT
        if end == ASKS:
            return ASKED
        if end == PASSES:
            for column in range(its.columns):
                columns[column * room + at] = registers[wanted[column]]
            kept[at] = weights[row]
            at += 1
    program.collected = at
    return DONE


@part(makes_arrays=True)
def gather(program, op):
    """GATHER: collect a relation's change."""
    relation = relation_at(op.relation)
    n, room = relation.changed, relation.room
    if n == 0:
        return DONE
    columns, weights = view(relation.rows, relation.arity * room), view(relation.weights, n)
    return collect(program, columns.reshape((relation.arity, room)), weights, rows_at(op.rows))


@part(makes_arrays=True)
def collected(program, n_columns):
    """The net rows of those collected, which are none then: int64 (columns, n), and weights."""
    n, room = program.collected, program.room
    columns, given = view(program.rows, n_columns * room), view(program.weights, n)
    rows, weights = np.empty((n_columns, n), np.int64), np.empty(n, np.int64)
    for column in range(n_columns):
        for row in range(n):
            rows[column, row] = columns[column * room + row]
    for row in range(n):
        weights[row] = given[row]
    program.collected = 0
    if n > 1:
        rows, weights = _net(rows, weights)
    return rows, weights
