"""`Published`: the state that readers see, and the commits that lead from one to the next.

Invariants

1. ``state`` is one immutable object: the versions of all relations and heads, and the rules
   that are installed.  What is new is built beside it and takes its place by one assignment, so a
   reader, who takes it once, sees all of a transaction or nothing of it, and so does whoever
   goes on after an exception or Ctrl-C at any point.
2. One commit runs at a time, under the lock; readers never wait.
3. What is published is told: a commit that was interrupted behind the assignment is *settled* (its heads
   keep what they staged, the transaction and subscribers hear of it) before anything else is done; one
   that was interrupted before it is settled by dropping what heads had staged.
4. Tidying up comes last.  If it fails, a warning says so, and it is tried again.
5. Where there is a journal, a state takes its place when the journal has what led to it: that a change was
   appended decides, and what an interruption left between the two is made up for first.
6. Readers are *shown* a state when all that led to it is on disk (as far as that is waited for), and
   subscribers are told then; commits of other threads go on meanwhile, from the state that comes, so that
   they can share one sync.  When a sync fails readers stay where they are, and nothing can be changed any
   more.
7. What is published is in the feed: what heads do on the way to a state is offered to it before the state
   takes its place (:meth:`Published.replace`).  So whoever was shown a version finds there all that led to
   it, though the commit is not settled yet.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import cache

from indices.compile_time import seconds_without_compiling
from indices.housekeeping import housekeeping
from lftj.errors import DataError, DurabilityError, EvaluationError, HousekeepingWarning, SubscriberWarning
from lftj.language.diagnostics import warn_caller
from lftj.language.several_aggregates import shown_name
from lftj.process.interrupts import interruptible
from lftj.process.progress import bar
from lftj.rewriting.guard import Spans
from lftj.storage.catalog import IndexKey
from lftj.storage.relation_version import levels_of
from lftj.values.collector import Collector
from lftj.values.domains import Domains
from maintenance.changes.change import Change
from maintenance.changes.coded_changes import CodedChanges
from maintenance.durable.definitions import Definition
from maintenance.durable.entries import Entry, Installed
from maintenance.durable.store import Store
from maintenance.event_time.stream_state import StreamState
from maintenance.heads.head import MaintainedHead
from maintenance.heads.stratum import Strata
from maintenance.machine.accounting import Taken
from maintenance.machine.entry_form import EntryForm
from maintenance.machine.machine import Machine
from maintenance.machine.piece import Piece
from maintenance.strategies.strategy import Round, Versions
from maintenance.workspace.budget import enforce_budgets
from maintenance.workspace.commit import Commit, failed_housekeeping
from maintenance.workspace.commit_feed import CommitFeed
from maintenance.workspace.history import one_commit
from maintenance.workspace.memory_by_kind import memory_by_kind
from maintenance.workspace.state import State
from maintenance.workspace.subscribers import Announcement, Subscribers
from maintenance.workspace.transaction import Transaction
from maintenance.workspace.view_choices import enter_commits, wants_change
from maintenance.workspace.watched import Watched

_GIVING_BACK = "giving back the codes of values that are gone"


class Published:
    """One workspace's."""

    def __init__(self, state: State, domains: Domains) -> None:
        """``domains``: of which the state's codes are."""
        self.as_bound = state
        """The state, without what the machine did since."""
        self.machine: Machine | None = None
        """Commits single changes; None where all go the general way."""
        self.looks_for_views = False
        """Whether heads may want to go over to views, or back, after commits of the machine's."""
        self._domains = domains
        self.subscribers = Subscribers()
        self.feed = CommitFeed()
        self.watched = Watched()
        self.lock = threading.RLock()
        """Whoever replaces the state holds it."""
        self._unsettled: Commit | None = None
        self._single: tuple[Transaction, Piece, int, list[Announcement] | None] | None = None
        self._held_for: Strata | None = None  # whose indices are held
        self.store: Store | None = None
        """Has the journal; None where all is in memory only."""
        self.refusal: DurabilityError | None = None
        """Why nothing can be changed, where that is so."""
        self.grown: Callable[[], None] | None = None
        """Called behind a commit that the journal has."""
        self._showing = threading.Lock()  # of what waits
        self._following: State | None = None  # takes its place when the journal has what led to it
        self._waiting: tuple[tuple[int, State], ...] = ()  # changes not on disk, each with the state before

    @property
    def state(self) -> State:
        """The last one."""
        machine = self.machine
        if machine is not None and machine.is_ahead(self.as_bound):
            machine.fold(self)
        return self.as_bound

    @state.setter
    def state(self, state: State) -> None:
        self.as_bound = state
        if self.machine is not None:
            self.machine.leave()

    @property
    def takes_single_changes(self) -> bool:
        """Whether the machine may commit now: no commit waits for the disk, or was left half way."""
        return (
            self.refusal is None
            and self._unsettled is None
            and self._single is None
            and (self.store is None or not self.waits_for_the_disk)
        )

    @property
    def waits_for_the_disk(self) -> bool:
        """Whether each commit does, before readers see it."""
        return self.store is not None and self.store.durability == "commit"

    @property
    def has_journal(self) -> bool:
        """Whether a commit is published when a journal has it."""
        return self.store is not None

    @property
    def collector(self) -> Collector:
        """Of values that nobody needs any more."""
        return self._domains.collector

    @property
    def is_listened_to(self) -> bool:
        """Whether somebody hears of each commit."""
        return self.feed.is_kept or bool(self.subscribers.callbacks or self.subscribers.waiting)

    def begin_single(self, transaction: Transaction, piece: Piece, number: int, is_heard: bool) -> None:
        """The machine is about to publish what leads to the version of this number; under the lock."""
        self._single = transaction, piece, number, [] if is_heard else None
        if is_heard:
            self.feed.offer(number, piece.coded_changes)

    def append_single(self, form: EntryForm) -> None:
        """Let the journal have what the machine is about to publish.  Raises DurabilityError."""
        assert self._single is not None and self.store is not None
        self.store.append_bytes(form.entry, form.filled(), self._single[2])

    def look_at_journal(self) -> None:
        """Begin a checkpoint if the journal wants one."""
        if self.grown is not None:
            self.grown()

    def settle_single(self) -> None:
        """End what the machine was about to publish; any number of times, under the lock."""
        if self._single is None:
            return
        transaction, piece, number, announced = self._single
        if not piece.is_published and self.store is not None and self.store.last == number:
            assert self.machine is not None
            self.machine.end()
        if announced is None:
            self._single = None
            return
        changed = piece.changed() if piece.is_published else {}
        if changed:
            self.feed.take_offered()
            if not announced:
                announced.append(self.subscribers.announcement(transaction, changed, 0))
            self.subscribers.announce(announced[0])
        else:
            self.feed.withdraw()
        self._single = None

    def tell_single(self) -> None:
        """Tell subscribers, and wake those who follow, behind a commit of the machine's."""
        if self._single is not None:
            with self.lock:
                self.settle_single()
        if self.is_listened_to:
            self.feed.wake()
            for problem in self.subscribers.tell(lambda: math.inf):
                warn_caller(problem, SubscriberWarning)

    def fold(
        self,
        versions: Versions,
        spans: Spans,
        streams: Mapping[str, StreamState],
        commits: int,
        seconds: float,
        operations: int,
        kept: bool,
    ) -> None:
        """Publish versions that the machine's commits led to, so many behind the state; under the lock.

        ``spans``: of guarded columns then; ``streams``: where they are; ``seconds``, ``operations``: that the
        commits took; ``kept``: whether the feed has what they changed.
        """
        state = self.as_bound
        number = state.number + commits
        if not kept:
            self.feed.skip(number)  # before: whoever asks has not seen what is in between
        self.as_bound = replace(state, versions=versions, spans=spans, streams=streams, number=number)
        memory_bytes = cache(lambda: self.memory_bytes(self.as_bound))
        self.watched.history.add_many(commits, seconds, operations, memory_bytes)

    def account(self, taken: Taken, change: Round, heads: Iterable[MaintainedHead]) -> None:
        """Behind :meth:`fold`: let choices know what the commits took, and heads tidy up; under the lock."""
        state, problems = self.as_bound, []
        try:
            enter_commits(state, taken.rules, taken.steps, taken.n_changed, change)
            self.looks_for_views = self.looks_for_views or wants_change(state, taken.rules)
        except Exception as error:
            problems.append(failed_housekeeping("sampling what views would take", error))
        for head in heads:
            try:
                head.tidy(state.versions)
            except Exception as error:
                problems.append(failed_housekeeping(f"tidying up {shown_name(head.name)!r}", error))
        try:
            self._domains.collector.advance()
        except Exception as error:
            problems.append(failed_housekeeping(_GIVING_BACK, error))
        for problem in problems:
            warn_caller(problem, HousekeepingWarning)

    def reference(
        self, transaction: Transaction, versions: Versions, streams: Mapping[str, StreamState]
    ) -> Mapping[str, Change] | None:
        """What a commit would change, over these versions; None where it is refused.  Nothing is changed."""
        state = replace(self.as_bound, versions=versions, streams=streams)
        for head in state.heads.values():
            head.drop()  # what an interruption of this has left
        try:
            commit = Commit(transaction, state, transaction.numbers_as_buffers())
            commit.stepped_from(state)
            return commit.all_changes
        except (DataError, EvaluationError):
            return None
        finally:
            for head in state.heads.values():
                head.drop()

    @property
    def shown(self) -> State:
        """The state that readers see."""
        state = self.state  # first: what waits is noted before the state is replaced
        waiting = self._waiting
        return waiting[0][1] if waiting else state

    def shown_at_once(self) -> tuple[State, bool]:
        """The state that readers see; or, while another thread changes it, an older one, and False."""
        if self.lock.acquire(blocking=False):
            try:
                return self.shown, True
            finally:
                self.lock.release()
        waiting = self._waiting
        return (waiting[0][1] if waiting else self.as_bound), False

    def memory_bytes(self, state: State) -> dict[str, int]:
        """Of a state and all beside it, by the kinds that `ws.stats` has."""
        beside = {"dictionaries": self._domains.nbytes, "follow": self.feed.nbytes}
        if self.machine is not None:
            beside["single changes"] = self.machine.memory_bytes
        return {**memory_by_kind(state), **beside}

    def begin(self, number: int, definitions: Iterable[Definition]) -> None:
        """The state is that of a change, and all is behind it; ``definitions``: as a state has them."""
        self.state = replace(self.state, number=number, definitions=tuple(definitions))
        self.feed.restart(number)

    def renumber(self, number: int) -> None:
        """The state is that of a change, which led to it in another process."""
        if self.state.number != number:
            self.state = replace(self.state, number=number)

    def settled(self) -> State:
        """The state, no commit left half way; under the lock."""
        self._settle()
        return self.state

    def changeable(self) -> State:
        """The same, to be replaced by another.  Raises DurabilityError where nothing can be changed."""
        if self.refusal is not None:
            raise type(self.refusal)(str(self.refusal))
        if self.store is not None:
            self.store.refuse_closed()
        return self.settled()

    def replace(
        self,
        following: State,
        entry: Entry | Callable[[], Entry],
        changes: Callable[[], CodedChanges] | None = None,
    ) -> int:
        """Let a state take the place of the one before; under the lock.

        ``entry``: what the journal is to say, worked out where there is one; ``changes``: of heads, for the
        feed.  Returns the number of the change, 0 where there is no journal.  Raises DurabilityError; then
        the state is as it was.
        """
        following = following.following(self.as_bound, None if callable(entry) else entry)
        self._hold_indices(following)
        self.feed.offer(following.number, changes)
        if self.store is None:
            self.state = following
            return 0
        if isinstance(entry, Installed) and (entry.heads or entry.grown):
            following.definitions[-1].refuse_without_text()
        written = entry() if callable(entry) else entry
        self._following = following
        try:
            return self.store.append(written, following.number)  # and not the state, which would be held
        finally:
            self._follow()

    def change(self, following: State, entry: Entry | Callable[[], Entry]) -> None:
        """The same, and wait until it is on disk; also raises ClosedError."""
        try:
            self.wait(self.replace(following, entry))
        except BaseException:
            self._follow()
            self._show()
            raise
        finally:
            self.feed.wake()

    def _show(self) -> None:
        """Wait for all that is not on disk yet, after an interruption of whoever was to wait for it."""
        waiting = self._waiting
        if waiting:
            with suppress(DurabilityError):
                self.wait(waiting[-1][0])

    def _follow(self) -> None:
        """The state is that of which the journal has what led to it; may be done any number of times."""
        following, store = self._following, self.store
        if following is None or store is None:
            return
        if store.last == following.number and self.state is not following:
            if store.number > store.durable:
                with self._showing:
                    self._waiting = (*self._waiting, (store.number, self.state))
            if self._unsettled is not None and following.commit is self._unsettled.mark:
                self._unsettled.number = store.number
            self.state = following
        self._following = None

    def wait(self, number: int) -> None:
        """Return when a change is on disk, as far as that is waited for, and shown.  Raises ClosedError."""
        store = self.store
        if store is None or not number:
            return
        try:
            store.wait(number)
        except DurabilityError:
            raise
        except BaseException:  # the change stands
            with suppress(DurabilityError):
                store.wait(number)
            raise
        finally:
            with self._showing:
                self._waiting = tuple(each for each in self._waiting if each[0] > store.durable)

    def compact(self) -> None:
        """Merge what changes have left in runs, and give back the values that nobody holds.  O(all)."""
        with self.lock:
            self._merge_runs()
            self._domains.collector.sweep()  # when the state before is gone, and its versions

    def _merge_runs(self) -> None:
        state = self.settled()
        versions = {name: version.compacted() for name, version in state.versions.items()}
        self.state = replace(state, versions=versions)

    def paused(self) -> AbstractContextManager[object]:
        """No other thread commits within it: what is there stays as it is, also where it changes in place."""
        with self.lock:
            self._settle()
        return self.lock

    def change_heads(self, following: State, entry: Entry | None) -> None:
        """Publish a state without some heads, or with others in their place; under the lock.

        ``entry``: what the journal is to say; None where only how heads are kept changes, which whoever tells
        the workspace again finds out.  Raises DurabilityError; then the state is as it was.
        """
        heads = following.heads
        leaving = [head for name, head in self.state.heads.items() if heads.get(name) is not head]
        for head in leaving:
            head.hand_over()
        if entry is None:
            self._hold_indices(following)
            self.state = following
        else:
            self.change(following, entry)
        problems = []
        try:
            for head in leaving:
                head.leave()
            enforce_budgets(following.budgets, following.heads.values())
        except Exception as error:
            problems.append(failed_housekeeping("giving back memory", error))
        for problem in problems:
            warn_caller(problem, HousekeepingWarning)

    def commit(self, committed: object, begun: Callable[[State], Commit]) -> None:
        """Commit staged changes: those of what ``begun`` gives for the state, under the lock.

        ``committed``: whose commit it is.  Raises DataError and EvaluationError; then the state is as it was
        before.  Warnings, and what an interruption raises behind the assignment that publishes, leave the
        commit as it is: ``tx.changes`` has the changes then.
        """
        problems: list[str] = []
        unheard: list[str] = []
        is_finished = False
        try:
            try:
                self._commit(begun, problems)
            except BaseException:
                self._show()
                raise
            finally:
                self._finish(committed, unheard)
                is_finished = True
        finally:
            if not is_finished:  # again, for an interruption came amid the first time
                self._finish(committed, unheard)
        if self.grown is not None:
            self.grown()
        for problem in problems:
            warn_caller(problem, HousekeepingWarning)
        for problem in unheard:
            warn_caller(problem, SubscriberWarning)

    @interruptible()
    def _commit(self, begun: Callable[[State], Commit], problems: list[str]) -> None:
        started, moved = seconds_without_compiling(), housekeeping.rows
        built, given_back = housekeeping.built, housekeeping.given_back
        with self.lock:
            state = self.changeable()
            commit = self._unsettled = begun(state)
            try:
                if not commit.is_empty:
                    stderr = sys.stderr
                    if stderr is not None and stderr.isatty():  # here, so that others call nothing more
                        following = _shown_stepping(commit, state)
                    else:
                        following = commit.stepped_from(state)
                    if commit.prepares:
                        commit.prepare()
                    self.replace(following, lambda: commit.entry(state), lambda: commit.head_changes)
            finally:
                self._settle()
            # What changes nothing, for that is so already, counts on what others did.
            number = commit.number if self.store is None or not commit.is_empty else self.store.number
            problems += commit.tidy(self.as_bound)
            try:
                if state.budgets:
                    enforce_budgets(state.budgets, state.heads.values())
            except Exception as error:
                problems.append(failed_housekeeping("keeping the memory budget", error))
            try:
                self._domains.collector.advance()
            except Exception as error:
                problems.append(failed_housekeeping(_GIVING_BACK, error))
            commit.measure()
            commit.stats.housekeeping_rows = housekeeping.rows - moved
            commit.stats.indices_built = housekeeping.built - built
            commit.stats.indices_given_back = housekeeping.given_back - given_back
            commit.stats.seconds = seconds_without_compiling() - started
            if not commit.is_empty:
                self.watched.history.add(one_commit(commit.stats), lambda: self.memory_bytes(self.state))
        if not number:
            return
        waiting = time.perf_counter()
        try:
            self.wait(number)
        except DurabilityError:
            commit.refuse()
            raise
        self.watched.history.waited(time.perf_counter() - waiting)

    def _hold_indices(self, state: State) -> None:
        """What installed rules read is held (:mod:`lftj.storage.upkeep`), where they are not as before."""
        if self._held_for is state.strata:
            return
        keys: dict[str, set[IndexKey]] = {name: set() for name in state.versions}
        for head in state.heads.values():
            for name, key in head.indices:
                keys[name].add(key)
        for name in state.strata.functions:
            schema = state.versions[name].schema
            keys[name].add((levels_of(schema.declared, (), schema.identity), ()))
        read = {place for head in state.heads.values() for place in head.read_columns}
        for name, version in state.versions.items():
            version.hold(keys[name], [column for relation, column in read if relation == name])
        self._held_for = state.strata

    def _finish(self, committed: object, unheard: list[str]) -> None:
        """Settle a commit and tell what waits; ``unheard`` gets what callbacks raised."""
        unsettled = self._unsettled
        if unsettled is not None and unsettled.committed is committed:
            with self.lock:
                self._settle()
        self.feed.wake()
        if self.subscribers.waiting:
            store = self.store
            unheard += self.subscribers.tell(lambda: math.inf if store is None else store.durable)

    def _settle(self) -> None:
        """End the last commit, which an exception may have left anywhere; may be done any number of times."""
        self.settle_single()
        self._follow()
        commit = self._unsettled
        if commit is None:
            return
        if commit.is_empty or self.as_bound.commit is commit.mark:
            commit.keep(self.subscribers)
            self.feed.take(self.as_bound.number)
        else:
            commit.drop()
            self.feed.withdraw()
        self._unsettled = None

    def __getstate__(self) -> dict[str, object]:
        """For an image (:mod:`maintenance.image`): less what is this process's own."""
        self._settle()
        assert self.state is self.as_bound  # nothing is left to fold
        own = {
            "subscribers": Subscribers(),
            "store": None,
            "refusal": None,
            "grown": None,
            "_waiting": (),
            "looks_for_views": False,
            "_held_for": None,
        }
        return {**self.__dict__, **own}


def _shown_stepping(commit: Commit, state: State) -> State:
    with bar("committing", None, commit.under_way):
        return commit.stepped_from(state)
