"""Change files and feeds: rows with weights, in transactions, as a stream (docs/shell.md).

A change file has the columns of its relation, ``weight`` or ``op`` (:mod:`maintenance.changes.operations`),
and optionally ``txn``, in any order.  Where the relation has a column of such a name itself,
the file's own has underscores behind it: ``weight_``, ``txn_``.

Invariants

1. A file is never in memory as a whole (:mod:`lftj.files.file_stream`); the parts of
   a transaction come one after the other, each a slice of a batch.
2. Within a file ``txn`` never decreases, or ChangeError names file and row; so
   the transactions of several files merge by value, each in the files' order.
3. Without ``txn`` a file is one transaction, and so are all files of a pattern.  Either all files have it or
   none.
4. A feed (:mod:`lftj.files.feed`) is read as it comes.  A mark in it ends its transaction
   at once, where no other file can have a part of it; else the next value of
   ``txn`` ends it, in each of the files, or their end.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import ChangeError
from lftj.files.csv_options import CsvOptions
from lftj.files.feed import Feed
from lftj.files.file_stream import FileStream
from lftj.files.incoming import feed_name, is_feed
from lftj.storage.relation import Nulls
from lftj.values.schema import Schema
from maintenance.changes.changes import check_columns
from maintenance.changes.labels import TXN, op_label, txn_label, weight_label
from maintenance.changes.operations import BY_KEY


@dataclass(frozen=True)
class TransactionId:
    """The value of ``txn`` that the rows of a transaction share.  ``key`` orders as the values do."""

    key: int | str
    value: pa.Scalar = field(compare=False)

    def __str__(self) -> str:
        return str(self.key if pa.types.is_int64(self.value.type) else self.value.cast(pa.string()).as_py())

    def plain(self) -> int | str:
        """As JSON has it."""
        return self.key if pa.types.is_int64(self.value.type) else str(self)


@dataclass(frozen=True)
class Part:
    """Rows of one file for one transaction: the relation's columns and the weight or operation."""

    file: ChangeFile
    transaction: TransactionId | None
    rows: pa.RecordBatch
    is_last: bool = False
    """Whether the file says that it has no more for this transaction."""


class ChangeFile:
    """An open change file or feed of a relation; a context manager.

    ``path``: ``-`` is standard input.  ``nulls``: what to do about rows with NULL in a column of the
    relation, if that was loaded without them.  ``csv``: how a CSV file is written.  ``pattern``: by which it
    was found, with others perhaps.

    Raises SourceError, and ChangeError where the columns are not those of the relation.
    """

    def __init__(
        self,
        relation: str,
        path: str,
        schema: Schema,
        nulls: Nulls = "refuse",
        csv: CsvOptions | None = None,
        pattern: str | None = None,
    ) -> None:
        self.relation = relation
        self.path = feed_name(path)
        self.pattern = pattern
        self.dropped_rows = 0
        self._drop = nulls == "drop" and not schema.keeps_null
        self._columns = [column.name for column in schema.shown.columns]
        self._nullable = {column.name for column in schema.shown.columns if column.type.nullable}
        self._key = schema.key
        self._weight, self._op, self._txn = weight_label(schema), op_label(schema), txn_label(schema)
        types = {column.name: column.type.arrow for column in schema.shown.columns}
        types |= {self._weight: pa.int64(), self._op: pa.string()}
        self._stream = Feed(path, types, csv) if is_feed(path) else FileStream(path, types, csv)
        try:
            self._check_columns()
            self.transaction_type = self._type_of_transactions()
        except ChangeError:
            self._stream.__exit__(None, None, None)
            raise

    def __enter__(self) -> ChangeFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.__exit__(None, None, None)

    @property
    def fraction(self) -> float:
        """How much of the file has been read, 0 to 1."""
        return self._stream.fraction

    def stop_when(self, interrupted: Callable[[], bool]) -> None:
        """End a feed early, amid a transaction perhaps, when this holds while nothing comes."""
        if isinstance(self._stream, Feed):
            self._stream.incoming.interrupted = interrupted

    @property
    def is_feed(self) -> bool:
        return isinstance(self._stream, Feed)

    @property
    def stopped(self) -> bool:
        """Whether :meth:`stop_when` ended it."""
        return isinstance(self._stream, Feed) and self._stream.incoming.stopped

    def _check_columns(self) -> None:
        names = self._stream.schema.names
        for name in names:
            if names.count(name) > 1:
                raise ChangeError(f"{self.path}: two columns are named {name!r}")
        self._sign = self._op if self._op in names and self._weight not in names else self._weight
        try:
            check_columns(self.relation, names, [*self._columns, self._sign], [self._txn])
        except ChangeError as error:
            raise ChangeError(f"{self.path}: {error}") from None
        sign = self._stream.schema.field(self._sign).type
        if self._sign == self._weight and not pa.types.is_integer(sign):
            raise ChangeError(f"{self.path}: the weight is of type {sign}, not an integer")

    def _type_of_transactions(self) -> pa.DataType | None:
        """The type that ``txn`` is read as: null where no row has a value; None without the column."""
        if self._txn not in self._stream.schema.names:
            return None
        found = self._stream.schema.field(self._txn).type
        if pa.types.is_dictionary(found):
            found = found.value_type
        if pa.types.is_integer(found):
            return pa.int64()
        if pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found):
            return pa.string()
        if pa.types.is_date(found) or pa.types.is_timestamp(found) or pa.types.is_null(found):
            return found
        raise ChangeError(
            f"{self.path}: column {self._txn!r} is of type {found};"
            " transactions are told apart by integers, strings, dates or timestamps"
        )

    def parts(self) -> Iterator[Part]:
        """The rows in order, cut where ``txn`` changes.  Raises SourceError and ChangeError."""
        n_rows = 0
        last: TransactionId | None = None
        is_over = True  # whether a mark ended the last transaction
        for batch in self._stream:
            if batch is None:
                if not is_over:
                    yield Part(self, last, self._nothing, is_last=True)
                is_over = True
                continue
            rows = batch.select([*self._columns, self._sign])
            has_nulls = any(values.null_count for values in rows.columns)
            if self.transaction_type is None:
                yield Part(self, None, self._without_nulls(rows, n_rows, None) if has_nulls else rows)
            else:
                values = self._transaction_values(batch, n_rows)
                keys = _keys_of(values)
                for start, end in _runs(keys):
                    if last is None or is_over or last.key != keys[start]:
                        following = TransactionId(keys[start], values[start])
                        if last is not None and following.key < last.key:  # type: ignore[operator]
                            raise ChangeError(
                                f"{self.path}: row {n_rows + start} (counting from 0): {self._txn} goes"
                                f" backwards, from {last} to {following}; rows stand in the order of"
                                " their transactions"
                            )
                        if is_over and following == last:
                            raise ChangeError(
                                f"{self.path}: row {n_rows + start} (counting from 0): transaction {last}"
                                " goes on behind the mark that ended it"
                            )
                        last, is_over = following, False
                    part = rows.slice(start, end - start)
                    if has_nulls:
                        part = self._without_nulls(part, n_rows + start, last)
                    yield Part(self, last, part)
            is_over = False
            n_rows += batch.num_rows

    @property
    def _nothing(self) -> pa.RecordBatch:
        schema = self._stream.schema
        fields = [schema.field(name) for name in (*self._columns, self._sign)]
        return pa.RecordBatch.from_pylist([], schema=pa.schema(fields))

    def _transaction_values(self, batch: pa.RecordBatch, first_row: int) -> pa.Array:
        values = batch.column(self._txn)
        if values.null_count:
            row = first_row + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            raise ChangeError(f"{self.path}: row {row} (counting from 0): {self._txn} is NULL")
        try:
            return values.cast(self.transaction_type)
        except pa.ArrowInvalid as error:
            raise ChangeError(f"{self.path}: column {self._txn!r}: {error}") from None

    def _without_nulls(
        self, rows: pa.RecordBatch, first_row: int, transaction: TransactionId | None
    ) -> pa.RecordBatch:
        left_out, whole = np.zeros(rows.num_rows, bool), self._whole(rows)
        for name, values in zip(rows.schema.names, rows.columns, strict=True):
            if not values.null_count or name in self._nullable:
                continue
            missing = values.is_null().to_numpy(zero_copy_only=False)
            if name not in (*self._key, self._sign):
                missing = missing & whole
            if missing.any() and not (self._drop and name != self._sign):
                row = first_row + int(np.argmax(missing))
                place = "" if transaction is None else f", transaction {transaction}"
                raise ChangeError(f"{self.path}: row {row} (counting from 0){place}: {name} is NULL")
            left_out |= missing
        if not left_out.any():
            return rows
        self.dropped_rows += int(np.count_nonzero(left_out))
        return rows.filter(pa.array(~left_out))

    def _whole(self, rows: pa.RecordBatch) -> np.ndarray:
        """Of which rows all columns count, and not the key alone."""
        if not self._key or self._sign != self._op:
            return np.ones(rows.num_rows, bool)
        by_key = pc.is_in(rows.column(self._sign).cast(pa.string()), value_set=pa.array(BY_KEY))
        return ~by_key.to_numpy(zero_copy_only=False)


def merged_transactions(
    files: Sequence[ChangeFile],
) -> Iterator[tuple[TransactionId | None, Iterable[Part]]]:
    """The transactions of all files in order, each as its parts, which are to be taken before the next one.

    A feed's transaction ends when that is known, without waiting for what comes after.

    Raises ChangeError, before the first one where the files don't go together.
    """
    check_together(files)
    if files[0].transaction_type is None:
        for file, *others in _one_by_one_or_by_pattern(files):
            if file.is_feed:
                yield from _transactions_of(file.parts())
            else:  # one transaction, if without rows
                yield None, chain.from_iterable(each.parts() for each in (file, *others))
        return
    if len(files) == 1:
        yield from _transactions_of(files[0].parts())
        return
    parts = heapq.merge(*(file.parts() for file in files), key=_key_of)
    yield from groupby(parts, key=lambda part: part.transaction)


def _one_by_one_or_by_pattern(files: Sequence[ChangeFile]) -> Iterator[list[ChangeFile]]:
    """Files without ``txn`` as what is one transaction."""
    for _, together in groupby(files, lambda file: (file.relation, file.pattern) if file.pattern else file):
        yield list(together)


def _transactions_of(parts: Iterator[Part]) -> Iterator[tuple[TransactionId | None, Iterable[Part]]]:
    """The parts by transaction.  What ends with a last part is not held up by what comes next."""
    following: list[Part] = []  # the first part of the next transaction, where it is known

    def one(part: Part) -> Iterator[Part]:
        transaction = part.transaction
        yield part
        while not part.is_last:
            found = next(parts, None)
            if found is None:
                return
            if found.transaction != transaction:
                following.append(found)
                return
            part = found
            yield part

    while (part := following.pop() if following else next(parts, None)) is not None:
        yield part.transaction, one(part)


def check_together(files: Sequence[ChangeFile]) -> pa.DataType | None:
    """The type of the files' ``txn``, None without one.  Raises ChangeError when they can't be merged."""
    first = next((file for file in files if not _is_empty(file)), files[0])
    for file in files:
        if (file.transaction_type is None) != (first.transaction_type is None):
            has, has_not = (first, file) if file.transaction_type is None else (file, first)
            raise ChangeError(
                f"{has.path} has a column {TXN!r} and {has_not.path} has none: several change files are"
                " merged by it, so either all have it or none"
            )
        if file.transaction_type != first.transaction_type and not _is_empty(file):
            raise ChangeError(
                f"{TXN!r} is of type {first.transaction_type} in {first.path} and of type"
                f" {file.transaction_type} in {file.path}: they can't be merged"
            )
    return pa.int64() if _is_empty(first) else first.transaction_type


def _is_empty(file: ChangeFile) -> bool:
    """Whether the type of ``txn`` is unknown because there is no row."""
    return file.transaction_type is not None and pa.types.is_null(file.transaction_type)


def _key_of(part: Part) -> Any:
    assert part.transaction is not None
    return part.transaction.key


def _keys_of(values: pa.Array) -> list[Any]:
    """Python values that order as ``values`` do."""
    if pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_temporal(values.type):
        values = values.view(pa.int64())
    keys: list[Any] = values.to_pylist()
    return keys


def _runs(keys: list[Any]) -> Iterator[tuple[int, int]]:
    """Half-open ranges of equal neighbours."""
    start = 0
    for place in range(1, len(keys)):
        if keys[place] != keys[start]:
            yield start, place
            start = place
    yield start, len(keys)
