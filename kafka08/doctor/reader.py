"""SnapshotReader: reads everything that the checks need. Changes nothing.

ZooKeeper must respond; other failures become part of the snapshot. Reads of ZooKeeper are
pipelined, and all brokers are asked at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from kafka08.deprecation import renamed
from kafka08.doctor.files import read_file, read_log_directory
from kafka08.doctor.group_reader import read_groups
from kafka08.doctor.snapshot import (
    BrokerFacts,
    PartitionFacts,
    Request,
    Snapshot,
    TopicFacts,
)
from kafka08.errors import KafkaError, ZooKeeperError
from kafka08.lifecycle import Closeable
from kafka08.network.connection import Connection
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.errors import unless_gone
from kafka08.zk.operations import Children, Exists, Get, Node, Operation

T = TypeVar("T")

BROKER_TIMEOUT_MS: Final = 2000
ISR_NOTIFICATIONS: Final = "/isr_change_notification"


class SnapshotReader(Closeable):
    """Connects at once; raises ZooKeeperError. A context manager.

    log_directories   local directories to read, too
    files             properties file → its kind: broker, consumer or producer
    """

    def __init__(
        self,
        zookeeper: str,
        *,
        log_directories: Sequence[str] = (),
        files: Mapping[str, str] = {},
        runtime: ClientRuntime = THREADS,
    ) -> None:
        self._connect = zookeeper
        self._log_directories = log_directories
        self._files = files
        self._runtime = runtime
        self._zk = ZkClient(zookeeper, adapter=runtime.zookeeper, name="doctor", clock=runtime)
        self._zk.start()

    def close(self) -> None:
        self._zk.close()

    def read_snapshot(self) -> Snapshot:
        """The cluster now. ZooKeeperError if ZooKeeper does not respond."""
        now_ms = self._runtime.time_ms()
        began = self._runtime.monotonic()
        self._zk.exists(paths.BROKER_IDS)
        zookeeper_seconds = self._runtime.monotonic() - began
        topics = self._topics()
        # Right behind the topics, with which their responses are compared: groups take longer.
        brokers = self._brokers()
        controller, controller_fault, controller_clocks = self._controller()
        clock_read_ms = self._runtime.time_ms()
        deletions = self._children(paths.DELETE_TOPICS)
        configured = self._children(paths.TOPIC_CONFIGS)
        groups = read_groups(self._connect, self._runtime)
        return Snapshot(
            now_ms=now_ms,
            clock_read_ms=clock_read_ms,
            connect=self._connect,
            brokers=brokers,
            controller=controller,
            controller_fault=controller_fault,
            controller_epoch=self._controller_epoch(),
            controller_clocks=controller_clocks,
            topics=topics,
            reassignment=self._request(
                paths.REASSIGN_PARTITIONS,
                lambda text: dict(nodes.decode_reassignment(text)),
            ),
            election=self._request(
                paths.PREFERRED_ELECTION,
                lambda text: dict.fromkeys(nodes.decode_preferred_election(text), ()),
            ),
            deletions=self._times(deletions, paths.delete_topic),
            leftover_configs=tuple(name for name in configured if name not in topics),
            config_changes=len(self._children(paths.CONFIG_CHANGES)),
            isr_notifications=len(self._children(ISR_NOTIFICATIONS)),
            zookeeper_seconds=zookeeper_seconds,
            groups=groups.of_zookeeper,
            coordinated=groups.coordinated,
            failed_requests=groups.failed_requests,
            commits=groups.commits,
            group_faults=groups.faults,
            groups_left_out=groups.left_out,
            log_directories=tuple(map(read_log_directory, self._log_directories)),
            files=tuple(read_file(path, kind) for path, kind in self._files.items()),
        )

    read = renamed("SnapshotReader.read", read_snapshot)

    # ZooKeeper

    def _all(self, operations: Sequence[Operation], absent: Any = None) -> list[Any]:
        """Results, `absent` for znodes that do not exist; any other error is raised."""
        return [unless_gone(result, absent) for result in self._zk.pipeline(operations)]

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

    def _topics(self) -> dict[str, TopicFacts]:
        names = sorted(self._children(paths.BROKER_TOPICS))
        assigned = self._all([Get(paths.topic(name)) for name in names])
        configs = self._all([Get(paths.topic_config(name)) for name in names])
        created = self._times(names, paths.topic)
        found: dict[str, TopicFacts] = {}
        assignments: dict[str, dict[int, tuple[int, ...]]] = {}
        faults: dict[str, str] = {}
        for name, node in zip(names, assigned, strict=True):
            if node is not None:
                assignment, faults[name] = decoded(nodes.decode_assignment, node)
                assignments[name] = dict(sorted((assignment or {}).items()))
        partitions = self._partitions(assignments)
        for name, node in zip(names, configs, strict=True):
            if name in assignments:
                config, fault = (
                    ({}, "") if node is None else decoded(nodes.decode_topic_config, node)
                )
                found[name] = TopicFacts(
                    partitions[name], config, fault, faults[name], created.get(name, 0)
                )
        return found

    def _partitions(
        self, assignments: Mapping[str, Mapping[int, tuple[int, ...]]]
    ) -> dict[str, dict[int, PartitionFacts]]:
        wanted = [
            TopicPartition(name, number)
            for name, assignment in assignments.items()
            for number in assignment
        ]
        states = self._all([Get(paths.partition_state(*tp)) for tp in wanted])
        found: dict[str, dict[int, PartitionFacts]] = {name: {} for name in assignments}
        for tp, node in zip(wanted, states, strict=True):
            replicas = assignments[tp.topic][tp.partition]
            state, fault = None, ""
            if node is not None:
                decode = partial(nodes.decode_leader_and_isr, zk_version=node.version)
                state, fault = decoded(decode, node)
            found[tp.topic][tp.partition] = PartitionFacts(replicas, state, fault)
        return found

    def _controller(self) -> tuple[int | None, str, tuple[int, int] | None]:
        """The controller's id, why that cannot be read, and `controller_clocks`."""
        node, stat = self._all([Get(paths.CONTROLLER), Exists(paths.CONTROLLER)])
        if node is None or stat is None:
            return None, "", None
        found, fault = decoded(nodes.decode_controller, node)
        if found is None:
            return None, fault, None
        return found.broker_id, "", (found.timestamp_ms, stat.created_ms)

    def _controller_epoch(self) -> int | None:
        node = self._zk.get_or_none(paths.CONTROLLER_EPOCH)
        return None if node is None else decoded(nodes.decode_controller_epoch, node)[0]

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

    # Brokers

    def _brokers(self) -> dict[int, BrokerFacts]:
        ids = paths.numbers(self._children(paths.BROKER_IDS))
        found = self._all([Get(paths.broker(i)) for i in ids])
        stats = self._all([Exists(paths.broker(i)) for i in ids])
        brokers: dict[int, BrokerFacts] = {}
        tasks = []

        def look(broker: BrokerFacts) -> None:
            brokers[broker.broker_id] = self._ask(broker)

        for broker_id, node, stat in zip(ids, found, stats, strict=True):
            if node is not None and stat is not None:
                registration, fault = decoded(nodes.decode_broker, node)
                # It stays so if the response takes longer than the wait for it: a name that no
                # server resolves, say. The broker is registered nevertheless.
                brokers[broker_id] = BrokerFacts(
                    broker_id, registration, fault, stat.created_ms, "no response in time"
                )
        for broker in brokers.values():
            name = f"doctor of broker {broker.broker_id}"
            tasks.append(self._runtime.spawn(look, broker, name=name))
        for task in tasks:
            task.join(2 * BROKER_TIMEOUT_MS / 1000)
        return dict(sorted(brokers.items()))

    def _ask(self, broker: BrokerFacts) -> BrokerFacts:
        """The facts completed by the broker's Metadata response, or by why there is none."""
        registration = broker.registration
        if registration is None:
            return broker
        try:
            address = registration.broker(broker.broker_id)
            began = self._runtime.monotonic()
            connection = Connection(
                address.host,
                address.port,
                client_id="kafka08-doctor",
                timeout_ms=BROKER_TIMEOUT_MS,
                connect_timeout_ms=BROKER_TIMEOUT_MS,
                runtime=self._runtime,
            )
            try:
                response = connection.send(MetadataRequest([]))
            finally:
                connection.close()
            seconds = self._runtime.monotonic() - began
        except (KafkaError, OSError) as error:
            return BrokerFacts(
                broker.broker_id, registration, "", broker.created_ms, unreachable=str(error)
            )
        assert isinstance(response, MetadataResponse)
        return BrokerFacts(
            broker.broker_id,
            registration,
            "",
            broker.created_ms,
            None,
            seconds,
            frozenset(b.broker_id for b in response.brokers),
            {
                TopicPartition(topic.topic, p.partition): p.leader
                for topic in response.topics
                for p in topic.partitions
                if not topic.error_code and not p.error_code
            },
        )


def decoded(decode: Callable[[str | None], T], node: Node) -> tuple[T | None, str]:
    """(value of a znode, "") or (None, why it cannot be read)."""
    try:
        return decode(node.data), ""
    except ZooKeeperError as error:
        return None, str(error)
