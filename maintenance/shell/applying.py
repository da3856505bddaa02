"""Change files committed to a workspace, transaction by transaction, and what comes out of it.

Invariants

1. Files of results appear when the run has ended well, or was interrupted between two transactions; after an
   error there is none.
2. An interruption lets the transaction that is being committed finish; a second one does not wait, and leaves
   no file.

Cost: of files whose transactions nobody has to see one by one, that of committing many in one call.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import click
import pyarrow as pa

from lftj.errors import LftjError
from lftj.files import sink
from lftj.files.locations import find
from lftj.process.progress import bar
from lftj.shell.inputs import Inputs, Pairs, say, say_dropped
from lftj.shell.shell import INTERRUPTED, Terminated, write_text
from lftj.values.shown_text import counted
from maintenance.shell.change_files import (
    ChangeFile,
    Part,
    TransactionId,
    check_together,
    merged_transactions,
)
from maintenance.shell.change_output import ChangeOutput, StatsOutput, change_output, stats_output
from maintenance.shell.options import STDOUT, Results
from maintenance.shell.summary import Summary
from maintenance.shell.waiting import WaitingTransactions, few
from maintenance.workspace.transaction import Transaction
from maintenance.workspace.workspace import Workspace

BAR_SECONDS = 0.1
"""The progress bar moves so often."""


def apply_files(
    workspace: Workspace,
    inputs: Inputs,
    changes: Pairs,
    results: Results,
    title: str,
    install: Callable[[], None] = lambda: None,
) -> Applying:
    """Commit all transactions of ``--changes``, or those before an interruption, and write the results.

    ``install``: called when the files have been found to be ones of changes; the heads are there then.
    """
    with contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(file)
            for change in changes
            for file in _change_files(workspace, inputs, *change)
        ]
        transaction_type = check_together(files)
        install()
        schemas = _change_schemas(workspace)
        to_terminal = (
            STDOUT in [results.stats, *(path for _, path in results.out_changes)] and sys.stdout.isatty()
        )
        with interruptions() as interruption:
            outputs = [
                (name, stack.enter_context(change_output(path, schemas[name], transaction_type)))
                for name, path in results.out_changes
            ]
            lines = None if results.stats is None else stack.enter_context(stats_output(results.stats))
            applying = Applying(workspace, files, interruption, outputs, lines)
            applying.run(title, not to_terminal)
        for file in files:
            say_dropped(file.path, file.dropped_rows)
        if results.verify and applying.finished:
            workspace.verify()
        for name, path in results.out:
            _write_head(workspace, name, path)
        if results.svg is not None:
            write_text(results.svg, workspace.stats.svg())
    return applying


@dataclass
class Interruption:
    """The signal that asks for an end between two transactions, when it has come."""

    signal: int | None = None


class Applying:
    """The transactions of change files, on their way into a workspace.

    ``outputs``: the heads whose changes are written, and where to; ``lines``: gets figures.
    """

    def __init__(
        self,
        workspace: Workspace,
        files: Sequence[ChangeFile],
        interruption: Interruption,
        outputs: Sequence[tuple[str, ChangeOutput]] = (),
        lines: StatsOutput | None = None,
    ) -> None:
        self._workspace, self._files, self._interruption = workspace, files, interruption
        self._outputs, self._lines = outputs, lines
        self._waiting = WaitingTransactions()
        # What is to be seen at once, or by transaction, is committed so.
        at_once = any(file.is_feed for file in files) or any(output.is_seen for _, output in outputs)
        self._together = lines is None and not at_once
        self._summary = Summary()
        self.finished = False
        """Whether no interruption ended it early."""

    def run(self, title: str, show_bar: bool = True) -> None:
        """Commit all transactions, or those before an interruption."""
        for file in self._files:
            file.stop_when(lambda: self._is_interrupted)
        shown = time.monotonic()
        with bar(title, show_bar) as advance:
            for transaction_id, parts in merged_transactions(self._files):
                if not self._take(transaction_id, iter(parts)):
                    return
                if (now := time.monotonic()) - shown > BAR_SECONDS:
                    shown = now
                    advance(sum(file.fraction for file in self._files) / len(self._files))
            self._commit_waiting()
        self.finished = not any(file.stopped for file in self._files)

    def end(self, heads: Iterable[str], then: str) -> None:
        """Say what it came to, and exit where it was interrupted.

        ``heads``: get a line each; ``then``: what has become of the changes.
        """
        rows = {name: self._workspace[name].count for name in heads}
        click.echo(self._summary.render(rows), err=True)
        if not self.finished:
            done = counted(self._summary.transactions, "transaction")
            say("error", f"interrupted after {done}, {then}")
            assert self._interruption.signal is not None
            raise click.exceptions.Exit(INTERRUPTED + self._interruption.signal)

    @property
    def _is_interrupted(self) -> bool:
        return self._interruption.signal is not None

    def _take(self, transaction_id: TransactionId | None, parts: Iterator[Part]) -> bool:
        """Commit a transaction, or let it wait for others; False when it was interrupted."""
        first, are_all = few(parts) if self._together else ([], False)
        if not self._is_interrupted and are_all:
            self._waiting.add(transaction_id, first)
        if self._waiting.is_full or not are_all or self._is_interrupted:
            self._commit_waiting()
        if self._is_interrupted:
            return False
        return are_all or self._commit(transaction_id, itertools.chain(first, parts))

    def _commit(self, transaction_id: TransactionId | None, parts: Iterable[Part]) -> bool:
        """Commit a transaction by itself; False when it was interrupted while it was read."""
        n_changes = 0
        paths: list[str] = []
        with self._workspace.transaction() as transaction:
            for part in parts:
                if self._is_interrupted:
                    break
                _stage(transaction, part)
                n_changes += part.rows.num_rows
                if part.file.path not in paths:
                    paths.append(part.file.path)
            if self._is_interrupted:
                transaction.roll_back()
                return False
            with _placed(paths, transaction_id):
                transaction.commit()
        figures = transaction.stats.rules
        for name, output in self._outputs:
            if name in self._workspace.grown or (name in figures and figures[name].head_changes):
                output.add(transaction_id, transaction.changes[name])
        if self._lines is not None:
            self._lines.add(transaction_id, n_changes, transaction.stats)
        self._summary.add(n_changes, transaction.stats)
        return True

    def _commit_waiting(self) -> None:
        waiting = self._waiting
        if not len(waiting):
            return
        try:
            applied = waiting.apply(self._workspace)
        except LftjError:  # said of the one that it is about, which the ones before it precede
            for transaction_id, parts in waiting:
                self._commit(transaction_id, parts)
        else:
            ids = [transaction_id for transaction_id, _ in waiting]
            for place, changes in zip(applied.transactions, applied, strict=True):
                for name, output in self._outputs:
                    output.add(ids[place], changes[name])
            self._summary.add(waiting.n_rows, applied.stats, len(waiting))
        waiting.clear()


def _stage(transaction: Transaction, part: Part) -> None:
    with _placed([part.file.path], part.transaction):
        transaction.apply(part.file.relation, part.rows)


@contextlib.contextmanager
def _placed(paths: Iterable[str], transaction: TransactionId | None) -> Iterator[None]:
    """Errors of the block with the transaction that they are about."""
    try:
        yield
    except LftjError as error:
        place = ", ".join(paths) + ("" if transaction is None else f", transaction {transaction}")
        raise type(error)(f"{place}: {error}") from None


def _change_files(workspace: Workspace, inputs: Inputs, name: str, said: str) -> Iterator[ChangeFile]:
    """The file, or those of a pattern by their names.  Raises SourceError where there is none."""
    schema = workspace.base_version(name).schema.shown
    pattern = said if glob.has_magic(said) and not os.path.exists(said) else None
    for path in [said] if pattern is None else [file.label for file in find(pattern).files]:
        csv = inputs.csv_of_changes(path)
        yield ChangeFile(name, path, schema, inputs.nulls or "refuse", csv, pattern)


def _change_schemas(workspace: Workspace) -> dict[str, pa.Schema]:
    """The schema of each head's change tables: an empty transaction has them all."""
    with workspace.transaction() as nothing:
        pass
    return {name: table.schema for name, table in nothing.changes.items()}


def _write_head(workspace: Workspace, name: str, path: str) -> None:
    batches = sink.batches_of(workspace[name].table)
    if path == STDOUT:
        sink.write_csv(batches, sys.stdout.buffer)
    else:
        sink.write_file(batches, path)


@contextlib.contextmanager
def interruptions() -> Iterator[Interruption]:
    """Whether Ctrl-C or SIGTERM came during the block; the second one interrupts it."""
    interruption = Interruption()

    def take(number: int, frame: object) -> None:
        if interruption.signal is not None:
            raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
        interruption.signal = number

    before = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, take)
    except ValueError:  # not the main thread, which is the one that gets signals
        pass
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
