"""A transaction: staged changes of base relations, committed all together or not at all.

Invariants

1. Nothing of the workspace changes before the commit, and the commit publishes
   the new versions by one assignment.
2. A refused change stages nothing; the transaction can go on.  One that is interrupted while it is staged
   rolls the transaction back.
3. A transaction ends once: by a commit, be it one that failed, or rolled back.  What is asked of it then is
   refused, and one that is dropped before, with changes, says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import pyarrow as pa

from lftj.errors import ChangeError, TransactionError
from lftj.process.interrupts import interruptible
from lftj.storage.relation_version import RelationVersion
from lftj.values.collector import Lease
from lftj.values.domains import Domains
from maintenance.changes.changes import encode_keys, encode_rows, encode_zset
from maintenance.changes.head_changes import Changes, Outstanding
from maintenance.changes.keyed_buffer import KeyedBuffer
from maintenance.changes.rows_there import RowsThere
from maintenance.changes.signed import Signed
from maintenance.changes.write_buffer import WriteBuffer
from maintenance.event_time.stream_buffer import StreamBuffer
from maintenance.event_time.tick import Clockwork, Moving
from maintenance.machine.keyed import KEY_ERASED, UPSERTED
from maintenance.machine.piece import Piece
from maintenance.machine.program import Layout
from maintenance.machine.staged_values import LARGEST
from maintenance.machine.wide_rows import WideRows
from maintenance.stats import TransactionStats
from maintenance.strategies.strategy import Versions
from maintenance.workspace.not_there import OF_TRANSACTIONS, called_otherwise

if TYPE_CHECKING:
    from maintenance.workspace.sql_target import SqlTarget, Staging


_FEW = 64
"""Rows of one call that are staged as numbers."""

Prepare = Callable[[Changes, Mapping[str, pa.Table]], object]
"""Takes the changes of all heads, and by stream the late rows, of a commit that is to be."""


class Changeable(Protocol):
    """What a transaction is about; `Workspace` is one."""

    @property
    def domains(self) -> Domains: ...

    def base_version(self, name: str) -> RelationVersion: ...

    def followed(self, names: Collection[str]) -> set[str]: ...

    def sql_target(self, staging: Staging) -> SqlTarget: ...

    def time_code(self, moment: Any) -> int: ...

    @property
    def layout(self) -> Layout | None: ...

    def commit(self, transaction: Transaction, buffers: Mapping[str, WriteBuffer]) -> None: ...

    def commit_numbers(self, transaction: Transaction, rows: Sequence[int], layout: Layout) -> bool: ...


@called_otherwise(OF_TRANSACTIONS)
class Transaction:
    """Made by `Workspace.transaction`; a context manager.

    Outside of a ``with`` block it is to be ended by `commit` or `roll_back`: one that is dropped with changes
    commits nothing, and that is a ResourceWarning.

    Attributes:
        changes: After the commit: per head a table of its columns and ``weight``, +1 or -1.
        stats: After the commit: what it took, per head.  Before it, and where there was none, whatever is
            asked of either raises TransactionError.
        subscriber_errors: Exceptions that subscribers raised, with the subscriber's name.
    """

    _open = False  # until it is made
    _there: tuple[RowsThere, ...] = ()
    """What is erased because it is there."""
    piece: Piece | None = None
    """Of the machine's log, where that has the commit or was asked to."""
    _target: SqlTarget | None = None
    _lease: Lease | None = None
    _changes: Changes | None = None
    _stats: TransactionStats | None = None
    _outcome = "the transaction is not committed yet: leave its with block, or call commit()"
    """What has become of it, in words."""

    def __init__(self, workspace: Changeable, prepare: Prepare | None = None) -> None:
        self._workspace = workspace
        self.prepare = prepare
        self._buffers: dict[str, WriteBuffer] = {}
        self._layout = workspace.layout if prepare is None else None
        self._numbers: list[int] = []
        """What is staged as numbers, before all that the buffers have: as :meth:`Machine.commit` takes it."""
        self.subscriber_errors: list[tuple[str, Exception]] = []
        self._open = True

    @cached_property
    def clockwork(self) -> Clockwork:
        """What is said of time."""
        return Clockwork()

    @property
    def changes(self) -> Changes:
        self._read_piece()
        return cast(Changes, self._nothing) if self._changes is None else self._changes

    @changes.setter
    def changes(self, changes: Changes) -> None:
        self._changes = changes

    @property
    def stats(self) -> TransactionStats:
        self._read_piece()
        return cast(TransactionStats, self._nothing) if self._stats is None else self._stats

    @stats.setter
    def stats(self, stats: TransactionStats) -> None:
        self._stats = stats

    @property
    def _nothing(self) -> object:
        """What there is before the commit, and where there is none."""
        return Outstanding("changes and figures", lambda: self._outcome)

    def _read_piece(self) -> None:
        if self._changes is None and self.piece is not None and self.piece.is_published:
            self._stats, self._changes = self.piece.stats(), self.piece.changes()

    @property
    def _is_committed(self) -> bool:
        return self._changes is not None or (self.piece is not None and self.piece.is_published)

    def insert(self, relation: str, source: Any) -> None:
        """Stage rows to insert, in any form that ``load`` takes; rows that are there are no change."""
        if self._layout is None or not self._stage_numbers(relation, source, 1):
            self._stage(relation, source, 1)

    def erase(self, relation: str, source: Any, *, missing: str = "ignore") -> None:
        """Stage rows to erase; rows that are not there are no change, or with ``missing="error"`` refused.

        A row is there then that is in the workspace, or staged before, and has not been erased before; the
        commit raises ConflictError where another transaction has erased one meanwhile.
        Raises ChangeError for the first row that is not there; none of the call's rows is staged then.

        Examples:
            >>> from maintenance import Workspace
            >>> ws = Workspace()
            >>> ws.load("edge", {"a": [1, 2], "b": [2, 3]})
            >>> with ws.transaction() as tx:
            ...     tx.erase("edge", [(1, 2), (2, 4)], missing="error")
            Traceback (most recent call last):
                ...
            lftj.errors.ChangeError: erase from 'edge': row 1 (counting from 0), (2, 4), is not there; \
missing="ignore" passes over such rows
        """
        if missing != "ignore":
            self._stage_there(relation, source, missing)
        elif self._layout is None or not self._stage_numbers(relation, source, -1):
            self._stage(relation, source, -1)

    @interruptible()
    def apply(self, relation: str, zset: Any) -> None:
        """Stage a table with a ``weight`` column: positive to insert, negative to erase.

        In its place a column ``op`` may say what happens: ``I``, ``U``, ``D`` of the row; Debezium's ``c``,
        ``u``, ``d``, ``r``; Delta's ``insert``, ``delete``, ``update_preimage``, ``update_postimage``.
        """
        buffer, read = self._buffer(relation)
        self._add(buffer, encode_zset(relation, buffer.schema, zset, self._workspace.domains, read))

    def upsert(self, relation: str, source: Any) -> None:
        """Stage rows, in any form that ``load`` takes, each in place of the row of its key, if there is one.

        What the transaction has staged of the key before counts as there; of two rows of one key the later
        one stays.  Raises ChangeError for a relation without a key.

        Examples:
            >>> from maintenance import Workspace
            >>> ws = Workspace()
            >>> ws.load("orders", {"id": [1, 2], "state": ["new", "new"]}, key=["id"])
            >>> with ws.transaction() as tx:
            ...     tx.upsert("orders", [(2, "paid"), (3, "new")])
            ...     tx.erase_keys("orders", [(1,)])
            >>> sorted(ws["orders"])
            [(2, 'paid'), (3, 'new')]
        """
        if not (self._has_key(relation) and self._stage_numbers(relation, source, UPSERTED)):
            self._stage_upserts(relation, source)

    def erase_keys(self, relation: str, keys: Any) -> None:
        """Stage the erasure of the rows of some keys: tuples, or columns of the key, in any form of ``load``.

        A key that is not there is no change; ``stats.no_changes`` counts it.  Raises ChangeError for a
        relation without a key.
        """
        if not (self._has_key(relation) and self._stage_numbers_of_keys(relation, keys)):
            self._stage_keys(relation, keys)

    def advance(self, moment: Any) -> None:
        """Say that a time has come in all streams, if it has not: no row that comes later is earlier.

        Rows of this transaction are judged by the clock of before.  ``moment``: a value of the type of the
        streams' times.  Raises StreamError for one that is not, or is behind the clock, or without streams.

        Examples:
            >>> from maintenance import Workspace
            >>> ws = Workspace()
            >>> ws.load("beat", {"t": [100]}, time="t", keep=10)
            >>> with ws.transaction() as tx:
            ...     tx.advance(200)
            >>> ws.now, ws["beat"].count
            (200, 0)
        """
        self._refuse_ended()
        self._leave_numbers()
        code, before = self._workspace.time_code(moment), self.clockwork.advanced
        self.clockwork.advanced = code if before is None else max(before, code)

    def tell(self, streams: Mapping[str, Moving]) -> None:
        """What is staged is in the journal, with what it made of streams; called by who does it again."""
        self.clockwork.told = {**(self.clockwork.told or {}), **streams}

    @interruptible()
    def sql(self, text: Any, params: Any = None, *, dialect: str | None = None) -> pa.Table:
        """Stage what an INSERT, UPDATE, DELETE or MERGE does, all or nothing of it; a SELECT reads.

        Returns ``Count``, how many rows the statement inserts, updates and deletes, or the rows of RETURNING.
        ``text``, ``params``, ``dialect``: as of `lftj.Database.sql`.

        All statements read the workspace as it was when the first of them came.  What the transaction has
        changed is not read, where other databases see it: a statement that would raises TransactionError.
        Where another transaction changes meanwhile what they read, the commit raises ConflictError.

        Values are cast to the columns' types as DuckDB does.  A row that meets several others by which it
        would get different values is a ChangeError, where DuckDB takes any of these.

        Raises SqlError, ParameterError, UnsupportedSqlError, DataError (ChangeError, NullError) and what
        queries raise.

        Examples:
            >>> from maintenance import Workspace
            >>> ws = Workspace()
            >>> ws.load("item", {"id": [1, 2], "price": [10, 20]})
            >>> with ws.transaction() as tx:
            ...     tx.sql("update item set price = price + ? where id = 2", [5]).to_pylist()
            [{'Count': 1}]
            >>> sorted(ws["item"])
            [(1, 10), (2, 25)]
        """
        from lftj.statements.given import given
        from lftj.statements.kinds import kind

        self._refuse_ended()
        with given(text, params, dialect) as statement:
            return self.run(statement, kind(statement))

    def run(self, statement: str, of: str) -> pa.Table:
        """The same for a statement of DuckDB's SQL and of a kind."""
        from lftj.statements.kinds import CHANGES, DEFINITIONS, not_taken
        from maintenance.sql.changing import changed, selected

        if self._target is None:
            self._leave_numbers()
            self._hold_codes()
            self._target = self._workspace.sql_target(self)
        if of in CHANGES:
            return changed(statement, of, self._target)
        if of == "SELECT":
            return selected(statement, self._target)
        raise not_taken(
            of, "a transaction changes rows, sql() of the workspace defines" if of in DEFINITIONS else ""
        )

    @property
    def changing(self) -> set[str]:
        """The relations of which changes are staged, and the heads that follow them."""
        return self._workspace.followed(self._staged)

    @property
    def _staged(self) -> list[str]:
        """The relations of which changes are staged."""
        return [name for name, buffer in self.numbers_as_buffers().items() if buffer.staged_rows]

    def refuse_head(self, relation: str) -> None:
        """Raise ChangeError where a name is not that of a base relation."""
        self._workspace.base_version(relation)

    def refuse_conflict(self, versions: Versions) -> None:
        """Raise ConflictError where what the transaction has read, or is to erase, is not there any more."""
        for rows in self._there:
            rows.refuse_conflict(versions)
        if self._target is not None:
            self._target.refuse_conflict(versions)

    def _stage_numbers(self, relation: str, source: Any, weight: int) -> bool:
        """Stage a few rows of values that are numbers; False where they are none, or too many."""
        assert self._layout is not None
        known = self._layout.staged.get(relation) if type(relation) is str else None
        if known is None or not self._open or self._buffers or type(source) is not list or len(source) > _FEW:
            return False
        number, width, stagings, schema = known
        if self._lease is None and schema.dictionaries:
            self._lease_numbers()
        staged: list[int] = []
        if isinstance(stagings, WideRows):
            if any(type(row) is not tuple or len(row) != width for row in source):
                return False
            found = stagings.staged(number, weight, source)
            if found is None:
                return False
            self._numbers += found
            return True
        for row in source:
            if type(row) is not tuple or len(row) != width:
                return False
            staged.append(number)
            staged.append(weight)
            if stagings is None:
                for value in row:
                    if type(value) is not int or not -LARGEST <= value <= LARGEST:
                        return False
                    staged.append(value)
                continue
            for value, code_of in zip(row, stagings, strict=True):
                code = code_of(value)
                if code is None:
                    return False
                staged.append(code)
        self._numbers += staged
        return True

    def _has_key(self, relation: str) -> bool:
        """Whether a relation with a key may be staged as numbers."""
        return self._layout is not None and type(relation) is str and relation in self._layout.keys

    def _stage_numbers_of_keys(self, relation: str, source: Any) -> bool:
        """Stage the erasure of a few keys; as :meth:`_stage_numbers`."""
        assert self._layout is not None
        if not self._open or self._buffers or type(source) is not list or len(source) > _FEW:
            return False
        key, (number, *_, schema) = self._layout.keys[relation], self._layout.staged[relation]
        if self._lease is None and schema.dictionaries:
            self._lease_numbers()
        staged = []
        for values in source:
            if type(values) is not tuple or len(values) != len(key):
                return False
            row = [0] * len(schema.columns)
            for value, (column, code_of) in zip(values, key, strict=True):
                code = code_of(value)
                if code is None:
                    return False
                row[column] = code
            staged += [number, KEY_ERASED, *row]
        self._numbers += staged
        return True

    def _lease_numbers(self) -> None:
        """Hold the codes of what is staged as numbers."""
        assert self._layout is not None
        self._lease = self._layout.lease.current or self._workspace.domains.collector.lease()

    def numbers_as_buffers(self) -> dict[str, WriteBuffer]:
        """All that is staged, what is staged as numbers among it, in buffers."""
        if not self._numbers:
            return self._buffers
        assert self._layout is not None
        buffers: dict[str, WriteBuffer] = {}
        rows: dict[str, list[list[int]]] = {}
        names, at = self._layout.names, 0
        while at < len(self._numbers):
            name = names[self._numbers[at]]
            width = self._layout.staged[name][1] + self._layout.staged[name][3].wide
            rows.setdefault(name, []).append(self._numbers[at + 1 : at + 2 + width])
            at += 2 + width
        for name, its in rows.items():
            weights, *columns = np.array(its, np.int64).T
            schema = self._layout.staged[name][3]
            identity = np.array(columns[:1] if schema.wide else columns)
            read = frozenset(range(len(schema.columns)))
            if schema.key:
                resets = (weights == UPSERTED) | (weights == KEY_ERASED)
                keys = np.array([columns[number] for number in schema.key_numbers])
                buffers[name] = KeyedBuffer(name, schema, read)
                buffers[name].take(Signed(identity, np.minimum(weights, 1), resets, keys))
                continue
            buffers[name] = (WriteBuffer if schema.stream is None else StreamBuffer)(schema, read)
            buffers[name].stage(identity, weights)
        return buffers

    def _leave_numbers(self) -> None:
        """From now on all that is staged is in buffers."""
        if self._layout is not None:
            buffers, self._layout = self.numbers_as_buffers(), None
            self._buffers = buffers

    @interruptible()
    def _stage(self, relation: str, source: Any, weight: int) -> None:
        buffer, read = self._buffer(relation)
        columns = encode_rows(relation, buffer.schema, source, self._workspace.domains, read)
        weights = np.empty(len(columns[0]), np.int64)
        weights.fill(weight)
        self._add(buffer, Signed(columns, weights))

    @interruptible()
    def _stage_there(self, relation: str, source: Any, missing: str) -> None:
        """Stage the erasure of rows that must be there."""
        if missing != "error":
            raise ValueError(f"missing is {missing!r}; it can be 'ignore' or 'error'")
        buffer, read = self._buffer(relation)
        columns = encode_rows(relation, buffer.schema, source, self._workspace.domains, read)
        rows = RowsThere(self._workspace.base_version(relation), buffer, columns)
        self._there = (*self._there, rows)
        self._add(buffer, Signed(columns, np.full(len(columns[0]), -1)))

    @interruptible()
    def _stage_upserts(self, relation: str, source: Any) -> None:
        buffer, read = self._keyed_buffer(relation, "upsert")
        columns = encode_rows(relation, buffer.schema, source, self._workspace.domains, read)
        n = len(columns[0])
        self._add(buffer, Signed(columns, np.ones(n, np.int64), np.ones(n, bool)))

    @interruptible()
    def _stage_keys(self, relation: str, keys: Any) -> None:
        buffer, _ = self._keyed_buffer(relation, "erase_keys")
        self._add(buffer, encode_keys(relation, buffer.schema, keys, self._workspace.domains))

    def _add(self, buffer: WriteBuffer, rows: Signed) -> None:
        """Stage rows; interrupted amid it, some may be staged: then the whole transaction is rolled back."""
        try:
            buffer.take(rows)
        except BaseException:
            self.roll_back()
            raise

    def _refuse_ended(self) -> None:
        if not self._open:
            raise TransactionError("the transaction is over: begin another one")

    def _buffer(self, relation: str) -> tuple[WriteBuffer, Collection[int]]:
        """Where a relation's changes wait, and the columns of it that something reads."""
        self._refuse_ended()
        self._leave_numbers()
        version = self._workspace.base_version(relation)
        buffer = self._buffers.get(relation)
        if buffer is None:
            schema, its = version.schema, version.read_columns
            if schema.key:
                buffer = KeyedBuffer(relation, schema, its)
            else:
                buffer = WriteBuffer(schema, its) if schema.stream is None else StreamBuffer(schema, its)
            if schema.dictionaries:
                self._hold_codes()
            self._buffers[relation] = buffer
        buffer.read &= version.read_columns
        return buffer, version.read_columns

    @property
    def lease(self) -> Lease | None:
        """Of the codes that are staged."""
        return self._lease

    def _hold_codes(self) -> None:
        if self._lease is None:
            self._lease = self._workspace.domains.collector.lease()

    def _keyed_buffer(self, relation: str, asked: str) -> tuple[WriteBuffer, Collection[int]]:
        buffer, read = self._buffer(relation)
        if not buffer.schema.key:
            raise ChangeError(
                f"{asked} of {relation!r}, which has no key: load it with key=[...], or insert and erase"
                " whole rows"
            )
        return buffer, read

    def __enter__(self) -> Transaction:
        if not self._open:
            self._refuse_ended()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if not self._open:
            return
        if kind is not None:
            self.roll_back()
            return
        self._open = False
        self._outcome = "the transaction is being committed: wait for that"
        layout, is_done = self._layout, False
        try:
            is_done = layout is not None and self._workspace.commit_numbers(self, self._numbers, layout)
            if not is_done:
                self._leave_numbers()
                self._workspace.commit(self, self._buffers)
        finally:
            self._lease = None
            if not (is_done or self._is_committed):
                self._outcome = "the commit failed, nothing changed: stage the changes in another transaction"
            else:
                self._outcome = "this was taken before the commit: take it from the transaction again"

    def commit(self) -> None:
        """Commit outside of a ``with`` block.

        Raises TransactionError where the transaction is over, be it committed or not, and what a ``with``
        block raises at its end.
        """
        self._refuse_ended()
        self.__exit__(None, None, None)

    def refuse(self) -> None:
        """Forget the changes of a commit that could not be kept; called by who commits."""
        self._changes = self._stats = None

    def roll_back(self) -> None:
        """Drop what was staged; of one that is over nothing."""
        if self._open:
            self._open, self._lease = False, None
            self._outcome = "the transaction was rolled back: stage the changes in another one"

    def __del__(self) -> None:
        if not self._open:
            return
        if staged := [repr(name) for name in self._staged]:
            warnings.warn(
                f"a transaction was dropped and its changes of {', '.join(staged)} with it: stage them in a"
                " with block, or call commit() or roll_back()",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )
