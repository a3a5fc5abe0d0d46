"""The cluster's state in ZooKeeper as typed values: brokers, topics, partitions, read in bursts.

No caching and no decisions; callers that need changes watch the path through the client. A znode
that vanishes between listing and reading is left out, as 0.8.2.2 does. Text that cannot be read
raises ZooKeeperError with the path, except in bursts of registrations, topic configurations,
readable assignments and partition states: there it is logged as an error, or put into `faults`
(path → why), and the other znodes are still read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from kafka08.errors import BrokerIdTaken, NodeExists, NoNode, ZooKeeperError
from kafka08.levels import Level
from kafka08.profile import CLASSIC
from kafka08.structs import PLAINTEXT, Broker, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.chroots import no_brokers
from kafka08.zk.client import ZkClient
from kafka08.zk.errors import unless_gone
from kafka08.zk.operations import (
    ANY_VERSION,
    Check,
    Children,
    Create,
    Exists,
    Get,
    Node,
    Set,
    WatchCallback,
)
from kafka08.zk.typed_reads import decode_at, read_all, read_one

logger = logging.getLogger(__name__)

Faults = dict[str, str]
"""Path of a znode → why its text cannot be read."""


def reachable(
    registrations: Mapping[int, nodes.BrokerRegistration], listener: str = PLAINTEXT
) -> dict[int, Broker]:
    """id → address of the listener, without those that have none (logged)."""
    found = {}
    for broker_id, registration in registrations.items():
        try:
            found[broker_id] = registration.broker(broker_id, listener)
        except ZooKeeperError as error:
            logger.warning("%s", error)
    return found


class ClusterStore:
    """Typed access to one cluster's znodes through a started client."""

    def __init__(self, zk: ZkClient) -> None:
        self.zk = zk

    # --- brokers and the cluster ---

    def create_common_paths(self, level: Level = Level.V0_8_2) -> None:
        """Create the persistent paths that each broker of the level needs at start."""
        for path in paths.COMMON + (paths.COMMON_LATER if level > Level.V0_8_2 else ()):
            self.zk.ensure(path)

    def cluster_id(self, new_id: Callable[[], str]) -> str:
        """The id in /cluster/id, created if absent (of two brokers the first wins)."""
        while True:
            node = self.zk.get_or_none(paths.CLUSTER_ID)
            if node is not None:
                return decode_at(paths.CLUSTER_ID, nodes.decode_cluster_id, node.data)
            try:
                self.zk.create(paths.CLUSTER_ID, nodes.encode_cluster_id(new_id()))
            except NodeExists:
                continue

    def next_broker_id(self, reserved: int) -> int:
        """An id above `reserved` that no broker has had. Source: ZkUtils.getBrokerSequenceId."""
        self.zk.ensure(paths.BROKER_SEQUENCE)
        return reserved + self.zk.set(paths.BROKER_SEQUENCE, "")

    def register_broker(
        self,
        broker: Broker,
        *,
        timestamp_ms: int,
        advertised: nodes.Advertised = nodes.ADDRESS_ALONE,
    ) -> None:
        """Make /brokers/ids/<id> for this session; one left by an earlier session of the same
        broker is waited for. BrokerIdTaken: another address holds the id.

        Source: ZkUtils.registerBrokerInZk.
        """
        registration = nodes.BrokerRegistration(
            broker.host,
            broker.port,
            timestamp_ms=timestamp_ms,
            version=advertised.version,
            endpoints=tuple(map(str, advertised.endpoints)),
            rack=advertised.rack,
            protocols={e.listener: e.security_protocol for e in advertised.endpoints},
        )

        def same_address(text: str) -> bool:
            try:
                other = nodes.decode_broker(text)
            except ZooKeeperError:
                return False
            return (other.host, other.port) == (broker.host, broker.port)

        path = paths.broker(broker.id)
        try:
            self.zk.create_ephemeral(
                path,
                nodes.encode_broker(registration, advertised.level),
                expected_mine=same_address,
            )
        except NodeExists as error:
            raise BrokerIdTaken(
                f"a broker is already registered on the path {path}: either broker.id "
                f"{broker.id} is in use, or this broker was restarted at another address "
                f"before its old ZooKeeper session ended ({error})"
            ) from error

    def withdraw_broker(self, broker_id: int) -> None:
        """Delete /brokers/ids/<id>, if it is of this session."""
        path = paths.broker(broker_id)
        stat = self.zk.stat(path)
        if stat is not None and stat.ephemeral_owner == self.zk.session_id:
            self.zk.delete(path, missing_ok=True)

    def broker_ids(self) -> list[int]:
        """Ids of the registered brokers, ascending."""
        return paths.numbers(self.zk.children_or_empty(paths.BROKER_IDS))

    def live_broker_ids(self) -> list[int]:
        """Those of `broker_ids` whose registration can be read: the controller counts no other
        broker as alive, so a replica on it would have no leader."""
        return list(self.registrations())

    def live_racks(self) -> dict[int, str | None]:
        """`live_broker_ids`, each with its rack; None if it has none."""
        return {broker_id: found.rack for broker_id, found in self.registrations().items()}

    def registrations(
        self, broker_ids: Iterable[int] | None = None, faults: Faults | None = None
    ) -> dict[int, nodes.BrokerRegistration]:
        """id → registration of the brokers named (None: all), ascending, without the absent and
        those that cannot be read."""
        ids = self.broker_ids() if broker_ids is None else sorted(broker_ids)
        found = {}
        for i, node in read_all(self.zk, {i: paths.broker(i) for i in ids}).items():
            advice = "It counts as not registered: restart that broker"
            with _noted(paths.broker(i), advice, faults):
                found[i] = nodes.decode_broker(node.data)
        return found

    def newest_level(self) -> Level:
        """The newest release that a live broker registers as; 0.8.2 if there is none."""
        return newest_of(self.registrations())

    def brokers(self) -> dict[int, Broker]:
        """id → address of the brokers that can be reached, ascending."""
        return reachable(self.registrations())

    def broker_addresses(self) -> list[tuple[str, int]]:
        """Bootstrap addresses: (host, port) of the brokers, by id. NoBrokersAvailable if there
        are none."""
        addresses = [(broker.host, broker.port) for broker in self.brokers().values()]
        if not addresses:
            raise no_brokers(self.zk)
        return addresses

    def broker(self, broker_id: int, listener: str = PLAINTEXT) -> Broker | None:
        """The address of a broker's listener; None if it cannot be reached."""
        return reachable(self.registrations([broker_id]), listener).get(broker_id)

    def controller(self) -> nodes.ControllerNode | None:
        """Broker id of the controller; None while there is none."""
        return read_one(self.zk, paths.CONTROLLER, nodes.decode_controller)

    def controller_reads_isr_changes(self) -> bool:
        """Whether there is a controller, and its registration is one of 0.9 or later."""
        controller = self.controller()
        if controller is None:
            return False
        registration = self.registrations([controller.broker_id]).get(controller.broker_id)
        return registration is not None and registration.version > 1

    def notify_of_isr_changes(self, partitions: Iterable[TopicPartition]) -> None:
        """Tell the controller that the ISRs of these partitions changed."""
        self.zk.create(paths.isr_change(), nodes.encode_isr_changes(partitions), sequence=True)

    def controller_epoch(self) -> tuple[int, int] | None:
        """(epoch, version of the znode); None before the first controller."""
        node = self.zk.get_or_none(paths.CONTROLLER_EPOCH)
        if node is None:
            return None
        path = paths.CONTROLLER_EPOCH
        return decode_at(path, nodes.decode_controller_epoch, node.data), node.version

    def profile(self) -> str:
        """The profile of the cluster's brokers: `safe` once one of them said so."""
        return _profile_in(self.zk.get_or_none(paths.PROFILE))

    def put_profile(self, profile: str) -> None:
        self.zk.put(paths.PROFILE, profile)

    # --- topics and partitions ---

    def catch_up(self, *, again: bool = False) -> None:
        """Have the client's server apply everything that is committed by now, so that no later read
        is older: a server of an ensemble may lag behind the others, but not behind a transaction
        of its client. SessionLost if that is unknown; with `again` a lost connection is waited
        for."""
        self.zk.multi([Check(paths.BROKER_TOPICS, ANY_VERSION)], again=again)

    def topics(self) -> list[str]:
        """Names of all topics, sorted; [] when there is no /brokers/topics."""
        return self.zk.children_or_empty(paths.BROKER_TOPICS)

    def assignments(
        self, topics: Iterable[str] | None = None
    ) -> dict[str, dict[int, tuple[int, ...]]]:
        """topic → partition → replicas of the topics named (None: all), partitions ascending;
        topics that do not exist are left out. ZooKeeperError if one cannot be read."""
        return {
            name: ascending(decode_at(paths.topic(name), nodes.decode_assignment, node.data))
            for name, node in self._topic_nodes(topics).items()
        }

    def readable_assignments(
        self, topics: Iterable[str] | None = None, faults: Faults | None = None
    ) -> dict[str, dict[int, tuple[int, ...]]]:
        """As `assignments`, without those that cannot be read: one bad znode must not hide all
        other topics."""
        found = {}
        for name, node in self._topic_nodes(topics).items():
            advice = "The topic is left out: restore its former assignment"
            with _noted(paths.topic(name), advice, faults):
                found[name] = ascending(nodes.decode_assignment(node.data))
        return found

    def _topic_nodes(self, topics: Iterable[str] | None) -> dict[str, Node]:
        names = self.topics() if topics is None else topics
        return read_all(self.zk, {name: paths.topic(name) for name in names})

    def assignment(self, topic: str) -> dict[int, tuple[int, ...]] | None:
        return self.assignments([topic]).get(topic)

    def topic_creations(self, topics: Iterable[str]) -> dict[str, int]:
        """topic → the transaction that created its znode, for existing topics: another number shows
        that the topic was deleted and created again."""
        names = list(topics)
        stats = self.zk.pipeline([Exists(paths.topic(name)) for name in names])
        found = {name: unless_gone(stat, None) for name, stat in zip(names, stats, strict=True)}
        return {name: stat.created_zxid for name, stat in found.items() if stat is not None}

    def new_topic_needs(self) -> tuple[dict[int, nodes.BrokerRegistration], list[str], str]:
        """`registrations`, `topics`, `profile`, on which a new topic depends: two round trips."""
        ids, topics, profile = self.zk.pipeline(
            [Children(paths.BROKER_IDS), Children(paths.BROKER_TOPICS), Get(paths.PROFILE)]
        )
        registrations = self.registrations(paths.numbers(unless_gone(ids, [])))
        return registrations, unless_gone(topics, []), _profile_in(unless_gone(profile, None))

    def create_topic(
        self,
        topic: str,
        assignment: Mapping[int, Iterable[int]],
        overrides: Mapping[str, str],
    ) -> None:
        """Write configuration and assignment, both or neither: 0.8.2.2 could fail in between.
        NodeExists if another client was faster; its topic stays. The configuration that an
        earlier topic of this name left behind is replaced."""
        config_path, config_text = paths.topic_config(topic), nodes.encode_topic_config(overrides)
        assigned = Create(paths.topic(topic), nodes.encode_assignment(assignment))
        try:
            self.zk.multi([Create(config_path, config_text), assigned])
            return
        except NoNode:
            pass  # no broker has created the parents yet
        except NodeExists as error:
            if error.path != config_path:
                raise
        self.zk.ensure(paths.TOPIC_CONFIGS)
        self.zk.ensure(paths.BROKER_TOPICS)
        write = Set if self.zk.exists(config_path) else Create
        self.zk.multi([write(config_path, config_text), assigned])

    def replace_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Write the topic's overrides in place of those that it has, and notify the brokers."""
        path, text = paths.topic_config(topic), nodes.encode_topic_config(overrides)
        self.zk.ensure(paths.TOPIC_CONFIGS)
        try:
            self.zk.set(path, text)
        except NoNode:
            with suppress(NodeExists):
                self.zk.create(path, text)
        self.announce_config_change(topic)

    def announce_config_change(self, topic: str) -> None:
        """The notification that makes brokers read a topic's overrides: in the form of 0.8, of 0.9,
        or both, as the registered brokers need."""
        change = nodes.ConfigChange(topic)
        versions = {found.version for found in self.registrations().values()}
        if versions - {1}:
            later = nodes.encode_later_config_change(change)
            self.zk.create(paths.config_change(), later, sequence=True)
        if not versions or 1 in versions:
            text = nodes.encode_config_change(change)
            self.zk.create(paths.config_change(), text, sequence=True)

    def leader_and_isr(
        self, partitions: Iterable[TopicPartition], on_change: WatchCallback | None = None
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """partition → state; partitions without a state znode, or with one that cannot be read, are
        left out. `on_change` is called once at the next change of each znode that is there.

        Source: ReplicationUtils.parseLeaderAndIsr.
        """
        wanted = {tp: paths.partition_state(*tp) for tp in partitions}
        return self.decode_states(read_all(self.zk, wanted, on_change))

    @staticmethod
    def decode_states(
        found: Mapping[TopicPartition, Node],
        faults: Faults | None = None,
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """partition → state, of the state znodes that can be read."""
        states = {}
        for tp, node in found.items():
            with _noted(
                paths.partition_state(*tp),
                "It counts as absent and is never overwritten: restore its former text",
                faults,
            ):
                states[tp] = nodes.decode_leader_and_isr(node.data, node.version)
        return states

    def create_leader_and_isr(
        self,
        states: Mapping[TopicPartition, LeaderAndIsr],
        condition: Check | None = None,
    ) -> dict[TopicPartition, LeaderAndIsr | ZooKeeperError]:
        """Make the state znodes of new partitions: the state with version 0, or NodeExists, or
        NoNode if the topic is gone. With a `condition`, its error is raised when it does not hold.
        """
        parents = [
            Create(paths.partitions(topic), None) for topic in sorted({tp.topic for tp in states})
        ]
        writes = [
            write
            for tp, state in states.items()
            for write in (
                Create(paths.partition(*tp), None),
                Create(paths.partition_state(*tp), nodes.encode_leader_and_isr(state)),
            )
        ]
        # Every second one is of a state, the others of its parent.
        results = self.zk.write_all(writes, condition, parents)[1::2]
        return {
            tp: result if isinstance(result, ZooKeeperError) else _at_version(state, 0)
            for (tp, state), result in zip(states.items(), results, strict=True)
        }

    def update_leader_and_isr(
        self,
        states: Mapping[TopicPartition, LeaderAndIsr],
        condition: Check | None = None,
    ) -> dict[TopicPartition, LeaderAndIsr | ZooKeeperError]:
        """Write each state if its znode still has `zk_version`: the state with its new version, or
        BadVersion or NoNode. One conflict does not touch the others. With a `condition`, its error
        is raised when it does not hold."""
        writes = [
            Set(paths.partition_state(*tp), nodes.encode_leader_and_isr(state), state.zk_version)
            for tp, state in states.items()
        ]
        results = self.zk.write_all(writes, condition)
        return {
            tp: result if isinstance(result, ZooKeeperError) else _at_version(state, result)
            for (tp, state), result in zip(states.items(), results, strict=True)
        }

    def topic_config(self, topic: str) -> dict[str, str]:
        """The overrides of a topic; {} when it has none."""
        return read_one(self.zk, paths.topic_config(topic), nodes.decode_topic_config) or {}

    def topic_configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """topic → overrides; topics without a configuration znode, or with one that cannot be read,
        are left out. Source: AdminUtils.fetchTopicConfig."""
        wanted = {name: paths.topic_config(name) for name in topics}
        configs = {}
        for name, node in read_all(self.zk, wanted).items():
            with _noted(
                wanted[name],
                "It counts as no overrides: restore its text",
            ):
                configs[name] = nodes.decode_topic_config(node.data)
        return configs

    def all_topic_configs(self) -> dict[str, dict[str, str]]:
        return self.topic_configs(self.zk.children_or_empty(paths.TOPIC_CONFIGS))

    def topics_to_delete(self) -> list[str]:
        """Topics whose deletion was requested and is not finished (or never will be)."""
        return self.zk.children_or_empty(paths.DELETE_TOPICS)

    def reassignments(self) -> dict[TopicPartition, tuple[int, ...]]:
        """partition → target replicas while a reassignment runs; else {}."""
        return read_one(self.zk, paths.REASSIGN_PARTITIONS, nodes.decode_reassignment) or {}

    def preferred_elections(self) -> tuple[TopicPartition, ...]:
        return read_one(self.zk, paths.PREFERRED_ELECTION, nodes.decode_preferred_election) or ()


def newest_of(registrations: Mapping[int, nodes.BrokerRegistration]) -> Level:
    """The newest release among these brokers; 0.8.2 if there is none."""
    return max((one.level for one in registrations.values()), default=Level.V0_8_2)


def _profile_in(node: Node | None) -> str:
    return CLASSIC if node is None else node.data or CLASSIC


def ascending(assignment: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    return dict(sorted(assignment.items()))


@contextmanager
def _noted(path: str, advice: str, faults: Faults | None = None) -> Iterator[None]:
    """Context of reading a text that may be left out: if it cannot be read, `faults` says why, or
    the log does."""
    try:
        yield
    except ZooKeeperError as error:
        if faults is None:
            logger.error("%s: %s. %s", path, error, advice)
        else:
            faults[path] = str(error)


def _at_version(state: LeaderAndIsr, zk_version: int) -> LeaderAndIsr:
    return LeaderAndIsr(
        state.leader, state.leader_epoch, state.isr, zk_version, state.controller_epoch
    )
