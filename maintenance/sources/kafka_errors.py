"""Which errors of confluent-kafka say that brokers are away, and may be back."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

AWAY = (
    *("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_MSG_TIMED_OUT", "_RESOLVE", "_WAIT_COORD"),
    *("BROKER_NOT_AVAILABLE", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "NETWORK_EXCEPTION"),
    *("REQUEST_TIMED_OUT", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"),
    *("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
)
"""Names of those that do, whether librdkafka would try again by itself or not."""


def is_away(error: KafkaError) -> bool:
    """Whether trying again later may do."""
    return error.retriable() or error.name() in AWAY
