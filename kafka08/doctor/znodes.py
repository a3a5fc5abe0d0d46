"""Znodes that only a doctor reads: requests to the controller, overrides, and when things were
made. ZooKeeperError if ZooKeeper does not respond."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

from kafka08.clock import Clock
from kafka08.doctor.snapshot import Request, TopicFacts
from kafka08.errors import ZooKeeperError
from kafka08.observe.snapshot import ClusterView
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.errors import unless_gone
from kafka08.zk.operations import Children, Exists, Get, Node, Operation

T = TypeVar("T")

ISR_NOTIFICATIONS: Final = "/isr_change_notification"


class Znodes:
    """Each call reads anew."""

    def __init__(self, zk: ZkClient) -> None:
        self._zk = zk

    def seconds_of_a_read(self, clock: Clock) -> float:
        began = clock.monotonic()
        self._zk.exists(paths.BROKER_IDS)
        return clock.monotonic() - began

    def registered(self) -> dict[int, int]:
        """Broker id → creation time of its registration."""
        return {
            int(name): created_ms
            for name, created_ms in self._times(
                list(map(str, paths.numbers(self._children(paths.BROKER_IDS)))),
                lambda name: paths.broker(int(name)),
            ).items()
        }

    def controller_clocks(self) -> tuple[int, int] | None:
        """The snapshot's `controller_clocks`."""
        node, stat = self._all([Get(paths.CONTROLLER), Exists(paths.CONTROLLER)])
        found = None if node is None else decoded(nodes.decode_controller, node)[0]
        return None if found is None or stat is None else (found.timestamp_ms, stat.created_ms)

    def of_controller(self, topics: Collection[str]) -> dict[str, Any]:
        """The snapshot's fields on the controller's epoch and the requests to it, and what is left
        of topics other than these."""
        epoch = self._zk.get_or_none(paths.CONTROLLER_EPOCH)
        deletions = self._children(paths.DELETE_TOPICS)
        configured = self._children(paths.TOPIC_CONFIGS)
        return {
            "controller_epoch": epoch and decoded(nodes.decode_controller_epoch, epoch)[0],
            "reassignment": self._request(
                paths.REASSIGN_PARTITIONS, lambda text: dict(nodes.decode_reassignment(text))
            ),
            "election": self._request(
                paths.PREFERRED_ELECTION,
                lambda text: dict.fromkeys(nodes.decode_preferred_election(text), ()),
            ),
            "deletions": self._times(deletions, paths.delete_topic),
            "leftover_configs": tuple(name for name in configured if name not in topics),
            "config_changes": len(self._children(paths.CONFIG_CHANGES)),
            "isr_notifications": len(self._children(ISR_NOTIFICATIONS)),
        }

    def topics(self, view: ClusterView) -> dict[str, TopicFacts]:
        """The topics that still exist, with their overrides."""
        faults = {name: view.faults[path] for path, name in topic_paths(view).items()}
        names = sorted({*view.topics, *faults})
        configs = self._all([Get(paths.topic_config(name)) for name in names])
        created = self._times(names, paths.topic)
        found: dict[str, TopicFacts] = {}
        for name, node in zip(names, configs, strict=True):
            if name in created:
                config, fault = (
                    ({}, "") if node is None else decoded(nodes.decode_topic_config, node)
                )
                found[name] = TopicFacts(
                    {
                        n: view.partitions[TopicPartition(name, n)]
                        for n in view.topics.get(name, ())
                    },
                    config,
                    fault,
                    faults.get(name, ""),
                    created[name],
                )
        return found

    def _request(
        self,
        path: str,
        decode: Callable[[str | None], Mapping[TopicPartition, tuple[int, ...]]],
    ) -> Request | None:
        node, stat = self._all([Get(path), Exists(path)])
        if node is None or stat is None:
            return None
        targets, fault = decoded(decode, node)
        return Request(stat.modified_ms, targets or {}, fault)

    def _children(self, path: str) -> list[str]:
        [names] = self._all([Children(path)], [])
        return list(names)

    def _times(self, names: Sequence[str], path: Callable[[str], str]) -> dict[str, int]:
        """name → creation time of its znode, for those that exist."""
        stats = self._all([Exists(path(name)) for name in names])
        return {
            name: stat.created_ms
            for name, stat in zip(names, stats, strict=True)
            if stat is not None
        }

    def _all(self, operations: Sequence[Operation], absent: Any = None) -> list[Any]:
        """Results, `absent` for znodes that do not exist; any other error is raised."""
        return [unless_gone(result, absent) for result in self._zk.pipeline(operations)]


def decoded(decode: Callable[[str | None], T], node: Node) -> tuple[T | None, str]:
    """(value of a znode, "") or (None, why it cannot be read)."""
    try:
        return decode(node.data), ""
    except ZooKeeperError as error:
        return None, str(error)


def topic_paths(view: ClusterView) -> dict[str, str]:
    """path → topic, of those whose assignment cannot be read. Pure."""
    names = {path: path.rpartition("/")[2] for path in view.faults}
    return {path: name for path, name in names.items() if path == paths.topic(name)}
