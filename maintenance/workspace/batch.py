"""A batch: many transactions in one call, with the change of every head by each of them.

:class:`BatchCommit` leads from one published state to the next, as a commit does, each head in one of two
ways:

* *at once*: what each head's rows do at all times is worked out together
  (:mod:`maintenance.strategies.timed_round`): a few kernel calls, however many transactions there are;
* *one by one*, where a head can't be worked out so, or reads one or shares an intermediate with one that
  can't: ``stats.one_by_one`` says which, and why.  All heads go so where something is wrong, to tell which
  transaction it is, and where a body under `auto` takes more operations at once than it may one by one:
  tuples that are never there together may have many assignments together.  Where the commit machine takes
  these heads they go by it (:mod:`maintenance.machine.stepper`); ``stats.fast`` counts the transactions.

Invariants

1. Either way each transaction's changes are those of committing it by itself after the ones before it.
2. All of them are published by one assignment, or nothing is: heads that were stepped one by one are stepped
   back to where they were by the inverse of all that they had been through (:meth:`BatchCommit.drop`).
3. ``keep`` and ``drop`` may be left half way and done again, as those of a commit.

Cost: of heads at once, one delta step over all touched tuples, and what each keeps once; of those one by one,
that of commits of what they read, less publishing; by the machine that of its commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from indices.compile_time import seconds_without_compiling
from lftj.errors import DataError, EvaluationError, KeyConflictError, LftjError, StreamError
from lftj.language.several_aggregates import shown_name
from lftj.process.enough_memory import enough_memory
from lftj.rewriting.guard import Spans
from lftj.search.regions.evaluation import OverBudget
from lftj.storage.signed_rows import Columns, gathered, net_rows, table_of
from lftj.values.collector import Held
from lftj.values.domain import NAN_CODE
from lftj.values.schema import Schema
from lftj.values.shown_text import counted
from maintenance.changes.change import Change
from maintenance.changes.coded_changes import CodedChanges, held_codes, table_of_change
from maintenance.changes.head_changes import Changes
from maintenance.changes.timed_change import TimedChange
from maintenance.durable.entries import Changed
from maintenance.event_time.closing import extents_of
from maintenance.event_time.stream_state import NEVER
from maintenance.event_time.timed_tick import TimedTick
from maintenance.heads.functional_check import refuse_relation_conflict
from maintenance.heads.grown import Grown, Moment
from maintenance.heads.head import MaintainedHead
from maintenance.heads.stratum import Strata
from maintenance.machine.machine import ENOUGH, Machine
from maintenance.machine.stepper import Staged, Stepper
from maintenance.stats import RuleStats, TransactionStats
from maintenance.strategies.strategy import Round, Versions
from maintenance.strategies.timed_round import TimedRound
from maintenance.workspace.budget import refuse_large_views
from maintenance.workspace.commit import Commit, refuse_grown, refuse_nan
from maintenance.workspace.guarded import widened
from maintenance.workspace.staged_batch import StagedRows
from maintenance.workspace.state import State
from maintenance.workspace.subscribers import Announcement, LateRows, Subscribers

_TOO_MUCH = "at once it takes more operations than one by one"


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
        self._timed: Mapping[str, TimedChange] = {}
        self._each: Sequence[Mapping[str, Change]] = ()
        self._changes: dict[int, Changes] = {}

    def take(
        self,
        stats: TransactionStats,
        schemas: Mapping[str, Schema],
        timed: Mapping[str, TimedChange],
        each: Sequence[Mapping[str, Change]],
    ) -> None:
        """The batch is published: what it took, and the changes of each head.

        ``timed``: of those at once; ``each``: of the others at each time, empty where there are none.
        """
        self._schemas, self._timed, self._each, self.stats = schemas, timed, each, stats
        for schema in schemas.values():
            schema.hold(self)

    def held(self) -> list[Held]:
        """The codes that are to keep their values, as long as this lives (`lftj.values.collector`)."""
        return held_codes(self, self._schemas, self._timed, *self._each)

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
                schemas.keys(), lambda name: table_of_change(schemas[name], self._change(name, place))
            )
        return self._changes[place]

    def _change(self, name: str, index: int) -> Change | None:
        if name in self._timed:
            return self._timed[name].at(index)
        return self._each[index].get(name) if self._each else None

    def __repr__(self) -> str:
        return f"<applied: {counted(len(self), 'transaction')}>"


@dataclass
class _AnnouncedTransaction:
    """One transaction of a batch, as subscribers are told of it."""

    changes: Changes
    subscriber_errors: list[tuple[str, Exception]] = field(default_factory=list)


class BatchCommit(Commit):
    """The changes of many transactions, of base relations first, then of the heads that follow."""

    def __init__(
        self, applied: Applied, state: State, staged: Mapping[str, StagedRows], machine: Machine | None
    ) -> None:
        """Net what is staged against the state.  Raises DataError; nothing is staged by any head then.

        ``machine``: None where all goes the general way.
        """
        self._begin(applied, state)
        self._applied = applied
        self._timed: dict[str, TimedChange] = {}  # of base relations, then also of heads at once
        self._each: list[Mapping[str, Change]] = []  # of each transaction, for the heads one by one
        self._machine = machine
        self._stepper: Stepper | None = None
        """What goes by the machine, as long as heads do not know of it."""
        self._slow = Strata()
        """The heads one by one."""
        self._read: frozenset[str] = frozenset()
        """What they read."""
        self._spans: Spans = state.spans
        """As far as they are widened."""
        self._announcements: list[Announcement] | None = None
        self._tick: TimedTick = TimedTick(
            state.streams, state.recents, extents_of(state.finals), len(applied)
        )
        self._reached: tuple[Versions, int] | None = None
        """What they have kept, where that is not the published state, and its transaction."""
        self._reaching: tuple[Versions, int] | None = None
        """The same of what all of them have staged, and some may have kept already."""
        self._way_back = False
        """Whether all of them have staged the way back from ``_reached``."""
        for name, rows in staged.items():
            refuse_grown(name, state)
            version = state.base_version(name)
            try:
                if name in state.streams and rows.schema is version.schema:
                    rows = rows.chosen(self._tick.taken(name, rows.schema, rows.rows, rows.times))
                change = rows.net(name, version)
            except (KeyConflictError, StreamError) as error:
                number = applied.transactions[error.time]
                raise type(error)(f"transaction {number}: {error}") from None
            inserted = int(np.count_nonzero(change.signs > 0))
            self.stats.inserted[name], self.stats.erased[name] = inserted, len(change) - inserted
            self.stats.no_changes[name] = max(0, len(rows) - len(change))
            if len(change):
                self._timed[name] = change
        self._came = dict(self._timed)
        """What the transactions bring, before rows leave."""
        self._members: list[MaintainedHead | Grown] = []
        """What may change with it, each after those that it reads."""
        self._tick.expire_each(state.versions, self._timed)
        self.stats.late, self.stats.expired = self._tick.late, self._tick.expired

    @property
    def is_empty(self) -> bool:
        return not self._timed and not self._tick.moved

    def under_way(self) -> tuple[float | None, str]:
        return None, f"{len(self._applied):,} transactions"

    @enough_memory(
        "what the transactions change does not fit into memory, and nothing was committed:"
        " apply fewer of them at a time"
    )
    def stepped_from(self, state: State) -> State:
        """The state after all transactions.

        Raises DataError and EvaluationError, which say which transaction they are about; then `drop`.
        """
        changing = {*self._timed, *self._came}
        before, now = self._tick.clocks
        for one in state.strata.members:
            if isinstance(one, Grown):
                changes = one.may_gain(changing, before != now)
            elif changes := not one.reads.isdisjoint(changing):
                self.stats.rules[one.name] = RuleStats(one.strategy)
            if changes:
                changing.add(one.name)
                self._members.append(one)
        self.stats.one_by_one = one_by_one(self._members, changing)
        self._spans = widened(state, state.spans, self._timed)
        batch = TimedRound(Round(state.versions, dict(state.versions), {}), len(self._applied))
        for name, change in self._timed.items():
            batch.enter(name, change)
        machine = self._machine
        try:
            self._at_once(batch, state)
        except (DataError, EvaluationError, OverBudget) as error:
            for head in self.stepped:
                head.drop()
            why = _TOO_MUCH if isinstance(error, OverBudget) else type(error).__name__
            self.stats.one_by_one = {one.name: why for one in self._members}
            machine = machine if isinstance(error, OverBudget) else None
        others = {one.name: self._timed[one.name] for one in self._members if one.name in self._timed}
        self._spans = widened(state, self._spans, others)
        versions = batch.total.new
        if self.stats.one_by_one:
            following = self._each_from(state, machine)
            versions = {**versions, **{name: following[name] for name in self.stats.one_by_one}}
        refuse_large_views(state.heads, versions, state.view_bytes)
        streams, recents = self._tick.streams, self._tick.recents
        return state.committed(versions, self.mark, self._spans, streams, recents)

    def _at_once(self, batch: TimedRound, state: State) -> None:
        """Stage what heads at once will be, and note their changes."""
        total = batch.total
        for name, change in self._timed.items():
            refuse_nan(name, state.versions[name].schema, Change(change.columns, change.signs), state.heads)
        for head in self._members:
            if head.name in self.stats.one_by_one:
                continue
            if isinstance(head, Grown):
                gained = head.gained_each(batch, self._tick.clocks[0], self._tick.nows)
                if len(gained):
                    schema = state.versions[head.name].schema
                    refuse_nan(head.name, schema, gained.net, state.heads)
                    batch.enter(head.name, gained)
                continue
            figures = self.stats.rules[head.name]
            started = seconds_without_compiling()
            step_changes = head.timed_step(batch, figures)
            figures.head_changes = len(step_changes)
            if head.keeps_something and not head.reads.isdisjoint(total.changes):
                columns, weights = head.step(total, figures)
                net = step_changes.net
                assert np.array_equal(net.weights, weights), "a batch is what it does in the end"
                assert np.array_equal(net.columns, table_of(columns, len(weights)))
            if len(step_changes):
                batch.enter(head.name, step_changes)
            figures.seconds = seconds_without_compiling() - started
        self._timed = batch.changes

    def _each_from(self, state: State, machine: Machine | None) -> Versions:
        """The versions after all transactions; the heads one by one have kept all, or all but the last."""
        slow = self.stats.one_by_one
        fast = [one.name for one in state.strata.members if one.name not in slow]
        self._slow = state.strata.without(fast) if fast else state.strata
        self._read = frozenset().union(*(one.reads for one in self._slow.members))
        stepper = None if machine is None else self._stepper_from(state, machine)
        versions, back, wait = state.versions, 0, 1
        for index, number in enumerate(self._applied.transactions):
            if stepper is not None and index >= back:
                versions = self._by_machine(stepper, versions, index)
                wait = 1 if len(self._each) - index >= ENOUGH else 2 * wait
                back = len(self._each) + wait
            if index < len(self._each):
                continue
            stats = TransactionStats()
            try:
                following, changes = self._step(versions, index, stats)
            except LftjError as error:
                raise type(error)(f"transaction {number}: {error}") from None
            self._spans = widened(state, self._spans, changes)
            self._each.append(changes)
            for name, figures in stats.rules.items():
                self.stats.rules[name].add(figures)
            self._reaching = following, index
            self._settle_reached()
            versions = following
        if stepper is not None:
            self.stats.fast = stepper.n_done
            for name, figures in stepper.rules.items():
                self.stats.rules[name].add(figures)
        return versions

    def _stepper_from(self, state: State, machine: Machine) -> Stepper | None:
        """What does the transactions by the machine; None where it does not take all that is read."""
        changes = {name: change for name, change in self._timed.items() if name in self._read}
        times = [change.times for change in changes.values()]
        count = len(np.unique(np.concatenate(times))) if times else 0
        if any(_has_nan(state.versions[name].schema, change) for name, change in changes.items()):
            return None
        program = machine.program_for(state, self._slow, changes, count)
        if program is None:
            return None
        staged = Staged(changes, program.layout, len(self._applied))
        return Stepper(program, staged, self._reference if machine.checks else None)

    def _by_machine(self, stepper: Stepper, versions: Versions, first: int) -> Versions:
        """The versions after those transactions, from a first one on, that the machine takes."""
        if not stepper.begin(versions, self._spans, first):
            return versions
        self._stepper = stepper
        for index in range(first, len(self._applied)):
            changes = stepper.commit(index)
            if changes is None:
                break
            self._each.append(changes)
        self._settle_reached()
        return stepper.versions

    def _reference(self, versions: Versions, index: int) -> Mapping[str, Change] | None:
        """What a transaction changes the general way, over these versions; None where it is refused."""
        try:
            return self._step(versions, index, TransactionStats())[1]
        except (DataError, EvaluationError):
            return None
        finally:
            for head in self._slow.heads.values():
                head.drop()

    def _step(
        self, versions: Versions, index: int, stats: TransactionStats
    ) -> tuple[Versions, dict[str, Change]]:
        """The versions after one transaction, which the heads one by one have staged, and its changes."""
        round_ = Round(versions, dict(versions), {})
        functions = self._slow.functions
        for name, timed_change in self._timed.items():
            if name not in self._read:
                continue
            change = timed_change.at(index)
            if not len(change):
                continue
            head = self._heads.get(name)
            if head is None:
                refuse_nan(name, versions[name].schema, change, self._heads)
            version = round_.enter(name, change)
            if name in functions and (head is None or not head.schema.functional):
                refuse_relation_conflict(version, change.columns, change.weights)
        for name, gained in self._slow.step(round_, stats, self._moment(index)):
            refuse_nan(name, round_.new[name].schema, gained, self._heads)
        return round_.new, round_.changes

    def _moment(self, index: int) -> Moment:
        """A transaction, for what grows by it."""
        before, nows = self._tick.clocks[0], self._tick.nows
        now = None if nows[index] == NEVER else int(nows[index])
        if index and nows[index - 1] != NEVER:
            before = int(nows[index - 1])
        return Moment(before, now, {name: came.at(index) for name, came in self._came.items()})

    def _settle_reached(self) -> None:
        """Let the heads one by one keep what they were led through; again where it was left half way."""
        stepper = self._stepper
        if stepper is not None:
            stepper.fold()
            self._spans = stepper.spans
            if stepper.last >= 0:
                self._reached = stepper.versions, stepper.last
            self._stepper = None
        if self._reaching is not None:
            for head in self._slow.heads.values():
                head.keep()
            self._reached, self._reaching = self._reaching, None

    @property
    def _each_changed(self) -> Iterable[Mapping[str, tuple[Columns, np.ndarray]]]:
        yield {name: (change.columns, change.signs) for name, change in self._timed.items()}
        for changes in self._each:
            yield {name: (change.columns, change.weights) for name, change in changes.items()}

    @property
    def _n_changed(self) -> dict[str, int]:
        return {name: len(change) for name, change in self._timed.items()}

    def entry(self, state: State) -> Changed:
        """The changes of base relations by all transactions together."""
        net = {name: came.net for name, came in self._came.items()}
        gained = {name: self._net(name) for name in state.strata.grown}
        net |= {name: change for name, change in gained.items() if change}
        tables = {name: table_of_change(state.versions[name].schema, change) for name, change in net.items()}
        return Changed(tables, len(self._applied), self._tick.moved)

    def _worked_out(self) -> CodedChanges:
        """What all transactions together do to the heads that a user knows of."""
        net = {name: self._net(name) for name in self._schemas}
        return CodedChanges(self._schemas, {name: change for name, change in net.items() if change})

    def _net(self, name: str) -> Change | None:
        """What all transactions together do to a head; None if nothing."""
        if name in self._timed:
            change = self._timed[name].net
        else:
            each = [changes[name] for changes in self._each if name in changes]
            if not each:
                return None
            columns, weights = gathered([(change.columns, change.weights) for change in each])
            change = Change(*net_rows(columns, weights))
        return change if len(change) else None

    def keep(self, subscribers: Subscribers) -> None:
        """The state is published: heads keep what they staged, and subscribers hear of each transaction."""
        applied = self._applied
        applied.take(self.stats, self._schemas, self._timed, self._each)
        for head in self.stepped:
            head.keep()
        if self._announcements is None:
            self._announcements = list(self._announced(subscribers))
        for announcement in self._announcements:
            subscribers.announce(announcement)

    def _announced(self, subscribers: Subscribers) -> Iterator[Announcement]:
        applied = self._applied
        late = LateRows(self._tick.late_rows, applied.subscriber_errors)
        yield subscribers.announcement(late, late.changes, self.number)
        heard = [name for name in self._schemas if subscribers.has(name)]
        if not heard:
            return
        for changes in applied:
            changed = [name for name in heard if changes[name].num_rows]
            announced = _AnnouncedTransaction(changes, applied.subscriber_errors)
            if changed:
                yield subscribers.announcement(announced, changed, self.number)

    def refuse(self) -> None:
        """What was published could not be brought to the disk; nobody has the changes yet."""

    def drop(self) -> None:
        """The state is as it was before: heads forget what they staged, and go back where they had been."""
        self._settle_reached()
        if not self._way_back:
            for head in self.stepped:
                head.drop()
            if self._reached is None:
                return
            versions, last = self._reached
            round_ = Round(versions, dict(versions), {})
            for name, timed_change in self._timed.items():
                back = _inverse(timed_change, timed_change.times <= last)
                if name in self._read and len(back):
                    round_.enter(name, back)
            for name in self._slow.grown:
                gained = [changes[name] for changes in self._each[: last + 1] if name in changes]
                if gained:
                    rows, weights = gathered([(change.columns, change.weights) for change in gained])
                    round_.enter(name, Change(*net_rows(rows, -weights)))
            for _ in self._slow.step(round_, TransactionStats(), None):
                pass
            self._way_back = True
        for head in self._slow.heads.values():
            head.keep()
        self._reached, self._way_back = None, False


def _has_nan(schema: Schema, change: TimedChange) -> bool:
    """Whether rows have NaN, which the machine leaves to the general way."""
    return any((change.columns[position] == NAN_CODE).any() for position in schema.floats)


def one_by_one(heads: Sequence[MaintainedHead | Grown], changing: Set[str]) -> dict[str, str]:
    """Those of the heads, and of what grows, that a batch can't work out at once, and why.

    ``heads``: all that the batch is about, each after those that it reads; ``changing``: the relations, and
    these heads.
    """
    reasons: dict[str, str] = {}
    for head in heads:
        why = "it reads a function" if head.reads_as_functions & changing else head.timed_refusal
        if why is not None:
            reasons[head.name] = why
    n_known = 0
    while n_known < len(reasons):
        n_known = len(reasons)
        slow = [head for head in heads if head.name in reasons]
        for head in heads:
            if head.name in reasons:
                continue
            if other := next((other for other in slow if other.name in head.reads), None):
                reasons[head.name] = f"it reads {shown_name(other.name)!r}"
            elif other := next((other for other in slow if head.shared & other.shared), None):
                reasons[head.name] = f"it shares its assignments with {shown_name(other.name)!r}"
    return reasons


def _inverse(change: TimedChange, done: np.ndarray) -> Change:
    """What undoes the changes of a mask, the first ones of each row."""
    if not done.any():
        return Change(change.columns[:, :0], change.signs[:0])
    part = TimedChange(np.ascontiguousarray(change.columns[:, done]), change.times[done], change.signs[done])
    net = part.net
    return Change(net.columns, -net.weights)
