"""Change files committed to a workspace, transaction by transaction: what commands that change one share.

Invariant: an interruption lets the transaction that is being committed finish; a second one does not wait.

Cost: of files whose transactions nobody has to see one by one, that of committing many in one call.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lftj.errors import LftjError
from lftj.shell.shell import Terminated

if TYPE_CHECKING:
    from maintenance.shell.change_files import ChangeFile, Part, TransactionId
    from maintenance.shell.change_output import ChangeOutput, StatsOutput
    from maintenance.shell.summary import Summary
    from maintenance.workspace.transaction import Transaction
    from maintenance.workspace.workspace import Workspace

BAR_SECONDS = 0.1
"""The progress bar moves so often."""


def apply_changes(
    workspace: Workspace,
    files: Sequence[ChangeFile],
    outputs: Sequence[tuple[str, ChangeOutput]],
    to_stdout: bool,
    lines: StatsOutput | None,
    summary: Summary,
    advance: Callable[[float], None],
    interruption: Interruption,
) -> bool:
    """Commit the transactions of the files; False when an interruption ended that early.

    ``to_stdout``: an output goes there, with each commit.
    """
    from maintenance.shell.change_files import merged_transactions
    from maintenance.shell.gathered import MOST_ROWS, Gathered, few

    def commit(transaction_id: TransactionId | None, parts: Iterable[Part]) -> bool:
        """Commit a transaction by itself; False when it was interrupted while it was read."""
        n_changes = 0
        paths: list[str] = []
        with workspace.transaction() as transaction:
            for part in parts:
                if interruption.signal is not None:
                    break
                _stage(transaction, part)
                n_changes += part.rows.num_rows
                if part.file.path not in paths:
                    paths.append(part.file.path)
            if interruption.signal is not None:
                transaction.roll_back()
                return False
            with _placed(paths, transaction_id):
                transaction.commit()
        for name, output in outputs:
            if name in transaction.stats.rules and transaction.stats[name].head_changes:
                output.add(transaction_id, transaction.changes[name])
        if lines is not None:
            lines.add(transaction_id, n_changes, transaction.stats)
        summary.add(n_changes, transaction.stats)
        return True

    def commit_gathered() -> None:
        try:
            applied = gathered.apply(workspace)
        except LftjError:  # said of the one that it is about, which the ones before it precede
            for transaction_id, parts in gathered:
                commit(transaction_id, parts)
        else:
            ids = [transaction_id for transaction_id, _ in gathered]
            for place, changes in zip(applied.transactions, applied, strict=True):
                for name, output in outputs:
                    output.add(ids[place], changes[name])
            summary.add_batch(len(gathered), gathered.n_rows, applied.stats)
        gathered.clear()

    # What is to be seen at once, or by transaction, is committed so.
    together = lines is None and not any(file.is_feed for file in files) and not to_stdout
    gathered = Gathered()
    shown = time.monotonic()
    for transaction_id, parts in merged_transactions(files):
        parts = iter(parts)
        first, are_all = few(parts, MOST_ROWS) if together else ([], False)
        if interruption.signal is None and are_all:
            gathered.add(transaction_id, first)
        if len(gathered) and (gathered.is_full or not are_all or interruption.signal is not None):
            commit_gathered()
        if interruption.signal is not None:
            return False
        if not are_all and not commit(transaction_id, itertools.chain(first, parts)):
            return False
        if (now := time.monotonic()) - shown > BAR_SECONDS:
            shown = now
            advance(sum(file.fraction for file in files) / len(files))
    if len(gathered):
        commit_gathered()
    return not any(file.stopped for file in files)


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


@dataclass
class Interruption:
    """The signal that asks for an end between two transactions, when it has come."""

    signal: int | None = None


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
