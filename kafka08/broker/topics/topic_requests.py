"""Checks CreateTopics requests, in the order of 0.10.2.2. Pure.

    partitions of the whole request (37), config names (40) and values (-1), an assignment together
    with counts (42), partitions (37), replication factor (38), name (17), existence (36), collision
    (17), assignment (39)

Source: kafka.server.AdminManager.createTopics, kafka.admin.AdminUtils 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from kafka08.assignment import REPLICAS_MAX, Racks, RandomSource, assign_replicas
from kafka08.broker.topics.topic_config_texts import text_of_refusal
from kafka08.errors import (
    ConfigError,
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    TopicAlreadyExists,
    UnknownError,
)
from kafka08.levels import ByLevel, Level
from kafka08.protocol.create_topics import NO_COUNT, NewTopic
from kafka08.topic_config import KEYS_AT, parse_topic_config
from kafka08.topic_name import fault_at, metric_name

UNKNOWN_KEY: Final = ByLevel(
    {
        Level.V0_10_2: "Unknown Log configuration {}.",
        Level.V0_11_0: "Unknown topic config name: {}",
    }
)
PARTITIONS_MAX = 20_000
"""The most partitions of a topic created by request. With many more its znode would exceed
ZooKeeper's limit, and a wrong count of a client must not cost the broker its memory."""


REQUEST_PARTITIONS_MAX: Final = 100_000
"""The most partitions of all topics of a request together: each takes 20 bytes."""


class NullValue(UnknownError):
    """A configuration value is null; the response of 0.11.0.3 has no text for it."""


class KnownTopics:
    """The existing topics, with those that this request has created since."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._by_metric: dict[str, list[str]] = {}
        for name in names:
            self.add(name)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        self._names.add(name)
        self._by_metric.setdefault(metric_name(name), []).append(name)

    def colliding(self, name: str) -> Sequence[str]:
        """As topic_name.colliding."""
        return self._by_metric.get(metric_name(name), ())


class PartitionBudget:
    """The partitions that the topics of one request may still have."""

    def __init__(self) -> None:
        self._left = REQUEST_PARTITIONS_MAX

    def take(self, wanted: NewTopic) -> None:
        """InvalidPartitions if the topic has more than are left; then none are taken."""
        count = max(len(wanted.assignment), min(wanted.partitions, PARTITIONS_MAX))
        if count > self._left:
            raise InvalidPartitions(
                f"the topics of one request can have at most {REQUEST_PARTITIONS_MAX} partitions "
                "together"
            )
        self._left -= max(0, count)


def overrides_of(wanted: NewTopic, level: Level) -> dict[str, str]:
    """The topic's configuration. InvalidConfig for an unknown name; UnknownError for a value, of
    which NullValue has no text."""
    pairs = [(entry.key, entry.value) for entry in wanted.configs]
    try:
        return checked_overrides(pairs, level)
    except ConfigError as error:
        raise UnknownError(str(error)) from None


def checked_overrides(pairs: Sequence[tuple[str, str | None]], level: Level) -> dict[str, str]:
    """The overrides of a request. NullValue; InvalidConfig for an unknown name, from 0.11 on also
    for a value that only we refuse; ConfigError for another value, with the text of the JVM."""
    overrides: dict[str, str] = {}
    for name, value in pairs:
        if value is None:
            raise NullValue(f"the value of {name} is null")
        overrides[name] = value
    for name in overrides:
        if name not in KEYS_AT[level]:
            raise InvalidConfig(UNKNOWN_KEY[level].format(name))
    try:
        parse_topic_config(overrides, level)
    except ConfigError as error:
        text = text_of_refusal(overrides, level)
        if text is None and level >= Level.V0_11_0:
            # A value that 0.11.0.3 stores, such as message.format.version=1.0. No broker of its
            # cluster can start after that.
            raise InvalidConfig(str(error)) from None
        raise ConfigError(text or str(error)) from None
    return overrides


def assignment_of(
    wanted: NewTopic, racks: Racks, rng: RandomSource, *, validate_only: bool = False
) -> dict[int, tuple[int, ...]]:
    """partition → replicas, as requested or spread over the live brokers, the keys of `racks`;
    with `validate_only` of the first partition alone, for which all others stand.
    InvalidRequest, InvalidPartitions, InvalidReplicationFactor, AdminError."""
    brokers = sorted(racks)
    has_counts = (wanted.partitions, wanted.replication_factor) != (NO_COUNT, NO_COUNT)
    if wanted.assignment:
        if has_counts:
            raise InvalidRequest(
                "Both numPartitions or replicationFactor and replicasAssignments were set. "
                "Both cannot be used at the same time."
            )
        return {item.partition: tuple(item.replicas) for item in wanted.assignment}
    if wanted.partitions <= 0:
        raise InvalidPartitions("number of partitions must be larger than 0")
    if wanted.partitions > PARTITIONS_MAX:
        raise InvalidPartitions(
            f"number of partitions must be at most {PARTITIONS_MAX}, not {wanted.partitions}"
        )
    if wanted.replication_factor <= 0:
        raise InvalidReplicationFactor("replication factor must be larger than 0")
    if wanted.replication_factor > len(brokers):
        raise InvalidReplicationFactor(
            f"replication factor: {wanted.replication_factor} larger than available brokers: "
            f"{len(brokers)}"
        )
    partitions = 1 if validate_only else wanted.partitions
    return assign_replicas(brokers, partitions, wanted.replication_factor, racks=racks, rng=rng)


def check_name(topic: str, existing: KnownTopics, level: Level) -> None:
    """InvalidTopic, or TopicAlreadyExists."""
    fault = fault_at(topic, level)
    if fault is not None:
        raise InvalidTopic(fault)
    if topic in existing:
        raise TopicAlreadyExists(f"Topic '{topic}' already exists.")
    if others := existing.colliding(topic):
        raise InvalidTopic(f"Topic '{topic}' collides with existing topics: {', '.join(others)}")


def check_assignment(assignment: Mapping[int, Sequence[int]]) -> None:
    """InvalidReplicaAssignment unless all partitions have the same number of replicas, on distinct
    brokers, and the topic's znode can be read (nodes.decode_assignment). 0.10.2.2 also accepts
    negative numbers, any number of replicas, and none, which never have a leader."""
    sizes = {len(replicas) for replicas in assignment.values()}
    if len(sizes) != 1:
        raise InvalidReplicaAssignment("All partitions should have the same number of replicas")
    if any(len(set(replicas)) < len(replicas) for replicas in assignment.values()):
        raise InvalidReplicaAssignment(
            f"Duplicate replica assignment found: {scala_map(assignment)}"
        )
    if not 1 <= max(sizes) <= REPLICAS_MAX:
        raise InvalidReplicaAssignment(f"Partitions should have 1 to {REPLICAS_MAX} replicas")
    if min(chain(assignment, *assignment.values())) < 0:
        raise InvalidReplicaAssignment("Partitions and brokers should not have negative numbers")


def scala_map(assignment: Mapping[int, Sequence[int]]) -> str:
    """As Scala shows it, but in the order of the partitions."""
    items = (
        f"{partition} -> ArrayBuffer({', '.join(map(str, replicas))})"
        for partition, replicas in sorted(assignment.items())
    )
    return f"Map({', '.join(items)})"
