"""Commits of offsets to Kafka, which read back what is there.

Kafka cannot compare before it writes. So every commit takes a gate (Connections.gate), which the
caller asks for before it reads what it decides on: a tool that was suspended commits nothing once
another one may have taken its place.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.admin.connections import Connections
from kafka08.client.coordinators import Check, Offsets
from kafka08.errors import KafkaError, MigrationError
from kafka08.structs import TopicPartition


def commit_to_kafka(
    connections: Connections, group: str, offsets: Mapping[TopicPartition, int], gate: Check
) -> None:
    """Commit, and read back that they are there; MigrationError if something else is. `gate` is
    called before each request, and raises if it must not be sent any more."""
    result = commit_to_kafka_of(connections, {group: offsets}, gate)[group]
    if isinstance(result, KafkaError):
        raise result


def commit_to_kafka_of(
    connections: Connections,
    wanted: Mapping[str, Mapping[TopicPartition, int]],
    gate: Check,
) -> dict[str, Offsets | KafkaError]:
    """The same of many groups: group → what was committed, or its error."""
    coordinators = connections.coordinators
    results = coordinators.commit(wanted, gate)
    taken = {g: offsets for g, offsets in results.items() if not isinstance(offsets, KafkaError)}
    for group, found in coordinators.fetch(taken).items():
        if isinstance(found, KafkaError):
            results[group] = found
        elif wrong := [
            f"{tp}: committed {offset}, read {found[tp]}"
            for tp, offset in taken[group].items()
            if found[tp] < offset
        ]:
            text = "; ".join(wrong)
            results[group] = MigrationError(f"commit to Kafka for group {group} failed: {text}")
    return results
