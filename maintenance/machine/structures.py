"""What a program of the commit machine changes: layers of indices, supports, groups of aggregates.

Invariant: what was published by it since it was bound is told from the arrays alone, any number of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indices.keys import KEY_MAX
from lftj.memory import address
from lftj.storage.catalog import IndexKey
from lftj.storage.runs import MAX_RUNS
from lftj.storage.signed_rows import Columns, net_rows
from lftj.storage.support import SupportVersion
from lftj.storage.version_memory import Index, Run
from lftj.values.dictionary import DecimalDomain
from lftj.values.kinds import plain_type
from maintenance.groups.accumulator import Accumulator
from maintenance.groups.distinct_counts import DistinctCounts
from maintenance.groups.grouped import GroupTable
from maintenance.groups.shared_scans import Sharer
from maintenance.groups.sums import GroupSums
from maintenance.groups.whole_sums import WholeAverages, WholeSums
from maintenance.machine.dictionaries import Dictionaries
from maintenance.machine.distinct import Values
from maintenance.machine.floats import SumsInPool
from maintenance.machine.records import GROUP, Group, Layered, Value
from maintenance.staged import StagedValue


@dataclass(frozen=True)
class Sizes:
    """How much the machine has room for.

    ``rows``: of a change of one relation; ``layer_bytes``: of an index's layers; ``first``: tuples that few
    and many have room for in the beginning; ``spilled``: tuples of few, more of which go into many;
    ``budget``: operations of a rule's terms; ``log``: items; ``taken``: operations, more of which are told to
    the accounts of `auto`.  ``few``, ``many``: tuples, instead of what the bytes are enough for.
    """

    rows: int = 2048
    layer_bytes: int = 400_000
    first: int = 256
    spilled: int = 64
    budget: int = 1 << 18
    log: int = 1 << 16
    taken: int = 1 << 22
    few: int | None = None
    many: int | None = None

    def few_room(self, levels: int) -> int:
        """Tuples of few, of an index of so many levels."""
        return self.few or self._room(levels)

    def many_room(self, levels: int) -> int:
        return self.many or self._room(levels)

    def _room(self, levels: int) -> int:
        return min(4096, self.layer_bytes // (4 * 8 * (levels + 1)))


SIZES = Sizes()

GROWTH = 4
"""Times what was asked for: room is made for so much."""


class Layers:
    """An index in layers: its record, and the arrays that this has addresses of.

    These have room for a few tuples, and for more when it is bound again where there was too little.
    """

    def __init__(
        self, key: IndexKey, levels: int, relation: int, sizes: Sizes, keep: list[np.ndarray]
    ) -> None:
        """``relation``: the address of its Relation, 0 where it never changes."""
        self.key = key
        self.changes = relation != 0
        self.levels = levels
        self.words = np.zeros(Layered.LENGTH, np.int64)
        self.record = Layered(self.words)
        order, pairs = np.array(key[0], np.int64), np.array(key[1], np.int64).reshape(-1)
        keep += [order, pairs]
        its = self.record
        its.levels, its.relation = levels, relation
        its.order, its.equal, its.n_equal = address(order), address(pairs), len(key[1])
        self._most = (sizes.few_room(levels), sizes.many_room(levels)) if self.changes else (0, 0)
        self.buffers: list[np.ndarray] = []
        self._make_room(*(min(sizes.first, most) for most in self._most))
        its.spilled = min(sizes.spilled, sizes.few_room(levels))
        self.memories: tuple[np.ndarray, np.ndarray] | None = None
        self.version: object = None

    def bind(self, memory: np.ndarray, version: object) -> None:
        """Begin anew over the memory of a version, which is kept alive."""
        its = self.record
        if self.wants_room:
            few, many = self._most
            self._make_room(
                _grown(its.few_room, its.asked_few, few), _grown(its.many_room, its.asked_many, many)
            )
        its.runs = int(Index.view(memory).runs)
        one = np.concatenate([memory, np.zeros(2 * Run.LENGTH, np.int64)])
        two = one.copy() if self.changes else one
        its.memory_a, its.memory_b = address(one), address(two)
        its.n_few_a = its.n_few_b = its.n_many = its.many_is_b = its.is_b = its.next_is_b = 0
        for buffer in self.buffers:
            buffer[0] = 0
        self.memories, self.version = (one, two), version

    @property
    def wants_room(self) -> bool:
        """Whether tuples had no room for which there may be some."""
        its, (few, many) = self.record, self._most
        return its.few_room < min(its.asked_few, few) or its.many_room < min(its.asked_many, many)

    def _make_room(self, few: int, many: int) -> None:
        """Have empty arrays for so many tuples."""
        its = self.record
        its.few_room, its.many_room, its.asked_few, its.asked_many = few, many, 0, 0
        self.buffers = [np.zeros((self.levels + 1) * room + 1, np.int64) for room in (few, few, many, many)]
        its.few_a, its.few_b, its.many_a, its.many_b = map(address, self.buffers)

    def added_to_relation(self) -> tuple[Columns, np.ndarray] | None:
        """The same as a change of the relation: sorted by its columns."""
        added, order = self.added(), self.key[0]
        if added is None or order == tuple(range(len(order))):
            return added
        rows, weights = added
        columns = np.empty_like(rows)
        columns[list(order)] = rows
        return net_rows(columns, weights)

    def added(self) -> tuple[np.ndarray, np.ndarray] | None:
        """What came since, net: int64 (levels, n) in the index's order, and weights; None for nothing."""
        its, levels = self.record, self.levels
        parts = []
        few = 1 if its.is_b else 0
        many = 3 if its.many_is_b else 2
        for buffer, n in (
            (self.buffers[many], int(its.n_many)),
            (self.buffers[few], int(its.n_few_b if its.is_b else its.n_few_a)),
        ):
            if n:
                sums = buffer[levels * n : (levels + 1) * n + 1]
                parts.append((buffer[: levels * n].reshape(levels, n), np.diff(sums)))
        if not parts:
            return None
        rows, weights = (np.concatenate(each, axis=-1) for each in zip(*parts, strict=True))
        rows, weights = net_rows(rows, weights)
        return (rows, weights) if len(weights) else None


def _grown(room: int, asked: int, most: int) -> int:
    """The room for tuples, of which so many were asked for."""
    return room if asked <= room else min(most, GROWTH * asked)


class Supports:
    """How often tuples are given, of a head or of what stands in none."""

    def __init__(self, value: StagedValue[SupportVersion], layers: Layers) -> None:
        self.layers = layers
        self._value = value
        self._base: SupportVersion | None = None  # until it is bound

    def bind(self) -> int:
        """Begin anew over what is kept; how many runs that has."""
        self._base = self._value.kept
        if len(self._base.runs) + 2 <= MAX_RUNS:
            self.layers.bind(self._base._memory, self._base)
        return len(self._base.runs)

    def fold(self) -> None:
        """Let what is kept have all that came since; any number of times."""
        assert self._base is not None
        added = self.layers.added()
        self._value.kept = self._base if added is None else self._base.added(*added)[0]

    def release(self) -> None:
        self._base = None


@dataclass(frozen=True)
class Aggregated:
    """One aggregate of a head, and where in the rows collected its argument stands.

    ``scan``: the address of its Scan, 0 where it has none; ``columns``: those that the Scan reads.
    ``decimals``, ``most``, ``divisor``: of sums, see :class:`~maintenance.machine.records.Value`.
    """

    summand: int = 0
    scan: int = 0
    columns: Sequence[int] = ()
    decimals: int = 0
    most: int = KEY_MAX
    divisor: int = 1


def aggregated_of(sharer: Sharer, accumulator: Accumulator | None, dictionaries: Dictionaries) -> Aggregated:
    """How the values of an aggregate are made of its sums, if it has some."""
    type_ = sharer.head.schema.columns[-1].type
    if isinstance(accumulator, WholeAverages):
        return Aggregated(divisor=10 ** (sharer.scale or 0))
    if not (isinstance(accumulator, WholeSums) and isinstance(type_.domain, DecimalDomain)):
        return Aggregated()
    arrow = plain_type(type_.arrow)
    decimals = dictionaries.decimals(type_.domain, arrow.scale, enters=True)
    return Aggregated(decimals=decimals, most=min(10**arrow.precision - 1, KEY_MAX))


class Groups:
    """Of a head that aggregates: the op, and what it changes in place."""

    def __init__(
        self,
        groups: GroupTable,
        aggregates: Sequence[Aggregated],
        shown: Sequence[int],
        columns: int,
        head: int,
        changes: int,
        rows: int,
        beside: Sequence[int] = (),
    ) -> None:
        """For the fields see :class:`~maintenance.machine.records.Group`."""
        self.groups = groups
        self.words = np.zeros(Group.LENGTH, np.int64)
        self.op = op = Group(self.words)
        self.totals = np.zeros(3, np.int64)
        self._rows = rows
        n = len(aggregates)
        self._staged, self._staged_values = np.zeros(2 * rows, np.int64), np.zeros(n * rows, np.int64)
        self._lists = [np.array(each, np.int64) for each in (shown, beside)]
        self._pools: list[SumsInPool] = []
        self._distinct: list[Values] = []
        made = zip(aggregates, groups._accumulators, strict=True)
        self._values = [self._value(*each, columns) for each in made]
        self._lists.append(np.array([address(value._words) for value in self._values]))
        op.code, op.head, op.changes, op.columns = GROUP, head, changes, columns
        op.shown, op.beside, op.aggregates = map(address, (*self._lists[:2], self._lists[-1]))
        op.n_shown, op.n_beside, op.n_aggregates = len(shown), len(beside), n
        op.keys_first = list(shown[: groups._n_keys]) == list(range(groups._n_keys))
        op.totals, op.staged, op.staged_values = map(
            address, (self.totals, self._staged, self._staged_values)
        )
        op.staged_room = rows
        self._kept: list[np.ndarray] = []

    def _value(self, aggregate: Aggregated, accumulator: Accumulator | None, columns: int) -> Value:
        its = Value(np.zeros(Value.LENGTH, np.int64))
        its.scan, its.summand = aggregate.scan, aggregate.summand
        its.decimals, its.most, its.divisor = aggregate.decimals, aggregate.most, aggregate.divisor
        if aggregate.scan and list(aggregate.columns) != list(range(columns)):
            self._lists.append(np.array(aggregate.columns, np.int64))
            its.columns, its.n_columns = address(self._lists[-1]), len(aggregate.columns)
        if isinstance(accumulator, WholeSums):
            self._lists.append(np.zeros(accumulator.n_words * self._rows, np.uint32))
            its.staged_sums = address(self._lists[-1])
            its.n_words = accumulator.n_words
            its.is_average = isinstance(accumulator, WholeAverages)
        elif isinstance(accumulator, DistinctCounts):
            self._distinct.append(Values(accumulator, self._rows))
            its.distinct = self._distinct[-1].record
        elif isinstance(accumulator, GroupSums):
            self._pools.append(SumsInPool(accumulator, self._rows))
            its.floats = self._pools[-1].record
            its.is_average = accumulator.is_average
        return its

    def bind(self) -> None:
        """Have room for the groups of a transaction, and the addresses of what the head keeps now."""
        its, op = self.groups, self.op
        its._table.truncate(its._n_slots)
        its._table.make_room(2 * self._rows)
        room = its._table.room
        its._counts, its._values = _with_room(its._counts, room), _with_room(its._values, room)
        stored, places, count = its._table.arrays
        op.n_keys, op.stored, op.room = its._n_keys, address(stored), stored.shape[1]
        op.places, op.n_places, op.slots = address(places), len(places), address(count)
        op.counts, op.values, op.n_counts = address(its._counts), address(its._values), room
        self._kept = [stored, places, count, its._counts, its._values]
        for value, sums in zip(self._values, its._accumulators, strict=True):
            if isinstance(sums, WholeSums):
                sums._sums = _with_room(sums._sums, room)
                value.sums = address(sums._sums)
                self._kept.append(sums._sums)
        for pool in self._pools:
            pool.bind(room)
        for values in self._distinct:
            values.bind(room)
        self.totals[:] = its._n_slots, its.n_groups, its._n_assignments

    def fold(self) -> None:
        """Let the head know how many groups there are; may be done any number of times."""
        its = self.groups
        its._n_slots, its.n_groups, its._n_assignments = map(int, self.totals)
        its._table.truncate(its._n_slots)
        for values in self._distinct:
            values.fold()


def _with_room(by_slot: np.ndarray, room: int) -> np.ndarray:
    """Itself, or with zeros behind it for so many slots."""
    missing = room - len(by_slot)
    if missing <= 0:
        return by_slot
    return np.concatenate([by_slot, np.zeros((missing, *by_slot.shape[1:]), by_slot.dtype)])
