"""`Workspace`: a database with installed rules whose heads follow every commit.

What readers see at a moment is one immutable state; :mod:`maintenance.workspace.published` says how one
follows another, and what an exception or Ctrl-C leaves.

Rules are installed over what is there: base relations and heads installed
before.  A head's rules stand in one program, so programs form the strata.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args, overload

from lftj.display.grid import Grid
from lftj.errors import (
    ChangeError,
    DurabilityError,
    HousekeepingWarning,
    RangeError,
    UnknownRelationError,
)
from lftj.language.as_of_now import taken_apart
from lftj.language.body import MAX_ROUNDS
from lftj.language.diagnostics import unknown_name, warn_caller
from lftj.language.parser import parse
from lftj.language.several_aggregates import shown_name
from lftj.language.syntax import Program
from lftj.process.enough_memory import enough_memory
from lftj.process.interrupts import interruptible
from lftj.rewriting.guard import MayNotFit
from lftj.rewriting.wanted_heads import Results, wanted_results
from lftj.storage.relation import Relation
from lftj.storage.relation_table import RelationTable
from lftj.storage.relation_version import RelationVersion
from lftj.values.domains import Domains
from lftj.values.schema import Schema
from lftj.values.shown_text import ShownText
from maintenance.changes.write_buffer import WriteBuffer
from maintenance.durable.entries import Uninstalled
from maintenance.durable.reading import Damaged, FoundFolder
from maintenance.durable.store import CHECKPOINT_BYTES, INTERVAL, Store
from maintenance.explanation import StrataText, explain_head, explain_strata, explain_view
from maintenance.heads.head import MaintainedHead
from maintenance.heads.keeping import RECORD_GAP
from maintenance.heads.strategies import DEFAULT
from maintenance.machine.machine import Machine
from maintenance.machine.program import Layout
from maintenance.store.disk import Disk
from maintenance.triggers import triggers
from maintenance.workspace.batch import Applied, BatchCommit
from maintenance.workspace.budget import Budget, Budgets
from maintenance.workspace.commit import Commit, failed_housekeeping
from maintenance.workspace.commit_feed import FEED_BYTES
from maintenance.workspace.copying import write_copy
from maintenance.workspace.declaring import with_declared, with_loaded, without_unread
from maintenance.workspace.entries import begun_with, installed_entry, loaded_entry, strategy_entry
from maintenance.workspace.folder import Folder, KeptFolder, ReadFolder, folder_path, read_with, warn_of
from maintenance.workspace.follower import Follower, Following, HeadChange
from maintenance.workspace.growing import refuse_grown_from, without_grown
from maintenance.workspace.installing import (
    Wishes,
    shown_bar,
    with_strategy,
    without_heads,
)
from maintenance.workspace.metrics import WorkspaceStats, stats_of
from maintenance.workspace.not_there import OF_WORKSPACES, called_otherwise
from maintenance.workspace.operators import Operators
from maintenance.workspace.programs import Installing
from maintenance.workspace.published import Published
from maintenance.workspace.ready_kernels import load_for
from maintenance.workspace.recovery import recovered
from maintenance.workspace.shown_contents import shown_contents
from maintenance.workspace.snapshot import Snapshot, VersionedRelations, readable
from maintenance.workspace.staged_batch import read_batch
from maintenance.workspace.state import State
from maintenance.workspace.subscribers import Subscriber
from maintenance.workspace.transaction import Prepare, Transaction
from maintenance.workspace.verification import verify_closed, verify_heads
from maintenance.workspace.view_choices import (
    reconsidered,
    wants_change,
    with_other_views,
    without_unproven,
)

_log = logging.getLogger(__name__)

SingleChanges = Literal["general", "machine"]


@called_otherwise(OF_WORKSPACES)
class Workspace(Operators):
    """A database whose rules stay up to date; `open` gives one that is kept in a folder.

    ``sensitivity_bytes``: memory for all sensitivity records together; when it is reached, the records with
    the smallest gaps are joined, which costs sharpness and never a wrong result.  ``record_gap``: an
    iterator that seeks on by at most this many keys stays one record; 0 keeps the trace exactly.
    ``feed_bytes``: of changes that are kept for `changes_since` and `follow`.
    ``single_changes``: ``"machine"`` commits transactions of a few rows by one kernel, where what they change
    allows it and some came in a row (docs/design/commit.md); ``"general"`` none.
    ``view_bytes``: memory for partial sums; where heads that are to be kept by views would take more, the
    installation or the transaction raises ViewBudgetError, and `auto` does without them.

    Examples:
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

    _disk: ClassVar[Disk] = Disk()

    def __init__(
        self,
        *,
        sensitivity_bytes: int | None = None,
        record_gap: int = RECORD_GAP,
        feed_bytes: int = FEED_BYTES,
        view_bytes: int | None = None,
        single_changes: SingleChanges = "machine",
    ) -> None:
        super().__init__()
        budgets: Budgets = {} if sensitivity_bytes is None else {None: Budget(sensitivity_bytes)}
        state = State(budgets=budgets, view_bytes=view_bytes)
        self._published = Published(state, self.domains)
        self._published.feed.feed_bytes = feed_bytes
        self._published.machine = _machine(single_changes)
        self._record_gap = record_gap
        self._folder: Folder | None = None

    @property
    def _state(self) -> State:
        return self._published.shown

    def _contents(self) -> Grid:
        return shown_contents(self._published, None if self._folder is None else self._folder.path)

    @property
    def relations(self) -> VersionedRelations:
        """All relations and heads, as they are now."""
        return VersionedRelations(self._state.versions, self._state.hidden)

    @property
    def _heads(self) -> Mapping[str, MaintainedHead]:
        return self._state.heads

    def _now(self) -> tuple[Mapping[str, RelationTable], Mapping[str, Schema]]:
        return readable(self._state, self._state.hidden)

    def _installed(self) -> Mapping[str, str]:
        return {**dict.fromkeys(self._state.heads, ""), **self._state.hidden}

    # -- relations and rules ---------------------------------------------------------

    def add(self, relation: Relation) -> None:
        """Take a base relation, as `lftj.Database.add` does; it may replace one that no rule reads.

        Raises ChangeError for a relation that an installed rule reads, and for a head.
        """
        version = RelationVersion(relation)
        published = self._published
        with published.lock:
            state = published.changeable()
            self._refuse_load(relation.name)
            following = with_loaded(state, version)
            stream = following.streams.get(relation.name)
            published.change(following, lambda: loaded_entry(published, relation, stream))

    def _refuse_load(self, name: str) -> None:
        strata = self._state.strata
        if name in self._heads or name in strata.grown:
            raise ChangeError(f"{name!r} is the head of an installed rule: it can't be loaded")
        for head in strata.members:
            if name in self._state.streams_read(head.reads):
                raise ChangeError(
                    f"{name!r} can't be replaced, the rules of {shown_name(head.name)!r} read it:"
                    " change it in a transaction"
                )

    @interruptible()
    @enough_memory(
        "the heads, and what is kept to maintain them, do not fit into memory, and nothing was installed:"
        " install fewer rules, or keep no records with strategy='recompute'"
    )
    def install(
        self,
        program: str | Program,
        strategy: str | Mapping[str, str] = DEFAULT,
        *,
        results: str | Collection[str] | Results | None = None,
        replace: bool = False,
        sensitivity_bytes: Mapping[str, int] | None = None,
        order: Mapping[str, Sequence[str]] | None = None,
        threads: int = 1,
        max_rounds: int = MAX_ROUNDS,
        progress: bool | None = None,
    ) -> None:
        """Install rules: their heads are computed now and follow every commit from now on.

        ``strategy``: for all heads or by head, ``"trace"``: by records of what evaluation depended on,
        ``"delta"``: by joining what changed with the rest, ``"recompute"``: by evaluating again, ``"auto"``:
        by the first two, whichever costs less, and again where both would cost more; ``"views"``: by partial
        sums, which are hidden heads kept by ``delta``, where a sum, count or average gains by them.
        ``sensitivity_bytes``: memory for records, by head.  ``order``: the key order of a head's rules, by
        head; existential variables behind all others are then kept by witnesses, else by support counts.
        Heads that depend on themselves are kept by ``"stages"``: ranks and counters of their tuples, by
        ``"recompute"``, or by ``"auto"``: the first, and again where that would cost more.  ``max_rounds``:
        where one still gets new tuples after so many rounds, now or in a transaction, raises RoundLimitError.

        ``results``: the heads that are wanted.  Others can't be read then, and are kept for the keys that
        these need of them, where that spares most of the work by the sizes that relations have now;
        `explain_maintenance` says so.  Heads that no result needs are not kept.

        ``key orders(id).`` among the rules gives a loaded relation a key, as ``key=["id"]`` of `load` does;
        ``stream trade(t) late 5s keep 2h.`` makes one a stream, as ``time="t"`` does.  Heads of rules with
        ``asof now``, and of rows that close by ``final``, begin with nothing and only grow.

        ``replace``: heads of the program that are installed are defined anew, all in one step; subscribers
        stay, and hear of transactions only.  Where the same rules are there already nothing is done, unless
        other heads are kept for some keys by now.

        Raises RuleError, StrategyError, DataError and EvaluationError, and ChangeError where rules of other
        programs read a head that would be replaced; then everything is as it was before.
        """
        tree = parse(program) if isinstance(program, str) else program
        limits, orders = dict(sensitivity_bytes or {}), dict(order or {})
        wishes = Wishes(strategy, limits, orders, self._record_gap, max_rounds, wanted_results(results))
        published = self._published
        with published.lock:
            before = published.changeable()
            state, declared = with_declared(before, tree)
            tree, joined = taken_apart(tree)
            if declared and not (joined or tree.rules or tree.finals):
                if state is not before:
                    published.change_heads(state, installed_entry(tree, wishes, False, None, declared))
                return
            bar = partial(shown_bar, progress=progress)
            installing = Installing(before, replace, self.domains, threads, bar)
            done = installing.installed(state, tree, joined, wishes)
            if done.state is before:
                return
            begins = begun_with(published, done.state, done.grown)
            entry = installed_entry(done.tree, done.wishes, replace, done.wanted, declared, *begins)
            published.change_heads(done.state, entry)
        self.domains.collector.settle_new()

    @interruptible()
    @enough_memory("what another strategy keeps does not fit into memory, and the head is kept as it was")
    def set_strategy(self, head: str, strategy: str) -> None:
        """Keep a head by another strategy from now on; its tuples and subscribers stay.

        Cost: that of installing it.  Raises UnknownRelationError, StrategyError, and what installing raises;
        then it is kept as before.
        """
        with self._published.lock:
            state = self._published.changeable()
            following = with_strategy(state, head, strategy, self.domains)
            self._published.change_heads(following, strategy_entry(state, following, strategy))

    @interruptible()
    def uninstall(self, *heads: str) -> None:
        """Take heads away, with their rules and subscribers, all or none.

        Raises UnknownRelationError, and ChangeError where rules of heads that stay read one of them.
        """
        with self._published.lock:
            state = self._published.changeable()
            grown = set(heads) & state.strata.grown.keys()
            following = without_grown(without_heads(state, set(heads) - grown), grown)
            refuse_grown_from(following, heads)
            following = without_unread(following)
            self._published.change_heads(following, Uninstalled(heads))
            self._published.subscribers.drop(heads)

    def snapshot(self) -> Snapshot:
        """All relations and heads as they are now, for reading while commits go on.  O(1)."""
        snapshot = Snapshot(self.domains, self._state, self._translated)
        self._published.watched.snapshots.add(snapshot, snapshot.version)
        return snapshot

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the installed heads that can be read, each after those that its rules read."""
        return tuple(self._state.strata.schemas)

    def _head(self, name: str) -> MaintainedHead:
        if name in self._state.strata.grown:
            raise UnknownRelationError(
                f"{name!r} only grows: no strategy keeps it, and nothing makes it again"
            )
        if name not in self._heads:
            raise unknown_name("head", name, self.heads)
        return self._heads[name]

    def strategy_of(self, head: str) -> str:
        """How a head is kept.  Raises UnknownRelationError."""
        return self._head(head).strategy

    @overload
    def explain_maintenance(self, head: None = None) -> StrataText: ...

    @overload
    def explain_maintenance(self, head: str) -> ShownText: ...

    def explain_maintenance(self, head: str | None = None) -> ShownText:
        """How a head is kept: strategy and why, searches, key orders, records by participant.

        Of a view its SQL, and each rule that keeps it behind its place there.  Without ``head``: the strata
        of all installed rules, and how each head is kept in a word.  Notebooks draw them; ``.svg()`` is the
        picture.
        """
        state = self._state
        if head is None:
            return explain_strata(state.strata, state.versions)
        if (grown := state.strata.grown.get(head)) is not None:
            return ShownText(grown.explanation)
        if (program := self._view_program(head)) is not None:
            text = explain_view(head, program, state.heads, state.versions)
        else:
            text = explain_head(self._head(head), state.heads, state.versions)
        machine = self._published.machine
        if machine is not None:
            text += f"\n  {machine.describe(head, state, self._published)}"
        return ShownText(text)

    def triggers(self, head: str) -> ShownText:
        """The program by which a head follows: what a tuple that comes or goes changes, and by what.

        It is read off the terms that are run, those of its views first.  Raises UnknownRelationError.

        Examples:
            >>> ws = Workspace()
            >>> ws.load("edge", [(1, 2)], columns=["src", "dst"])
            >>> ws.install("degree[a] = count() <- edge(a, _).")
            >>> print(ws.triggers("degree"))
            on +edge(src, dst):
              degree[src] += 1
            on -edge(src, dst):
              degree[src] -= 1
        """
        state = self._state
        schemas = {name: version.schema for name, version in state.versions.items()}
        return ShownText(triggers(self._head(head), state.heads, schemas))

    # -- transactions --------------------------------------------------------------------

    def transaction(self, *, prepare: Prepare | None = None) -> Transaction:
        """Stage changes in a ``with`` block; they are committed at its end, or dropped when it raises.

        ``prepare``: called with the changes of all heads, and by stream with the late rows, when these are
        worked out and nothing is published or in the journal yet.  What it raises drops the transaction; what
        it has written elsewhere by then is there whenever the commit is (the first phase of two).
        """
        return Transaction(self, prepare)

    def subscribe(self, head: str, callback: Subscriber) -> Callable[[], None]:
        """Call ``callback`` with each non-empty change table of a head, after the commit, in commit order.

        It runs in the thread of a commit, which returns behind it; others may commit and read meanwhile, and
        so may the callback, but it must not wait for a commit of another thread to return.  What it raises
        becomes a SubscriberWarning and stands in ``tx.subscriber_errors``.

        Returns a function that ends the subscription.  Raises UnknownRelationError.
        """
        self._state.refuse_unknown(head)
        return self._published.subscribers.add(head, callback)

    def base_version(self, name: str) -> RelationVersion:
        """The newest version of a base relation.  Raises UnknownRelationError, and ChangeError for a head."""
        return self._state.base_version(name)

    def commit(self, transaction: Transaction, buffers: Mapping[str, WriteBuffer]) -> None:
        """Commit staged changes; called by the transaction.

        Raises DataError and EvaluationError; then the workspace is as it was before.  Warnings, and what an
        interruption raises behind the assignment that publishes, leave the commit as it is: ``tx.changes``
        has the changes then.
        """
        self._commit(transaction, lambda state: Commit(transaction, state, buffers))
        machine = self._published.machine
        if machine is not None:
            with self._published.lock:
                machine.noticed(self._published, sum(buffer.staged_rows for buffer in buffers.values()))

    @property
    def layout(self) -> Layout | None:
        """How a transaction may stage rows as numbers; None where none may be."""
        machine = self._published.machine
        return None if machine is None else machine.layout

    def commit_numbers(self, transaction: Transaction, rows: Sequence[int], layout: Layout) -> bool:
        """Commit what is staged as numbers; False: nothing was done, and it has to go the general way."""
        published = self._published
        machine = published.machine
        done = machine is not None and machine.commit(published, transaction, rows, layout)
        if published.looks_for_views:
            published.looks_for_views = False
            self._choose_views()
        return done

    def _commit(self, committed: Transaction | Applied, begun: Callable[[State], Commit]) -> None:
        """Commit, and where views can't, do it again: with partial sums of 128 bits, or without views."""
        are_changed = False
        while True:
            try:
                self._published.commit(committed, begun)
            except MayNotFit as error:
                self._change_views(partial(without_unproven, spans=error.spans))
                are_changed = True
            except RangeError:
                if not self._change_views(with_other_views):
                    self._choose_views()  # of a commit that is refused whatever the views are
                    raise
                are_changed = True
            else:
                self._choose_views(None if are_changed else committed.stats.rules)
                return

    def _change_views(self, changed: Callable[[State, Domains], State]) -> bool:
        """Whether heads are kept otherwise from now on."""
        with self._published.lock:
            state = self._published.changeable()
            following = changed(state, self.domains)
            if following is not state:
                self._published.change_heads(following, None)
            return following is not state

    def _choose_views(self, heads: Collection[str] | None = None) -> None:
        """Let heads under `auto` go over to views, or back; the commit stands, so what fails is a warning.

        ``heads``: those that the commit stepped; None where others may want it too.
        """
        if not wants_change(self._published.state, heads):
            return
        try:
            self._change_views(reconsidered)
        except Exception as error:
            warn_caller(failed_housekeeping("choosing views", error), HousekeepingWarning)

    @interruptible()
    def apply_many(self, changes: Mapping[str, Any]) -> Applied:
        """Commit many transactions in one call, all or none; each has its own change of every head.

        ``changes``: by relation, rows in any form that ``load`` takes, with a column ``weight``, positive to
        insert and negative to erase, and a column ``txn``: rows of one value, in all relations, are one
        transaction, and they come in the order of the values.  Without ``txn`` they are all one; either all
        relations have it or none.  Where a relation has a column of such a name, these are called ``weight_``
        and ``txn_``.

        What each transaction does is what it does when it is committed by itself; subscribers hear of each.
        Raises as a transaction does, with the transaction that is wrong; then all is as it was before.

        Examples:
            >>> ws = Workspace()
            >>> ws.load("edge", [(1, 2)], columns=["src", "dst"])
            >>> ws.install("n[a] = count() <- edge(a, _).")
            >>> rows = {"src": [1, 1, 1], "dst": [3, 4, 2], "weight": [1, 1, -1], "txn": [10, 20, 20]}
            >>> applied = ws.apply_many({"edge": rows})
            >>> first, second = applied
            >>> applied.transactions, first["n"].to_pylist()
            ((10, 20), [{'a': 1, 'count': 1, 'weight': -1}, {'a': 1, 'count': 2, 'weight': 1}])
            >>> second["n"].num_rows
            0
        """
        lease = self.domains.collector.lease()  # for the codes of what is read
        try:
            transactions, staged = read_batch(changes, self.base_version, self.domains)
            applied = Applied(transactions)
            machine = self._published.machine
            self._commit(applied, lambda state: BatchCommit(applied, state, staged, machine))
        finally:
            del lease
        return applied

    def paused(self) -> AbstractContextManager[object]:
        """No other thread commits within it: what is there stays as it is, also where it changes in place."""
        return self._published.paused()

    def __getstate__(self) -> dict[str, object]:
        """For an image (`maintenance.image`): less what is this process's own."""
        return {**self.__dict__, "_prepared": type(self._prepared)(), "_folder": None, "_translated": None}

    # -- in a folder -----------------------------------------------------------------------

    @classmethod
    @interruptible()
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        read_only: bool = False,
        durability: Literal["commit", "interval", "none"] = "commit",
        interval: float = INTERVAL,
        checkpoint_bytes: int = CHECKPOINT_BYTES,
        feed_bytes: int = FEED_BYTES,
        single_changes: SingleChanges = "machine",
        sensitivity_bytes: int | None = None,
        record_gap: int | None = None,
        view_bytes: int | None = None,
        damaged: Damaged = "refuse",
        threads: int = 1,
        progress: bool | None = None,
    ) -> Self:
        """The workspace that is kept in a folder, as the last change left it; a new one where there is none.

        Every change of it, be it a commit, a load or an installed rule, is in the folder when the call that
        made it returns, and there again when the folder is opened again, whatever ended the process.

        ``durability``: ``"commit"``, each change is on disk when its call returns (threads that commit at the
        same time share one wait for the disk); ``"interval"``, it is after ``interval`` seconds at the
        latest; ``"none"``, when the system thinks fit.  Of the last two a crash of the machine takes the
        youngest changes; the end of the process alone takes nothing.
        ``read_only``: look at it, also while another process has it open, as it is now, and `refresh`
        shows what that has done since; nothing can be changed here.  ``checkpoint_bytes``: a journal
        that is longer, and longer than the data, is cut by a checkpoint, which is written beside the commits.
        ``feed_bytes``: of the journal that stay behind a checkpoint, for `changes_since` and
        `follow`.  ``single_changes``: as of a workspace in memory, where commits don't wait for the disk.
        ``sensitivity_bytes``, ``record_gap``, ``view_bytes``: as of a workspace in memory;
        they are kept, and stay where none is given.  ``damaged``: what becomes of a folder of which
        changes are damaged or gone, and so all behind them: ``"refuse"`` raises; ``"set aside"`` opens it at
        the version before them, what is behind it being kept in files ``damaged-...`` beside.
        ``threads`` and ``progress``: for installing the rules where no image can be used.

        Bytes behind the last change that a crash may have left, but damage as well, are set aside, too, and a
        DamagedFolderWarning names the version that is opened and the one that is known to have been there.

        Raises FolderInUseError, DamagedFolderError, and DurabilityError where the folder can't be used, was
        written by a newer version, or holds rules that can't be installed here, such as with an aggregate
        that is not registered.

        Examples:
            >>> import tempfile
            >>> from maintenance import Workspace
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     with Workspace.open(folder) as ws:
            ...         ws.load("edge", [(1, 2)], columns=["src", "dst"])
            ...         ws.install("back(b, a) <- edge(a, b).")
            ...         with ws.transaction() as tx:
            ...             tx.insert("edge", [(2, 3)])
            ...     with Workspace.open(folder, read_only=True) as ws:
            ...         sorted(ws["back"])
            [(2, 1), (3, 2)]
        """
        started = time.monotonic()
        path, machine = folder_path(folder), _machine(single_changes)
        given = {
            "sensitivity_bytes": sensitivity_bytes,
            "record_gap": record_gap,
            "view_bytes": view_bytes,
        }
        wanted = {name: value for name, value in given.items() if value is not None}
        understood = partial(cls._recovered, wanted=wanted, threads=threads, progress=progress)
        if read_only:
            found, workspace = read_with(path, damaged, understood)
            published = workspace._published
            workspace._folder = ReadFolder(found, published)
        else:
            store, found, workspace = Store.opened(
                path, cls._disk, understood, durability, interval, wanted, feed_bytes, damaged
            )
            published = workspace._published
            workspace._folder = KeptFolder(store, published, checkpoint_bytes, wanted)
            published.machine = machine
            _log.info("%s: opened at version %d, %.2f s", path, store.number, time.monotonic() - started)
            warn_of(found, store.aside)
        published.feed.feed_bytes = feed_bytes
        return workspace

    @classmethod
    def _recovered(
        cls, found: FoundFolder, wanted: Mapping[str, Any], threads: int, progress: bool | None
    ) -> Self:
        """The workspace as a folder has it, with its version and nothing before, in memory only."""
        made = recovered(cls, found, wanted, threads, progress)
        load_for(made._heads.values())  # those of an image were not installed here
        made._published.begin(found.number, found.contents.definitions)
        return made

    @interruptible()
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the workspace, as it is now, as a folder: for `open`, or `load_from`.

        It is there whole or not at all.  Commits of other threads go on meanwhile, and are not in it; its
        versions go on from the one that it has.  Raises DurabilityError where something is there already,
        where it can't be written, and for a program that has no text.
        """
        budget = self._state.budgets.get(None)
        limit = {} if budget is None else {"sensitivity_bytes": budget.limit}
        settings = {**limit, "record_gap": self._record_gap}
        write_copy(self._disk, Path(os.path.abspath(path)), self._state, settings)

    @classmethod
    @interruptible()
    def load_from(
        cls, path: str | os.PathLike[str], *, threads: int = 1, progress: bool | None = None
    ) -> Self:
        """A workspace in memory, with all that a folder has, of which nothing is changed from then on.

        The folder is one of `save` or `open`; another process may have it open.  ``threads``,
        ``progress`` and what is raised: as of `open`.

        Examples:
            >>> import tempfile
            >>> from maintenance import Workspace
            >>> ws = Workspace()
            >>> ws.load("edge", [(1, 2)], columns=["src", "dst"])
            >>> ws.install("back(b, a) <- edge(a, b).")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     ws.save(f"{folder}/copy")
            ...     again = Workspace.load_from(f"{folder}/copy")
            >>> sorted(again["back"])
            [(2, 1)]
        """
        understood = partial(cls._recovered, wanted={}, threads=threads, progress=progress)
        return read_with(folder_path(path), "refuse", understood)[1]

    @interruptible()
    def refresh(self) -> int:
        """Take in what another process has done since, where the folder is open for reading.

        Returns the version that is there now.  A workspace that changes its folder itself, or is in memory,
        has all already.  Raises CursorError where the journal of what came since is not kept any more, and
        DurabilityError; then it shows what it has shown, and the folder has to be opened again.
        """
        if self._folder is not None:
            self._folder.refresh(self)
        return self._state.number

    @property
    def folder(self) -> Path | None:
        """Where the workspace is kept; None for one in memory."""
        return self._folder.path if isinstance(self._folder, KeptFolder) else None

    @interruptible()
    def checkpoint(self) -> None:
        """Write what changed to files of data, and an image of the engine, and begin a new journal.

        Opening is quick after it.  Commits of other threads go on while the data are written, and wait for
        the image.  Raises DurabilityError, and then the folder says what it said; ClosedError.
        """
        if not isinstance(self._folder, KeptFolder):
            raise DurabilityError(
                "the workspace is in memory only: Workspace.open(folder) gives one in a folder"
            )
        self._folder.checkpoint(self)

    @interruptible()
    def compact(self) -> None:
        """Make the workspace small: in memory, and, where it has a folder, there, by a checkpoint.

        What changes have left in runs is merged into the base of each index, dictionaries give back the
        values that nobody holds.  Other threads wait meanwhile.  Cost: one pass over all that is in memory,
        and a checkpoint with an image.  Raises as `checkpoint`, and ClosedError.
        """
        published = self._published
        if published.refusal is not None:
            published.changeable()
        published.compact()
        if published.store is not None:
            self.checkpoint()

    def close(self) -> None:
        """Bring all changes to the disk, write an image of the engine, and let others open the folder.

        Nothing can be changed any more; what is there can still be read, and whoever follows a head gets what
        there is.  A workspace that is closed, or in memory only, stays as it is otherwise.  Raises
        ClosedError if the disk fails.
        """
        self._published.feed.close()
        if isinstance(self._folder, KeptFolder):
            self._folder.close(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    # -- what changed ----------------------------------------------------------------------

    @property
    def _follower(self) -> Follower:
        return Follower(self, self._published, self._folder)

    @property
    def version(self) -> int:
        """The number of the last change, be it a commit, a load or an installed rule; in a folder it goes on.

        From when it is first asked for, what heads do is kept, to be asked for by `changes_since`.
        """
        self._published.feed.begin()
        return self._published.shown.number

    @interruptible()
    def changes_since(self, version: int, head: str) -> HeadChange:
        """What a head's rows did since a version, all commits together, and the version that this reaches.

        Applied to the rows at ``version`` it gives those at the version reached, so whoever keeps that with
        the rows loses nothing, and gets nothing twice.  Raises UnknownRelationError, and CursorError for a
        version that is too old (``feed_bytes`` says how much is kept) or from before the head was installed,
        and for one that there has never been.

        Cost: of what is in memory, adding it up; in a folder, of what came before it was opened, or is more
        than ``feed_bytes``, that of installing the head over the relations as they were.

        Examples:
            >>> from maintenance import Workspace
            >>> ws = Workspace()
            >>> ws.load("edge", [(1, 2)], columns=["src", "dst"])
            >>> ws.install("back(b, a) <- edge(a, b).")
            >>> before = ws.version
            >>> for row in (2, 3), (3, 4):
            ...     with ws.transaction() as tx:
            ...         tx.insert("edge", [row])
            >>> change = ws.changes_since(before, "back")
            >>> change.version - before, change.table.to_pylist()
            (2, [{'b': 3, 'a': 2, 'weight': 1}, {'b': 4, 'a': 3, 'weight': 1}])
        """
        return self._follower.since(version, head)

    def follow(self, head: str, since: int | None = None, timeout: float | None = None) -> Following:
        """What a head's rows do, commit by commit, for a loop that waits for the next.

        ``since``: the version behind which it begins; None: now.  ``timeout``: seconds after which the loop
        ends when nothing comes; None: never, 0: when it has all that there is.  The loop also ends when the
        workspace is closed.  Commits that don't change the head are passed over.

        Raises UnknownRelationError, and CursorError as `changes_since`, here or, for whoever is slower
        than the commits for long, in the loop.

        Examples:
            >>> from maintenance import Workspace
            >>> ws = Workspace()
            >>> ws.load("edge", [(1, 2)], columns=["src", "dst"])
            >>> ws.install("back(b, a) <- edge(a, b).")
            >>> before = ws.version
            >>> for row in (2, 3), (3, 4):
            ...     with ws.transaction() as tx:
            ...         tx.insert("edge", [row])
            >>> for change in ws.follow("back", since=before, timeout=0):
            ...     print(change.version - before, change.table.to_pylist())
            1 [{'b': 3, 'a': 2, 'weight': 1}]
            2 [{'b': 4, 'a': 3, 'weight': 1}]
        """
        return self._follower.follow(head, self.version if since is None else since, timeout)

    # -- memory and checks ----------------------------------------------------------------

    @property
    def stats(self) -> WorkspaceStats:
        """What the workspace holds and has done: figures, ``as_dict()``, ``openmetrics()``, ``svg()``.

        Examples:
            >>> ws = Workspace()
            >>> ws.load("edge", [(1, 2), (2, 3)], columns=["src", "dst"])
            >>> stats = ws.stats
            >>> dict(stats.rows), stats.memory_bytes["relations"] > 0, stats.as_dict()["commits"]
            ({'edge': 2}, True, 0)
        """
        return stats_of(self._published)

    @property
    def sensitivity_bytes(self) -> int:
        """Memory of all sensitivity records."""
        return sum(head.index_bytes for head in self._heads.values())

    @interruptible()
    def verify(self) -> None:
        """Compute every head from the base relations alone and compare.

        What only grows is taken as it is, but that rows have closed by the clock, and are as their head has
        them as long as the streams do.  Raises VerificationError at the first difference, naming the head
        and a tuple.
        """
        with self._published.lock:
            state = self._published.settled()
            verify_heads(state.heads, state.versions)
            verify_closed(state)

    @interruptible()
    def check_invariants(self) -> None:
        """Raise AssertionError on the first broken invariant of any structure."""
        with self._published.lock:
            state = self._published.settled()
            for version in state.versions.values():
                version.check_invariants()
            for head in state.heads.values():
                head.check_invariants()
                head.check_counters(state.versions)


def _machine(single_changes: SingleChanges) -> Machine | None:
    """What commits single changes.  Raises ValueError for what is no way to."""
    if single_changes not in get_args(SingleChanges):
        choices = ", ".join(get_args(SingleChanges))
        raise ValueError(f"single_changes is {single_changes!r}; it can be {choices}")
    return None if single_changes == "general" else Machine()
