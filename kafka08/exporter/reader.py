"""ClusterReader: reads a view of the whole cluster, in batches. Changes nothing.

ZooKeeper must respond. Requests without a broker's response are listed in the view, so one broker
that is down does not hide the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from kafka08.client import ClusterClient, RetryPolicy
from kafka08.client.log_offsets import offsets_or_errors
from kafka08.client.message_times import message_times
from kafka08.deprecation import renamed
from kafka08.errors import KafkaError
from kafka08.exporter.changing_znodes import ChangingZnodes
from kafka08.exporter.kafka_commits import KafkaCommits
from kafka08.exporter.message_times import MessageTimes
from kafka08.exporter.view import ClusterView, Committed, GroupView, PartitionView
from kafka08.groups.coordinator_reader import FIRST_COORDINATING, CoordinatorReader, may_coordinate
from kafka08.groups.members import read_members_of
from kafka08.groups.trees import read_commits
from kafka08.hashing import group_partition
from kafka08.lifecycle import Closeable
from kafka08.listing import some_of
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS
from kafka08.structs import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    NO_LEADER,
    OFFSETS_TOPIC,
    LeaderAndIsr,
    TopicPartition,
)
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from kafka08.zk.nodes import BrokerRegistration
from kafka08.zk.store import ClusterStore, reachable

logger = logging.getLogger(__name__)

RETRIES = RetryPolicy(tries=2, backoff_ms=100)
FIRST_WITH_TIMESTAMPS = 3
"""Registration version of brokers of 0.10.0."""

Offsets = dict[TopicPartition, int]


class ClusterReader(Closeable):
    """Connects at once; raises ZooKeeperError. A context manager."""

    def __init__(self, zookeeper: str, *, runtime: ClientRuntime = THREADS) -> None:
        self._runtime = runtime
        self._cluster: ClusterClient | None = None
        self._negotiates = False
        self._times = MessageTimes()
        self._kafka_commits = KafkaCommits(runtime)
        self._zk = ZkClient(zookeeper, adapter=runtime.zookeeper, name="exporter", clock=runtime)
        self._zk.start()
        self._store = ClusterStore(self._zk)
        self._session = self._zk.session_id
        self._state_nodes = ChangingZnodes(self._zk, runtime)
        self._commit_nodes = ChangingZnodes(self._zk, runtime)
        """There may be a hundred thousand of each, and a read costs a tenth of a millisecond."""

    @property
    def requests_sent(self) -> int:
        """Number of requests to ZooKeeper."""
        return self._zk.requests_sent

    @property
    def offset_fetches_sent(self) -> int:
        """Requests to coordinators, one per group."""
        return self._kafka_commits.requests_sent

    def close(self) -> None:
        self._close_client()
        self._zk.close()

    def read_view(self, *, starts: bool = True) -> ClusterView:
        """The cluster now. `starts`: including log start offsets. Raises ZooKeeperError."""
        began = self._runtime.monotonic()
        if self._zk.session_id != self._session:
            self._session = self._zk.session_id
            self._state_nodes.forget()
            self._commit_nodes.forget()
        failed: list[str] = []
        registrations = self._store.registrations()
        brokers = reachable(registrations)
        controller = self._store.controller()
        partitions = {
            TopicPartition(topic, number): replicas
            for topic, assignment in self._store.readable_assignments().items()
            for number, replicas in assignment.items()
        }
        states = self._read_states(partitions)
        negotiates = bool(brokers) and all(
            registrations[i].version >= FIRST_COORDINATING for i in brokers
        )
        cluster = self._client(failed, negotiates=negotiates)
        led = [tp for tp, state in states.items() if state.leader in brokers]
        ends = self._offsets(cluster, led, LATEST_OFFSET, failed)
        first = self._offsets(cluster, led, EARLIEST_OFFSET, failed) if starts else {}
        views = {}
        for tp, replicas in partitions.items():
            state = states.get(tp)
            views[tp] = PartitionView(
                NO_LEADER if state is None else leader_of(state, registrations),
                replicas,
                () if state is None else state.isr,
                first.get(tp),
                ends.get(tp),
            )
        groups = self._groups(cluster, list(partitions), set(led), ends, failed)
        times = self._times.look_up(
            unread(views, groups),
            lambda offsets: self._ask_times(cluster, registrations, views, offsets),
        )
        return ClusterView(
            self._runtime.time_ms(),
            brokers,
            None if controller is None else controller.broker_id,
            views,
            groups,
            self._runtime.monotonic() - began,
            tuple(failed),
            times,
            negotiates,
        )

    read = renamed("ClusterReader.read", read_view)

    def _read_states(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        wanted = {tp: paths.partition_state(*tp) for tp in partitions}
        found = self._state_nodes.refresh(wanted.values())
        there = {tp: found[path] for tp, path in wanted.items() if path in found}
        return self._store.decode_states(there)

    def _client(self, failed: list[str], *, negotiates: bool) -> ClusterClient | None:
        """A client whose brokers include one that has just responded; None, and why, without one:
        the next view then asks those that are registered by that time, maybe at other addresses.
        `negotiates`: all brokers report their API versions."""
        if negotiates is not self._negotiates:
            self._close_client()
        try:
            if self._cluster is None:
                self._negotiates = negotiates
                self._cluster = ClusterClient(
                    self._store.broker_addresses(),
                    client_id="kafka08-exporter",
                    timeout_ms=5000,
                    connect_timeout_ms=2000,
                    retry_policy=RETRIES,
                    negotiates=negotiates,
                    runtime=self._runtime,
                )
            self._cluster.refresh()
        except KafkaError as error:
            failed.append(f"brokers: {error}")
            self._close_client()
        return self._cluster

    def _close_client(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    @staticmethod
    def _offsets(
        cluster: ClusterClient | None,
        partitions: Sequence[TopicPartition],
        time: int,
        failed: list[str],
    ) -> Offsets:
        found: Offsets = {}
        if cluster is None:
            return found
        silent: dict[str, list[TopicPartition]] = {}
        for tp, result in offsets_or_errors(cluster, dict.fromkeys(partitions, time)).items():
            if isinstance(result, KafkaError):
                silent.setdefault(str(result), []).append(tp)
            elif result:
                found[tp] = result[0]
        failed.extend(f"offsets of {some_of(tps)}: {why}" for why, tps in silent.items())
        return found

    def _ask_times(
        self,
        cluster: ClusterClient | None,
        registrations: Mapping[int, BrokerRegistration],
        views: Mapping[TopicPartition, PartitionView],
        offsets: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, int | None]:
        """The timestamps at offsets whose leaders may have them. Without a response the history of
        ends serves instead."""
        if cluster is None:
            return {}
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for tp, offset in offsets.items():
            by_leader.setdefault(views[tp].leader, {})[tp] = offset

        def ask(broker_id: int) -> dict[TopicPartition, int | None]:
            try:
                leader = registrations[broker_id].broker(broker_id)
                return message_times(cluster, leader, by_leader[broker_id])
            except KafkaError as error:
                logger.info("No message timestamps from broker %d: %s", broker_id, error)
                return {}

        able = [
            broker_id
            for broker_id in by_leader.keys() & registrations.keys()
            if registrations[broker_id].version >= FIRST_WITH_TIMESTAMPS
        ]
        found = cluster.run_concurrently(partial(ask, broker_id) for broker_id in able)
        return {tp: time_ms for times in found for tp, time_ms in times.items()}

    def _groups(
        self,
        cluster: ClusterClient | None,
        partitions: Sequence[TopicPartition],
        led: Collection[TopicPartition],
        ends: Offsets,
        failed: list[str],
    ) -> dict[str, GroupView]:
        names = GroupStore(self._zk).groups()
        trees = read_commits(self._zk, names, self._commit_nodes.refresh)
        members = {name: len(found) for name, found in read_members_of(self._zk, names).items()}
        coordinated = self._coordinated(cluster, failed)
        count = sum(tp.topic == OFFSETS_TOPIC for tp in partitions)
        every = sorted({*names, *coordinated})
        silent = without_coordinator(every, count, led) if cluster is not None else []
        if silent:
            what = f"offsets in Kafka of {len(silent)} groups"
            failed.append(f"{what}: no live broker leads {OFFSETS_TOPIC}: {some_of(silent)}")
        in_kafka = self._kafka_commits.read_all(
            cluster, every, frozenset(silent), partitions, ends, failed
        )
        found = {}
        for name in every:
            in_zookeeper: Mapping[TopicPartition, Committed] = {}
            if name in trees:
                in_zookeeper = {tp: Committed(*value) for tp, value in trees[name].values.items()}
            found[name] = GroupView(
                members.get(name, 0) + coordinated.get(name, 0),
                in_zookeeper,
                in_kafka.get(name, {}),
            )
        return found

    def _coordinated(self, cluster: ClusterClient | None, failed: list[str]) -> dict[str, int]:
        """Group → its members, for groups that brokers coordinate."""
        if cluster is None or not may_coordinate(self._store):
            return {}
        try:
            listed = CoordinatorReader(cluster, self._runtime).groups()
        except KafkaError as error:
            failed.append(f"coordinated groups: {error}")
            return {}
        failed.extend(listed.failed_requests)
        return {group.name: len(group.members) for group in listed.groups}


def leader_of(state: LeaderAndIsr, registered: Collection[int]) -> int:
    """As brokers tell clients. ZooKeeper may name a broker that failed: a JVM controller that is
    elected after that leaves the state of a partition without a live replica as it is. Pure."""
    return state.leader if state.leader in registered else NO_LEADER


def without_coordinator(
    groups: Iterable[str], count: int, led: Collection[TopicPartition]
) -> list[str]:
    """Those of `groups` whose partition of the offsets topic (of `count`) has no leader in `led`.
    Requests for each of a thousand such groups would take seconds each. Pure."""
    if not count:
        return []
    return [
        group
        for group in groups
        if TopicPartition(OFFSETS_TOPIC, group_partition(group, count)) not in led
    ]


def unread(
    partitions: Mapping[TopicPartition, PartitionView], groups: Mapping[str, GroupView]
) -> dict[TopicPartition, set[int]]:
    """partition → the offsets of groups with lag. Pure."""
    found: dict[TopicPartition, set[int]] = {}
    for group in groups.values():
        for tp, committed in group.newest().items():
            partition = partitions.get(tp)
            if partition is None or partition.end is None:
                continue
            offset = partition.first_from(committed.offset)
            if offset < partition.end:
                found.setdefault(tp, set()).add(offset)
    return found
