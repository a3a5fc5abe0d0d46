"""Brokers: registration, controller, leaders and replicas. Pure.

# 0.8: there is no such tool; kafka.admin.TopicCommand shows the same state by topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka08.admin.description import TopicDescription
from kafka08.errors import AdminError
from kafka08.structs import TopicPartition, host_port
from kafka08.zk.nodes import BrokerRegistration


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    """One broker.

    registration      its znode, or the address that brokers tell clients (version 0); None for an
                      unregistered broker that has replicas
    is_controller     None: unknown without ZooKeeper
    leaders           number of partitions that it leads
    replicas          number of partitions that are assigned to it
    under_replicated  partitions that it leads with fewer in-sync replicas than replicas
    out_of_sync       partitions that are assigned to it but do not have it in their ISR
    """

    broker_id: int
    registration: BrokerRegistration | None
    is_controller: bool | None
    leaders: int
    replicas: int
    under_replicated: tuple[TopicPartition, ...]
    out_of_sync: tuple[TopicPartition, ...]

    @property
    def address(self) -> str | None:
        """`host:port` for clients of 0.8; None when it has none."""
        if self.registration is None or self.registration.host is None:
            return None
        return host_port(self.registration.host, self.registration.port)

    def as_dict(self) -> dict[str, Any]:
        """The row for JSON; the fields of the registration are null for an unregistered broker."""
        found = self.registration
        return {
            "broker": self.broker_id,
            "registered": found is not None,
            "host": found and found.host,
            "port": None if found is None or found.host is None else found.port,
            "endpoints": list(found.endpoints) if found else None,
            "jmx_port": found and found.jmx_port,
            "timestamp": found and found.timestamp_ms,
            "version": found and found.version,
            "controller": self.is_controller,
            "leaders": self.leaders,
            "replicas": self.replicas,
            "under_replicated": list(map(_as_dict, self.under_replicated)),
            "out_of_sync": list(map(_as_dict, self.out_of_sync)),
        }


def brokers_of(
    registrations: Mapping[int, BrokerRegistration],
    controller: int | None,
    topics: Iterable[TopicDescription],
) -> list[BrokerDescription]:
    """The registered brokers and those with assigned partitions, by id."""
    leaders: dict[int, int] = {}
    replicas: dict[int, int] = {}
    under_replicated: dict[int, list[TopicPartition]] = {}
    out_of_sync: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition)
            if partition.leader is not None:
                leaders[partition.leader] = leaders.get(partition.leader, 0) + 1
                if partition.under_replicated:
                    under_replicated.setdefault(partition.leader, []).append(tp)
            for broker_id in partition.replicas:
                replicas[broker_id] = replicas.get(broker_id, 0) + 1
                if broker_id not in partition.isr:
                    out_of_sync.setdefault(broker_id, []).append(tp)
    return [
        BrokerDescription(
            broker_id,
            registrations.get(broker_id),
            broker_id == controller,
            leaders.get(broker_id, 0),
            replicas.get(broker_id, 0),
            tuple(under_replicated.get(broker_id, ())),
            tuple(out_of_sync.get(broker_id, ())),
        )
        for broker_id in sorted(registrations.keys() | replicas.keys())
    ]


def chosen(
    found: list[BrokerDescription], broker_ids: Sequence[int] | None
) -> list[BrokerDescription]:
    """Those with these ids, None: all; AdminError for one that is not `found`."""
    if broker_ids is None:
        return found
    known = {broker.broker_id: broker for broker in found}
    for broker_id in broker_ids:
        if broker_id not in known:
            raise AdminError(
                f"Broker {broker_id} is not registered and has no replicas; the brokers are "
                f"{', '.join(map(str, known)) or 'none'}"
            )
    return [known[broker_id] for broker_id in sorted(set(broker_ids))]


def _as_dict(tp: TopicPartition) -> dict[str, Any]:
    return {"topic": tp.topic, "partition": tp.partition}
