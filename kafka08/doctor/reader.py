"""SnapshotReader: reads everything that the checks need. Changes nothing.

ZooKeeper must respond, or one broker where there is none; other failures become part of the
snapshot. The cluster and its groups are those of `kafka08.observe`; added is what only a doctor
asks: what each broker says of the cluster, pending requests, overrides, clocks and local files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kafka08.client import PLAINTEXT, Security
from kafka08.client.topic_overrides import overrides_of
from kafka08.doctor.files import read_file, read_log_directory
from kafka08.doctor.snapshot import BrokerFacts, Snapshot, TopicFacts, group_findings_of
from kafka08.doctor.znodes import Znodes
from kafka08.errors import KafkaError, UnsupportedVersion
from kafka08.groups import Finding
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
from kafka08.observe.place import ClusterPlace
from kafka08.observe.reader import ClusterReader
from kafka08.observe.snapshot import COORDINATOR, ZOOKEEPER, ClusterView
from kafka08.observe.transactions import WaitingPartition, waiting_partitions
from kafka08.protocol.api_versions import ApiVersionsRequest
from kafka08.protocol.describe_configs import BROKER, DescribeConfigsRequest, DescribedResource
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS
from kafka08.structs import TRANSACTIONS_TOPIC, TopicPartition
from kafka08.waiting import giving_up_at, waiting_for
from kafka08.zk import paths
from kafka08.zk.chroots import clusters_beside

BROKER_TIMEOUT_MS: Final = 2000
GROUPS_MAX: Final = 200
"""Limit of examined groups of each kind: facts are made of each with all its partitions."""
REGISTRATION_OF_0_9: Final = 2
"""The version of a registration of 0.9, whose brokers do not respond to ApiVersions."""
PROTOCOL: Final = "inter.broker.protocol.version"
SECOND_LOOK_S: Final = 1.5
"""Pause before a group is read again: during a rebalance problems last only a moment."""


class SnapshotReader(Closeable):
    """Connects at once; raises ZooKeeperError. A context manager.

    zookeeper, bootstrap, security   as ClusterReader's
    log_directories                  local directories to read, too
    files                            properties file → its kind: broker, consumer or producer
    """

    def __init__(
        self,
        zookeeper: str | None,
        bootstrap: str | None = None,
        security: Security = PLAINTEXT,
        *,
        log_directories: Sequence[str] = (),
        files: Mapping[str, str] = {},
        runtime: ClientRuntime = THREADS,
    ) -> None:
        self._place = ClusterPlace(zookeeper, bootstrap, security)
        self._log_directories = log_directories
        self._files = files
        self._runtime = runtime
        self._reader = ClusterReader(*self._place, runtime=runtime)
        store = self._reader.store
        self._znodes = None if store is None else Znodes(store.zk)

    def close(self) -> None:
        self._reader.close()

    def read_snapshot(self, early: Callable[[Snapshot], object] = lambda _: None) -> Snapshot:
        """The cluster now. ZooKeeperError if ZooKeeper does not respond; without ZooKeeper,
        NoBrokersAvailable.

        early   called with the brokers and the controller alone, if any broker is registered: what
                hangs makes the rest take seconds longer
        """
        now_ms, znodes = self._runtime.time_ms(), self._znodes
        seen: dict[str, Any] = {}
        if znodes is not None:
            seen["zookeeper_seconds"] = znodes.seconds_of_a_read(self._runtime)

        def look(layout: Layout) -> None:
            # Right behind the leaders, with which the responses are compared: groups take longer.
            seen["brokers"] = self._brokers(layout)
            if znodes is not None:
                seen["controller_clocks"] = znodes.controller_clocks()
            seen["clock_read_ms"] = self._runtime.time_ms()
            if seen["brokers"]:
                part = ClusterView(
                    now_ms,
                    layout.brokers,
                    layout.controller,
                    faults=layout.faults,
                    has_zookeeper=znodes is not None,
                )
                early(Snapshot(part, now_ms, place=self._place, **seen))

        view = self._reader.read_view(owners=True, beside=look)
        groups, coordinated, left_out, findings = self._groups(view)
        if znodes is None:
            seen["topics"] = self._topics_of_brokers(view)
        else:
            seen["topics"] = znodes.topics(view)
            seen |= znodes.of_controller(seen["topics"])
            if not seen["brokers"]:
                assert self._reader.store is not None
                seen["elsewhere"] = tuple(clusters_beside(self._reader.store.zk))
        return Snapshot(
            view,
            now_ms,
            place=self._place,
            groups=groups,
            coordinated=coordinated,
            commits=self._commits(groups, coordinated),
            groups_left_out=left_out,
            known_findings=findings,
            waiting=self._waiting(view),
            log_directories=tuple(map(read_log_directory, self._log_directories)),
            files=tuple(read_file(path, kind) for path, kind in self._files.items()),
            **seen,
        )

    # Groups

    def _groups(
        self, view: ClusterView
    ) -> tuple[dict[str, GroupFacts], dict[str, CoordinatedFacts], int, dict[str, list[Finding]]]:
        """The groups in ZooKeeper, those with a coordinator, how many more there are, and the
        findings. A group with problems is read again a moment later."""
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
        findings = group_findings_of(groups, coordinated)
        troubled = [name for name, found in findings.items() if any(f.problem for f in found)]
        if troubled:
            with waiting_for("a second look at groups"):
                self._runtime.sleep(SECOND_LOOK_S)
            again = self._reader.read_groups(troubled)
            groups |= {
                name: group_facts(again, name)
                for name in troubled
                if name in groups and ZOOKEEPER in again.groups[name].kinds
            }
            coordinated |= of_coordinators(again, [n for n in troubled if n in coordinated])
            findings |= group_findings_of(
                {name: groups[name] for name in troubled if name in groups},
                {name: coordinated[name] for name in troubled if name in coordinated},
            )
        left_out = max(0, len(names) - GROUPS_MAX) + max(0, len(others) - GROUPS_MAX)
        return groups, coordinated, left_out, findings

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

    def _waiting(self, view: ClusterView) -> tuple[WaitingPartition, ...]:
        """The partitions of the snapshot's `waiting`."""
        if TRANSACTIONS_TOPIC not in view.topics:
            return ()
        try:
            partitions = [tp for tp in view.partitions if tp.topic != TRANSACTIONS_TOPIC]
            return tuple(waiting_partitions(self._reader.client(), partitions, self._runtime))
        except KafkaError:
            return ()  # no broker responds, which is a finding of its own

    def _topics_of_brokers(self, view: ClusterView) -> dict[str, TopicFacts]:
        """The topics, with their overrides if brokers describe them."""
        try:
            overrides = overrides_of(self._reader.client(), list(view.topics)) or {}
        except KafkaError:
            overrides = {}
        return {
            name: TopicFacts(
                {n: view.partitions[TopicPartition(name, n)] for n in numbers},
                overrides.get(name),
            )
            for name, numbers in view.topics.items()
        }

    # Brokers

    def _brokers(self, layout: Layout) -> dict[int, BrokerFacts]:
        ids = dict.fromkeys(layout.brokers, 0)
        if self._znodes is not None:
            ids = self._znodes.registered()
        brokers: dict[int, BrokerFacts] = {}

        def look(broker: BrokerFacts) -> None:
            brokers[broker.broker_id] = self._ask(broker)

        for broker_id, created_ms in ids.items():
            registration = layout.registrations.get(broker_id)
            fault = layout.faults.get(paths.broker(broker_id), "")
            if registration is not None or fault:
                # It stays so if the response takes longer than the wait for it: a name that no
                # server resolves, say. The broker is registered nevertheless.
                brokers[broker_id] = BrokerFacts(
                    broker_id, registration, fault, created_ms, "no response in time"
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
                security=self._place.security,
                runtime=self._runtime,
            )
            try:
                with giving_up_at(began + BROKER_TIMEOUT_MS / 1000):
                    response = connection.send(MetadataRequest([]))
                    seconds = self._runtime.monotonic() - began
                    protocol = None
                    if registration.version > REGISTRATION_OF_0_9:
                        protocol = protocol_of(connection, broker.broker_id)
            finally:
                connection.close()
        except (KafkaError, OSError) as error:
            return replace(broker, unreachable=str(error))
        assert isinstance(response, MetadataResponse)
        return replace(
            broker,
            unreachable=None,
            seconds=seconds,
            known_brokers=frozenset(b.broker_id for b in response.brokers),
            leaders={
                TopicPartition(topic.topic, p.partition): p.leader
                for topic in response.topics
                for p in topic.partitions
                if not topic.error_code and not p.error_code
            },
            protocol=protocol,
        )


def protocol_of(connection: Connection, broker_id: int) -> str | None:
    """`BrokerFacts.protocol` of a broker of 0.10 or later. Switches."""
    try:
        served: Any = connection.send(ApiVersionsRequest())
        try:
            version = VersionRanges(served.apis).highest(DescribeConfigsRequest, 0, 1)
        except UnsupportedVersion:
            return ""
        resource = DescribedResource(BROKER, str(broker_id), [PROTOCOL])
        described: Any = connection.send(DescribeConfigsRequest([resource], version=version))
    except KafkaError:
        return None
    found = [config.value for one in described.resources for config in one.configs]
    return found[0] if found else None


def of_coordinators(view: ClusterView, names: Iterable[str]) -> dict[str, CoordinatedFacts]:
    """The facts of those that their coordinator knows. Pure."""
    found = {}
    for name in names:
        if view.groups[name].unknown_group is None:
            facts = coordinated_facts(view, name)
            if facts is not None:
                found[name] = facts
    return found
