"""The settings of a mirror, and checks that configurations keep its guarantees. Pure."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from kafka08.consumer.zookeeper.config import ConsumerConfig
from kafka08.errors import ConfigError
from kafka08.producer.kafka_producer_config import KafkaProducerConfig
from kafka08.structs import host_port

SOURCE_DEFAULTS: Final[Mapping[str, str]] = {
    # A topic or partition that is new at the source is found a moment after its first messages.
    "auto.offset.reset": "smallest",
    # After a kill -9 at most the messages of this interval are copied again.
    "auto.commit.interval.ms": "10000",
}
"""The consumer's keys for which a mirror has other defaults."""
TARGET_DEFAULTS: Final[Mapping[str, str]] = {
    "acks": "all",
    "max.in.flight.requests.per.connection": "1",
    "retries": "10",
    "retry.backoff.ms": "200",
    # How long a stop may have to wait for a target that does not respond.
    "max.block.ms": "10000",
}
"""The producer's keys for which a mirror has other defaults."""

Address = tuple[str, int]


class OnFailure(enum.Enum):
    """The reaction to a message that the target refuses permanently."""

    ABORT = "abort"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """streams          threads that copy, which share the partitions of the source
    producers        connections to the target, which share the streams
    on_failure       abort: the mirror ends, and another run begins with the refused messages
    keep_partitions  each message to the partition of the same number; else by its key
    """

    streams: int = 1
    producers: int = 1
    on_failure: OnFailure = OnFailure.ABORT
    keep_partitions: bool = False

    def __post_init__(self) -> None:
        for name in ("streams", "producers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: {getattr(self, name)} is not at least 1")


def check_configs(source: ConsumerConfig, target: KafkaProducerConfig) -> None:
    """ConfigError for a key with which the mirror would lose messages or their order."""
    if not source.auto_commit_enable:
        raise ConfigError(
            "auto.commit.enable: a mirror commits what the target has acknowledged and nothing "
            "else; leave it true"
        )
    if target.acks == "0":
        raise ConfigError(
            "acks: with 0 the target acknowledges nothing, and a mirror would commit what is lost; "
            "use all or 1"
        )
    if target.max_in_flight_requests_per_connection != 1:
        raise ConfigError(
            "max.in.flight.requests.per.connection: with more than 1 a retry changes the order of "
            "messages; leave it 1"
        )


def check_apart(source: Collection[Address], target: Collection[Address]) -> None:
    """ConfigError when a broker is in both clusters: the mirror would copy its own copies without
    end."""
    shared = sorted(set(source) & set(target))
    if shared:
        host, port = shared[0]
        raise ConfigError(
            f"source and target are the same cluster: broker {host_port(host, port)} is in both; "
            "a mirror would copy its own copies without end"
        )
