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
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from indices.housekeeping import housekeeping
from lftj.errors import HousekeepingWarning, SubscriberWarning
from lftj.language.diagnostics import warn_caller
from lftj.process.interrupts import interruptible
from lftj.values.collector import Collector
from maintenance.workspace.budget import enforce_budgets
from maintenance.workspace.commit import Commit, failed_housekeeping
from maintenance.workspace.state import State
from maintenance.workspace.subscribers import Subscribers


class Published:
    """One workspace's."""

    def __init__(self, state: State, collector: Collector) -> None:
        """``collector``: of the domains that the state's codes are of."""
        self.state = state
        self._collector = collector
        self.subscribers = Subscribers()
        self.lock = threading.RLock()
        """Whoever replaces the state holds it."""
        self._unsettled: Commit | None = None

    def settled(self) -> State:
        """The state, no commit left half way; under the lock."""
        self._settle()
        return self.state

    def paused(self) -> AbstractContextManager[object]:
        """No other thread commits within it: what is there stays as it is, also where it changes in place."""
        with self.lock:
            self._settle()
        return self.lock

    def change_heads(self, following: State) -> None:
        """Publish a state without some heads, or with others in their place; under the lock."""
        heads = following.heads
        leaving = [head for name, head in self.state.heads.items() if heads.get(name) is not head]
        for head in leaving:
            head.hand_over()
        self.state = following
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
        try:
            try:
                self._commit(begun, problems)
            finally:
                self._finish(committed, unheard)
        finally:  # again, if an interruption came amid the first time
            self._finish(committed, unheard)
        for problem in problems:
            warn_caller(problem, HousekeepingWarning)
        for problem in unheard:
            warn_caller(problem, SubscriberWarning)

    @interruptible()
    def _commit(self, begun: Callable[[State], Commit], problems: list[str]) -> None:
        started, moved = time.perf_counter(), housekeeping.rows
        with self.lock:
            state = self.settled()
            commit = self._unsettled = begun(state)
            try:
                self.state = state if commit.is_empty else commit.stepped_from(state)
            finally:
                self._settle()
            problems += commit.tidy(self.state)
            try:
                enforce_budgets(state.budgets, state.heads.values())
            except Exception as error:
                problems.append(failed_housekeeping("keeping the memory budget", error))
            try:
                self._collector.advance()
            except Exception as error:
                problems.append(failed_housekeeping("giving back the codes of values that are gone", error))
            commit.measure()
            commit.stats.housekeeping_rows = housekeeping.rows - moved
            commit.stats.seconds = time.perf_counter() - started

    def _finish(self, committed: object, unheard: list[str]) -> None:
        """Settle a commit and tell what waits; ``unheard`` gets what callbacks raised."""
        unsettled = self._unsettled
        if unsettled is not None and unsettled.committed is committed:
            with self.lock:
                self._settle()
        unheard += self.subscribers.tell()

    def _settle(self) -> None:
        """End the last commit, which an exception may have left anywhere; may be done any number of times."""
        commit = self._unsettled
        if commit is None:
            return
        if commit.is_empty or self.state.commit is commit.mark:
            commit.keep(self.subscribers)
        else:
            commit.drop()
        self._unsettled = None

    def __getstate__(self) -> dict[str, object]:
        """For an image (:mod:`maintenance.image`): less what is this process's own."""
        self._settle()
        return {**self.__dict__, "subscribers": Subscribers()}
