"""`Source`: the protocol by which a workspace follows something outside, each change of it once.

    for tx in source.pull(ws):        each is committed: tx.changes, tx.stats
        ...

Invariants

1. A commit has rows and the cursor behind them (:mod:`maintenance.sources.cursor`).
2. The upstream is told that it may forget something when that is committed, never before.
3. What the upstream did in one transaction is in one commit; a commit may have several of them.
4. A row that can't be taken is not passed over in silence: the pull stops before its batch, or the row is set
   aside in a relation, in the commit that has the others.  That a rule or a key refuses it is found by trying
   (:mod:`maintenance.sources.refused_rows`).

Cost: beside decoding, one transaction for a batch, where none of it is refused; of what comes in pieces one
is in memory at a time then, beside the rows as the relation has them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa

from lftj.errors import LftjError, RejectedRowError
from lftj.storage.relation import Nulls
from lftj.values.schema import Schema
from maintenance.changes.labels import op_label, weight_label
from maintenance.sources.cursor import Cursor, Place
from maintenance.sources.patience import Patience
from maintenance.sources.refused_rows import Numbers, Unit, is_of_rows, of_units, refused_units
from maintenance.store.fault_points import reached
from maintenance.workspace.transaction import Transaction
from maintenance.workspace.workspace import Workspace

OnError = Literal["stop", "set aside"]

BATCH_ROWS = 10_000
"""Where so many rows wait they are committed, though more are there to be read."""

_ASIDE = pa.schema(
    [
        pa.field("part", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True)
class Rejected:
    """A row that can't be taken.  ``row``: which one at the position, from 0; ``text``: as it came."""

    part: str
    position: int
    row: int
    reason: str
    text: str


@dataclass
class Pieces:
    """Rows that are read while they are staged.

    ``first``: those.  ``again``: reads them from the beginning, where a commit was refused; None where the
    upstream has them but once: then nobody looks which row it was.
    """

    first: Iterator[pa.Table]
    again: Callable[[], Iterator[pa.Table]] | None = None

    def read_again(self) -> pa.Table:
        """All of them."""
        assert self.again is not None
        return pa.concat_tables(self.again())


@dataclass
class Batch:
    """What is to be one commit.

    ``changes``: by relation its columns, and ``op`` or ``weight``, or neither where rows come alone; a table,
    or its pieces.  ``places``: where the cursor is then.  ``rejected``: of pieces it grows as they are read.
    ``begins``: whether the rows are all that the relations have.
    ``acknowledge``: tells the upstream that it need not keep what is in it.  ``numbers``: by relation int64
    (rows,), of each row the number of the message or line that it came with: those of one are taken together,
    or none is; by default each by itself.  ``origin``: what such a one is by relation, number and what is
    wrong; by default the row at the batch's first place.
    """

    changes: Mapping[str, pa.Table | Pieces]
    places: Mapping[str, Place | None]
    rejected: list[Rejected] = field(default_factory=list)
    begins: bool = False
    acknowledge: Callable[[], object] = lambda: None
    numbers: Numbers | None = None
    origin: Callable[[str, int, str], Rejected] | None = None

    def whole(self) -> dict[str, pa.Table]:
        """The changes, pieces put together."""
        if any(isinstance(rows, Pieces) for rows in self.changes.values()):
            self.rejected.clear()
        return {
            name: rows.read_again() if isinstance(rows, Pieces) else rows
            for name, rows in self.changes.items()
        }

    @property
    def is_there_again(self) -> bool:
        """Whether `whole` can be had."""
        return all(rows.again is not None for rows in self.changes.values() if isinstance(rows, Pieces))

    def numbered(self, changes: Mapping[str, pa.Table]) -> Numbers:
        """``numbers``, or the default.  ``changes``: whole."""
        if self.numbers is not None:
            return self.numbers
        return {name: np.arange(rows.num_rows) for name, rows in changes.items()}

    def rejected_as(self, unit: Unit, reason: str, changes: Mapping[str, pa.Table]) -> Rejected:
        """What can't be taken for a reason."""
        relation, number = unit
        if self.origin is not None:
            return self.origin(relation, number, reason)
        part, place = next(iter(self.places.items()), ("", None))
        text = str(changes[relation].slice(number, 1).to_pylist()[0])
        return Rejected(part, 0 if place is None else place.position, number, reason, text)


class Source(ABC):
    """Something outside whose changes a workspace takes.

    ``name``: of the cursor, and of the relation ``<name>_aside``; each source of a workspace has another.
    ``on_error``: what becomes of a row that can't be taken: ``"stop"`` raises RejectedRowError before
    anything of its batch is done, ``"set aside"`` puts it into the relation ``<name>_aside`` and goes on.
    ``backlog_unit``: what `backlog` counts.  ``places``: how far it is, by part, as of the last pull.
    """

    backlog_unit: ClassVar[Literal["rows", "bytes"]] = "bytes"

    def __init__(self, name: str, on_error: OnError) -> None:
        if on_error not in get_args(OnError):
            choices = " or ".join(map(repr, get_args(OnError)))
            raise ValueError(f"on_error is {on_error!r}; it can be {choices}")
        self.name, self.on_error = name, on_error
        self.places: Mapping[str, Place] = {}
        self._is_stopped = False

    def pull(self, workspace: Workspace, *, timeout: float | None = None) -> Iterator[Transaction]:
        """Take what has come since, and what comes; each transaction is committed when it is given.

        ``timeout``: seconds after which the loop ends when nothing comes; None: never, 0: when it has all
        that there is.  The relations are made where they are not there.

        Raises SourceError for what can't be read, or is not what was read before, SourceAwayError for what
        does not answer, RejectedRowError, and what commits raise; the workspace is as the last commit left it
        then, and the next pull goes on behind.
        """
        cursor = Cursor(workspace, self.name)
        self.places = cursor.places
        self._make_aside(workspace)
        patience = Patience(timeout, lambda: self._is_stopped)
        with closing(self._batches(workspace, cursor, patience)) as batches:
            for batch in batches:
                reached("source: rows read, not committed")
                transaction = self._committed(workspace, cursor, batch)
                self.places = cursor.places
                reached("source: committed, not acknowledged")
                batch.acknowledge()
                reached("source: acknowledged")
                if batch.changes or batch.rejected:
                    yield transaction

    def stop(self) -> None:
        """End the loops over `pull` behind a commit, those of later ones too; also from another thread."""
        self._is_stopped = True

    def backlog(self) -> int | None:
        """How much there was upstream, when it was last heard of, that is not in; also for other threads.

        None where nothing was heard in this pull, or none is under way, or a source does not know.
        """
        return None

    @abstractmethod
    def _batches(self, workspace: Workspace, cursor: Cursor, patience: Patience) -> Generator[Batch]:
        """What is behind the cursor, which has moved when the next batch is asked for.

        It is a generator, and lets its connections go when it is closed.
        """

    def _committed(self, workspace: Workspace, cursor: Cursor, batch: Batch) -> Transaction:
        try:
            try:
                transaction = self._commit(workspace, cursor, batch, batch.changes, batch.rejected)
            except LftjError as error:
                is_halved = is_of_rows(error) and batch.is_there_again
                if isinstance(error, RejectedRowError) or not is_halved:
                    raise
                transaction = self._commit(workspace, cursor, batch, *self._without_refused(workspace, batch))
        except RejectedRowError:
            raise
        except LftjError as error:
            error.add_note(
                f"source {self.name!r}, in what leads to {_shown(batch.places)}; nothing was changed"
            )
            raise
        cursor.moved(batch.places)
        return transaction

    def _commit(
        self,
        workspace: Workspace,
        cursor: Cursor,
        batch: Batch,
        changes: Mapping[str, pa.Table | Pieces],
        rejected: Sequence[Rejected],
    ) -> Transaction:
        with workspace.transaction() as transaction:
            _stage_all(workspace, transaction, changes, batch.begins)
            if rejected and self.on_error == "stop":
                raise self._refused(rejected)
            if rejected:
                transaction.insert(self.aside, [tuple(vars(row).values()) for row in rejected])
            cursor.stage(transaction, batch.places)
        return transaction

    def _without_refused(
        self, workspace: Workspace, batch: Batch
    ) -> tuple[Mapping[str, pa.Table], Sequence[Rejected]]:
        """The changes without the rows for which they are refused, and all that is to be set aside.

        Raises RejectedRowError where the first of them is to stop the pull.
        """
        changes, refused = batch.whole(), list[Unit]()
        numbers, rejected = batch.numbered(changes), list(batch.rejected)
        attempt = partial(_refusal, workspace, batch.begins)
        for unit, error in refused_units(changes, numbers, attempt):
            row = batch.rejected_as(unit, str(error), changes)
            if self.on_error == "stop":
                raise self._refused([row]) from error
            refused.append(unit)
            rejected.append(row)
        left_out = set(refused)
        kept = [
            (name, int(number))
            for name in changes
            for number in np.unique(numbers[name])
            if (name, int(number)) not in left_out
        ]
        return of_units(changes, numbers, kept), rejected

    def _refused(self, rejected: Sequence[Rejected]) -> RejectedRowError:
        first, others = rejected[0], len(rejected) - 1
        more = f", and {others:,} more of its batch" if others else ""
        return RejectedRowError(
            f"source {self.name!r}: row {first.row} at {first.position} of {first.part!r} can't be taken"
            f"{more}: {first.reason}: {first.text[:200]!r}; nothing of its batch was: mend it there, or pass"
            f' over such rows with on_error="set aside", which keeps them in the relation {self.aside!r}',
            first.part,
            first.position,
            first.row,
        )

    @property
    def aside(self) -> str:
        """The relation of rows that were set aside."""
        return f"{self.name}_aside"

    def _make_aside(self, workspace: Workspace) -> None:
        if self.on_error == "set aside" and self.aside not in workspace:
            workspace.load(self.aside, _ASIDE.empty_table())


def make_relation(
    workspace: Workspace, name: str, schema: pa.Schema, key: Sequence[str], nulls: Nulls, bag: bool = False
) -> None:
    """Load an empty relation where there is none of the name."""
    if name not in workspace:
        workspace.load(name, schema.empty_table(), key=key, nulls=nulls, bag=bag)


def columns_of(schema: Schema) -> pa.Schema:
    """The columns that rows of a relation have."""
    return pa.schema([pa.field(column.name, column.type.arrow) for column in schema.shown.columns])


class _Tried(Exception):
    """A commit that is not to be has come so far that nothing refuses it."""


def _refusal(workspace: Workspace, begins: bool, changes: Mapping[str, pa.Table]) -> LftjError | None:
    """Why a commit of changes would be refused, or None; nothing is changed."""

    def no_further(*prepared: object) -> None:
        raise _Tried

    try:
        with workspace.transaction(prepare=no_further) as transaction:
            _stage_all(workspace, transaction, changes, begins)
    except _Tried:
        return None
    except LftjError as error:
        return error
    return None  # it comes to nothing


def _stage_all(
    workspace: Workspace, transaction: Transaction, changes: Mapping[str, pa.Table | Pieces], begins: bool
) -> None:
    for relation, rows in changes.items():
        if begins:
            transaction.erase(relation, workspace[relation].to_arrow())
        for piece in rows.first if isinstance(rows, Pieces) else [rows]:
            _stage(workspace, transaction, relation, piece)


def _stage(workspace: Workspace, transaction: Transaction, relation: str, rows: pa.Table) -> None:
    schema = workspace.base_version(relation).schema
    if weight_label(schema) in rows.column_names or op_label(schema) in rows.column_names:
        transaction.apply(relation, rows)
    elif schema.key:
        transaction.upsert(relation, rows)
    else:
        transaction.insert(relation, rows)


def _shown(places: Mapping[str, Place | None]) -> str:
    shown = [f"{part} {place.position}" for part, place in places.items() if place is not None]
    return ", ".join(shown[:3]) + (", ..." if len(shown) > 3 else "")
