"""A Kafka cluster within this process, confluent's mock, and a producer: the protocol is the real one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

confluent = pytest.importorskip(
    "confluent_kafka", reason="confluent-kafka is not installed: pip install 'lftj[kafka]'"
)


class Cluster:
    """``servers``: what clients take."""

    def __init__(self) -> None:
        config = {"bootstrap.servers": "none:1", "test.mock.num.brokers": 1, "log_level": 0}
        self._producer = confluent.Producer({**config, "queue.buffering.max.messages": 1_000_000})
        brokers = self._producer.list_topics(timeout=20).brokers.values()
        self.servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def send(self, topic: str, value: Any, partition: int = 0, key: Any = None) -> None:
        """A message, of bytes or of JSON."""
        self._producer.produce(topic, value=_bytes(value), key=_bytes(key), partition=partition)
        self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(60) == 0

    def messages(self, topic: str, partitions: int = 4) -> list[tuple[str, Any]]:
        """All that a topic has: keys and values."""
        config = {"bootstrap.servers": self.servers, "group.id": "look", "enable.partition.eof": True}
        config["fetch.wait.max.ms"] = 10
        consumer = confluent.Consumer({**config, "auto.offset.reset": "earliest"})
        consumer.assign([confluent.TopicPartition(topic, number, 0) for number in range(partitions)])
        found, ended = [], 0
        while ended < partitions:
            message = consumer.poll(20)
            assert message is not None
            if message.error() is None:
                found.append((message.key().decode(), json.loads(message.value())))
            else:
                assert message.error().code() == confluent.KafkaError._PARTITION_EOF, message.error()
                ended += 1
        consumer.close()
        return found


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


@contextmanager
def running() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.flush()
