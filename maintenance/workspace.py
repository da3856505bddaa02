"""`Workspace`: a database with installed rules whose heads follow every commit.

Invariants

1. ``_state`` is one immutable object: the versions of all relations and heads.
   A commit makes the next one and publishes it by one assignment, so a reader
   sees all of a transaction or nothing of it.
2. One commit runs at a time; readers never wait.
3. After any error the state is the one before, and the heads have dropped what
   they had staged.  Sensitivity records of a round that failed stay: more records
   than needed are sound (ENGINE.md section 4).

Rules are installed over what is there: base relations and heads installed
before.  A head's rules stand in one program, so programs form the strata.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from lftj.body import CheckedProgram, Schema
from lftj.csv_options import CsvOptions
from lftj.database import Database
from lftj.domains import NAN_CODE
from lftj.enough_memory import enough_memory
from lftj.errors import (
    ChangeError,
    NanError,
    SubscriberWarning,
    UnknownRelationError,
)
from lftj.progress import bar
from lftj.relation import Relation
from lftj.relation_version import RelationVersion
from lftj.several_aggregates import is_auxiliary, shown_name
from lftj.syntax import Program
from maintenance.body_trace import Round
from maintenance.budget import Budget
from maintenance.explanation import draw_strata, explain_head
from maintenance.functional_check import refuse_relation_conflict
from maintenance.head import RECORD_GAP, MaintainedHead, plan_orders, plan_strategies, rules_of
from maintenance.head_table import HeadTable
from maintenance.intermediate import Intermediates
from maintenance.snapshot import Snapshot, State, VersionedRelations, version_of
from maintenance.stats import RuleStats, TransactionStats
from maintenance.surgery import surgeries_between
from maintenance.transaction import Changes, Transaction
from maintenance.uninterrupted import uninterrupted
from maintenance.verification import heads_in_order, verify_heads
from maintenance.write_buffer import Change, WriteBuffer

Subscriber = Callable[[pa.Table], object]


class Workspace(Database):
    """A database whose rules stay up to date.

    ``sensitivity_bytes``: memory for all sensitivity records together; when it is reached, the records with
    the smallest gaps are joined, which costs sharpness and never a wrong result.  ``record_gap``: an
    iterator that skips at most this many keys stays one record; 0 keeps the trace exactly.

    >>> ws = Workspace()
    >>> ws.load("edge", [(1, 2), (2, 3)], columns=["src", "dst"])
    >>> ws.install("tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c).")
    >>> with ws.transaction() as tx:
    ...     tx.insert("edge", [(1, 3)])
    >>> tx.changes["tri"].to_pylist()
    [{'a': 1, 'b': 2, 'c': 3, 'weight': 1}]
    >>> ws["tri"].count
    1
    """

    def __init__(self, *, sensitivity_bytes: int | None = None, record_gap: int = RECORD_GAP) -> None:
        super().__init__()
        self._state = State()
        self._heads: dict[str, MaintainedHead] = {}
        self._functions: frozenset[str] = frozenset()  # relations that a head reads as functions
        self._programs: list[CheckedProgram] = []
        self._subscribers: dict[str, list[Subscriber]] = {}
        self._waiting: deque[tuple[Transaction, Mapping[str, Change]]] = deque()
        self._budget = None if sensitivity_bytes is None else Budget(sensitivity_bytes)
        self._budgets: dict[str, Budget] = {}
        self._record_gap = record_gap
        self._committing = threading.RLock()
        self._publish(self._state)

    # -- relations and rules ---------------------------------------------------------

    @enough_memory("the relation does not fit into memory: load the columns that rules need, columns=[...]")
    def load(
        self,
        name: str,
        source: Any,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        *,
        nulls: Literal["refuse", "drop"] = "refuse",
        progress: bool = False,
        csv: CsvOptions | None = None,
    ) -> None:
        """Load a base relation, as :meth:`lftj.Database.load` does; it may replace one that no rule reads.

        Raises ChangeError for a relation that an installed rule reads, and for a head.
        """
        from lftj.loading import load_relation

        self._refuse_load(name)
        self.add(load_relation(name, source, columns, self.domains, nulls, progress, csv))

    def add(self, relation: Relation) -> None:
        """Take a base relation, as :meth:`lftj.Database.add` does; it may replace one that no rule reads.

        Raises ChangeError as :meth:`load`.
        """
        with self._committing:
            self._refuse_load(relation.name)
            versions = {**self._state.versions, relation.name: RelationVersion(relation)}
            self._publish(State(versions))

    def _refuse_load(self, name: str) -> None:
        if name in self._heads:
            raise ChangeError(f"{name!r} is the head of an installed rule: it can't be loaded")
        for head in self._heads.values():
            if name in head.reads:
                raise ChangeError(
                    f"{name!r} can't be replaced, the rules of {shown_name(head.name)!r} read it:"
                    " change it in a transaction"
                )

    @enough_memory(
        "the heads, and what is kept to maintain them, do not fit into memory, and nothing was installed:"
        " install fewer rules, or keep no records with strategy='recompute'"
    )
    def install(
        self,
        program: str | Program,
        strategy: str | Mapping[str, str] = "trace",
        *,
        sensitivity_bytes: Mapping[str, int] | None = None,
        order: Mapping[str, Sequence[str]] | None = None,
        threads: int = 1,
        progress: bool = False,
    ) -> None:
        """Install rules: their heads are computed now and follow every commit from now on.

        ``strategy``: ``"trace"`` or ``"recompute"``, for all heads or by head.  ``sensitivity_bytes``: memory
        for the records, by head.  ``order``: the key order of a head's rules, by head; existential variables
        behind all others are then kept by witnesses, else by support counts.

        Raises RuleError, StrategyError, DataError and EvaluationError; then nothing is installed.
        """
        with self._committing:
            checked = self.check(program)
            heads = heads_in_order(checked)
            strategies = plan_strategies(strategy, heads)
            shown = [name for name in heads if not is_auxiliary(name)]
            for name in {*(sensitivity_bytes or {}), *(order or {})} - set(shown):
                raise UnknownRelationError(f"the program has no head {name!r}; heads are {', '.join(shown)}")
            orders = plan_orders(order or {}, heads)
            versions = dict(self._state.versions)
            traced = [
                rule for name in heads if strategies[name] == "trace" for rule in rules_of(checked, name)
            ]
            intermediates = Intermediates(traced, self._record_gap, orders)
            installed = {}
            for name in heads:
                head = MaintainedHead(
                    name,
                    checked,
                    strategies[name],
                    versions,
                    intermediates,
                    self._record_gap,
                    orders.get(name),
                )
                with bar(f"installing {name}", progress) as advance:
                    versions[name] = head.build(versions, threads, advance if progress else None)
                installed[name] = head
            for head in installed.values():
                head.keep()
            self._heads.update(installed)
            self._functions = self._functions.union(*(head.reads_as_functions for head in installed.values()))
            self._programs.append(checked)
            self._budgets.update({name: Budget(limit) for name, limit in (sensitivity_bytes or {}).items()})
            self._keep_within_budget()
            self._publish(State(versions))

    def __getitem__(self, name: str) -> HeadTable:
        """A head or base relation as it is now; a ``pyarrow.Table`` in all but ``count``.

        Raises UnknownRelationError.
        """
        return HeadTable(version_of(self._state, name))

    def snapshot(self) -> Snapshot:
        """All relations and heads as they are now, for reading while commits go on.  O(1)."""
        return Snapshot(self.domains, self._state)

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the installed heads, each after those that its rules read."""
        return tuple(name for name in self._heads if not is_auxiliary(name))

    def _head(self, name: str) -> MaintainedHead:
        if name not in self._heads:
            raise UnknownRelationError(f"no head is called {name!r}; heads are {', '.join(self.heads)}")
        return self._heads[name]

    def strategy_of(self, head: str) -> str:
        """How a head is kept.  Raises UnknownRelationError."""
        return self._head(head).strategy

    def explain_maintenance(self, head: str | None = None) -> str:
        """How a head is kept: strategy and why, searches, key orders, records by participant.

        Without ``head``: the strata of all installed rules, drawn, and how each head is kept in a word.
        """
        if head is None:
            return draw_strata(self._programs, self._heads, self._state.versions)
        return explain_head(self._head(head))

    # -- transactions --------------------------------------------------------------------

    def transaction(self) -> Transaction:
        """Stage changes in a ``with`` block; they are committed at its end, or dropped when it raises."""
        return Transaction(self)

    def subscribe(self, head: str, callback: Subscriber) -> Callable[[], None]:
        """Call ``callback`` with each non-empty change table of a head, after the commit, in commit order.

        Returns a function that ends the subscription.  Raises UnknownRelationError.
        """
        self._head(head)
        callbacks = self._subscribers.setdefault(head, [])
        callbacks.append(callback)
        return lambda: callbacks.remove(callback) if callback in callbacks else None

    def base_version(self, name: str) -> RelationVersion:
        """The newest version of a base relation.  Raises UnknownRelationError, and ChangeError for a head."""
        if name in self._heads:
            raise ChangeError(f"{name!r} is derived by a rule: change what the rule reads")
        return version_of(self._state, name)

    def commit(self, transaction: Transaction, buffers: Mapping[str, WriteBuffer]) -> None:
        """Commit staged changes; called by the transaction.

        Raises DataError and EvaluationError; then the workspace is as it was before.
        """
        started = time.perf_counter()
        with self._committing:
            state = self._state
            changes: dict[str, Change] = {}
            stats = TransactionStats({}, {}, {}, {})
            for name, buffer in buffers.items():
                change = buffer.net(version_of(state, name))
                inserted = int(np.count_nonzero(change.weights > 0))
                stats.inserted[name], stats.erased[name] = inserted, len(change) - inserted
                stats.no_changes[name] = change.no_changes
                if len(change):
                    self._refuse_nan(name, state.versions[name].schema, change)
                    changes[name] = change
            stepped: list[MaintainedHead] = []
            try:
                following = self._next_state(state, changes, stats, stepped)
                with uninterrupted():
                    self._publish(following)
                    for head in stepped:
                        head.keep()
            except BaseException:
                if self._state is state:
                    with uninterrupted():
                        for head in stepped:
                            head.drop()
                raise
            for name, rule_stats in stats.rules.items():
                rule_stats.rebuilt = self._heads[name].tidy(following.versions)
            self._keep_within_budget()
            for head, rule_stats in zip(stepped, stats.rules.values(), strict=True):
                rule_stats.index_bytes, rule_stats.records = head.index_bytes, head.n_records
            transaction.stats = stats
            transaction.changes = Changes(
                self.heads, lambda name: self._heads[name].change_table(changes.get(name))
            )
            stats.seconds = time.perf_counter() - started
            self._notify(transaction, changes)

    @enough_memory(
        "what the transaction changes does not fit into memory, and nothing was committed:"
        " commit it in smaller transactions"
    )
    def _next_state(
        self,
        state: State,
        changes: dict[str, Change],
        stats: TransactionStats,
        stepped: list[MaintainedHead],
    ) -> State:
        """The state after ``changes``, to which the changes of the heads are added.

        ``stepped`` gets every head that may have staged something.
        """
        if not changes:
            return state
        versions = dict(state.versions)
        for name, change in changes.items():
            versions[name] = versions[name].advance(change.columns, change.weights)
            if name in self._functions:
                refuse_relation_conflict(versions[name], change.columns, change.weights)
        round_ = Round(state.versions, versions, surgeries_between(versions, changes))
        for name, head in self._heads.items():
            if head.reads.isdisjoint(changes):
                continue
            started = time.perf_counter()
            rule_stats = stats.rules[name] = RuleStats()
            stepped.append(head)
            columns, weights = head.step(round_, rule_stats)
            if len(weights):
                changes[name] = Change(columns, weights)
                versions[name] = versions[name].advance(columns, weights)
                head.check_values(versions[name], columns, weights)
                if name in self._functions and not head.schema.functional:
                    refuse_relation_conflict(versions[name], columns, weights)
            rule_stats.head_changes = len(weights)
            rule_stats.seconds = time.perf_counter() - started
        return State(versions)

    def _refuse_nan(self, name: str, schema: Schema, change: Change) -> None:
        """NaN equals nothing: it can't come into a column that a maintained rule joins by."""
        for position, column in enumerate(schema.columns):
            if column.type.domain.name != "float":
                continue
            came = change.columns[position][change.weights > 0] == NAN_CODE
            joining = (head.name for head in self._heads.values() if head.joins_by(name, position))
            if came.any() and (first := next(joining, None)):
                raise NanError(
                    f"changes of {name!r}, column {column.name!r}: NaN, which equals nothing,"
                    f" in a column that the rules of {shown_name(first)!r} join by"
                )

    def _notify(self, transaction: Transaction, changes: Mapping[str, Change]) -> None:
        """Call the subscribers; those of a commit that one of them makes wait until these are through."""
        self._waiting.append((transaction, changes))
        if len(self._waiting) > 1:
            return
        try:
            while self._waiting:
                self._call_subscribers(*self._waiting[0])
                self._waiting.popleft()
        finally:
            self._waiting.clear()

    def _call_subscribers(self, transaction: Transaction, changes: Mapping[str, Change]) -> None:
        for name, callbacks in self._subscribers.items():
            if name not in changes:
                continue
            for callback in list(callbacks):
                try:
                    callback(transaction.changes[name])
                except Exception as error:
                    label = getattr(callback, "__qualname__", repr(callback))
                    transaction.subscriber_errors.append((label, error))
                    warnings.warn(
                        f"the commit stands, but subscriber {label} of {name!r} raised"
                        f" {type(error).__name__}: {error}",
                        SubscriberWarning,
                        stacklevel=2,
                    )

    def paused(self) -> AbstractContextManager[object]:
        """No other thread commits within it: what is there stays as it is, also where it changes in place."""
        return self._committing

    def __getstate__(self) -> dict[str, object]:
        """For an image (:mod:`maintenance.image`): less what is this process's own."""
        own = {"_subscribers": {}, "_waiting": deque(), "_prepared": type(self._prepared)()}
        return {**self.__dict__, **own}

    def _publish(self, state: State) -> None:
        self._state = state
        self.relations = VersionedRelations(state.versions)  # type: ignore[assignment]

    def _catalog(self) -> dict[str, Schema]:
        return {name: version.schema for name, version in self._state.versions.items()}

    # -- memory and checks ----------------------------------------------------------------

    @property
    def sensitivity_bytes(self) -> int:
        """Memory of all sensitivity records."""
        return sum(head.index_bytes for head in self._heads.values())

    def _keep_within_budget(self) -> None:
        for name, budget in self._budgets.items():
            budget.enforce(self._sensitivity(h for h in self._heads.values() if shown_name(h.name) == name))
        if self._budget is not None:
            self._budget.enforce(self._sensitivity(self._heads.values()))

    @staticmethod
    def _sensitivity(heads):  # type: ignore[no-untyped-def]
        return [index for head in heads for trace in head.traces for index in trace.sensitivity]

    def verify(self) -> None:
        """Compute every head from the base relations alone and compare.

        Raises VerificationError at the first difference, naming the head and a tuple.
        """
        with self._committing:
            verify_heads(self._programs, self._state.versions)

    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of any structure."""
        with self._committing:
            for version in self._state.versions.values():
                version.check_invariants()
            for head in self._heads.values():
                head.check_invariants()
