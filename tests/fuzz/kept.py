"""Plays a program that a workspace keeps: transactions and all else that can happen to it, step by step.

After each step every head is what brute force gives for the relations as they are now, by whatever strategy
it is kept, and what the transaction reported is the head that is there minus the one that was there.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from fuzz.case import Case, Staged, Table
from fuzz.difference import Difference, comparable, same
from fuzz.expected import (
    Heads,
    OutOfReach,
    Refused,
    SecondRow,
    State,
    after,
    bags,
    beginning,
    expected,
    whole_rows,
)
from fuzz.once import loaded
from fuzz.player import Player
from lftj import errors
from maintenance import Snapshot, Workspace
from support.rows import rows_of
from support.rules import render
from support.small_limits import small_limits


@dataclass
class Held:
    """A snapshot, and what it has to hold for ever."""

    snapshot: Snapshot
    state: State
    heads: Heads


class Mirror:
    """A head as somebody has it who takes in changes now and then."""

    def __init__(self, workspace: Workspace, head: str) -> None:
        self.head, self.version = head, workspace.version
        self.rows = comparable(rows_of(workspace[head].table))

    def catch_up(self, workspace: Workspace, by_one: bool) -> None:
        """Take in all that came since; ``by_one``: commit by commit."""
        if by_one:
            for change in workspace.follow(self.head, since=self.version, timeout=0):
                self._take(change.table)
                self.version = change.version
        change = workspace.changes_since(self.version, self.head)
        self._take(change.table)
        self.version = change.version

    def _take(self, table: pa.Table) -> None:
        for row, weight in zip(
            rows_of(table.drop_columns("weight")), table["weight"].to_pylist(), strict=True
        ):
            for one in comparable([row]):
                self.rows[one] += weight

    def check(self, right: Collection[Any], what: str) -> None:
        ours = +self.rows
        if ours != comparable(right) or any(count < 0 for count in self.rows.values()):
            raise Difference(f"{what}: the mirror of {self.head} has {ours}, not {comparable(right)}")


def table_of(case: Case, name: str) -> Table:
    return next(one for one in case.tables if one.name == name and isinstance(one, Table))


OPS = {1: "I", -1: "delete", "upsert": "U", "erase_keys": "D"}


def change_table(table: Table, changes: Sequence[tuple[Any, int | str]]) -> pa.Table:
    """With a column of weights, or of operations where there are upserts or erasures by key."""
    if not any(isinstance(weight, str) for _, weight in changes):
        weights = pa.array([weight for _, weight in changes], pa.int64())
        return table.arrow(tuple(row for row, _ in changes)).append_column("weight", weights)
    ops = pa.array([OPS[weight] for _, weight in changes], pa.string())
    rows = tuple(
        tuple(value if place in table.key else None for place, value in enumerate(row))
        if weight == "erase_keys"  # other columns say nothing
        else row
        for row, weight in changes
    )
    return table.arrow(rows).append_column("op", ops)


def stage(case: Case, transaction: Any, staged: tuple[Staged, ...], way: str) -> None:
    """Hand the changes to an open transaction."""
    for name in dict.fromkeys(one for one, _, _ in staged):
        table = table_of(case, name)
        changes = [(row, weight) for one, row, weight in staged if one == name]
        if way == "apply":
            transaction.apply(name, change_table(table, changes))
            continue
        for row, weight in changes:
            if weight == "erase_keys":
                rows: Any = [table.key_of(row)]
                if way == "tables":
                    rows = table.arrow((row,)).select(table.key_columns)
                transaction.erase_keys(name, rows)
                continue
            whole = [row] * (abs(weight) if isinstance(weight, int) else 1)
            does = weight if isinstance(weight, str) else "insert" if weight > 0 else "erase"
            getattr(transaction, does)(name, whole if way == "rows" else table.arrow(tuple(whole)))


class Kept(Player):
    """Two workspaces that keep the case's heads by different strategies, and what they have to hold."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.shown = [head for head in case.options.get("results", ()) if head in case.heads] or case.heads
        self.state = beginning(case)
        heads = self._expected(self.state)
        if isinstance(heads, Refused):
            raise OutOfReach(heads.why)
        self.heads = heads
        self.held: list[Held] = []
        names = ("sensitivity_bytes", "record_gap", "single_changes")
        given = {name: case.options[name] for name in names if name in case.options}
        self.workspaces: list[Workspace] = [Workspace(**given)]
        self.reader: Workspace | None = None
        self.mirrors: dict[str, Mirror] = {}
        if "durability" in case.options:
            self.workspaces.append(Workspace.open(folder, durability=case.options["durability"], **given))
        elif "others" in case.options:
            self.workspaces.append(Workspace(**given))

    def _expected(self, state: State) -> Heads | Refused:
        return expected(
            self.case.program,
            state,
            self.shown,
            bags(self.case),
            self.case.options.get("errors_count", False),
        )

    def begin(self) -> None:
        for workspace, name in zip(self.workspaces, ("strategies", "others"), strict=False):
            loaded(self.case, workspace)
            chosen = dict(zip(self.case.heads, self.case.options.get(name, ()), strict=False))
            self._install(workspace, chosen)
        self.check("installed")
        self._follow_from_here()

    def _follow_from_here(self) -> None:
        """What is installed anew has no changes from before."""
        self.mirrors = {head: Mirror(self.workspaces[-1], head) for head in self.shown}

    def _install(self, workspace: Workspace, strategies: dict[str, str], **more: Any) -> None:
        """By these strategies; a head that one does not suit is kept by auto."""
        recursive = {head for head in self.case.heads if self._recursive(head)}
        fitting = {
            head: name
            for head, name in strategies.items()
            if (name == "stages") == (head in recursive) or name in ("auto", "recompute")
        }
        results = {"results": self.shown} if "results" in self.case.options else {}
        workspace.install(self.case.rules, fitting or "auto", **results, **more)

    def _recursive(self, head: str) -> bool:
        """Whether it is in a component: here one reads itself, or it reads none of its own."""
        rules = [rule for rule in self.case.program if any(h.relation == head for h in rule.heads)]
        return any(f"{head}(" in part or f"{head}[" in part for part in map(_body_text, rules))

    # -- steps ---------------------------------------------------------------------------------

    def _after(self, state: State, staged: tuple[Staged, ...]) -> tuple[State, Heads | Refused]:
        """The relations and heads after a transaction; the relations from before where a key refuses it."""
        try:
            now = after(self.case, state, staged)
        except SecondRow as error:
            return state, Refused(str(error), by_key=True)
        return now, self._expected(now)

    def commit(self, staged: tuple[Staged, ...], way: str) -> None:
        state, right = self._after(self.state, staged)
        before = self.heads
        for workspace in self.workspaces:
            told = staged
            if (
                self.case.options.get("whole_rows")
                and workspace is self.workspaces[0]
                and state != self.state
            ):
                told = whole_rows(self.state, state)
            try:
                with workspace.transaction() as transaction:
                    stage(self.case, transaction, told, way)
            except errors.LftjError as error:
                if not isinstance(right, Refused):
                    raise Difference(f"commit refused: {type(error).__name__} {error}") from error
                if isinstance(error, errors.KeyConflictError) != right.by_key:
                    raise Difference(f"commit refused by another: {error}, not {right.why}") from error
                continue
            if isinstance(right, Refused):
                raise Difference(f"commit not refused: {right.why}")
            for head in self.shown:
                _check_change("change", transaction.changes[head], before[head], right[head])
        if not isinstance(right, Refused):
            self.state, self.heads = state, right

    def apply_many(self, transactions: tuple[tuple[Staged, ...], ...]) -> None:
        states, heads = [self.state], [self.heads]
        refused = False
        for staged in transactions:
            state, right = self._after(states[-1], staged)
            states.append(state)
            refused = refused or isinstance(right, Refused)
            heads.append(heads[-1] if isinstance(right, Refused) else right)
        batch = self._batch(transactions)
        if not batch:
            return
        told = [n for n, staged in enumerate(transactions) if staged]
        for workspace in self.workspaces:
            try:
                applied = workspace.apply_many(batch)
            except errors.LftjError as error:
                if not refused:
                    raise Difference(f"apply_many refused: {type(error).__name__} {error}") from error
                continue
            if refused:
                raise Difference("apply_many not refused")
            for changes, n in zip(applied, told, strict=True):
                for head in self.shown:
                    _check_change("change of many", changes[head], heads[n][head], heads[n + 1][head])
        if not refused:
            self.state, self.heads = states[-1], heads[-1]

    def _batch(self, transactions: tuple[tuple[Staged, ...], ...]) -> dict[str, pa.Table]:
        batch = {}
        for table in self.case.tables:
            assert isinstance(table, Table)
            rows = [
                (row, weight, n)
                for n, staged in enumerate(transactions)
                for name, row, weight in staged
                if name == table.name
            ]
            if rows:
                changes = change_table(table, [(row, weight) for row, weight, _ in rows])
                batch[table.name] = changes.append_column(
                    "txn", pa.array([n for _, _, n in rows], pa.int64())
                )
        return batch

    def set_strategy(self, head: str, strategy: str) -> None:
        for workspace in self.workspaces:
            try:
                workspace.set_strategy(head, strategy)
            except errors.UnknownRelationError:
                if head in self.shown:
                    raise
            except errors.LftjError:
                if (strategy == "stages") == self._recursive(head):
                    raise

    def snapshot(self) -> None:
        self.held += [Held(one.snapshot(), self.state, self.heads) for one in self.workspaces]

    def verify(self) -> None:
        for workspace in self.workspaces:
            workspace.verify()

    def query(self) -> None:
        """The program as a query beside the heads, under other names."""
        renamed = self.case.rules
        for head in sorted(self.case.heads, key=len, reverse=True):
            renamed = renamed.replace(f"{head}(", f"q{head}(").replace(f"{head}[", f"q{head}[")
        for workspace in self.workspaces:
            for head in self.shown:
                same("query beside", rows_of(workspace.query(renamed, head=f"q{head}")), self.heads[head])

    def follow(self, head: str) -> None:
        if head not in self.shown:
            return
        self.mirrors[head].catch_up(self.workspaces[-1], by_one=len(self.held) % 2 == 0)
        self.mirrors[head].check(self.heads[head], "follow")

    def install_again(self, strategy: str) -> None:
        for workspace in self.workspaces:
            self._install(workspace, dict.fromkeys(self.case.heads, strategy), replace=True)
        self._follow_from_here()

    # -- in a folder -------------------------------------------------------------------------------

    @property
    def _in_folder(self) -> Workspace | None:
        return self.workspaces[-1] if self.workspaces[-1].folder else None

    def checkpoint(self) -> None:
        if self._in_folder:
            self._in_folder.checkpoint()

    def save(self) -> None:
        if self._in_folder:
            target = Path(tempfile.mkdtemp(prefix="lftj-fuzz-")) / "copy"
            try:
                self.workspaces[-1].save(target)
                with Workspace.open(target, read_only=True) as again:
                    self._check_one(again, "copy")
            finally:
                shutil.rmtree(target.parent)

    def reopen(self) -> None:
        """Close the folder, or leave it as a process does that ends, and open it again."""
        if self._in_folder:
            self._in_folder.close()
            names = ("durability", "single_changes")
            given = {name: self.case.options[name] for name in names if name in self.case.options}
            self.workspaces[-1] = Workspace.open(self.folder, **given)

    def refresh(self) -> None:
        """A reader beside: opened once, then kept up to date."""
        if self._in_folder:
            if self.reader is None:
                self.reader = Workspace.open(self.folder, read_only=True)
            self.reader.refresh()
            self._check_one(self.reader, "reader")

    # -- checks ---------------------------------------------------------------------------------------

    def end(self) -> None:
        self.verify()
        for head, mirror in self.mirrors.items():
            mirror.catch_up(self.workspaces[-1], by_one=True)
            mirror.check(self.heads[head], "follow at the end")

    def check(self, what: str) -> None:
        for workspace in self.workspaces:
            workspace.check_invariants()
            self._check_one(workspace, what)
        for held in self.held:
            for name, rows in held.heads.items():
                same("snapshot", rows_of(held.snapshot[name].table), rows)
            for name, counts in held.state.items():
                same("snapshot", list(held.snapshot[name]), counts.elements())

    def _check_one(self, workspace: Workspace, what: str) -> None:
        for name, rows in self.heads.items():
            same(f"head after {what}", rows_of(workspace[name].table), rows)
            if workspace[name].count != len(rows):
                raise Difference(f"count after {what}: {workspace[name].count}, not {len(rows)}")
        for name, counts in self.state.items():
            same(f"relation after {what}", list(workspace[name]), counts.elements())


def _body_text(rule: Any) -> str:
    return render((rule,)).partition("<-")[2]


def _check_change(what: str, table: pa.Table, before: Collection[Any], now: Collection[Any]) -> None:
    """The change is the new head minus the old one, each row once, by how often it came or went."""
    came, went = comparable(now) - comparable(before), comparable(before) - comparable(now)
    right = [(*row, n) for row, n in came.items()] + [(*row, -n) for row, n in went.items()]
    same(what, rows_of(table), right)


@contextmanager
def a_folder() -> Iterator[Path]:
    """A place for a workspace's folder, which goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="lftj-fuzz-") as made:
        yield Path(made) / "workspace"


def play_kept(case: Case) -> None:
    with a_folder() as folder, small_limits(case.options.get("merges")):
        Kept(case, folder).play()
