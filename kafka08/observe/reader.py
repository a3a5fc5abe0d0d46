"""ClusterReader: reads a snapshot of a cluster, or of some groups of it, in batches. Changes
nothing.

ZooKeeper must respond, unless brokers alone are given. A broker that does not respond in PROBE_S is
named in the snapshot and asked nothing more for a while, so one that hangs delays a command once,
and hides only what it alone knows. Offsets are read before the logs that they are compared with: a
group cannot seem to be beyond a log's end by what was written meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Final

from kafka08.client import PLAINTEXT, ClusterClient, RetryPolicy, Security, parse_bootstrap
from kafka08.client.cluster import PROBE_S, SILENT_S
from kafka08.client.coordinators import Coordinators
from kafka08.client.message_times import message_times
from kafka08.consumer.zookeeper.one_cluster import addresses_in_cluster
from kafka08.errors import KafkaError, NoBrokersAvailable
from kafka08.lifecycle import Closeable
from kafka08.observe.group_states import GroupStates
from kafka08.observe.layout import Layout, Nodes, layout_in_zookeeper, layout_of, read_states
from kafka08.observe.logs import Client, read_logs, read_offsets
from kafka08.observe.message_times import MessageTimes
from kafka08.observe.snapshot import ClusterView, Committed, GroupState, Owner, PartitionState
from kafka08.observe.trees import Tree, read_commits, read_owners
from kafka08.runtime import ClientRuntime
from kafka08.runtime.threads import THREADS
from kafka08.runtime.transport import Address
from kafka08.structs import LATEST_OFFSET, OFFSETS_TOPIC, TopicPartition
from kafka08.waiting import giving_up_at
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.errors import unless_gone
from kafka08.zk.group_store import GroupStore
from kafka08.zk.nodes import BrokerRegistration
from kafka08.zk.operations import Exists
from kafka08.zk.store import ClusterStore

logger = logging.getLogger(__name__)

RETRIES: Final = RetryPolicy(tries=2, backoff_ms=100)
TIMEOUT_MS: Final = 5000
"""For requests to brokers that have responded just before."""
GROUP_S: Final = 30.0
VIEW_S: Final = 120.0
"""How long brokers are asked about some groups, and about everything: a hundred million offsets."""
FIRST_WITH_TIMESTAMPS: Final = 3
"""Registration version of brokers of 0.10.0."""


class ClusterReader(Closeable):
    """Connects at once; raises ZooKeeperError. A context manager.

    zookeeper   connect string of the cluster; None: groups in ZooKeeper are not read
    bootstrap   brokers to ask, of the same cluster; None: those registered in ZooKeeper.
                ConfigError if they are not those of `zookeeper`
    lent        connections that somebody else closes, instead of both
    security    of the connections to brokers
    store       the cluster's znodes; None without ZooKeeper
    """

    def __init__(
        self,
        zookeeper: str | None,
        bootstrap: str | None = None,
        security: Security = PLAINTEXT,
        *,
        lent: tuple[ClusterStore | None, ClusterClient] | None = None,
        runtime: ClientRuntime = THREADS,
    ) -> None:
        assert zookeeper or bootstrap or lent, "give the connect string of ZooKeeper, or brokers"
        self._runtime = runtime
        self._bootstrap = parse_bootstrap(bootstrap) if bootstrap is not None else None
        self._is_lent = lent is not None
        self._security = security
        self.store: ClusterStore | None
        self._cluster: ClusterClient | None
        self.store, self._cluster = lent or (None, None)
        self._negotiates = False
        self._times = MessageTimes()
        self._nodes: Nodes | None = None
        if zookeeper is not None:
            zk = ZkClient(
                zookeeper,
                adapter=runtime.zookeeper,
                name="observe",
                is_patient=False,
                clock=runtime,
            )
            zk.start()
            self.store = ClusterStore(zk)
            if self._bootstrap is not None:
                try:
                    self._bootstrap = addresses_in_cluster(
                        self.store, self._bootstrap, self._probed_client
                    )
                except NoBrokersAvailable as error:
                    logger.warning("%s", error)  # each read that needs a broker will say so
                    self._bootstrap = None
                except BaseException:
                    zk.close()
                    raise
        self._groups = GroupStates(self.store, runtime)

    @property
    def _zk(self) -> ZkClient:
        assert self.store is not None, "groups in ZooKeeper need its connect string"
        return self.store.zk

    @property
    def negotiates(self) -> bool:
        """Whether the client's brokers report their API versions, as all do without ZooKeeper."""
        return self.store is None or self._negotiates

    @property
    def requests_sent(self) -> int:
        """Number of requests to ZooKeeper."""
        return self._zk.requests_sent

    @property
    def offset_fetches_sent(self) -> int:
        """Requests to coordinators, one per group."""
        return self._groups.offset_fetches_sent

    def close(self) -> None:
        if not self._is_lent:
            self._close_client()
            if self.store is not None:
                self.store.zk.close()

    # --- snapshots

    def read_view(
        self,
        *,
        starts: bool = True,
        owners: bool = False,
        beside: Callable[[Layout], object] = lambda _: None,
    ) -> ClusterView:
        """The cluster now, with all groups: without ZooKeeper those that have a coordinator. Raises
        ZooKeeperError, or NoBrokersAvailable without ZooKeeper.

        starts   including log start offsets
        owners   including the groups' owners
        beside   called when leaders are read, before anything that may take long
        """
        with self.within(VIEW_S):
            return self._read_view(starts, owners, beside)

    def _read_view(
        self, starts: bool, owners: bool, beside: Callable[[Layout], object]
    ) -> ClusterView:
        began = self._runtime.monotonic()
        nodes = self._known_nodes()
        failed: list[str] = []
        layout = self._layout()
        partitions = layout.partitions
        known = None if nodes is None else nodes.states
        states = read_states(self.store, layout, partitions, known)
        beside(layout)
        cluster = self._client(layout, failed)
        led = layout.led(states)
        # Each commit is a record of the offsets topic: a log that has not grown has no news.
        of_offsets = [tp for tp in led if tp.topic == OFFSETS_TOPIC]
        written = read_offsets(cluster, of_offsets, LATEST_OFFSET)
        names = [] if nodes is None else GroupStore(self._zk).groups()
        unlisted: list[str] = []
        coordinated = self._groups.coordinated(layout, cluster, names, unlisted)
        failed += unlisted
        every = sorted({*names, *coordinated})
        in_kafka = self._groups.committed(layout, cluster, every, led, failed, ends=written)
        trees: Mapping[str, Tree[Committed]] = {}
        owned: Mapping[str, Tree[Owner]] = {}
        if nodes is not None:
            trees = read_commits(self._zk, names, nodes.commits.refresh)
            owned = read_owners(self._zk, names) if owners else {}
        groups = self._groups.of(every, names, coordinated, in_kafka, trees, owned)
        found = read_logs(cluster, layout, partitions, states, failed, starts=starts, stable=True)
        times = self._times.look_up(
            unread(found, groups),
            lambda offsets: self._ask_times(cluster, layout.registrations, found, offsets),
        )
        return self._snapshot(layout, began, found, groups, failed, unlisted, times)

    def _known_nodes(self) -> Nodes | None:
        """The znodes that are remembered in this session; None without ZooKeeper."""
        if self.store is None:
            return None
        if self._nodes is None or self._nodes.session != self._zk.session_id:
            self._nodes = Nodes(self._zk, self._runtime)
        return self._nodes

    def read_groups(
        self,
        names: Sequence[str],
        also: Mapping[str, Collection[TopicPartition]] = {},
        *,
        strictly: Coordinators | None = None,
    ) -> ClusterView:
        """These groups alone, with their owners, and the partitions that concern them. Raises
        ZooKeeperError.

        also      group → partitions that concern it too
        strictly  for those who act on it: an assignment that cannot be read is an error, and these
                  ask again until a coordinator knows each partition
        """
        if strictly is not None:
            return self._read_groups(names, also, strictly)
        with self.within(GROUP_S):
            return self._read_groups(names, also, None)

    def _read_groups(
        self,
        names: Sequence[str],
        also: Mapping[str, Collection[TopicPartition]],
        strictly: Coordinators | None,
    ) -> ClusterView:
        began = self._runtime.monotonic()
        failed: list[str] = []
        layout = self._layout(strict=strictly is not None)
        cluster = self._client(layout, failed)
        if strictly is not None:
            in_kafka = self._groups.strictly_committed(layout, cluster, names, strictly, failed)
        else:
            numbers = layout.assigned.get(OFFSETS_TOPIC, ())
            of_offsets = [TopicPartition(OFFSETS_TOPIC, number) for number in numbers]
            led = layout.led(read_states(self.store, layout, of_offsets))
            in_kafka = self._groups.committed(layout, cluster, names, led, failed)
        coordinated = self._groups.described(layout, cluster, names)
        trees: Mapping[str, Tree[Committed]] = {}
        owners: Mapping[str, Tree[Owner]] = {}
        in_zookeeper: list[str] = []
        if self.store is not None:
            there = self._zk.pipeline([Exists(paths.group(name)) for name in names])
            in_zookeeper = [n for n, stat in zip(names, there, strict=True) if unless_gone(stat, 0)]
            trees, owners = read_commits(self._zk, names), read_owners(self._zk, names)
        groups = self._groups.of(names, in_zookeeper, coordinated, in_kafka, trees, owners)
        concerned = {
            tp
            for name, group in groups.items()
            for tp in group.concerned(layout.numbers, also.get(name, ()))
        }
        existing = {
            tp: replicas
            for tp in sorted(concerned)
            if (replicas := layout.assigned.get(tp.topic, {}).get(tp.partition)) is not None
        }
        states = read_states(self.store, layout, existing)
        found = read_logs(cluster, layout, existing, states, failed)
        return self._snapshot(layout, began, found, groups, failed)

    def _snapshot(
        self,
        layout: Layout,
        began: float,
        partitions: Mapping[TopicPartition, PartitionState],
        groups: Mapping[str, GroupState],
        failed: Sequence[str],
        unlisted: Sequence[str] = (),
        times: Mapping[tuple[TopicPartition, int], int] = {},
    ) -> ClusterView:
        unreadable = [f"{path} cannot be read: {why}" for path, why in layout.faults.items()]
        return ClusterView(
            self._runtime.time_ms(),
            layout.brokers,
            layout.controller,
            partitions,
            groups,
            self._runtime.monotonic() - began,
            (*unreadable, *failed),
            tuple(unlisted),
            times,
            layout.negotiates,
            layout.numbers,
            layout.faults,
            self.store is not None,
        )

    def within(self, seconds: float) -> AbstractContextManager[None]:
        """For a block of requests to brokers that together take so long at most."""
        return giving_up_at(self._runtime.monotonic() + seconds)

    # --- brokers

    def _layout(self, *, strict: bool = False) -> Layout:
        """The layout in ZooKeeper, or in the metadata of a broker. ZooKeeperError,
        NoBrokersAvailable."""
        if self.store is not None:
            return layout_in_zookeeper(self.store, strict=strict)
        if self._cluster is None:
            assert self._bootstrap is not None
            self._cluster = self._new_client(self._bootstrap)
        self._cluster.find_silent(PROBE_S)
        return layout_of(self._cluster.refresh())

    def _client(self, layout: Layout, failed: list[str]) -> Client:
        """A client whose brokers include one that has just responded, or why there is none: the
        next snapshot then asks those that are registered by that time, maybe at other addresses.
        Brokers that hang are found here."""
        if self.store is None:
            assert self._cluster is not None, "the layout came from it"
            return self._cluster
        if not self._is_lent and layout.negotiates is not self._negotiates:
            self._close_client()
        try:
            if self._cluster is None:
                addresses = self._bootstrap or self.store.broker_addresses()
                self._negotiates = layout.negotiates
                self._cluster = self._new_client(addresses, negotiates=layout.negotiates)
            self._cluster.find_silent(PROBE_S)
            self._cluster.refresh()
            return self._cluster
        except KafkaError as error:
            failed.append(f"brokers: {error}")
            if not self._is_lent:
                self._close_client()
            return error

    def client(self) -> ClusterClient:
        """A client of brokers of which one has just responded. NoBrokersAvailable,
        ZooKeeperError."""
        cluster = self._client(self._layout(), [])
        if isinstance(cluster, KafkaError):
            raise cluster
        return cluster

    def _close_client(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def _probed_client(self, addresses: Sequence[Address]) -> ClusterClient:
        client = self._new_client(addresses)
        client.find_silent(PROBE_S)
        return client

    def _new_client(
        self, addresses: Sequence[Address], *, negotiates: bool = False
    ) -> ClusterClient:
        return ClusterClient(
            addresses,
            client_id="kafka08-observe",
            timeout_ms=TIMEOUT_MS,
            connect_timeout_ms=2000,
            retry_policy=RETRIES,
            negotiates=negotiates or self.store is None,
            accepts_0_8=True,
            security=self._security,
            silent_s=SILENT_S,
            runtime=self._runtime,
        )

    def _ask_times(
        self,
        cluster: Client,
        registrations: Mapping[int, BrokerRegistration],
        partitions: Mapping[TopicPartition, PartitionState],
        offsets: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, int | None]:
        """The timestamps at offsets whose leaders may have them. Without a response the history of
        ends serves instead."""
        if isinstance(cluster, KafkaError):
            return {}
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for tp, offset in offsets.items():
            by_leader.setdefault(partitions[tp].leader, {})[tp] = offset

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


def unread(
    partitions: Mapping[TopicPartition, PartitionState], groups: Mapping[str, GroupState]
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
