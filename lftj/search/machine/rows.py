"""What leaves a search: rows, the assignments that they stand for, and numbers of assignments.

A row has the keys of some depths and, where the search weighs, the number of assignments that it stands for.
Where assignments below some depths are counted into one row (``listed``), no key of those leaves: their
matches are counted.

Columns that are not walked count by *factors*: each match of an assignment stands for as many as there are
rows below the branches that it bound.

A number that int64 does not hold is -1, and stays.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.compiled import part
from indices.keys import KEY_MAX
from lftj.memory import view
from lftj.search.machine.cursor import led_to
from lftj.search.records import FACTOR, cursor_at, factor_at
from lftj.storage.patch import patch_places_at, table_row

# -- rows ------------------------------------------------------------------------------


@part(forceinline=True)
def take_matches(search, rows, start, count):
    """Let ``count`` matches of the last depth, which stand from row ``start`` on, be rows, or count them.

    Where they are counted their rows are free again.
    """
    if search.listed < search.depths:
        if search.n_factors:
            count_weighed(search, rows[search.scratch], start, count)
        else:
            search.weight += count
        return
    keys, outputs = view(search.keys, search.depths), view(search.outputs, search.n_outputs)
    for column in range(search.n_outputs):
        depth = outputs[column]
        if depth + 1 < search.depths:
            key = keys[depth]
            target = rows[column]
            for row in range(np.uint64(start), np.uint64(start + count)):
                target[row] = key
    if search.weighs:
        weigh_rows(search, rows, start, count)
    search.rows = start + count


@part(forceinline=True)
def emit(search, rows):
    """Write the whole binding as a row, or count it; the caller sees to room."""
    if search.listed < search.depths:
        search.weight = added(search.weight, search.outer)
        return
    write_binding(search, rows, search.outer)


@part(forceinline=True)
def emit_counted(search, rows):
    """Write the listed part of the binding with the assignments counted below it; the caller sees to room."""
    if search.listed < search.depths and search.weight:
        write_binding(search, rows, search.weight)
        search.weight = 0


@part(forceinline=True)
def write_binding(search, rows, weight):
    """Write the bound keys of the depths that are put out, and a weight where one is asked for."""
    at = search.rows
    keys, outputs = view(search.keys, search.depths), view(search.outputs, search.n_outputs)
    for column in range(search.n_outputs):
        rows[column, at] = keys[outputs[column]]
    if search.weighs:
        rows[search.n_outputs, at] = weight
    search.rows = at + 1


# -- numbers of assignments ------------------------------------------------------------


@part(forceinline=True)
def added(weight, more):
    """The sum of two numbers of assignments."""
    return np.int64(-1) if weight < 0 or more < 0 or weight > KEY_MAX - more else weight + more


@part(forceinline=True)
def times(weight, factor):
    """The product of two numbers of assignments, of which the second is greater than 0."""
    return np.int64(-1) if weight < 0 or weight > KEY_MAX // factor else weight * factor


@part(forceinline=True)
def begin_weights(search, all_bound):
    """Multiply the factors that are bound above the last depth, or, if that is too, all of them."""
    weight = np.int64(1)
    for number in range(search.n_factors):
        factor = factor_at(search.factors + number * FACTOR)
        if all_bound or not factor.inner:
            weight = times(weight, rows_below(factor, cursor_at(factor.parent).at))
    search.outer = weight


@part
def rows_below(factor, position):
    """Rows at ``position`` of a factor's parent."""
    parent = cursor_at(factor.parent)
    if parent.patch:
        places = patch_places_at(parent.patch)
        row, position = table_row(places, parent.in_patch, position)
        if row >= 0:
            place = row * places.levels + factor.column
            return view(places.counts, place + 1)[place]
    offsets = view(factor.offsets, position + 2)
    return offsets[position + 1] - offsets[position]


@part
def match_weight(search, key):
    """Assignments that a match of the last depth stands for."""
    weight = search.outer
    for number in range(search.n_factors):
        factor = factor_at(search.factors + number * FACTOR)
        if factor.inner:
            weight = times(weight, rows_below(factor, led_to(cursor_at(factor.parent), key)))
    return weight


@part(forceinline=True)
def has_inner(search):
    """Whether matches of the last depth stand for different numbers of assignments."""
    inner = False
    for number in range(search.n_factors):
        inner = inner or factor_at(search.factors + number * FACTOR).inner == 1
    return inner


@part
def count_weighed(search, keys, start, count):
    """Count the assignments that the matches keys[start:] stand for."""
    if count and not has_inner(search):
        search.weight = added(search.weight, times(search.outer, count))
    else:
        for match in range(start, start + count):
            search.weight = added(search.weight, match_weight(search, keys[match]))


@part
def weigh_rows(search, rows, start, count):
    """Write the weights of rows whose last key is in place."""
    keys, weights = rows[search.scratch], rows[search.n_outputs]
    inner = has_inner(search)
    for row in range(start, start + count):
        weights[row] = match_weight(search, keys[row]) if inner else search.outer


@part
def count_range(search, node, start, end):
    """Count all keys of a range of the leader as matches, without listing them; False: they have to be.

    start, end: the range, not empty.
    """
    weight, inner = search.outer, has_inner(search)
    if not inner:
        weight = times(weight, end - start)
    else:
        if search.n_factors > 1:
            return False
        factor = factor_at(search.factors)
        if cursor_at(factor.parent).patch:
            return False
        offsets = view(factor.offsets, end + 1)
        weight = times(weight, offsets[end] - offsets[start])
    search.weight = added(search.weight, weight)
    node.position = end
    node.nexts += 1
    search.work += 1
    return True
