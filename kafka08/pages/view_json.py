"""Encodes a view as JSON, which a report keeps for the next one, and decodes it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka08.observe.snapshot import ClusterView, Committed, GroupState, PartitionState
from kafka08.structs import Broker, TopicPartition

Commits = Mapping[TopicPartition, Committed]


def partitions_as_json(view: ClusterView) -> dict[str, list[list[Any]]]:
    """topic → [partition, leader, replicas, ISR, log start, log end] of each, in order; behind them
    the last stable offset where it is known."""
    found: dict[str, list[list[Any]]] = {}
    for tp, p in sorted(view.partitions.items()):
        row = [tp.partition, p.leader, p.replicas, p.isr, p.start, p.end]
        found.setdefault(tp.topic, []).append(row if p.stable is None else [*row, p.stable])
    return found


def view_as_json(view: ClusterView) -> dict[str, Any]:
    """The view without its list of failed requests."""
    return {
        "now_ms": view.now_ms,
        "controller": view.controller,
        "brokers": [list(broker) for broker in view.brokers.values()],
        "partitions": partitions_as_json(view),
        "groups": {
            name: [group.members, _commits(group.zookeeper), _commits(group.kafka)]
            for name, group in view.groups.items()
        },
    }


def view_of_json(found: Mapping[str, Any]) -> ClusterView:
    """Decodes the result of `view_as_json`. ValueError, TypeError or KeyError for anything else."""
    return ClusterView(
        int(found["now_ms"]),
        {int(i): Broker(int(i), str(host), int(port)) for i, host, port in found["brokers"]},
        None if found["controller"] is None else int(found["controller"]),
        {
            TopicPartition(topic, int(number)): PartitionState(
                *(int(leader), tuple(replicas), tuple(isr), _number(start), _number(end)),
                stable=_number(stable[0]) if stable else None,
            )
            for topic, rows in found["partitions"].items()
            for number, leader, replicas, isr, start, end, *stable in rows
        },
        {
            name: GroupState(_number(members), _commits_of(zookeeper), _commits_of(kafka))
            for name, (members, zookeeper, kafka) in found["groups"].items()
        },
    )


def _number(found: Any) -> int | None:
    return None if found is None else int(found)


def _commits(commits: Commits) -> dict[str, list[list[int]]]:
    """topic → [partition, offset, version] of each."""
    found: dict[str, list[list[int]]] = {}
    for tp, committed in commits.items():
        found.setdefault(tp.topic, []).append([tp.partition, *committed])
    return found


def _commits_of(found: Mapping[str, Any]) -> dict[TopicPartition, Committed]:
    return {
        TopicPartition(topic, int(number)): Committed(int(offset), int(version))
        for topic, rows in found.items()
        for number, offset, version in rows
    }
