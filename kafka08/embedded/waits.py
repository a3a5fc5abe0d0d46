"""Waits for a state of a cluster, instead of sleeping:

    cluster.kill(cluster.leader_of("t"))
    leader = cluster.wait.leader("t", other_than=0)
    assignment = cluster.wait.group("readers", members=2)
    cluster.wait.lag("readers")

Each returns as soon as the state is there. After `timeout` seconds it raises KafkaError with what
it saw last; at once, if a broker or ZooKeeper has died that nobody stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, TypeVar

from kafka08.embedded.broker import EmbeddedBroker
from kafka08.embedded.not_yet import NotYet
from kafka08.errors import KafkaError
from kafka08.listing import counted, some_of
from kafka08.network.connection import Connection
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.structs import NO_LEADER, LeaderAndIsr, TopicPartition
from kafka08.zk.store import ClusterStore

if TYPE_CHECKING:
    from kafka08.embedded.cluster import EmbeddedCluster
    from kafka08.embedded.group_states import Assignment, Group

TIMEOUT_S: Final = 30.0
PAUSE_S: Final = 0.005
TOPIC_PAUSE_S: Final = 0.001
RESPONSE_MS: Final = 5000
"""For a response of a broker, which may be paused."""

T = TypeVar("T")


class Waits:
    """The waits of one cluster."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    def topic(self, name: str, timeout: float = TIMEOUT_S, *, partitions: int = 0) -> None:
        """Wait until every running broker has the topic in its metadata, with a leader of each
        partition. partitions: how many it has; 0: as many as in ZooKeeper."""
        with ExitStack() as opened:
            unasked = [broker for broker in self._cluster.brokers if broker.expected_running]
            connections = [opened.enter_context(connection_to(broker)) for broker in unasked]

            has_leader = False

            def look() -> None:
                nonlocal has_leader
                count = partitions or len(self._store.assignment(name) or ())
                if not count:
                    raise NotYet("ZooKeeper has no such topic")
                # First: brokers that are asked again and again are busy with that.
                has_leader = has_leader or bool(states_of(self._store, name, [count - 1]))
                if not has_leader:
                    raise NotYet(f"ZooKeeper has no leader of [{name},{count - 1}]")
                while unasked:
                    known = metadata(connections[-1])
                    check_leaders(unasked[-1].id, known, name, count)
                    del unasked[-1], connections[-1]

            self._until(f"topic {name} is ready", look, timeout, TOPIC_PAUSE_S)

    def isr(self, topic: str, timeout: float = TIMEOUT_S) -> None:
        """Wait until all replicas of each partition of the topic are in its ISR."""

        def look() -> None:
            replicas = self._store.assignment(topic)
            if not replicas:
                raise NotYet("ZooKeeper has no such topic")
            check_isr(replicas, states_of(self._store, topic, replicas))

        self._until(f"the ISR of {topic} is whole", look, timeout)

    def leader(
        self,
        topic: str,
        partition: int = 0,
        *,
        other_than: EmbeddedBroker | int | None = None,
        timeout: float = TIMEOUT_S,
    ) -> EmbeddedBroker:
        """Wait until the partition has a leader that runs, another one than `other_than`, and every
        running broker knows it. Returns it."""
        former = other_than.id if isinstance(other_than, EmbeddedBroker) else other_than
        running = {broker.id: broker for broker in self._cluster.brokers if broker.running}

        def look() -> EmbeddedBroker:
            state = states_of(self._store, topic, [partition]).get(partition)
            leader = NO_LEADER if state is None else state.leader
            if leader == former or leader not in running:
                raise NotYet(f"ZooKeeper has leader {leader}")
            for broker in running.values():
                with connection_to(broker) as connection:
                    check_leader(broker.id, metadata(connection), topic, partition, leader)
            return running[leader]

        what = f"[{topic},{partition}] has a leader"
        if former is not None:
            what += f" other than {former}"
        return self._until(what, look, timeout)

    def led(self, timeout: float = TIMEOUT_S) -> None:
        """Wait until a running broker leads each partition that one could lead, and all of them
        know it: a member of its ISR runs, and its topic is not about to be deleted."""
        running = {broker.id: broker for broker in self._cluster.brokers if broker.running}
        store = self._store

        def look() -> None:
            kept = set(store.topics()) - set(store.topics_to_delete())
            assigned = store.assignments(sorted(kept))
            states = store.leader_and_isr(
                [TopicPartition(topic, n) for topic, of in assigned.items() for n in of]
            )
            able = {tp: s for tp, s in states.items() if not running.keys().isdisjoint(s.isr)}
            waiting = [tp for tp, state in able.items() if state.leader not in running]
            if waiting:
                raise NotYet(f"no leader of {some_of(sorted(map(str, waiting)))}")
            for broker in running.values():
                with connection_to(broker) as connection:
                    known = metadata(connection)
                for tp, state in able.items():
                    check_leader(broker.id, known, tp.topic, tp.partition, state.leader)

        self._until("all partitions have leaders", look, timeout)

    def group(self, name: str, members: int, timeout: float = TIMEOUT_S) -> Assignment:
        """Wait until the group, of either kind, has exactly so many members and is stable: each
        partition of their topics has an owner among them. Returns what each of them owns."""
        from kafka08.embedded.group_states import stable

        what = f"group {name} is stable with {counted(members, 'member')}"
        return self._until_group(name, what, lambda group: stable(group, members), timeout)

    def committed(
        self, group: str, partition: TopicPartition, offset: int, timeout: float = TIMEOUT_S
    ) -> int:
        """Wait until the group has committed this offset of the partition, or a later one; returns
        that."""
        from kafka08.embedded.group_states import committed

        what = f"group {group} has committed {offset} of {partition}"
        return self._until_group(
            group, what, lambda found: committed(found, partition, offset), timeout
        )

    def lag(
        self, group: str, at_most: int = 0, *, topic: str | None = None, timeout: float = TIMEOUT_S
    ) -> int:
        """Wait until the group's lag, the sum over all partitions (of one topic), is at most so
        large; returns it."""
        from kafka08.embedded.group_states import small_lag

        what = f"the lag of group {group} is {at_most} at most"
        return self._until_group(
            group, what, lambda found: small_lag(found, topic, at_most), timeout
        )

    def _until_group(self, name: str, what: str, judge: Callable[[Group], T], timeout: float) -> T:
        from kafka08.embedded.group_states import read_group
        from kafka08.groups import GroupReader

        with GroupReader(self._cluster.zookeeper.connect_string) as reader:
            return self._until(what, lambda: judge(read_group(reader, name)), timeout)

    def _until(self, what: str, look: Callable[[], T], timeout: float, pause: float = PAUSE_S) -> T:
        give_up_at = time.monotonic() + timeout
        while True:
            look_again_at = time.monotonic() + pause
            try:
                return look()
            except (NotYet, KafkaError) as error:
                seen = str(error)
            self._cluster.check_alive()
            if time.monotonic() > give_up_at:
                raise KafkaError(f"not within {timeout:g} s: {what}. Last seen: {seen}")
            time.sleep(max(0.0, look_again_at - time.monotonic()))

    @property
    def _store(self) -> ClusterStore:
        return ClusterStore(self._cluster.session.client())


# ------------------------------------------------------------------------- what is seen, pure


def check_leaders(broker: int, known: MetadataResponse | None, topic: str, partitions: int) -> None:
    """Raises NotYet unless the broker knows a leader of each partition."""
    leaders = leaders_in(known, topic)
    if leaders is None:
        raise NotYet(f"broker {broker} does not respond")
    missing = [n for n in range(partitions) if leaders.get(n, NO_LEADER) == NO_LEADER]
    if missing:
        raise NotYet(f"broker {broker} knows no leader of {topic}, partitions {some_of(missing)}")


def check_leader(
    broker: int, known: MetadataResponse | None, topic: str, partition: int, leader: int
) -> None:
    """Raises NotYet unless the broker knows this leader of the partition."""
    leaders = leaders_in(known, topic)
    if leaders is None:
        raise NotYet(f"leader {leader}, but broker {broker} does not respond")
    if (there := leaders.get(partition, NO_LEADER)) != leader:
        raise NotYet(f"leader {leader}, but broker {broker} knows {there}")


def leaders_in(known: MetadataResponse | None, topic: str) -> dict[int, int] | None:
    """Partition → leader in the metadata of a broker; None for None."""
    if known is None:
        return None
    return {
        p.partition: p.leader for of in known.topics if of.topic == topic for p in of.partitions
    }


def check_isr(replicas: Mapping[int, Sequence[int]], states: Mapping[int, LeaderAndIsr]) -> None:
    """Raises NotYet unless each partition's ISR has all its replicas."""
    for partition, wanted in sorted(replicas.items()):
        isr = states[partition].isr if partition in states else ()
        if set(wanted) - set(isr):
            raise NotYet(f"partition {partition} has ISR {[*isr]} of replicas {[*wanted]}")


# ------------------------------------------------------------------------------------ reading


def states_of(
    store: ClusterStore, topic: str, partitions: Sequence[int] | Mapping[int, object]
) -> dict[int, LeaderAndIsr]:
    found = store.leader_and_isr([TopicPartition(topic, number) for number in partitions])
    return {tp.partition: state for tp, state in found.items()}


def metadata(connection: Connection) -> MetadataResponse | None:
    """The metadata of all topics that this very broker has; None if it does not respond."""
    try:
        response = connection.send(MetadataRequest(None))
    except KafkaError:
        return None
    assert isinstance(response, MetadataResponse)
    return response


def connection_to(broker: EmbeddedBroker) -> Connection:
    return Connection(
        broker.host, broker.port, client_id="kafka08-embedded", timeout_ms=RESPONSE_MS
    )
