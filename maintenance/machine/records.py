"""What the commit machine's kernel reads and writes: a program, its ops, and what changes.

Specification: docs/design/commit.md.

A program is a list of ops, each a record that begins with its code.  They are run in their order::

    NET      what is staged of a relation  ->  its change
    STEP     a relation's change           ->  an index after it
    JOIN     a relation's change           ->  rows below it, by the terms of a delta rule, and what they
                                               compute; they are collected
    PROJECT  the rows collected            ->  a head's change, and that of its supports
    GROUP    the rows collected            ->  groups and values of one aggregate or several, a head's change
    CHECK    a head's change               ->  nothing, where none of its keys has two values
    GUARD    a relation's change           ->  nothing, where its values are within the limits of guards
    SIDE     a view's change               ->  its keys that change, and the rows with weights of a range join
    RANGE    the keys of one side          ->  rows of the ranges of the other one's; they are collected
    EXIST    whether relations have rows   ->  the one row of a body without variables; it is collected
    GATHER   a change that stands in no    ->  the same rows, of one of several rules; they are collected
             relation

An index is *layered*: its published memory (:mod:`lftj.storage.version_memory`), and behind its runs two
more, *many* and then *few*.  There are two memories of each, before a commit and after it: a commit writes
few anew for the other one, and publishing says which of the two is read.
"""

from __future__ import annotations

from indices.records import Record, record_at

NET, STEP, JOIN, PROJECT, GROUP, CHECK, GUARD, SIDE, RANGE, EXIST, GATHER = range(11)
"""Codes of ops."""

DONE = 0
FULL = 1
"""An index takes no more: versions have to be folded first."""
ROOM = 2
"""Groups, or the log, have no room for what would come."""
LEFT = 3
"""The transaction goes the general way: it is too large, or there is an error, which that tells of."""
TO_FOLD = 4
"""Published; versions are to be folded before long."""
PREPARED = 5
"""Published when the journal has it."""

ASKED = 6
"""A row asks for what Python computes (:mod:`maintenance.machine.answers`); nothing was done."""

HEAD = 2
"""Items at the beginning of a transaction's piece of the log: its length, and the attempt that it is of."""


class Program(Record):
    staged: int  # address of what is staged: number of the relation, 1 or -1 (or as maintenance.machine.keyed
    # has them), the row; and how many items
    n_staged: int
    ops: int  # addresses of the ops, and how many
    n_ops: int
    relations: int  # addresses of the Relations, by number
    n_relations: int
    indexes: int  # addresses of the Layered
    n_indexes: int
    log: int  # address of the log, how many items there are and how many are written
    log_room: int
    log_end: int
    commits: int  # how many changed something since the versions were made
    rows: int  # of what is collected: room columns after each other, weights, and how many rows
    weights: int
    room: int
    collected: int
    accounts: int  # addresses of the Accounts, and how many
    n_accounts: int
    taken: int  # operations of all commits since the versions were made; more are to be folded
    taken_room: int
    attempt: int  # a number that no other transaction has
    is_journaled: int  # whether what changes something is prepared only
    is_prepared: int  # whether all that a commit wrote can be published
    written: int  # of that: numbers of base relations, and behind each how many rows of it changed
    n_written: int  # how many items


class Relation(Record):
    """A relation that may change: a base relation, a head, or the supports of one."""

    number: int
    arity: int
    width: int  # how many columns are staged: all, or of a bag all but the last, which numbers copies
    path: int  # levels of the primary index by which what is staged is found: of a wide relation one
    primary: int  # Layered that has all columns; of supports that of their own
    key: int  # Layered whose first levels are the key's columns, and how many; 0: it has none
    n_key: int
    rows: int  # its change: columns of ``room`` rows after each other, weights, and how many rows
    weights: int
    room: int
    changed: int
    touched: int  # whether anything was staged, or a JOIN of the head has run
    staged: int  # how many rows; of a relation with a key what changes, and rows that change nothing
    opens: int
    nexts: int
    seeks: int
    failed: int
    surgeries: int
    regions: int
    steps: int  # since that was last read: in how many commits it was touched, and what they took together
    all_changed: int
    all_opens: int
    all_nexts: int
    all_seeks: int
    all_failed: int
    all_surgeries: int
    all_regions: int


class Layered(Record):
    """An index; ``_a`` and ``_b``: the two of which one is published."""

    memory_a: int
    memory_b: int
    runs: int  # of the published version
    levels: int
    relation: int  # Relation, 0 where it never changes
    order: int  # the column of each level
    equal: int  # pairs of columns that have to agree, and how many
    n_equal: int
    few_a: int  # flat arrays (lftj.storage.runs), and how many tuples they have
    few_b: int
    n_few_a: int
    n_few_b: int
    few_room: int
    asked_few: int  # tuples that it had no room for
    spilled: int  # more tuples of few go into many
    many_a: int
    many_b: int
    n_many: int
    many_room: int
    asked_many: int
    many_is_b: int
    is_b: int  # which is published
    next_is_b: int  # which will be


class Net(Record):
    code: int
    relation: int


class Step(Record):
    code: int
    index: int


class Join(Record):
    code: int
    relation: int  # the one that changed
    head: int
    order: int  # columns of the levels of the index whose branches are the change, and how many
    levels: int
    equal: int
    n_equal: int
    level: int  # of the branches
    index: int  # Layered with which branches of a level above the last are found; else 0
    bound: int
    n_searched: int
    sign: int  # where nothing is searched
    search: int  # where the code of lftj.search.regions.weighted._search_all is
    terms: int  # its Terms, and how many
    n_terms: int
    memories: int  # addresses of the memories, written; and how many
    n_memories: int
    uses: int  # of each: Layered, and whether it is read after the change
    buffer: int
    n_buffer: int
    budget: int  # operations of all searches
    account: int  # Account of the body, 0: none
    listed: int  # how many columns the searches' rows have
    rows: int  # Rows: what is made of them


class Rows(Record):
    """What is made of rows that were found: those of a head, or its keys and arguments."""

    places: int  # columns of what was found that are read, and how many
    n_places: int
    registers: int  # where a row is computed (maintenance.machine.computing), and how many; 0: as found
    n_registers: int
    code: int
    n_instructions: int
    wanted: int  # registers of the columns that are collected, and how many
    columns: int


class Account(Record):
    """Of a body under `auto` (:meth:`maintenance.strategies.auto.auto_body.AutoBody.enter_steps`)."""

    taken: int  # by a commit: operations, changed branches, and rows
    branches: int
    rows: int
    per_operation: int  # what `trace` is taken to cost
    per_row: int
    steps: int  # since that was last read: how many commits, and of them together
    all_taken: int
    all_branches: int
    all_prior: int  # what `trace` would have taken


class Exist(Record):
    code: int
    head: int
    tests: int  # Layered that have to have rows, and of each whether it must have none instead; how many
    n_tests: int
    row: int  # what is collected, and how many columns
    columns: int


class Project(Record):
    code: int
    head: int  # or a Relation that is gathered for it
    supports: int  # Relation, without the number of a copy where the head is a bag; 0: every row is a tuple


class Gather(Record):
    code: int
    relation: int
    rows: int  # Rows


class Group(Record):
    code: int
    head: int
    changes: int  # Relation whose change is written: the head's, or one that is gathered for it
    n_keys: int
    columns: int  # keys, and arguments of all aggregates
    stored: int  # the arrays of the table of groups
    room: int
    places: int
    n_places: int
    slots: int
    counts: int  # by slot, and for how many
    values: int  # by slot, of each aggregate
    n_counts: int
    aggregates: int  # addresses of the Values, and how many
    n_aggregates: int
    shown: int  # by column of the head the number of a key, or behind those of all keys of an aggregate
    n_shown: int
    keys_first: int  # whether the head's columns begin with the keys in their order
    beside: int  # addresses of the Relations of heads that have the aggregates in name alone, and how many
    n_beside: int
    totals: int  # slots that are kept, groups, assignments
    staged: int  # by group: slots, then counts; room for as many groups each
    staged_values: int  # by group, of each aggregate
    staged_room: int
    n_staged: int
    came: int  # groups and assignments more, by what is staged
    more: int


class Value(Record):
    """What makes the values of one aggregate; without sums or a Scan they are the counts."""

    sums: int  # by slot, so many words each, or 0
    n_words: int
    staged_sums: int  # by group
    most: int  # a sum is not above that, nor its negative
    decimals: int  # address of the Decimals whose codes are the values, 0: the sums are
    is_average: int  # whether values are the sums by the counts, which are taken so many times
    divisor: int
    summand: int  # column of the rows collected that is added up
    floats: int  # address of the FloatSums of an aggregate of doubles, or 0
    distinct: int  # address of the Distinct whose values, of the column summand, are counted, or 0
    scan: int  # address, or 0
    columns: int  # those of the rows collected that the Scan reads, 0: all; and how many
    n_columns: int


class Scan(Record):
    """The rows of a head whose values an order tells."""

    supports: int  # Relation of the rows, by groups and arguments
    amounts: int  # Relation of what they weigh, by groups and values; 0: their supports
    is_from_above: int
    numerator: int  # of the share of the weight
    denominator: int
    total: int  # of all amounts, and with what is staged
    staged_total: int


class Check(Record):
    code: int
    relation: int
    index: int  # Layered with all columns, the value last


class Guard(Record):
    code: int
    relation: int
    columns: int  # Guarded of those that a guard of views asks for, and how many
    n_columns: int


class Guarded(Record):
    number: int  # of the column
    least: int  # limits
    most: int
    least_seen: int
    most_seen: int


class Side(Record):
    """One view of a range join, or of several (maintenance.strategies.range_sums)."""

    code: int
    relation: int  # of the view
    order: int  # its columns: groups, what is compared, and last the value; and how many before that
    n_columns: int
    counts: int  # Relations by these columns: 1 for a key, and its value
    sums: int
    magnitude: int  # the sum of the absolute values, and with what is staged
    staged_magnitude: int
    keys: int  # that change: columns of ``room`` keys after each other
    befores: int  # values, 0 where there is none
    afters: int
    supports: int  # 1 where a key comes, -1 where it goes
    room: int
    changed: int  # how many keys


class Range(Record):
    code: int
    head: int
    side: int  # the Side whose changes these are, and the other one
    other: int
    is_left: int  # whether that is the left one
    is_after: int  # whether the other one is read after its change
    n_both: int  # groups that both know, and that each of them knows alone
    n_own: int
    n_others: int
    spans: int  # of each: whether it has a least end, that, whether it has a greatest one, that; and how many
    n_spans: int
    times: int  # what is compared is taken so often, and the other's
    other_times: int
    rows: int  # Rows


class Block(Record):
    """Of the log: how a relation changed.  Behind it stand its columns and the weights."""

    relation: int
    rows: int
    staged: int
    opens: int
    nexts: int
    seeks: int
    failed: int
    surgeries: int
    regions: int


program_at = record_at(Program)
relation_at = record_at(Relation)
layered_at = record_at(Layered)
net_at = record_at(Net)
step_at = record_at(Step)
join_at = record_at(Join)
rows_at = record_at(Rows)
exist_at = record_at(Exist)
project_at = record_at(Project)
gather_at = record_at(Gather)
group_at = record_at(Group)
scan_at = record_at(Scan)
value_at = record_at(Value)
check_at = record_at(Check)
guard_at = record_at(Guard)
guarded_at = record_at(Guarded)
side_at = record_at(Side)
range_at = record_at(Range)
block_at = record_at(Block)
account_at = record_at(Account)
