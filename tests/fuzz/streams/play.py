"""Plays rules over streams that a workspace keeps: transactions, batches, failures, kills and reopenings.

After each step relations are the history of accepted rows, filtered by the clock; heads are what brute force
gives for these; what has closed is what it gives for the whole history; late and accepted rows are those
given; and what transactions said has changed adds up to all of that.
"""

from __future__ import annotations

import copy
import os
import select
import shutil
import signal
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from fuzz.case import Case, Staged, Table
from fuzz.difference import Difference, same
from fuzz.expected import Heads, OutOfReach, Refused
from fuzz.kept import a_folder
from fuzz.player import Player
from fuzz.streams import units
from fuzz.streams.truth import Said, Truth
from fuzz.streams.views import Views
from lftj import errors
from maintenance import Snapshot, Workspace
from maintenance.image import read_image, write_image
from support.kept_lives import without_image
from support.reference import Row
from support.small_limits import small_limits


@dataclass
class Held:
    """A snapshot, and what it has to hold for ever."""

    snapshot: Snapshot
    right: Heads


class Lives(Player):
    """A workspace in memory and another one, maybe in a folder, by other strategies; and the truth."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.type_name: str = case.options["time"]
        self.tables = {table.name: table for table in case.tables if isinstance(table, Table)}
        self.views = Views(case, list(self.tables.values()))
        self.truth = Truth(case)
        more = {
            name: case.options[name] for name in ("sensitivity_bytes", "record_gap") if name in case.options
        }
        self.workspaces = [Workspace(**more)]
        if "durability" in case.options:
            if "feed_bytes" in case.options:
                more["feed_bytes"] = case.options["feed_bytes"]
            self.open = partial(Workspace.open, folder, durability=case.options["durability"], **more)
            self.workspaces.append(self.open())
        elif "others" in case.options:
            self.workspaces.append(Workspace(**more))
        self.reader: Workspace | None = None
        self.held: list[Held] = []
        self.heard: list[tuple[Workspace, str, pa.Table]] = []
        self.mirror: dict[str, Counter[Row]] = {}
        self.read_upto = 0

    # -- the beginning ---------------------------------------------------------------------------

    def begin(self) -> None:
        for workspace, name in zip(self.workspaces, ("strategies", "others"), strict=False):
            self._load(workspace)
            self._install(workspace, self.case.options.get(name, ()))
        self.truth.install()
        self.check("installed")
        self.mirror = {name: Counter(rows) for name, rows in self.truth.heads.items()}
        self.read_upto = self.workspaces[0].version
        self.begun = self.workspaces[-1].version

    def _load(self, workspace: Workspace) -> None:
        for table in self.tables.values():
            settings = self.case.options["streams"].get(table.name)
            spans = {} if settings is None else self._spans(settings)
            if settings is None or settings["declared"]:
                workspace.load(table.name, table.arrow(), **table.options)
                continue
            workspace.load(table.name, table.arrow(), time="t", **spans, **table.options)

    def _spans(self, settings: dict[str, Any]) -> dict[str, Any]:
        names = {"late": "lateness", "keep": "keep", "ahead": "ahead"}
        return {
            label: units.given(self.type_name, settings[name])
            for name, label in names.items()
            if settings[name] is not None
        }

    def _install(self, workspace: Workspace, strategies: tuple[str, ...]) -> None:
        heads = self.case.heads
        chosen = {
            head: name
            for head, name in zip(heads, strategies, strict=False)
            if (name == "stages") == self.truth.is_recursive(head) or name in ("auto", "recompute")
        }
        declared = "".join(
            f"stream {name}(t)"
            + "".join(
                f" {word} {units.spelled(self.type_name, settings[word])}"
                for word in ("late", "keep", "ahead")
                if settings[word] is not None
            )
            + ".\n"
            for name, settings in self.case.options["streams"].items()
            if settings["declared"]
        )
        finals = "".join(
            f"final {head} at {self._column(head, place)} + {units.spelled(self.type_name, after)}.\n"
            for head, (place, after) in self.case.options["finals"].items()
        )
        if declared:
            workspace.install(declared)
        workspace.install(self.case.rules + "\n" + finals, chosen or "auto")
        self.views.create(workspace)
        self._listen(workspace)

    def _column(self, head: str, place: int) -> str:
        rule = next(rule for rule in self.case.program if rule.heads[0].relation == head)
        return rule.heads[0].columns[place].name  # type: ignore[union-attr]

    def _listen(self, workspace: Workspace) -> None:
        for name in self.case.options["streams"]:
            workspace.on_late(name, lambda table, name=name: self.heard.append((workspace, name, table)))

    # -- transactions ----------------------------------------------------------------------------

    def _table(self, name: str, changes: list[tuple[Row, int]]) -> pa.Table:
        return self.tables[name].arrow(tuple(row for row, _ in changes))

    def _stage(self, transaction: Any, staged: tuple[Staged, ...], way: str) -> None:
        """Hand changes to an open transaction; what the clock refuses it goes on without."""
        for name in dict.fromkeys(one for one, _, _ in staged):
            changes = [(row, weight) for one, row, weight in staged if one == name]
            if name == "clock":
                for (moment,), _ in changes:
                    self._advance(transaction, moment)
            elif way == "apply":
                weights = pa.array([weight for _, weight in changes], pa.int64())
                transaction.apply(name, self._table(name, changes).append_column("weight", weights))
            else:
                for change in changes:
                    one = self._table(name, [change])
                    rows = one if way == "tables" or units.unit(self.type_name) else [change[0]]
                    if way == "rows" and units.is_date(self.type_name):
                        rows = [tuple(one.to_pylist()[0].values())]
                    (transaction.insert if change[1] > 0 else transaction.erase)(name, rows)

    def _advance(self, transaction: Any, moment: int) -> None:
        wrong = self.truth.goes_back(moment)
        try:
            transaction.advance(units.value(self.type_name, moment))
        except errors.StreamError as error:
            if not wrong:
                raise Difference(f"advance refused: {error}") from error
            return
        if wrong:
            raise Difference(f"advance not refused: to {moment} from {self.truth.now}")

    def commit(self, staged: tuple[Staged, ...], way: str) -> None:
        after = copy.deepcopy(self.truth)
        said = after.commit(staged)
        for workspace in self.workspaces:
            try:
                with workspace.transaction() as transaction:
                    self._stage(transaction, staged, way)
            except errors.LftjError as error:
                self._refused(said, error, "commit")
                continue
            if isinstance(said, Refused):
                raise Difference(f"commit not refused: {said.why}")
            self._check_stats("commit", transaction.stats, said, staged)
            self._check_change("change", transaction.changes, self.truth, after)
            self._check_heard(workspace, said)
        if not isinstance(said, Refused):
            self.truth = after

    def _refused(self, said: Said | Refused, error: errors.LftjError, what: str) -> None:
        if not isinstance(said, Refused):
            raise Difference(f"{what} refused: {type(error).__name__} {error}") from error
        kind = errors.StreamError if said.by_key else errors.EvaluationError
        if not isinstance(error, kind):
            raise Difference(f"{what} refused by another: {error}, not {said.why}") from error

    def apply_many(self, transactions: tuple[tuple[Staged, ...], ...]) -> None:
        truths, all_said = [self.truth], []
        refused: Refused | None = None
        given = [staged for staged in transactions if staged]
        for staged in given:
            following = copy.deepcopy(truths[-1])
            said = following.commit(staged)
            if isinstance(said, Refused):
                refused = said if refused is None or said.by_key else refused
            else:
                all_said.append(said)
            truths.append(following)
        if not given:
            return
        batch = self._batch(given)
        for workspace in self.workspaces:
            try:
                applied = workspace.apply_many(batch)
            except errors.LftjError as error:
                if refused is None:
                    raise Difference(f"apply_many refused: {type(error).__name__} {error}") from error
                continue
            if refused is not None:
                raise Difference(f"apply_many not refused: {refused.why}")
            together = Said()
            for said in all_said:
                together.add(said)
            self._check_stats(
                "apply_many", applied.stats, together, tuple(one for part in given for one in part)
            )
            for n, changes in enumerate(applied):
                self._check_change("change of many", changes, truths[n], truths[n + 1])
            self._check_heard(workspace, together)
        if refused is None:
            self.truth = truths[-1]

    def _batch(self, transactions: list[tuple[Staged, ...]]) -> dict[str, pa.Table]:
        batch = {}
        for name in self.tables:
            rows = [
                (row, w, n) for n, staged in enumerate(transactions) for one, row, w in staged if one == name
            ]
            if rows:
                table = self._table(name, [(row, weight) for row, weight, _ in rows])
                for label, place in (("weight", 1), ("txn", 2)):
                    table = table.append_column(label, pa.array([row[place] for row in rows], pa.int64()))
                batch[name] = table
        return batch

    def roll_back(self, staged: tuple[Staged, ...]) -> None:
        for workspace in self.workspaces:
            transaction = workspace.transaction()
            self._stage(transaction, staged, "apply")
            transaction.roll_back()

    # -- what transactions say -------------------------------------------------------------------

    def _check_stats(self, what: str, stats: Any, said: Said, staged: tuple[Staged, ...]) -> None:
        late = {name: len(rows) for name, rows in said.late.items()}
        if stats.late != late or stats.expired != dict(said.expired):
            raise Difference(
                f"stats of {what}: late {stats.late}, not {late}; {stats.expired}, not {said.expired}"
            )
        for name, n in Counter(name for name, _, _ in staged if name != "clock").items():
            taken = sum(each.get(name, 0) for each in (stats.inserted, stats.erased, stats.no_changes))
            if taken + late.get(name, 0) != n:
                raise Difference(
                    f"given of {what}: {taken} taken of {name} and {late.get(name, 0)} late, of {n}"
                )

    def _check_heard(self, workspace: Workspace, said: Said) -> None:
        heard: dict[str, list[Row]] = {}
        for _, name, table in self.heard:
            heard.setdefault(name, []).extend(units.rows_in_units(table))
        self.heard.clear()
        for name in heard.keys() | said.late.keys():
            same("on_late", heard.get(name, ()), [(*row, weight) for row, weight in said.late.get(name, ())])

    def _check_change(self, what: str, changes: Any, before: Truth, now: Truth) -> None:
        for name, rows in now.heads.items():
            went, came = Counter(before.heads[name]), Counter(rows)
            right = [(*row, n) for row, n in (came - went).items()]
            right += [(*row, -n) for row, n in (went - came).items()]
            same(what, units.rows_in_units(changes[name]), right)

    # -- anything else ---------------------------------------------------------------------------

    def snapshot(self) -> None:
        self.held += [
            Held(one.snapshot(), {**self.truth.heads, **self.truth.contents}) for one in self.workspaces
        ]

    def verify(self) -> None:
        for workspace in self.workspaces:
            workspace.verify()

    def set_strategy(self, head: str, strategy: str) -> None:
        for workspace in self.workspaces:
            try:
                workspace.set_strategy(head, strategy)
            except errors.LftjError:
                if (strategy == "stages") == self.truth.is_recursive(head):
                    raise

    def follow(self) -> None:
        """Of all heads what they did since this was asked last, by one workspace and the other."""
        workspace = self.workspaces[0]
        for name, rows in self.truth.heads.items():
            change = workspace.changes_since(self.read_upto, name)
            each = [one.table for one in workspace.follow(name, since=self.read_upto, timeout=0)]
            for tables in ([change.table], each):
                mirror = Counter(self.mirror[name])
                for table in tables:
                    for *row, weight in units.rows_in_units(table):
                        mirror[tuple(row)] += weight
                if any(n < 0 for n in mirror.values()):
                    raise Difference(f"follow: {name} has rows that go and are not there")
                same("follow", (+mirror).elements(), rows)
        self.mirror = {name: Counter(rows) for name, rows in self.truth.heads.items()}
        self.read_upto = workspace.version

        self._follow_closed()

    def _follow_closed(self) -> None:
        """All that has closed, by the journal, whatever the folder went through."""
        workspace = self.workspaces[-1]
        if workspace.folder and "feed_bytes" not in self.case.options:
            for name, rows in self.truth.closed.items():
                following = workspace.follow(name, since=self.begun, timeout=0)
                each = [row for change in following for row in units.rows_in_units(change.table)]
                same("follow what closed", each, [(*row, 1) for row in rows])
                change = workspace.changes_since(self.begun, name)
                same("what closed since", units.rows_in_units(change.table), [(*row, 1) for row in rows])

    def checkpoint(self) -> None:
        if self.workspaces[-1].folder:
            self.workspaces[-1].checkpoint()

    def compact(self) -> None:
        if self.workspaces[-1].folder:
            self.workspaces[-1].compact()

    def _reopen(self, image: bool) -> None:
        if not image:
            without_image(self.folder)
        self.workspaces[-1] = self.open()
        self._listen(self.workspaces[-1])

    def reopen(self, image: bool, checkpoint: bool) -> None:
        if self.workspaces[-1].folder:
            if checkpoint:
                self.checkpoint()
            self.workspaces[-1].close()
            self._reopen(image)

    def left(self, image: bool) -> None:
        """The folder as it would be if the process had ended."""
        if not self.workspaces[-1].folder or self.case.options["durability"] != "commit":
            return
        copied = self.folder.parent / "left"
        shutil.copytree(self.folder, copied)
        (copied / "lock").unlink(missing_ok=True)
        self.workspaces[-1].close()
        self._close_reader()
        shutil.rmtree(self.folder)
        copied.rename(self.folder)
        self._reopen(image)

    def killed(self, transactions: tuple[tuple[Staged, ...], ...], after: int, milliseconds: float) -> None:
        """Another process goes on, and is killed after so many commits."""
        if not self.workspaces[-1].folder:
            return
        self.workspaces[-1].close()
        truths = [self.truth]
        for staged in transactions:
            following = copy.deepcopy(truths[-1])
            if not isinstance(following.commit(staged), Refused):
                truths.append(following)
            else:
                transactions = tuple(one for one in transactions if one is not staged)
        said = self._said_by_child(transactions, after, milliseconds)
        self._reopen(True)
        wrong: Difference | None = None
        for number in reversed(range(said, min(said + 2, len(truths)))):
            try:
                self._check_one(self.workspaces[-1], truths[number], "a kill")
            except Difference as error:
                wrong = wrong or error
                continue
            for staged in transactions[:number]:
                self.workspaces, rest = self.workspaces[:1], self.workspaces[1:]
                self.commit(staged, "apply")
                self.workspaces += rest
            return
        assert wrong is not None
        raise wrong

    def _said_by_child(
        self, transactions: tuple[tuple[Staged, ...], ...], after: int, milliseconds: float
    ) -> int:
        hear, say = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                workspace = self.open()
                for staged in transactions:
                    with workspace.transaction() as transaction:
                        self._stage(transaction, staged, "apply")
                    os.write(say, b".")
            finally:
                os._exit(0)
        os.close(say)
        said = 0
        while said < after:
            if not select.select([hear], [], [], 240)[0]:
                os.kill(child, signal.SIGKILL)
                raise Difference("stuck: a process that commits")
            if not os.read(hear, 1):
                break
            said += 1
        time.sleep(milliseconds / 1000)
        os.kill(child, signal.SIGKILL)
        while heard := os.read(hear, 4096):
            said += len(heard)
        os.close(hear)
        os.waitpid(child, 0)
        return said

    def save(self) -> None:
        if self.workspaces[-1].folder:
            target = self.folder.parent / "copy"
            shutil.rmtree(target, ignore_errors=True)
            self.workspaces[-1].save(target)
            with Workspace.open(target, read_only=True) as again:
                self._check_one(again, self.truth, "copy")

    def image(self) -> None:
        path = self.folder.parent / "image.arrow"
        write_image(self.workspaces[-1], path)
        self._check_one(read_image(path), self.truth, "image")

    def refresh(self) -> None:
        if self.workspaces[-1].folder:
            if self.reader is None:
                self.reader = Workspace.open(self.folder, read_only=True)
            self.reader.refresh()
            self._check_one(self.reader, self.truth, "reader")

    def _close_reader(self) -> None:
        if self.reader is not None:
            self.reader.close()
            self.reader = None

    # -- checks ----------------------------------------------------------------------------------

    def end(self) -> None:
        self.follow()
        self.verify()

    def check(self, what: str) -> None:
        for workspace in self.workspaces:
            workspace.check_invariants()
            self._check_one(workspace, self.truth, what)
            self.views.check(workspace, self.truth.contents)
        if self.heard:
            raise Difference(f"on_late after {what}: {self.heard}")
        for held in self.held:
            for name, rows in held.right.items():
                same("snapshot", units.rows_in_units(held.snapshot[name].table), rows)

    def _check_one(self, workspace: Workspace, truth: Truth, what: str) -> None:
        now = units.units_of(self.type_name, workspace.now)
        if now != truth.now:
            raise Difference(f"now after {what}: {now}, not {truth.now}")
        for name, late in truth.late.items():
            if workspace.late(name) != late:
                raise Difference(f"late after {what}: {workspace.late(name)} of {name}, not {late}")
        for name, rows in truth.contents.items():
            same(f"relation after {what}", units.rows_in_units(workspace[name].table), rows)
        truth.check_bounds()
        for name, rows in truth.heads.items():
            same(f"head after {what}", units.rows_in_units(workspace[name].table), rows)
            if workspace[name].count != len(rows):
                raise Difference(f"count after {what}: {workspace[name].count} of {name}, not {len(rows)}")


def play_streams(case: Case) -> None:
    with a_folder() as folder, small_limits(case.options.get("merges")):
        Lives(case, folder).play()


__all__ = ["OutOfReach", "play_streams"]
