"""The commit machine's kernel: one transaction, from what is staged to what is published.

Specification: docs/design/commit.md.

Invariants

1. Nothing that is published changes before all ops are through: each writes beside it.  Where one can't go on
   what it has written is forgotten, and new groups are taken off again.
2. What follows them, behind the journal where there is one, can't fail, and no Python runs within it: the
   log's end and the sides of the indices change in one call.

Cost: O(ops), and what a change takes in each: a path test per binding, a look-up per row and index.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from indices.array_views import view_of
from indices.calls_by_address import caller_of
from indices.compiled import kernel, part
from indices.records import WORD
from lftj.memory import view
from lftj.search.records import STATUS_DONE
from lftj.search.regions.weighted import SEARCH_ALL, Progress, Term, _search_all, progress_at
from lftj.storage.net_weights import net_weights
from lftj.storage.row_table import _take_off
from lftj.storage.signed_rows import _net
from lftj.storage.support import crossing
from lftj.storage.version_memory import INDEX, LEVEL, index_at, level_at
from maintenance.groups.grouped import _MOST_ASSIGNMENTS as MOST_ASSIGNMENTS
from maintenance.groups.grouped import _open_groups
from maintenance.groups.joined_groups import _differences
from maintenance.groups.whole_sums import CARRY_ROWS, MORE_WORDS, with_summands, words_of
from maintenance.machine.accounting import add_up, forget, note_join
from maintenance.machine.collecting import collect, collected, gather, take
from maintenance.machine.dictionaries import decimals_at, encode
from maintenance.machine.distinct import distinct_at, distinct_counts, forget_values, publish_values
from maintenance.machine.floats import averages, float_sums, publish_float_sums, sums_at
from maintenance.machine.guards import note_seen, within_limits
from maintenance.machine.keyed import net_keyed
from maintenance.machine.layers import branches, memory_of, publish_index, step_index
from maintenance.machine.ranges import join_range, step_side
from maintenance.machine.records import (
    CHECK,
    DONE,
    EXIST,
    GATHER,
    GROUP,
    GUARD,
    HEAD,
    JOIN,
    LEFT,
    NET,
    PREPARED,
    PROJECT,
    ROOM,
    SIDE,
    STEP,
    TO_FOLD,
    Block,
    block_at,
    check_at,
    exist_at,
    gather_at,
    group_at,
    guard_at,
    join_at,
    layered_at,
    net_at,
    program_at,
    project_at,
    range_at,
    relation_at,
    rows_at,
    scan_at,
    side_at,
    step_at,
    value_at,
)
from maintenance.machine.scans import scanned
from maintenance.machine.weighed import flat_at

view_u32 = view_of(np.uint32)

BLOCK = Block.LENGTH
PROGRESS = Progress.LENGTH
TERM_ITEMS = Term.LENGTH

search_all_at_address = caller_of(_search_all, SEARCH_ALL)


@kernel(makes_arrays=True)
def commit(where):
    """Do what is staged, or nothing; a status.  where: the address of a Program.

    Where there is a journal, what changes something is prepared, to be ended by :func:`end`.
    """
    program = program_at(where)
    begin(program)
    status = DONE
    for op in view(program.ops, program.n_ops):
        code = view(op, 1)[0]
        if code == NET:
            status = net_staged(program, relation_at(net_at(op).relation))
        elif code == STEP:
            status = step_index(step_at(op).index)
        elif code == JOIN:
            status = join(program, join_at(op))
        elif code == EXIST:
            status = exist(program, exist_at(op))
        elif code == GATHER:
            status = gather(program, gather_at(op))
        elif code == PROJECT:
            status = project(program, project_at(op))
        elif code == GROUP:
            status = group(program, group_at(op))
        elif code == CHECK:
            status = check(check_at(op))
        elif code == GUARD:
            status = within_limits(guard_at(op))
        elif code == SIDE:
            status = step_side(side_at(op))
        else:
            status = join_range(program, range_at(op))
        if status != DONE:
            break
    if status == DONE and program.log_end + length_of(program) > program.log_room:
        status = ROOM
    if status != DONE:
        begin(program)
        return status
    note_written(program)
    program.is_prepared = 1
    if program.is_journaled and program.n_written > 0:
        return PREPARED
    return publish(program)


@kernel(makes_arrays=True)
def end(where):
    """Publish what is prepared, if anything is, which the journal has; DONE or TO_FOLD."""
    program = program_at(where)
    return publish(program) if program.is_prepared else DONE


@part(makes_arrays=True)
def begin(program):
    """Forget what a commit has written that was not published."""
    program.collected = program.is_prepared = program.n_written = 0
    for where in view(program.relations, program.n_relations):
        relation = relation_at(where)
        relation.changed = relation.touched = relation.staged = relation.opens = relation.nexts = 0
        relation.seeks = relation.failed = relation.surgeries = relation.regions = 0
    forget(program)
    for where in view(program.indexes, program.n_indexes):
        layered_at(where).next_is_b = layered_at(where).is_b
    for op in view(program.ops, program.n_ops):
        if view(op, 1)[0] == GROUP:
            its = group_at(op)
            its.n_staged = its.came = its.more = 0
            kept = view(its.totals, 1)[0]
            if view(its.slots, 1)[0] > kept:
                _take_off(table_of(its), kept)
            for value in view(its.aggregates, its.n_aggregates):
                if value_at(value).distinct != 0:
                    forget_values(distinct_at(value_at(value).distinct))
                if value_at(value).scan != 0:
                    scan = scan_at(value_at(value).scan)
                    scan.staged_total = scan.total
        elif view(op, 1)[0] == SIDE:
            side_at(op).changed, side_at(op).staged_magnitude = 0, side_at(op).magnitude


@part(makes_arrays=True)
def table_of(its):
    """The table of a GROUP's groups (:data:`lftj.storage.row_table.Rows`)."""
    stored = view(its.stored, its.n_keys * its.room).reshape((its.n_keys, its.room))
    return stored, view_u32(its.places, its.n_places), view(its.slots, 1)


# -- ops -----------------------------------------------------------------------------------------------


@part(makes_arrays=True)
def net_staged(program, relation):
    """NET: the tuples that come and go with what is staged, as :func:`lftj.storage.net_weights.changing`; of
    a bag as :func:`lftj.storage.bags.bag_change`, with a key as :mod:`maintenance.machine.keyed`."""
    width = relation.width
    rows, weights = staged_rows(program, relation)
    n = np.int64(len(weights))
    if n == 0:
        return DONE
    relation.touched, relation.staged = 1, n
    if relation.key != 0:
        return net_keyed(relation, rows, weights)
    if n > 1:
        rows, weights = _net(rows, weights)
        n = np.int64(len(weights))
    primary = layered_at(relation.primary)
    order = view(primary.order, primary.levels)
    path, held = np.empty((relation.path, n), np.int64), np.empty((relation.path, n), np.int64)
    for level in range(relation.path):
        for row in range(n):
            path[level, row] = rows[order[level], row]
    net_weights(memory_of(primary, primary.is_b), path, held)
    if width < relation.arity:
        return take_copies(relation, rows, weights, held[-1])
    kept = 0
    for row in range(n):
        if (held[-1, row] > 0) != (weights[row] > 0):
            for column in range(width):
                rows[column, kept] = rows[column, row]
            weights[kept] = 1 if weights[row] > 0 else -1
            kept += 1
    return take(relation, rows, weights[:kept])


@part(makes_arrays=True)
def staged_rows(program, relation):
    """What is staged of a relation: int64 (width, n), and 1, -1 or what else each row is, int64 (n,)."""
    width = relation.width
    staged, numbers = view(program.staged, program.n_staged), view(program.relations, program.n_relations)
    at, n = np.int64(0), np.int64(0)
    while at < len(staged):
        n += staged[at] == relation.number
        at += 2 + relation_at(numbers[staged[at]]).width
    rows, weights = np.empty((width, n), np.int64), np.empty(n, np.int64)
    at, n = np.int64(0), np.int64(0)
    while at < len(staged) and n < len(weights):
        if staged[at] == relation.number:
            weights[n] = staged[at + 1]
            for column in range(width):
                rows[column, n] = staged[at + 2 + column]
            n += 1
        at += 2 + relation_at(numbers[staged[at]]).width
    return rows, weights


@part(makes_arrays=True)
def take_copies(relation, rows, weights, held):
    """Let so many copies of rows come, or go as far as there are some; LEFT where there are too many.

    rows: int64 (arity - 1, n), sorted and distinct; held: int64 (n,), how many copies there are.
    """
    room, n = relation.room, np.int64(0)
    columns, kept = view(relation.rows, relation.arity * room), view(relation.weights, room)
    for row in range(len(weights)):
        before, after = held[row], max(held[row] + weights[row], 0)
        if abs(after - before) > room - n:
            return LEFT
        for copy in range(min(before, after), max(before, after)):
            for column in range(rows.shape[0]):
                columns[column * room + n] = rows[column, row]
            columns[rows.shape[0] * room + n] = copy
            kept[n] = 1 if after > before else -1
            n += 1
    relation.changed = n
    return DONE


@part(makes_arrays=True)
def join(program, op):
    """JOIN: collect the rows of a delta rule's terms below the branches of one relation's change."""
    relation, head = relation_at(op.relation), relation_at(op.head)
    if relation.changed == 0:
        return DONE
    head.touched = 1
    bindings, weights = branches(op)
    if len(weights) == 0:
        return DONE
    n_branches = len(weights) * max(1, op.n_searched)
    head.surgeries += n_branches
    if op.n_searched == 0:
        for row in range(len(weights)):
            weights[row] *= op.sign
        note_join(op, 0, n_branches, len(weights))
        return collect(program, bindings, weights, rows_at(op.rows))
    memories, uses = view(op.memories, op.n_memories), view(op.uses, 2 * op.n_memories)
    for number in range(op.n_memories):
        index = layered_at(uses[2 * number])
        memories[number] = memory_of(index, index.next_is_b if uses[2 * number + 1] else index.is_b)
    counted = np.zeros(PROGRESS, np.int64)
    terms = view(op.terms, op.n_terms * TERM_ITEMS).reshape((op.n_terms, TERM_ITEMS))
    buffer = view(op.buffer, op.n_buffer)
    found, found_weights, status = search_all_at_address(
        op.search, terms, op.listed, memories, bindings, weights, buffer, op.budget, counted
    )
    progress = progress_at(counted.ctypes.data)
    head.opens += progress.opens
    head.nexts += progress.nexts
    head.seeks += progress.seeks
    head.failed += progress.failed
    head.regions += len(weights) * op.n_searched
    if status != STATUS_DONE:
        return LEFT
    operations = progress.opens + progress.nexts + progress.seeks
    note_join(op, operations, n_branches, len(found_weights))
    return collect(program, found, found_weights, rows_at(op.rows))


@part(makes_arrays=True)
def exist(program, op):
    """EXIST: collect the row of a body without variables where it comes or goes."""
    head, passed, passes = relation_at(op.head), True, True
    for number in range(op.n_tests):
        test = view(op.tests + 2 * number * WORD, 2)
        index, is_negated = layered_at(test[0]), test[1] != 0
        if index.relation != 0 and relation_at(index.relation).changed > 0:
            head.touched = 1
        passed = passed and (n_tuples(memory_of(index, index.is_b)) > 0) != is_negated
        passes = passes and (n_tuples(memory_of(index, index.next_is_b)) > 0) != is_negated
    if passed == passes:
        return DONE
    at, room = program.collected, program.room
    if at == room:
        return LEFT
    row, columns = view(op.row, op.columns), view(program.rows, op.columns * room)
    for column in range(op.columns):
        columns[column * room + at] = row[column]
    view(program.weights, room)[at] = 1 if passes else -1
    program.collected = at + 1
    return DONE


@part(makes_arrays=True)
def project(program, op):
    """PROJECT: the tuples that come and go with what is collected, where supports are counted by these."""
    head = relation_at(op.head)
    if program.collected == 0:
        return DONE
    rows, weights = collected(program, head.width)
    if op.supports == 0:
        return take(head, rows, weights)
    supports = relation_at(op.supports)
    if take(supports, rows, weights) != DONE:
        return LEFT
    index = layered_at(supports.primary)
    n = len(weights)
    held, before, after = np.empty((head.width, n), np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    net_weights(memory_of(index, index.is_b), rows, held)
    for row in range(n):
        before[row], after[row] = held[-1, row], held[-1, row] + weights[row]
        if after[row] < 0:
            return LEFT
    if head.width < head.arity:
        return take_copies(head, rows, weights, before)
    crossed, before, after = crossing(rows, before, after, np.int64(1))
    signs = np.empty(len(before), np.int64)
    for row in range(len(signs)):
        signs[row] = 1 if after[row] > before[row] else -1
    return take(head, crossed, signs)


@part(makes_arrays=True)
def group(program, op):
    """GROUP: the values that come and go with what is collected; groups and sums are staged."""
    head, beside, touched = relation_at(op.head), view(op.beside, op.n_beside), np.int64(0)
    for where in beside:
        touched |= relation_at(where).touched
    for where in beside:
        relation_at(where).touched = touched
    head.touched |= touched
    if program.collected == 0:
        return DONE
    rows, weights = collected(program, op.columns)
    if len(weights) == 0:
        return DONE
    assignments = float(view(op.totals, 3)[2])
    for row in range(len(weights)):
        assignments += abs(float(weights[row]))
    if assignments >= MOST_ASSIGNMENTS:
        return LEFT
    if view(op.slots, 1)[0] + len(weights) > min(op.n_counts, op.room):
        return ROOM
    counts = view(op.counts, op.n_counts)
    keys, offsets, groups, came, more = _open_groups(rows, weights, op.n_keys, table_of(op), counts)
    n = groups.shape[1]
    if n == 0:
        return ROOM
    if n > op.staged_room:
        return LEFT
    new_values = np.empty((n, op.n_aggregates), np.int64)
    for number in range(op.n_aggregates):
        value = value_at(view(op.aggregates, op.n_aggregates)[number])
        found, status = values_of(op, value, keys, offsets, groups, rows, weights)
        if status != DONE:
            return status
        for its in range(n):
            new_values[its, number] = found[its]
    staged, staged_values = view(op.staged, 2 * op.staged_room), view(op.staged_values, n * op.n_aggregates)
    for its in range(n):
        staged[its], staged[op.staged_room + its] = groups[0, its], groups[2, its]
        for number in range(op.n_aggregates):
            staged_values[its * op.n_aggregates + number] = new_values[its, number]
    op.n_staged, op.came, op.more = n, came, more
    values = view(op.values, op.n_counts * op.n_aggregates).reshape((op.n_counts, op.n_aggregates))
    changed, signs = _differences(
        keys, groups[0], values, groups[1], groups[2], new_values, view(op.shown, op.n_shown)
    )
    if not op.keys_first:
        changed, signs = _net(changed, signs)
    return take(relation_at(op.changes), changed, signs)


@part(makes_arrays=True)
def values_of(op, value, keys, offsets, groups, rows, weights):
    """The new values of an aggregate's groups, int64 (groups,), and a status; its sums are staged.

    The others are as _open_groups has them, and what came and went, net.
    """
    n = groups.shape[1]
    if value.scan != 0:
        if value.columns != 0:
            columns = view(value.columns, value.n_columns)
            read = np.empty((value.n_columns, len(weights)), np.int64)
            for column in range(value.n_columns):
                for row in range(len(weights)):
                    read[column, row] = rows[columns[column], row]
            rows, weights = _net(read, weights)
        found = np.zeros(n, np.int64)
        return found, scanned(scan_at(value.scan), keys, groups[2], rows, weights, found)
    if value.floats != 0:
        its, codes = sums_at(value.floats), rows[value.summand]
        return float_sums(its, value.is_average, groups, codes, weights, offsets)
    if value.distinct != 0:
        return distinct_counts(distinct_at(value.distinct), keys, groups, rows, weights, value.summand)
    if value.sums == 0:
        return groups[2].copy(), DONE
    n_words = value.n_words
    stored = view_u32(value.sums, op.n_counts * n_words).reshape((op.n_counts, n_words))
    summands = words_of(rows[value.summand], n_words - MORE_WORDS)
    sums, found, fits = with_summands(stored, groups[0], summands, weights, offsets, CARRY_ROWS)
    if not fits:
        return found, LEFT
    staged_sums = view_u32(value.staged_sums, n * n_words)
    for its in range(n):
        if groups[2, its] > 0 and not -value.most <= found[its] <= value.most:
            return found, LEFT
        for word in range(n_words):
            staged_sums[its * n_words + word] = sums[its, word]
    if value.is_average:
        return averages(found, groups[2], value.divisor)
    if value.decimals != 0:
        for its in range(n):
            if groups[2, its] > 0:
                found[its] = encode(decimals_at(value.decimals), found[its])
                if found[its] < 0:
                    return found, LEFT
    return found, DONE


@part(makes_arrays=True)
def check(op):
    """CHECK: LEFT where a key of a head would have two values."""
    relation, index = relation_at(op.relation), layered_at(op.index)
    n, room, n_keys = relation.changed, relation.room, index.levels - 1
    if n == 0:
        return DONE
    memory = memory_of(index, index.next_is_b)
    if n_keys == 0:
        return DONE if n_tuples(memory) <= 1 else LEFT
    columns, weights = view(relation.rows, relation.arity * room), view(relation.weights, n)
    keys, held = np.empty((n_keys, n), np.int64), np.empty((n_keys, n), np.int64)
    for column in range(n_keys):
        for row in range(n):
            keys[column, row] = columns[column * room + row]
    net_weights(memory, keys, held)
    for row in range(n):
        if weights[row] > 0 and held[n_keys - 1, row] > 1:
            return LEFT
    return DONE


@part(makes_arrays=True)
def n_tuples(memory):
    """How many an index has."""
    levels = index_at(memory).levels
    n = level_at(memory + INDEX + (levels - 1) * LEVEL).length
    for number in range(index_at(memory).runs):
        flat, length = flat_at(memory, number)
        n += flat[(levels + 1) * length]
    return n


# -- publishing ----------------------------------------------------------------------------------------


@part(makes_arrays=True)
def note_written(program):
    """Note the base relations that change, and how many rows of each."""
    n, written = program.n_written, view(program.written, 2 * program.n_relations)
    for op in view(program.ops, program.n_ops):
        if view(op, 1)[0] == NET:
            relation = relation_at(net_at(op).relation)
            if relation.changed > 0:
                written[n], written[n + 1] = relation.number, relation.changed
                n += 2
    program.n_written = n


@part
def length_of(program):
    """Items of the log that the commit takes."""
    length = np.int64(HEAD)
    for where in view(program.relations, program.n_relations):
        relation = relation_at(where)
        if relation.touched:
            length += BLOCK + relation.changed * (relation.arity + 1)
    return length


@part(makes_arrays=True)
def publish(program):
    """Let what was written be what is read; DONE, or TO_FOLD."""
    status = DONE
    for op in view(program.ops, program.n_ops):
        if view(op, 1)[0] == GROUP:
            publish_groups(group_at(op))
        elif view(op, 1)[0] == SIDE:
            side_at(op).magnitude = side_at(op).staged_magnitude
        elif view(op, 1)[0] == GUARD:
            note_seen(guard_at(op))
    for where in view(program.indexes, program.n_indexes):
        if layered_at(where).next_is_b != layered_at(where).is_b and not publish_index(where):
            status = TO_FOLD
    start = program.log_end
    at = start + HEAD
    for where in view(program.relations, program.n_relations):
        relation = relation_at(where)
        if relation.touched:
            at = write_block(program, relation, at)
    piece = view(program.log, at)[start:]
    piece[1] = program.attempt
    piece[0] = at - start
    program.log_end = at
    program.commits += program.n_written > 0
    program.is_prepared = 0
    add_up(program)
    return TO_FOLD if program.taken > program.taken_room else status


@part
def publish_groups(op):
    """Write the counts, values and sums of groups that are staged."""
    n, room, n_aggregates = op.n_staged, op.staged_room, op.n_aggregates
    totals = view(op.totals, 3)
    totals[0] = view(op.slots, 1)[0]
    totals[1] += op.came
    totals[2] += op.more
    staged, counts = view(op.staged, 2 * room), view(op.counts, op.n_counts)
    staged_values, values = (
        view(op.staged_values, n * n_aggregates),
        view(op.values, op.n_counts * n_aggregates),
    )
    for its in range(n):
        counts[staged[its]] = staged[room + its]
        for number in range(n_aggregates):
            values[staged[its] * n_aggregates + number] = staged_values[its * n_aggregates + number]
    for where in view(op.aggregates, n_aggregates):
        value = value_at(where)
        if value.scan != 0:
            scan_at(value.scan).total = scan_at(value.scan).staged_total
        if value.floats != 0:
            publish_float_sums(sums_at(value.floats), staged[:n])
        if value.distinct != 0:
            publish_values(distinct_at(value.distinct), staged[:n])
        if value.sums != 0:
            n_words = value.n_words
            sums = view_u32(value.sums, op.n_counts * n_words)
            staged_sums = view_u32(value.staged_sums, n * n_words)
            for its in range(n):
                for word in range(n_words):
                    sums[staged[its] * n_words + word] = staged_sums[its * n_words + word]


@part
def write_block(program, relation, at):
    """Write a relation's change to the log, and what it took; the item behind it."""
    n, room = relation.changed, relation.room
    where = program.log + at * WORD
    block = block_at(where)
    block.relation, block.rows, block.staged = relation.number, n, relation.staged
    block.opens, block.nexts, block.seeks = relation.opens, relation.nexts, relation.seeks
    block.failed, block.surgeries, block.regions = relation.failed, relation.surgeries, relation.regions
    items = view(where + BLOCK * WORD, n * (relation.arity + 1))
    columns, weights = view(relation.rows, relation.arity * room), view(relation.weights, n)
    for column in range(relation.arity):
        for row in range(n):
            items[column * n + row] = columns[column * room + row]
    for row in range(n):
        items[relation.arity * n + row] = weights[row]
    return at + BLOCK + n * (relation.arity + 1)
