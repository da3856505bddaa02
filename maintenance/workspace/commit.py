"""`Commit`: one transaction on its way from staged changes to a published state.

Invariants

1. Nothing that readers see changes until the workspace replaces its state by the one of
   :meth:`Commit.stepped_from`, by one assignment.  That assignment decides: a commit whose mark the state has
   is *kept* to the end, another is *dropped*.
2. :meth:`Commit.keep` and :meth:`Commit.drop` may be left half way and done again, any number of times: what
   is done twice is as if it were done once.  So an exception at any point leaves a workspace that only has to
   do one of them before it does something else.
3. Sensitivity records of a round that failed stay: more records than needed are sound (docs/design/engine.md
   section 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from lftj.errors import ChangeError, NanError
from lftj.language.several_aggregates import shown_name
from lftj.process.enough_memory import enough_memory
from lftj.storage.signed_rows import Columns
from lftj.values.domain import NAN_CODE
from lftj.values.schema import Schema
from maintenance.changes.change import Change
from maintenance.changes.coded_changes import CodedChanges, table_of_change
from maintenance.changes.head_changes import Changes
from maintenance.changes.write_buffer import WriteBuffer
from maintenance.durable.entries import Changed
from maintenance.event_time.closing import extents_of
from maintenance.event_time.tick import STILL, Tick
from maintenance.heads.functional_check import refuse_relation_conflict
from maintenance.heads.grown import Moment
from maintenance.heads.head import MaintainedHead
from maintenance.stats import TransactionStats
from maintenance.strategies.strategy import Round
from maintenance.workspace.budget import refuse_large_views
from maintenance.workspace.guarded import note_narrowed, widened
from maintenance.workspace.state import State
from maintenance.workspace.subscribers import Announcement, LateRows, Subscribers
from maintenance.workspace.transaction import Transaction
from maintenance.workspace.view_choices import enter_commits


class Commit:
    """The changes of one transaction, of base relations first, then of the heads that follow."""

    prepares = False
    """Whether somebody is to know before there is a commit."""

    def __init__(self, transaction: Transaction, state: State, buffers: Mapping[str, WriteBuffer]) -> None:
        """Net what was staged.  Raises DataError and TransactionError; no head has staged anything then."""
        self._begin(transaction, state)
        self.announcements: list[Announcement] = []
        self._transaction = transaction
        self.prepares = transaction.prepare is not None
        self._changes: dict[str, Change] = {}
        self._tick = STILL
        if state.streams or state.recents:
            self._tick = Tick(state.streams, state.recents, extents_of(state.finals), transaction.clockwork)
        transaction.refuse_conflict(state.versions)
        for name, buffer in buffers.items():
            if state.strata.grown and transaction.clockwork.told is None:
                refuse_grown(name, state)
            version = state.base_version(name)
            change = self._tick.judged(name, buffer).net(version)
            inserted = len(change) + int(change.weights.sum()) >> 1
            self.stats.inserted[name], self.stats.erased[name] = inserted, len(change) - inserted
            self.stats.no_changes[name] = change.no_changes
            if len(change):
                refuse_nan(name, version.schema, change, state.heads)
                self._changes[name] = change
        self._written = dict(self._changes)
        if self._tick is not STILL:
            self._tick.expire(state.versions, self._changes)
            self.stats.late, self.stats.expired = self._tick.late, self._tick.expired

    def _begin(self, committed: object, state: State) -> None:
        self.mark = object()
        self.number = 0
        """In the journal, when that has it."""
        self.committed = committed
        """The transaction, or whatever else is committed."""
        self.stats = TransactionStats(strategies=state.strata.strategies)
        self._heads = state.heads
        self._round: Round | None = None
        self._schemas = state.shown
        self._head_changes: CodedChanges | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the staged changes leave everything as it is."""
        return not self._changes and (self._tick is STILL or not self._tick.moved)

    @property
    def stepped(self) -> list[MaintainedHead]:
        """Every head that may have staged something: those of which there are figures."""
        return [self._heads[name] for name in self.stats.rules]

    def under_way(self) -> tuple[float | None, str]:
        """Which part of the heads that may change has been stepped, and which one is being stepped."""
        begun = list(self.stats.rules)
        concerned = set(self._changes)
        for head in self._heads.values():
            if not head.reads.isdisjoint(concerned):
                concerned.add(head.name)
        n_heads = sum(name in concerned for name in self._heads)
        return (len(begun) - 1) / n_heads if begun else 0.0, shown_name(begun[-1]) if begun else ""

    @enough_memory(
        "what the transaction changes does not fit into memory, and nothing was committed:"
        " commit it in smaller transactions"
    )
    def stepped_from(self, state: State) -> State:
        """The state after the changes, those of the heads included, which stage what they will be.

        Raises DataError and EvaluationError; then :meth:`drop`.
        """
        round_ = Round(state.versions, dict(state.versions), {})
        strata = state.strata
        for name, change in self._changes.items():
            version = round_.enter(name, change)
            if name in strata.functions:
                refuse_relation_conflict(version, change.columns, change.weights)
        spans = widened(state, state.spans, self._changes) if strata.guarded else state.spans
        is_new = bool(strata.grown) and self._transaction.clockwork.told is None
        moment = Moment(*self._tick.clocks, dict(self._written)) if is_new else None
        for name, gained in strata.step(round_, self.stats, moment):
            refuse_nan(name, round_.new[name].schema, gained, state.heads)
            self._written[name] = gained
        if strata.guarded:
            of_heads = {name: round_.changes[name] for name in round_.changes.keys() - self._changes}
            spans = widened(state, spans, of_heads)
        refuse_large_views(state.heads, round_.new, state.view_bytes)
        self._changes = round_.changes
        self._round = round_
        return state.committed(round_.new, self.mark, spans, self._tick.streams, self._tick.recents)

    def entry(self, state: State) -> Changed:
        """What the journal says: the changes of base relations, by value.  ``state``: the one before."""
        changes = self._written.items()
        tables = {name: table_of_change(state.versions[name].schema, change) for name, change in changes}
        return Changed(tables, streams=self._tick.moved)

    @property
    def head_changes(self) -> CodedChanges:
        """The changes of the heads that a user knows of, when all are worked out."""
        if self._head_changes is None:
            self._head_changes = self._worked_out()
        return self._head_changes

    def _worked_out(self) -> CodedChanges:
        shown = self._schemas
        return CodedChanges(shown, {name: self._changes[name] for name in self._changes if name in shown})

    def prepare(self) -> None:
        """What has to be done before there is a commit, when all changes are worked out."""
        prepare = self._transaction.prepare
        assert prepare is not None
        prepare(Changes(self._schemas.keys(), self.head_changes), self._tick.late_rows)

    def keep(self, subscribers: Subscribers) -> None:
        """The state is published: heads keep what they staged, the transaction and subscribers hear of it."""
        self._transaction.stats = self.stats
        self._transaction.changes = Changes(self._schemas.keys(), self.head_changes)
        for head in self.stepped:
            head.keep()
        if not self.announcements and subscribers.callbacks:
            late = LateRows(self._tick.late_rows, self._transaction.subscriber_errors)
            self.announcements = [
                subscribers.announcement(self._transaction, self._changes, self.number),
                subscribers.announcement(late, late.changes, self.number),
            ]
        for announcement in self.announcements:
            subscribers.announce(announcement)

    def drop(self) -> None:
        """The state is as it was before: heads forget what they staged."""
        for head in self.stepped:
            head.drop()

    def refuse(self) -> None:
        """What was published could not be brought to the disk: the transaction has no changes to show."""
        self._transaction.refuse()

    def tidy(self, state: State) -> list[str]:
        """Let heads give back what they need no more; returns what to say of those that failed."""
        problems = []
        try:
            if state.strata.may_wait_for_views:
                for changed in self._each_changed:
                    note_narrowed(state, changed)
        except Exception as error:
            problems.append(failed_housekeeping("looking for heads that may have views again", error))
        try:
            if self.stats.rules:
                rules = self.stats.rules
                enter_commits(state, rules, dict.fromkeys(rules, 1), self._n_changed, self._round)
        except Exception as error:
            problems.append(failed_housekeeping("sampling what views would take", error))
        for head, rule_stats in zip(self.stepped, self.stats.rules.values(), strict=True):
            try:
                rule_stats.rebuilt = head.tidy(state.versions)
            except Exception as error:
                problems.append(failed_housekeeping(f"tidying up {shown_name(head.name)!r}", error))
        return problems

    @property
    def all_changes(self) -> Mapping[str, Change]:
        """The changes of all relations and heads, when all are worked out."""
        return self._changes

    @property
    def _each_changed(self) -> Iterable[Mapping[str, tuple[Columns, np.ndarray]]]:
        """Rows and weights by relation, of all heads."""
        return [{name: (change.columns, change.weights) for name, change in self._changes.items()}]

    @property
    def _n_changed(self) -> dict[str, int]:
        """How many tuples of each relation came or went."""
        return {name: len(change) for name, change in self._changes.items()}

    def measure(self) -> None:
        """Note what the sensitivity records take after the commit."""
        for head, rule_stats in zip(self.stepped, self.stats.rules.values(), strict=True):
            for search in head.searches:
                if search.keeps_something:
                    rule_stats.index_bytes += search.nbytes
                    rule_stats.records += sum([index.n_records for index in search.sensitivity])


def refuse_grown(name: str, state: State) -> None:
    """Raise ChangeError for a relation that only grows, which is nobody's to change."""
    if name in state.strata.grown:
        raise ChangeError(f"{name!r} has {state.strata.grown[name].what}: they stay")


def failed_housekeeping(what: str, error: Exception) -> str:
    """What to say of an error after the state was published."""
    return (
        f"what was published stands, but {what} failed and will be tried again:"
        f" {type(error).__name__}: {error}"
    )


def refuse_nan(name: str, schema: Schema, change: Change, heads: Mapping[str, MaintainedHead]) -> None:
    """NaN equals nothing: it can't come into a column that a maintained rule joins by."""
    for position in schema.floats:
        column = schema.columns[position]
        first = next((head.name for head in heads.values() if head.joins_by(name, position)), None)
        if first and (change.columns[position][change.weights > 0] == NAN_CODE).any():
            raise NanError(
                f"changes of {name!r}, column {column.name!r}: NaN, which equals nothing,"
                f" in a column that the rules of {shown_name(first)!r} join by"
            )
