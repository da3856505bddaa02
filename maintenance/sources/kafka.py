"""`kafka`: a topic's messages as changes of a relation, each message once, whatever is killed when.

The parts of the cursor are the partitions, ``topic/0``; their positions the offset that is to be read next.
Group offsets are committed behind the workspace, for those who watch how far a reader is behind, and are
never read.

Invariants

1. Messages are read from the cursor's offsets on; where these are not there any more, or not yet, the topic
   is another one or has lost messages, and the pull stops by name.
2. A partition that comes later is read from its beginning, like all.

Cost: of a batch one parse of its messages and one transaction.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lftj.errors import SourceAwayError, SourceError
from lftj.storage.relation import Nulls
from lftj.values.names import nearest_usable
from lftj.values.schema import Schema
from maintenance.sources.avro_rows import Schemas, avro_rows
from maintenance.sources.checked_rows import checked_rows
from maintenance.sources.cursor import Cursor, Place
from maintenance.sources.json_rows import (
    OP,
    Change,
    Rows,
    debezium_rows,
    envelope_changes,
    plain_changes,
    plain_rows,
)
from maintenance.sources.kafka_errors import is_away
from maintenance.sources.patience import Patience
from maintenance.sources.source import (
    BATCH_ROWS,
    Batch,
    OnError,
    Rejected,
    Source,
    columns_of,
    make_relation,
)
from maintenance.workspace.workspace import Workspace

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

Format = Literal["json", "avro", "debezium"]

_LINGER = 0.005
"""Seconds for which a batch that has begun waits for more."""

_PARTITIONS = 10.0
"""Seconds after which partitions that have come are looked for."""

_ANSWER = 10.0
"""Seconds for which a broker may take to answer."""

_ANEW = "take another name= and an empty relation to read it from its beginning"


def kafka(
    servers: str,
    topic: str,
    relation: str | None = None,
    *,
    schema: pa.Schema | None = None,
    key: Sequence[str] = (),
    nulls: Nulls = "refuse",
    format: Format = "json",
    on_error: OnError = "stop",
    batch_rows: int = BATCH_ROWS,
    schemas: str | os.PathLike[str] | None = None,
    config: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> KafkaSource:
    """A topic as changes of a relation.

    Args:
        servers: Of the cluster, ``host:port``, with commas between.
        topic: Whose messages are JSON, or with ``schemas`` Avro.
        relation: Which takes them; by default of the topic's name.  Where it is not there it is made, with
            ``schema``, ``key`` and ``nulls`` as `Workspace.load` takes them.
        format: ``"json"``: a message is an object of the relation's columns, and perhaps ``op``; of a
            relation with a key it replaces the row of that, and one without a value takes the row away whose
            key its own key says.  ``"avro"``: a record that says the same.
            ``"debezium"``: it is an envelope with ``op``, ``before`` and ``after``, as JSON or as Avro.
        on_error: Of messages that can't be taken (`maintenance.sources.source.Source`).
        batch_rows: So many messages are one commit at most.
        schemas: Of Avro: a registry's URL, which may have a user and a password, or a folder that has each
            schema as ``NUMBER.avsc``; messages begin as confluent's do, with a zero and the number.
        config: More for confluent-kafka, such as where to log in; it is shown nowhere.
        name: Of the cursor; by default the relation's.

    Needs the packages confluent-kafka, and for Avro fastavro, the extra ``lftj[kafka]``.
    """
    place = None if schemas is None else os.fspath(schemas)
    return KafkaSource(
        servers, topic, relation, schema, key, nulls, format, on_error, batch_rows, place, config, name
    )


class KafkaSource(Source):
    """Made by `kafka`."""

    backlog_unit = "rows"

    def __init__(
        self,
        servers: str,
        topic: str,
        relation: str | None,
        schema: pa.Schema | None,
        key: Sequence[str],
        nulls: Nulls,
        format: Format,
        on_error: OnError,
        batch_rows: int,
        schemas: str | None,
        config: Mapping[str, Any] | None,
        name: str | None,
    ) -> None:
        self.relation = nearest_usable(topic) if relation is None else relation
        super().__init__(self.relation if name is None else name, on_error)
        if format not in get_args(Format):
            raise ValueError(f"format is {format!r}; it can be {' or '.join(map(repr, get_args(Format)))}")
        if format != "debezium" and (format == "avro") != (schemas is not None):
            raise ValueError("format='avro' needs schemas=, a registry or a folder, and 'json' none")
        self.topic = topic
        self._schemas = None if schemas is None else Schemas(schemas)
        self._schema, self._key, self._nulls, self._format = schema, key, nulls, format
        self._batch_rows = batch_rows
        self._backlog: int | None = None
        self._config = {
            "group.id": self.name,
            **(config or {}),
            "bootstrap.servers": servers,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
        }

    def __repr__(self) -> str:
        return f"<kafka topic {self.topic!r} into {self.relation!r}>"

    def _batches(self, workspace: Workspace, cursor: Cursor, patience: Patience) -> Generator[Batch]:
        if self._schema is not None:
            make_relation(workspace, self.relation, self._schema, self._key, self._nulls)
        workspace.base_version(self.relation)  # which says where it is not there
        with _consumer(self.name, self._config) as consumer:
            reading = _Reading(self, consumer)
            if begin := reading.begin(cursor):
                yield Batch({}, begin)
            reading.assign(cursor)
            try:
                while not patience.is_stopped:
                    if reading.looks_for_partitions() and (begin := reading.begin(cursor)):
                        yield Batch({}, begin)
                        reading.assign(cursor)
                    self._backlog = reading.backlog(cursor)
                    messages = reading.messages(self._batch_rows, patience)
                    if messages:
                        yield self._batch(workspace.base_version(self.relation).schema, messages, reading)
                        patience.renew()
                    elif patience.is_over and reading.has_all:
                        return
            finally:
                self._backlog = None

    def backlog(self) -> int | None:
        return self._backlog

    def _batch(self, schema: Schema, messages: Sequence[Message], reading: _Reading) -> Batch:
        places: dict[str, Place | None] = {
            reading.part(partition): Place(offset + 1, reading.mark)
            for partition, offset in dict(map(_at, messages)).items()  # of each partition the last
        }
        if self._format == "debezium":  # a message without a value follows one that takes the row away
            messages = [message for message in messages if message.value() is not None]
        rows = self._rows(schema, messages)
        table = checked_rows(schema, rows)

        def origin(relation: str, number: int, reason: str) -> Rejected:
            return _rejected(messages[number], reading, reason)

        rejected = [origin(self.relation, *fault) for fault in sorted(rows.faults.items())]
        changes = {self.relation: table} if table.num_rows else {}
        return Batch(
            changes,
            places,
            rejected,
            acknowledge=lambda: reading.commit(places),
            numbers={self.relation: rows.numbers},
            origin=origin,
        )

    def _rows(self, schema: Schema, messages: Sequence[Message]) -> Rows:
        columns, values = columns_of(schema), [message.value() for message in messages]
        gone = [number for number, value in enumerate(values) if value is None]
        texts = [messages[n].key() or b"" if value is None else value for n, value in enumerate(values)]
        if self._format == "debezium":
            return self._envelopes(texts, columns, bool(schema.key))
        if self._schemas is None:
            rows = plain_rows(texts, columns)
        else:
            has_op = OP in columns.names
            rows = self._of_avro(texts, columns, lambda value: plain_changes(value, has_op))
        if gone and schema.key:
            rows.ops = pc.if_else(pa.array(np.isin(rows.numbers, gone)), "D", rows.ops)
        elif gone:
            rows.faults |= dict.fromkeys(gone, "it has no value, and the relation no key")
            rows = rows.taken(np.flatnonzero(~np.isin(rows.numbers, gone)))
        return rows

    def _envelopes(self, texts: Sequence[bytes], columns: pa.Schema, has_key: bool) -> Rows:
        if self._schemas is None:
            return debezium_rows(texts, columns, has_key)
        return self._of_avro(texts, columns, lambda value: envelope_changes(value, has_key))

    def _of_avro(
        self, texts: Sequence[bytes], columns: pa.Schema, changes: Callable[[Any], list[Change]]
    ) -> Rows:
        assert self._schemas is not None
        try:
            return avro_rows(texts, columns, self._schemas, changes)
        except SourceError as error:
            raise SourceError(f"source {self.name!r}: {error}: pull again, it goes on behind it") from None


def _at(message: Message) -> tuple[int, int]:
    """The partition and the offset of a message that is no error."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None
    return partition, offset


def _rejected(message: Message, reading: _Reading, reason: str) -> Rejected:
    partition, offset = _at(message)
    text = (message.value() or message.key() or b"").decode(errors="backslashreplace")
    return Rejected(reading.part(partition), offset, 0, reason, text)


@contextmanager
def _consumer(source: str, config: dict[str, Any]) -> Generator[Consumer]:
    try:
        from confluent_kafka import Consumer, KafkaException
    except ImportError:
        raise ImportError("kafka() needs the package confluent-kafka: pip install 'lftj[kafka]'") from None
    try:
        consumer = Consumer(config)
        try:
            yield consumer
        finally:
            consumer.close()
    except KafkaException as error:
        kind = SourceAwayError if is_away(error.args[0]) else SourceError
        text = error.args[0].str()
        raise kind(f"source {source!r}: {text}: pull again, it goes on behind the cursor") from None


class _Reading:
    """One pull of a topic."""

    mark: str

    def __init__(self, source: KafkaSource, consumer: Consumer) -> None:
        self._source, self._consumer = source, consumer
        self._looked = 0.0
        self._ends: dict[int, int] = {}  # of partitions, when they were last looked at
        self._behind: set[int] = set()
        self._passed: dict[int, int] = {}  # their ends, behind markers of transactions

    def part(self, partition: int) -> str:
        return f"{self._source.topic}/{partition}"

    def looks_for_partitions(self) -> bool:
        return time.monotonic() - self._looked > _PARTITIONS

    def begin(self, cursor: Cursor) -> dict[str, Place | None]:
        """Where partitions begin that the cursor has not.

        Raises SourceError where the topic is not what the cursor is about.
        """
        from confluent_kafka import TopicPartition

        self._looked = time.monotonic()
        topic, source = self._source.topic, f"source {self._source.name!r}"
        described = self._consumer.list_topics(topic, timeout=_ANSWER)
        partitions = described.topics[topic].partitions
        self.mark = f"cluster {described.cluster_id}"
        if described.topics[topic].error is not None or not partitions:
            raise SourceError(
                f"{source}: there is no topic {topic!r} in {self.mark}: name another, or make it"
            )
        if others := {place.mark for place in cursor.places.values()} - {self.mark}:
            raise SourceError(
                f"{source}: its cursor is of {others.pop()}, and this is {self.mark}: read that one, or"
                " take another name="
            )
        self._partitions = sorted(partitions)
        if gone := sorted(cursor.places.keys() - set(map(self.part, partitions))):
            raise SourceError(f"{source}: partition {gone[0]} is gone: the topic was made anew: {_ANEW}")
        found: dict[str, Place | None] = {}
        for partition in self._partitions:
            part = self.part(partition)
            low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), _ANSWER)
            self._ends[partition] = high
            place = cursor.places.get(part) or Place(0 if cursor.places else low, self.mark)
            if part not in cursor.places:
                found[part] = place
            if not low <= place.position <= high:
                wrong = "the topic was made anew" if place.position > high else "messages between are gone"
                raise SourceError(
                    f"{source}: the cursor is at {place.position} of {part}, which has messages {low} to"
                    f" {high - 1}: {wrong}: {_ANEW}"
                )
        return found

    def assign(self, cursor: Cursor) -> None:
        """Read on from the cursor."""
        from confluent_kafka import TopicPartition

        of = [(partition, cursor.places[self.part(partition)].position) for partition in self._partitions]
        self._consumer.assign([TopicPartition(self._source.topic, *each) for each in of])
        self._behind = {partition for partition, position in of if position < self._ends[partition]}

    @property
    def has_all(self) -> bool:
        """Whether all has come that there was when partitions were last looked at."""
        return not self._behind

    def backlog(self, cursor: Cursor) -> int:
        """Messages that are not in, as far as the brokers have said."""
        from confluent_kafka import TopicPartition

        count = 0
        for partition in self._partitions:
            at = TopicPartition(self._source.topic, partition)
            _, high = self._consumer.get_watermark_offsets(at, cached=True)
            position = max(cursor.places[self.part(partition)].position, self._passed.get(partition, 0))
            count += max(0, max(high, self._ends[partition]) - position)
        return count

    def messages(self, most: int, patience: Patience) -> list[Message]:
        """Those that are there, at most so many, or that come before the time is over."""
        from confluent_kafka import KafkaError

        first = self._consumer.poll(max(patience.left, 0.05) if self._behind else patience.left)
        if first is None:
            return []
        messages: list[Message] = []
        for message in [first, *self._consumer.consume(most - 1, _LINGER)]:
            error = message.error()
            if error is None:
                messages.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                partition, offset = _at(message)
                self._behind.discard(partition)
                self._passed[partition] = offset
            else:
                kind = SourceAwayError if is_away(error) else SourceError
                raise kind(
                    f"source {self._source.name!r}: {error.str()}: pull again, it goes on behind the cursor"
                )
        if self._behind:  # what ends a transaction has an offset and is no message, so the end may be told
            last = dict(map(_at, messages))
            self._behind -= {each for each, offset in last.items() if offset + 1 >= self._ends[each]}
        return messages

    def commit(self, places: Mapping[str, Place | None]) -> None:
        """Say to those who watch the group how far it is."""
        from confluent_kafka import TopicPartition

        offsets = [
            TopicPartition(self._source.topic, int(part.rpartition("/")[2]), place.position)
            for part, place in places.items()
            if place is not None
        ]
        self._consumer.commit(offsets=offsets, asynchronous=True)
