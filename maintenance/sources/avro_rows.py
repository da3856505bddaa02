"""Avro messages as rows: confluent's wire format, a zero, the number of the writer's schema, and the value.

Schemas come from a registry (``http://host:8081``), or from a folder that has each as ``NUMBER.avsc``.
Logical types are read as what they mean: dates, times, timestamps (local ones without a zone), decimals, and
UUIDs as strings.

Invariant: a value is in its column exactly, or its message is a fault.

Cost: of a message one reading by fastavro, of a batch one conversion of each column; where a value does not
fit, one for each row.
"""

from __future__ import annotations

import base64
import io
import json
import struct
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import numpy as np
import pyarrow as pa

from lftj.errors import SourceError
from lftj.values.exact_casts import InexactError, converts, exactly
from maintenance.sources.json_rows import Change, Rows

_HEADER = struct.Struct(">bI")

_ANSWER = 10.0
"""Seconds for which a registry may take to answer."""


class Schemas:
    """Writers' schemas by their numbers, each of which is looked for once.

    ``place``: a registry's URL, which may have a user and a password, or a folder.  Raises ImportError
    without fastavro.
    """

    def __init__(self, place: str) -> None:
        try:
            import fastavro
        except ImportError:
            raise ImportError("Avro needs the package fastavro: pip install 'lftj[kafka]'") from None
        self._fastavro, self._place = fastavro, place
        self._known: dict[int, Any] = {}

    def value(self, message: bytes) -> Any:
        """What a message says.  Raises ValueError for one that is none, SourceError for an unread schema."""
        if len(message) < _HEADER.size or message[0] != 0:
            raise ValueError("it does not begin with a zero and the number of a schema, as Avro's do")
        _, number = _HEADER.unpack_from(message)
        if number not in self._known:
            self._known[number] = self._parsed(number)
        body = io.BytesIO(message)
        body.seek(_HEADER.size)
        try:
            value = self._fastavro.schemaless_reader(body, self._known[number], None)
        except (EOFError, ValueError, IndexError, KeyError, OverflowError, TypeError) as error:
            said = str(error) or type(error).__name__
            raise ValueError(f"it is not what schema {number} says: {said}") from None
        if body.tell() != len(message):
            raise ValueError(f"it has {len(message) - body.tell()} bytes more than schema {number} says")
        return value

    def _parsed(self, number: int) -> Any:
        try:
            return self._fastavro.parse_schema(json.loads(self._text(number)))
        except (FileNotFoundError, KeyError):
            raise ValueError(f"its schema {number} is not in {self._shown}") from None
        except OSError as error:
            raise SourceError(f"schema {number} can't be read from {self._shown}: {error}") from None
        except Exception as error:  # fastavro raises classes of its own for what is no schema
            raise ValueError(f"its schema {number} can't be read: {error}") from None

    def _text(self, number: int) -> str:
        """Raises FileNotFoundError where there is none."""
        if "://" not in self._place:
            return Path(self._place, f"{number}.avsc").read_text(encoding="utf-8")
        parts = urlsplit(self._place)
        request = urllib.request.Request(f"{self._shown.rstrip('/')}/schemas/ids/{number}")
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            request.add_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER) as answer:
                return str(json.load(answer)["schema"])
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise FileNotFoundError from None
            raise

    @property
    def _shown(self) -> str:
        """The place without who asks."""
        if "://" not in self._place:
            return self._place
        parts = urlsplit(self._place)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def avro_rows(
    messages: Sequence[bytes], columns: pa.Schema, schemas: Schemas, changes: Callable[[Any], list[Change]]
) -> Rows:
    """The rows of messages, as of other formats (:mod:`maintenance.sources.json_rows`).

    ``changes``: what happens to which rows, by the record of a message.  Raises SourceError for a registry
    that can't be asked.
    """
    faults: dict[int, str] = {}
    ops: list[str | None] = []
    rows: list[list[Any]] = []
    numbers: list[int] = []
    for number, message in enumerate(messages):
        try:
            value = schemas.value(message)
            if not isinstance(value, dict):
                raise ValueError(f"it is a {type(value).__name__}, not a record")
            found = changes(value)
        except ValueError as error:
            faults[number] = str(error)
            continue
        ops += [op for op, _ in found]
        rows += [[_plain(row.get(name)) for name in columns.names] for _, row in found]
        numbers += [number] * len(found)
    values, wrong = [], np.zeros(len(numbers), bool)
    for place, column in enumerate(columns):
        array, its_faults = _typed([row[place] for row in rows], column)
        for row, reason in its_faults.items():
            wrong[row] = True
            faults.setdefault(numbers[row], reason)
        values.append(array)
    of_message = np.array(numbers, np.int64)
    read = Rows(values, pa.array(ops, pa.string()), of_message, faults)
    return read.taken(np.flatnonzero(~np.isin(of_message, of_message[wrong]))) if wrong.any() else read


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def _typed(values: list[Any], column: pa.Field) -> tuple[pa.Array, dict[int, str]]:
    """Values in a column's type, NULL where one does not fit, and what is wrong with those."""
    try:
        return _exact(values, column), {}
    except (_MismatchError, InexactError, pa.ArrowException, OverflowError):
        pass
    faults: dict[int, str] = {}
    known = list(values)
    for row, value in enumerate(values):
        try:
            _exact([value], column)
        except _MismatchError as error:
            faults[row] = str(error)
        except (InexactError, pa.ArrowException, OverflowError):
            faults[row] = f"column {column.name!r}: {value!r} is not {column.type}"
        if row in faults:
            known[row] = None
    # What fits one by one may still be of several types together, such as integers and floats.
    parts = [_exact([value], column) for value in known]
    return pa.concat_arrays(parts), faults


class _MismatchError(Exception):
    """Values of another kind than the column's."""


def _exact(values: list[Any], column: pa.Field) -> pa.Array:
    given = pa.array(values)
    if not converts(given.type, column.type):
        raise _MismatchError(f"column {column.name!r} is {given.type}, not {column.type}")
    array = exactly(given, column.type).combine_chunks()
    return array if array.type == column.type else array.cast(column.type)
