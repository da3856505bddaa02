"""`to_kafka`: the changes of a head as messages, at least once each, under keys that say which is which.

    key "8812:0"    value {"a": 1, "n": 3, "op": "D"}
    key "8812:1"    value {"a": 1, "n": 4, "op": "I"}

A message's key is the version and the number of its row there, and the same row has the same key whenever it
is written: a reader that passes over keys that it had has each message once.

Invariants

1. How far it is stands in the workspace, behind what the brokers have said to hold; between the two a kill
   leads to messages that are written again.
2. Rows that agree in the columns of ``key`` are in one partition, in order, and of a version those that go
   before those that come.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lftj.errors import SinkAwayError, SinkError
from maintenance.changes.labels import label_beside
from maintenance.sinks.begun_rows import texts_at
from maintenance.sinks.json_text import json_text
from maintenance.sinks.sink import Sink, operations_of
from maintenance.sources.cursor import Cursor, Place
from maintenance.sources.kafka_errors import is_away
from maintenance.store.fault_points import reached
from maintenance.workspace.follower import HeadChange
from maintenance.workspace.workspace import Workspace

if TYPE_CHECKING:
    from confluent_kafka import Producer

_WRITTEN, _BEGUN = "written", "begun"
"""The parts of the cursor that say which version is written, and with which it was begun, until that is."""

Text = tuple[bool, bytes, bytes]
"""Of a row whether it comes, its message, and what says in which partition it is."""

_ANSWER = 30.0
"""Seconds for which brokers may take to answer."""


def to_kafka(
    servers: str,
    head: str,
    topic: str | None = None,
    *,
    key: Sequence[str] | None = None,
    config: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> KafkaSink:
    """The changes of a head as messages of JSON, each with ``op``, ``I`` or ``D``.

    Args:
        servers: Of the cluster, ``host:port``, with commas between.
        head: Which head of the workspace.
        topic: By default of the head's name.
        key: Rows that agree in these columns are in one partition, in order; by default the first column.
        config: More for confluent-kafka, such as where to log in; it is shown nowhere.
        name: Of the sink; by default ``<head>_to_kafka``.

    Needs the package confluent-kafka, the extra ``lftj[kafka]``.
    """
    return KafkaSink(servers, head, head if topic is None else topic, key, config, name)


class KafkaSink(Sink):
    """Made by `to_kafka`.  It writes each message at least once."""

    wants_each = True

    def __init__(
        self,
        servers: str,
        head: str,
        topic: str,
        key: Sequence[str] | None,
        config: Mapping[str, Any] | None,
        name: str | None,
    ) -> None:
        super().__init__(head, f"{head}_to_kafka" if name is None else name)
        self.topic, self._key = topic, key
        self._config = {**(config or {}), "bootstrap.servers": servers, "enable.idempotence": True}

    def __repr__(self) -> str:
        return f"<{self.head!r} to Kafka's topic {self.topic!r}>"

    @property
    def _way_out(self) -> str:
        return "take another name= and another topic, and it is written anew"

    @contextmanager
    def _opened(self, workspace: Workspace, identifier: str, cursor: Cursor) -> Generator[_Topic]:
        try:
            from confluent_kafka import KafkaException, Producer
        except ImportError:
            raise ImportError(
                "to_kafka() needs the package confluent-kafka: pip install 'lftj[kafka]'"
            ) from None
        try:
            yield _Topic(self, Producer(self._config), workspace, cursor)
        except KafkaException as error:
            kind = SinkAwayError if is_away(error.args[0]) else SinkError
            raise kind(
                f"sink {self.name!r}: {error.args[0].str()}: push again, it goes on behind what is written"
            ) from None


class _Topic:
    """A topic, by a producer."""

    def __init__(self, sink: KafkaSink, producer: Producer, workspace: Workspace, cursor: Cursor) -> None:
        self._sink, self._producer, self._workspace, self._cursor = sink, producer, workspace, cursor
        described = producer.list_topics(sink.topic, timeout=_ANSWER)
        self._mark = f"cluster {described.cluster_id}, topic {sink.topic}"
        self._n_partitions = len(described.topics[sink.topic].partitions)
        if not self._n_partitions:
            raise SinkError(f"sink {sink.name!r}: {self._mark} is not there: make it, or take another")
        place = cursor.places.get(_WRITTEN)
        if place is not None and place.mark != self._mark:
            raise SinkError(
                f"sink {sink.name!r}: it was written to {place.mark}, and this is {self._mark}:"
                f" {sink._way_out}"
            )
        self.version = None if place is None else place.position

    def begin(self, all_rows: HeadChange) -> None:
        """All rows as of the version at which it was begun first, though others have come and gone since."""
        place = self._cursor.places.get(_BEGUN)
        if place is None or place.mark != self._mark:
            place = Place(all_rows.version, self._mark)
            self._stage({_BEGUN: place})
        key, version = self._key(all_rows.table), place.position

        def comes(row: Mapping[str, Any]) -> Text:
            return True, json_text({**row, label: "I"}), json_text([row[column] for column in key])

        label = label_beside("op", all_rows.table.column_names[:-1])
        try:
            texts = texts_at(self._workspace, version, all_rows, comes, self._sink._way_out)
        except SinkError as error:
            raise SinkError(f"sink {self._sink.name!r}: {error}") from None
        self._send(texts, version)

    def add(self, change: HeadChange) -> None:
        rows, key = operations_of(change.table), self._key(change.table)
        op = rows.column_names[-1]
        texts = [
            (row[op] == "I", json_text(row), json_text([row[column] for column in key]))
            for row in rows.to_pylist()
        ]
        self._send(sorted(texts), change.version)  # the order of rows is no part of a version

    def _key(self, change: pa.Table) -> Sequence[str]:
        return change.column_names[:1] if self._sink._key is None else self._sink._key

    def _send(self, texts: list[Text], version: int) -> None:
        """Messages, and how far it is behind them."""
        failed: list[Any] = []

        def delivered(error: Any, message: object) -> None:
            if error is not None:
                failed.append(error)

        for number, (_, text, group) in enumerate(texts):
            partition = zlib.crc32(group) % self._n_partitions
            while True:
                try:
                    self._producer.produce(
                        self._sink.topic, text, f"{version}:{number}", partition, on_delivery=delivered
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)
        left = self._producer.flush(_ANSWER)
        if failed or left:
            reason = failed[0].str() if failed else "the brokers do not answer"
            kind = SinkAwayError if not failed or is_away(failed[0]) else SinkError
            raise kind(f"sink {self._sink.name!r}: {reason}: push again, it goes on behind what is written")
        reached("sink: messages sent, not kept")
        self._stage({_WRITTEN: Place(version, self._mark), _BEGUN: None})
        self.version = version

    def _stage(self, places: Mapping[str, Place | None]) -> None:
        with self._workspace.transaction() as transaction:
            self._cursor.stage(transaction, places)
        self._cursor.moved(places)
