"""SnapshotReader: reads everything that the checks need. Changes nothing.

ZooKeeper must respond; other failures become part of the snapshot. The cluster and its groups are
those of `kafka08.observe`; added is what only a doctor asks: what each broker says of the cluster,
pending requests, overrides, clocks and local files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from kafka08.doctor.files import read_file, read_log_directory
from kafka08.doctor.snapshot import BrokerFacts, Request, Snapshot, TopicFacts
from kafka08.errors import KafkaError, ZooKeeperError
from kafka08.groups import Finding, explain, explain_coordinated
from kafka08.lifecycle import Closeable
from kafka08.network.connection import Connection
from kafka08.observe.commit_times import RECENT_RECORDS, CommitTimes, KafkaCommit
from kafka08.observe.group import (
    CoordinatedFacts,
    GroupFacts,
    coordinated_facts,
    group_facts,
)
from kafka08.observe.layout import Layout
from kafka08.observe.reader import ClusterReader
from kafka08.observe.snapshot import COORDINATOR, ZOOKEEPER, ClusterView
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition
from kafka08.waiting import giving_up_at, waiting_for
from kafka08.zk import nodes, paths
from kafka08.zk.chroots import clusters_beside
from kafka08.zk.client import ZkClient
from kafka08.zk.errors import unless_gone
from kafka08.zk.operations import Children, Exists, Get, Node, Operation

T = TypeVar("T")

BROKER_TIMEOUT_MS: Final = 2000
GROUPS_MAX: Final = 200
"""Limit of examined groups of each kind: facts are made of each with all its partitions."""
SECOND_LOOK_S: Final = 1.5
"""Pause before a group is read again: during a rebalance problems last only a moment."""
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
        self._reader = ClusterReader(zookeeper, runtime=runtime)

    def close(self) -> None:
        self._reader.close()

    @property
    def _zk(self) -> ZkClient:
        assert self._reader.store is not None
        return self._reader.store.zk

    def read_snapshot(self) -> Snapshot:
        """The cluster now. ZooKeeperError if ZooKeeper does not respond."""
        now_ms = self._runtime.time_ms()
        began = self._runtime.monotonic()
        self._zk.exists(paths.BROKER_IDS)
        zookeeper_seconds = self._runtime.monotonic() - began
        seen: dict[str, Any] = {}

        def look(layout: Layout) -> None:
            # Right behind the leaders, with which the responses are compared: groups take longer.
            seen["brokers"] = self._brokers(layout)
            seen["controller_clocks"] = self._controller_clocks()
            seen["clock_read_ms"] = self._runtime.time_ms()

        view = self._reader.read_view(owners=True, beside=look)
        groups, coordinated, left_out = self._groups(view)
        deletions = self._children(paths.DELETE_TOPICS)
        configured = self._children(paths.TOPIC_CONFIGS)
        topics = self._topics(view)
        return Snapshot(
            view,
            now_ms,
            connect=self._connect,
            controller_epoch=self._controller_epoch(),
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
            elsewhere=() if seen["brokers"] else tuple(clusters_beside(self._zk)),
            groups=groups,
            coordinated=coordinated,
            commits=self._commits(groups, coordinated),
            groups_left_out=left_out,
            log_directories=tuple(map(read_log_directory, self._log_directories)),
            files=tuple(read_file(path, kind) for path, kind in self._files.items()),
            **seen,
        )

    # Groups

    def _groups(
        self, view: ClusterView
    ) -> tuple[dict[str, GroupFacts], dict[str, CoordinatedFacts], int]:
        """The groups in ZooKeeper, those with a coordinator, and how many more there are. One with
        problems is read again a moment later."""
        names = [name for name, group in view.groups.items() if ZOOKEEPER in group.kinds]
        # A simple group may be one that has lost its members: the others come first.
        others = [
            (one.is_simple, name)
            for name, group in view.groups.items()
            if (one := group.coordinated) and COORDINATOR in group.kinds
        ]
        wanted = [name for _, name in sorted(others)[:GROUPS_MAX]]
        groups = {name: group_facts(view, name) for name in names[:GROUPS_MAX]}
        coordinated = of_coordinators(view, wanted)
        troubled = [n for n, facts in groups.items() if has_problem(explain(facts))]
        shaky = [n for n, facts in coordinated.items() if has_problem(explain_coordinated(facts))]
        if troubled or shaky:
            with waiting_for("a second look at groups"):
                self._runtime.sleep(SECOND_LOOK_S)
            again = self._reader.read_groups(list(dict.fromkeys([*troubled, *shaky])))
            groups |= {
                name: group_facts(again, name)
                for name in troubled
                if ZOOKEEPER in again.groups[name].kinds
            }
            coordinated |= of_coordinators(again, shaky)
        left_out = max(0, len(names) - GROUPS_MAX) + max(0, len(others) - GROUPS_MAX)
        return groups, coordinated, left_out

    def _commits(
        self,
        groups: Mapping[str, GroupFacts | CoordinatedFacts],
        coordinated: Mapping[str, GroupFacts | CoordinatedFacts],
    ) -> dict[tuple[str, TopicPartition], KafkaCommit]:
        """The commits to Kafka of all groups."""
        in_kafka: dict[str, set[TopicPartition]] = {}
        for of_kind in (groups, coordinated):
            for name, facts in of_kind.items():
                committed = {p.topic_partition for p in facts.partitions if p.kafka is not None}
                in_kafka.setdefault(name, set()).update(committed)
        if not any(in_kafka.values()):
            return {}
        try:
            times = CommitTimes(self._reader.client(), self._runtime, records=RECENT_RECORDS)
        except KafkaError:
            return {}  # no broker responds, which is a finding of its own
        return {
            (name, tp): commit
            for name, partitions in in_kafka.items()
            for tp, commit in times.commits(name, partitions).items()
        }

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

    def _topics(self, view: ClusterView) -> dict[str, TopicFacts]:
        """The topics that still exist, with their overrides."""
        faults = {name: view.faults[path] for path, name in topic_paths(view).items()}
        names = sorted({*view.topics, *faults})
        configs = self._all([Get(paths.topic_config(name)) for name in names])
        created = self._times(names, paths.topic)
        found: dict[str, TopicFacts] = {}
        for name, node in zip(names, configs, strict=True):
            if name in created:
                numbers = view.topics.get(name, ())
                config, fault = (
                    ({}, "") if node is None else decoded(nodes.decode_topic_config, node)
                )
                found[name] = TopicFacts(
                    {n: view.partitions[TopicPartition(name, n)] for n in numbers},
                    config,
                    fault,
                    faults.get(name, ""),
                    created[name],
                )
        return found

    def _controller_clocks(self) -> tuple[int, int] | None:
        """The snapshot's `controller_clocks`."""
        node, stat = self._all([Get(paths.CONTROLLER), Exists(paths.CONTROLLER)])
        found = None if node is None else decoded(nodes.decode_controller, node)[0]
        return None if found is None or stat is None else (found.timestamp_ms, stat.created_ms)

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

    def _brokers(self, layout: Layout) -> dict[int, BrokerFacts]:
        ids = paths.numbers(self._children(paths.BROKER_IDS))
        stats = self._all([Exists(paths.broker(i)) for i in ids])
        brokers: dict[int, BrokerFacts] = {}

        def look(broker: BrokerFacts) -> None:
            brokers[broker.broker_id] = self._ask(broker)

        for broker_id, stat in zip(ids, stats, strict=True):
            registration = layout.registrations.get(broker_id)
            fault = layout.faults.get(paths.broker(broker_id), "")
            if stat is not None and (registration is not None or fault):
                # It stays so if the response takes longer than the wait for it: a name that no
                # server resolves, say. The broker is registered nevertheless.
                brokers[broker_id] = BrokerFacts(
                    broker_id, registration, fault, stat.created_ms, "no response in time"
                )
        tasks = [
            self._runtime.spawn(look, broker, name=f"doctor of broker {broker.broker_id}")
            for broker in list(brokers.values())
        ]
        deadline = self._runtime.monotonic() + 1.25 * BROKER_TIMEOUT_MS / 1000
        for task in tasks:
            task.join(max(0.0, deadline - self._runtime.monotonic()))
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
                with giving_up_at(began + BROKER_TIMEOUT_MS / 1000):
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


def of_coordinators(view: ClusterView, names: Iterable[str]) -> dict[str, CoordinatedFacts]:
    """The facts of those that their coordinator knows. Pure."""
    found = {}
    for name in names:
        if view.groups[name].unknown_group is None:
            facts = coordinated_facts(view, name)
            if facts is not None:
                found[name] = facts
    return found


def topic_paths(view: ClusterView) -> dict[str, str]:
    """path → topic, of those whose assignment cannot be read. Pure."""
    names = {path: path.rpartition("/")[2] for path in view.faults}
    return {path: name for path, name in names.items() if path == paths.topic(name)}


def has_problem(findings: Iterable[Finding]) -> bool:
    return any(finding.problem for finding in findings)
