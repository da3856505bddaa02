"""A batch: many transactions in one call, with the change of every head by each of them.

:class:`BatchCommit` leads from one published state to the next, as a commit does, in one of two ways:

* *at once*: what each head's rows do at all times is worked out together
  (:mod:`maintenance.strategies.timed_round`): a few kernel calls, however many transactions there are;
* *one by one*, where some head that the batch is about can't be worked out so: ``stats.one_by_one`` says
  which, and why.  So it is also where something is wrong, to tell which transaction it is, and where a body
  under `auto` takes more operations at once than it may one by one: tuples that are never there together
  may have many assignments together.

Invariants

1. Either way each transaction's changes are those of committing it by itself after the ones before it.
2. All of them are published by one assignment, or nothing is: heads that were stepped one by one are stepped
   back to where they were by the inverse of all that they had been through (:meth:`BatchCommit.drop`).
3. ``keep`` and ``drop`` may be left half way and done again, as those of a commit.

Cost: at once, one delta step over all touched tuples, and what each head keeps once; one by one, that of the
commits, less publishing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import ChangeError, DataError, EvaluationError, LftjError, TransactionError
from lftj.process.enough_memory import enough_memory
from lftj.search.regions.evaluation import OverBudget
from lftj.storage.relation_version import RelationVersion
from lftj.storage.signed_rows import table_of
from lftj.values.collector import Held
from lftj.values.domains import Domains
from lftj.values.schema import Schema
from maintenance.changes.change import Change
from maintenance.changes.changes import encode_timed_zset
from maintenance.changes.coded_changes import table_of_change
from maintenance.changes.head_changes import Changes
from maintenance.changes.timed_change import TimedChange, starts_of, timed
from maintenance.heads.functional_check import refuse_relation_conflict
from maintenance.stats import RuleStats, TransactionStats
from maintenance.strategies.strategy import Round
from maintenance.strategies.timed_round import TimedRound
from maintenance.workspace.commit import Commit, refuse_nan
from maintenance.workspace.state import State
from maintenance.workspace.subscribers import Announcement, Subscribers

_TOO_MUCH = "at once it takes more operations than one by one"


@dataclass(frozen=True, eq=False)
class StagedRows:
    """Signed rows of one relation: int64 columns, the number of each row's transaction, and its weight."""

    schema: Schema
    columns: Sequence[np.ndarray]
    times: np.ndarray
    weights: np.ndarray

    def net(self, name: str, version: RelationVersion) -> TimedChange:
        """What the rows do to a version, time after time, as each transaction by itself would.

        Raises TransactionError if the relation was loaded anew since they were read.
        """
        if version.schema is not self.schema:
            raise TransactionError(
                f"{name!r} was loaded anew while changes to it were read: apply them again"
            )
        rows, times, weights = timed(self.columns, self.times, self.weights)
        if not len(weights):
            return TimedChange(rows, times, weights)
        starts = starts_of(rows)[:-1]
        there = weights > 0
        before = np.roll(there, 1)
        before[starts] = version.weights(np.ascontiguousarray(rows[:, starts])) > 0
        changes = there != before
        signs = np.where(there, 1, -1)[changes]
        return TimedChange(np.ascontiguousarray(rows[:, changes]), times[changes], signs)


def read_batch(
    changes: Mapping[str, Any], version_of: Callable[[str], RelationVersion], domains: Domains
) -> tuple[list[Any], dict[str, StagedRows]]:
    """The transactions of a batch in order, and the rows of each relation.

    Raises ChangeError, and the errors of reading the sources.
    """
    read = {}
    for name, source in changes.items():
        schema = version_of(name).schema
        read[name] = schema, *encode_timed_zset(name, schema, source, domains)
    with_txn = [name for name, (*_, column) in read.items() if column is not None]
    if with_txn and len(with_txn) < len(read):
        without = next(name for name in read if name not in with_txn)
        raise ChangeError(f"changes of {with_txn[0]!r} have transactions, and those of {without!r} have none")
    columns = [column for *_, column in read.values() if column is not None]
    if len({column.type for column in columns}) > 1:
        shown = " and ".join(str(column.type) for column in columns)
        raise ChangeError(f"the transactions of several relations are of one type; they are of {shown}")
    if not columns:
        values = pa.nulls(min(len(read), 1))
    else:
        values = pa.chunked_array([chunk for column in columns for chunk in column.chunks]).unique().sort()
    staged = {}
    for name, (schema, codes, weights, column) in read.items():
        times = np.zeros(len(weights), np.int64)
        if column is not None:
            times = pc.index_in(column, value_set=values).to_numpy().astype(np.int64)
        staged[name] = StagedRows(schema, codes, times, weights)
    return values.to_pylist(), staged


class Applied(Sequence[Changes]):
    """What a batch did: the changes of all heads by each transaction, in their order.

    Attributes:
        transactions: The values of ``txn``, in order; one None where there was no such column.
        stats: What the batch took, per head, all transactions together.
        subscriber_errors: Exceptions that subscribers raised, with the subscriber's name.
    """

    def __init__(self, transactions: Sequence[Any]) -> None:
        self.transactions = tuple(transactions)
        self.stats = TransactionStats()
        self.subscriber_errors: list[tuple[str, Exception]] = []
        self._schemas: Mapping[str, Schema] = {}
        self._by_time: Sequence[Mapping[str, Change]] | Mapping[str, TimedChange] = ()
        self._changes: dict[int, Changes] = {}

    def take(
        self,
        stats: TransactionStats,
        schemas: Mapping[str, Schema],
        changes: Sequence[Mapping[str, Change]] | Mapping[str, TimedChange],
    ) -> None:
        """The batch is published: what it took, and the changes, of each time or of each head."""
        self._schemas, self._by_time, self.stats = schemas, changes, stats
        for schema in schemas.values():
            schema.hold(self)

    def held(self) -> list[Held]:
        """The codes that are to keep their values, as long as this lives (:mod:`lftj.values.collector`)."""
        each = [self._by_time] if isinstance(self._by_time, Mapping) else self._by_time
        columns = [
            (domain, change.columns[number])
            for changes in each
            for name, change in changes.items()
            if name in self._schemas
            for number, domain in self._schemas[name].dictionaries
        ]
        return [Held(self, columns)]

    def __len__(self) -> int:
        return len(self.transactions)

    @overload
    def __getitem__(self, number: int) -> Changes: ...
    @overload
    def __getitem__(self, number: slice) -> list[Changes]: ...
    def __getitem__(self, number: int | slice) -> Changes | list[Changes]:
        """The changes of a transaction, by its place."""
        if isinstance(number, slice):
            return [self[place] for place in range(len(self))[number]]
        place = range(len(self))[number]
        if place not in self._changes:
            schemas = self._schemas
            self._changes[place] = Changes(
                tuple(schemas), lambda name: table_of_change(schemas[name], self._change(name, place))
            )
        return self._changes[place]

    def _change(self, name: str, place: int) -> Change | None:
        changes = self._by_time
        if isinstance(changes, Mapping):
            own = changes.get(name)
            return None if own is None else own.at(place)
        return changes[place].get(name)

    def __repr__(self) -> str:
        return f"<applied: {len(self):,} transaction{'' if len(self) == 1 else 's'}>"


@dataclass
class _Told:
    """One transaction of a batch, as subscribers are told of it."""

    changes: Changes
    subscriber_errors: list[tuple[str, Exception]] = field(default_factory=list)


class BatchCommit(Commit):
    """The changes of many transactions, of base relations first, then of the heads that follow."""

    def __init__(self, applied: Applied, state: State, staged: Mapping[str, StagedRows]) -> None:
        """Net what is staged against the state.  Raises DataError; nothing is staged by any head then."""
        self._begin(applied, state)
        self._applied = applied
        self._timed: dict[str, TimedChange] = {}
        self._each: list[dict[str, Change]] = []  # of each transaction, where they go one by one
        self._announcements: list[Announcement] | None = None
        self._reached: tuple[State, int] | None = None
        """The state that the heads have kept, where that is not the published one, and its transaction."""
        self._reaching: tuple[State, int] | None = None
        """The same of a state that all heads have staged, and that some may have kept already."""
        self._way_back = False
        """Whether all heads have staged the way back from ``_reached``."""
        for name, rows in staged.items():
            change = rows.net(name, state.base_version(name))
            inserted = int(np.count_nonzero(change.signs > 0))
            self.stats.inserted[name], self.stats.erased[name] = inserted, len(change) - inserted
            self.stats.no_changes[name] = len(rows.weights) - len(change)
            if len(change):
                self._timed[name] = change

    @property
    def is_empty(self) -> bool:
        return not self._timed

    @enough_memory(
        "what the transactions change does not fit into memory, and nothing was committed:"
        " apply fewer of them at a time"
    )
    def stepped_from(self, state: State) -> State:
        """The state after all transactions.

        Raises DataError and EvaluationError, which say which transaction they are about; then :meth:`drop`.
        """
        changing = set(self._timed)
        for name, head in state.heads.items():
            if head.reads.isdisjoint(changing):
                continue
            changing.add(name)
            self.stats.rules[name] = RuleStats(head.strategy)
            refusal = "it reads a function" if head.reads_as_functions & changing else head.timed_refusal
            if refusal is not None:
                self.stats.one_by_one[name] = refusal
        if not self.stats.one_by_one:
            try:
                return self._at_once(state)
            except (DataError, EvaluationError, OverBudget) as error:
                for head in self.stepped:
                    head.drop()
                why = _TOO_MUCH if isinstance(error, OverBudget) else type(error).__name__
                self.stats.one_by_one = dict.fromkeys(self.stats.rules, why)
        return self._one_by_one(state)

    def _at_once(self, state: State) -> State:
        total = Round(state.versions, dict(state.versions), {})
        batch = TimedRound(total, len(self._applied))
        for name, change in self._timed.items():
            refuse_nan(name, state.versions[name].schema, Change(change.columns, change.signs), state.heads)
            batch.enter(name, change)
        for head in self.stepped:
            figures = self.stats.rules[head.name]
            started = time.perf_counter()
            found = head.timed_step(batch, figures)
            figures.head_changes = len(found)
            if not head.reads.isdisjoint(total.changes):
                columns, weights = head.step(total, figures)
                net = found.net()
                assert np.array_equal(net.weights, weights), "a batch is what it does in the end"
                assert np.array_equal(net.columns, table_of(columns, len(weights)))
            if len(found):
                batch.enter(head.name, found)
            figures.seconds = time.perf_counter() - started
        self._timed = batch.changes
        return State(total.new, state.strata, state.budgets, self.mark)

    def _one_by_one(self, state: State) -> State:
        at = state
        for place, number in enumerate(self._applied.transactions):
            stats = TransactionStats()
            try:
                following, changes = self._step(at, place, stats)
            except LftjError as error:
                raise type(error)(f"transaction {number}: {error}") from None
            self._each.append(changes)
            for name, figures in stats.rules.items():
                self.stats.rules[name].add(figures)
            self._reaching = following, place
            self._settle_reached()
            at = following
        return State(at.versions, at.strata, at.budgets, self.mark)

    def _step(self, state: State, place: int, stats: TransactionStats) -> tuple[State, dict[str, Change]]:
        """The state after one transaction, which all heads have staged, and its changes."""
        round_ = Round(state.versions, dict(state.versions), {})
        functions = state.strata.functions
        for name, timed_change in self._timed.items():
            change = timed_change.at(place)
            if not len(change):
                continue
            refuse_nan(name, state.versions[name].schema, change, state.heads)
            version = round_.enter(name, change)
            if name in functions:
                refuse_relation_conflict(version, change.columns, change.weights)
        for stratum in state.strata:
            for name, change in stratum.step(round_, stats).items():
                if name in functions and not state.heads[name].schema.functional:
                    refuse_relation_conflict(round_.new[name], change.columns, change.weights)
        return State(round_.new, state.strata, state.budgets), round_.changes

    def _settle_reached(self) -> None:
        """Let heads keep what they have staged of one transaction; done again where it was left half way."""
        if self._reaching is not None:
            for head in self.stepped:
                head.keep()
            self._reached, self._reaching = self._reaching, None

    def keep(self, subscribers: Subscribers) -> None:
        """The state is published: heads keep what they staged, and subscribers hear of each transaction."""
        applied = self._applied
        applied.take(self.stats, self._schemas, self._each or self._timed)
        for head in self.stepped:
            head.keep()
        if self._announcements is None:
            self._announcements = list(self._told(subscribers))
        for announcement in self._announcements:
            subscribers.announce(announcement)

    def _told(self, subscribers: Subscribers) -> Iterator[Announcement]:
        applied = self._applied
        heard = [name for name in self._schemas if subscribers.has(name)]
        if not heard:
            return
        for changes in applied:
            changed = [name for name in heard if changes[name].num_rows]
            told = _Told(changes, applied.subscriber_errors)
            if changed:
                yield subscribers.announcement(told, changed)

    def drop(self) -> None:
        """The state is as it was before: heads forget what they staged, and go back where they had been."""
        self._settle_reached()
        if not self._way_back:
            for head in self.stepped:
                head.drop()
            if self._reached is None:
                return
            state, last = self._reached
            round_ = Round(state.versions, dict(state.versions), {})
            for name, timed_change in self._timed.items():
                back = _inverse(timed_change, timed_change.times <= last)
                if len(back):
                    round_.enter(name, back)
            for stratum in state.strata:
                stratum.step(round_, TransactionStats())
            self._way_back = True
        for head in self.stepped:
            head.keep()
        self._reached, self._way_back = None, False


def _inverse(change: TimedChange, done: np.ndarray) -> Change:
    """What undoes the changes of a mask, the first ones of each row."""
    if not done.any():
        return Change(change.columns[:, :0], change.signs[:0])
    part = TimedChange(np.ascontiguousarray(change.columns[:, done]), change.times[done], change.signs[done])
    net = part.net()
    return Change(net.columns, -net.weights)
