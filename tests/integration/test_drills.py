"""Drills: what every view of a cluster says when something is broken, and how soon.

DRILLS is the table of docs/operations.md. `python -m tests.integration.test_drills [NAME...]` runs
them and prints the seconds until each view said it.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from typing import Final, NamedTuple

import pytest

from kafka08.admin import AdminClient
from kafka08.consumer import ConsumerConfig, ConsumerConnector, KafkaConsumer, KafkaConsumerConfig
from kafka08.embedded import EmbeddedCluster
from kafka08.hashing import group_partition
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from tests.integration.drills import (
    CONTROL,
    CONTROL_S,
    GROUP,
    TOPIC,
    VIEWS,
    Said,
    ask_all,
    opened,
    output,
)
from tests.waiting import until

PARTITIONS, MESSAGES, READ = 6, 120, 60
LONG_MS: Final = 60_000
"""A session timeout: a broker that hangs stays registered, and leads, for a whole drill."""
BROKEN: Final = 1
"""The broker that is."""
SOON_S: Final = 10.0
SILENT_S: Final = 3.0
OF_GROUPS: Final = ("group list", "group describe", "group explain", "offsets lag")
OF_BROKERS: Final = ("topic describe", "topic offsets", "broker list")


class Place(NamedTuple):
    """A cluster of three brokers, and a group that has read half of a topic and has no members."""

    cluster: EmbeddedCluster

    @property
    def zookeeper(self) -> str:
        return self.cluster.zookeeper.connect_string

    def produce(self, topic: str, count: int) -> None:
        keys = {"bootstrap.servers": self.cluster.bootstrap, "acks": "1", "retries": "100"}
        with KafkaProducer(KafkaProducerConfig(keys)) as producer:
            for number in range(count):
                partition = number % PARTITIONS
                producer.send(ProducerRecord(topic, b"x", partition=partition)).result(20)


Broken = AbstractContextManager[str]
"""The address of ZooKeeper to ask, while something is broken."""


class Drill(NamedTuple):
    """breaks   breaks it
    says     view → a pattern that its output must match; None: it rightly does not see it
    codes    the exit codes of those that see it; 1 where they have none
    level    what the brokers speak
    fresh    its address is wrong, so the live views begin with it, too
    config   of the brokers
    """

    breaks: Callable[[Place], Broken]
    says: Mapping[str, str | None]
    codes: Mapping[str, int] = {}
    level: str = "0.10.2"
    fresh: bool = False
    config: Mapping[str, object] = {}


def all_say(pattern: str, **others: str | None) -> dict[str, str | None]:
    return dict.fromkeys(VIEWS, pattern) | of(others)


def of(views: Mapping[str, str | None]) -> dict[str, str | None]:
    """`_` stands for a blank, and `once` for `top --once`."""
    return {
        "top --once" if name == "once" else name.replace("_", " "): pattern
        for name, pattern in views.items()
    }


def of_groups(pattern: str | None) -> dict[str, str | None]:
    return dict.fromkeys(OF_GROUPS, pattern)


def of_brokers(pattern: str | None) -> dict[str, str | None]:
    return dict.fromkeys(OF_BROKERS, pattern)


@contextmanager
def a_broker_hangs(place: Place) -> Iterator[str]:
    place.cluster.pause(BROKEN)
    yield place.zookeeper


@contextmanager
def a_broker_is_dead(place: Place) -> Iterator[str]:
    place.cluster.kill(BROKEN)
    yield place.zookeeper


def controller_of(place: Place) -> int:
    with ZkClient(place.zookeeper) as zk:
        return int(json.loads(zk.get("/controller").data or "")["brokerid"])


@contextmanager
def the_controller_hangs(place: Place) -> Iterator[str]:
    place.cluster.pause(controller_of(place))
    yield place.zookeeper


@contextmanager
def zookeeper_is_down(place: Place) -> Iterator[str]:
    place.cluster.zookeeper.process.kill()
    yield place.zookeeper


@contextmanager
def zookeeper_is_slow(place: Place) -> Iterator[str]:
    host, _, port = place.zookeeper.partition(":")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        threading.Thread(target=delay, args=(server, (host, int(port)), 5.0), daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def delay(server: socket.socket, target: tuple[str, int], delay_s: float) -> None:
    """Passes on what clients of `server` send, and each reply after so many seconds."""

    def copy(source: socket.socket, sink: socket.socket, after_s: float) -> None:
        try:
            while data := source.recv(1 << 16):
                threading.Timer(after_s, send, (sink, data)).start()
        except OSError:
            pass
        threading.Timer(after_s + 0.1, sink.close).start()

    def send(sink: socket.socket, data: bytes) -> None:
        try:
            sink.sendall(data)
        except OSError:
            pass

    while True:
        try:
            client, _ = server.accept()
            behind = socket.create_connection(target)
        except OSError:
            return
        threading.Thread(target=copy, args=(client, behind, 0.0), daemon=True).start()
        threading.Thread(target=copy, args=(behind, client, delay_s), daemon=True).start()


@contextmanager
def nothing_more(place: Place) -> Iterator[str]:
    """The group without members is broken enough."""
    yield place.zookeeper


@contextmanager
def a_group_rebalances(place: Place) -> Iterator[str]:
    """A member that does not poll never joins again when another one comes."""
    with ZkClient(place.zookeeper) as zk:
        zk.delete_recursive(f"/consumers/{GROUP}")
    keys = {
        "bootstrap.servers": place.cluster.bootstrap,
        "group.id": GROUP,
        "max.poll.interval.ms": "300000",
    }
    ended = threading.Event()

    def poll(consumer: KafkaConsumer) -> None:
        while not ended.is_set():
            consumer.poll(0.2)

    with (
        KafkaConsumer(KafkaConsumerConfig(keys)) as busy,
        KafkaConsumer(KafkaConsumerConfig(keys)) as waiting,
    ):
        busy.subscribe([TOPIC])
        waiting.subscribe([TOPIC])
        until(lambda: busy.poll(0.2) or busy.assignment())
        poller = threading.Thread(target=poll, args=(waiting,))
        poller.start()
        try:
            time.sleep(1.0)
            yield place.zookeeper
        finally:
            ended.set()
            poller.join()


@contextmanager
def a_partition_has_no_leader(place: Place) -> Iterator[str]:
    """And the group has committed an offset of it."""
    with AdminClient(place.zookeeper) as admin, ZkClient(place.zookeeper) as zk:
        admin.create_topic("lone", assignment={0: [BROKEN]})
        admin.await_leaders("lone")
        GroupStore(zk).commit_offsets(GROUP, {TopicPartition("lone", 0): 0})
    place.cluster.kill(BROKEN)
    yield place.zookeeper


@contextmanager
def the_coordinator_is_dead(place: Place) -> Iterator[str]:
    """Of the group, whose partition of the offsets topic has one replica."""
    with AdminClient(place.zookeeper) as admin:
        [offsets] = admin.describe_topics([OFFSETS_TOPIC])
        number = group_partition(GROUP, len(offsets.partitions))
        leader = offsets.partitions[number].leader
        assert leader is not None
        place.cluster.kill(leader)
    yield place.zookeeper


@contextmanager
def a_disk_is_full(place: Place) -> Iterator[str]:
    """That of a broker, which halts."""
    broker = place.cluster.brokers[BROKEN]
    place.cluster.break_disk(broker, full=True)
    # It ends when another broker leads.
    produces = threading.Thread(target=place.produce, args=(TOPIC, 10 * PARTITIONS))
    produces.start()
    until(lambda: not broker.running)
    place.cluster.expire_session(broker)
    produces.join()
    yield place.zookeeper


def change_config(place: Place, keys: Mapping[str, str]) -> None:
    """Start the broken broker again, with these keys besides."""
    place.cluster.brokers[BROKEN].config.update(keys)
    place.cluster.restart(BROKEN)


def under_replicated(place: Place) -> list[object]:
    with AdminClient(place.zookeeper) as admin:
        return [
            p for t in admin.describe_topics() for p in t.partitions if len(p.isr) < len(p.replicas)
        ]


@contextmanager
def a_follower_is_behind(place: Place) -> Iterator[str]:
    """It waits for more bytes at its leaders than there are."""
    keys = ("replica.fetch.min.bytes", "replica.fetch.wait.max.ms", "replica.lag.time.max.ms")
    change_config(place, dict.fromkeys((*keys, "replica.socket.timeout.ms"), "100000"))
    until(lambda: not under_replicated(place))
    place.produce(TOPIC, 10 * PARTITIONS)
    until(lambda: under_replicated(place))
    yield place.zookeeper


@contextmanager
def the_chroot_is_forgotten(place: Place) -> Iterator[str]:
    with ZkClient(place.zookeeper) as zk:
        zk.ensure("/elsewhere")
    yield f"{place.zookeeper}/elsewhere"


@contextmanager
def the_port_is_refused(place: Place) -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def the_host_is_unknown(place: Place) -> Iterator[str]:
    yield "no-such-host.invalid:2181"


HEALTHY: Final = {"group explain": 1, "doctor": 1}
"""The exit codes beside a group without members."""
SEEN: Final = dict.fromkeys(VIEWS, 0) | HEALTHY
"""Of views that know everything that they were asked for."""
DID_NOT_RESPOND: Final = r"127.0.0.1:\d+ did not respond"
DEAD: Final = all_say(
    r"1 +not registered",
    doctor=r"broker 1: is not registered",
    report=r"broker 1.*is not registered",
    metrics=r"kafka_brokers 2\.0",
    topic_describe=r"Isr: [02],[02]\n",
    topic_offsets=None,
    **of_groups(None),
    console=r'"address": "not registered"',
)

DRILLS: Final[Mapping[str, Drill]] = {
    "a broker hangs": Drill(a_broker_hangs, all_say(DID_NOT_RESPOND)),
    "a broker hangs, 0.8.2": Drill(
        a_broker_hangs,
        all_say(DID_NOT_RESPOND, group_list=None),  # its groups are in ZooKeeper
        level="0.8.2",
    ),
    "a broker is dead": Drill(a_broker_is_dead, DEAD, SEEN),
    "the controller hangs": Drill(
        the_controller_hangs, all_say(DID_NOT_RESPOND, doctor="controller-unreachable")
    ),
    "ZooKeeper is down": Drill(
        zookeeper_is_down,
        all_say("connection refused", top="no reply from ZooKeeper", console="no reply from Zoo"),
    ),
    "ZooKeeper is slow": Drill(
        zookeeper_is_slow, all_say(r"no reply from ZooKeeper|is it not too slow\?"), fresh=True
    ),
    "a group has no members": Drill(
        nothing_more,
        all_say(
            r"STOP",
            doctor="group-no-members",
            metrics=r'kafka_consumergroup_status\{consumergroup="readers"\} 4',
            group_list=r"zookeeper +- +0",
            group_describe="No members: .* 60 messages are unread",
            group_explain="the group has no members; (at least )?60 messages are unread",
            offsets_lag=None,
            **of_brokers(None),
        ),
        SEEN,
    ),
    "a group rebalances": Drill(
        a_group_rebalances,
        all_say("PreparingRebalance", offsets_lag=None, **of_brokers(None)),
        SEEN,
    ),
    "a partition has no leader": Drill(
        a_partition_has_no_leader,
        all_say(
            r"1 +not registered",
            doctor="partition-offline|partition-led-by-dead",
            once=r"lone +1 +- +- +\d +1",
            report=r'"offline":1',
            metrics=r'kafka_topic_partition_leader\{partition="0",topic="lone"\} -1',
            topic_describe="Leader: -1|Unavailable: .lone,0.",
            topic_offsets=r"Unknown: \[lone,0\]",
            group_list=None,
            group_describe=r"Unknown: offsets of \[lone,0\]: it has no live leader",
            group_explain=r"\[lone,0\]: it has no live leader",
            offsets_lag=r"Unknown: \[lone,0\]",
            top="offline 1",
            console=r'"offline": 1',
        ),
        SEEN | {"topic offsets": 1, "group describe": 1, "offsets lag": 1},
    ),
    "the coordinator is dead": Drill(
        the_coordinator_is_dead,
        all_say(
            r"not registered",
            doctor="coordinator-none",
            metrics=r"kafka_brokers 2\.0",
            group_list=None,
            group_describe=r"ConsumerCoordinatorNotAvailable",
            group_explain=r"ConsumerCoordinatorNotAvailable",
            offsets_lag=r"ConsumerCoordinatorNotAvailable",
            topic_describe=rf"Leader: -1|Unavailable: \[{OFFSETS_TOPIC}",
            topic_offsets=rf"Unknown: \[{OFFSETS_TOPIC}",
        ),
        {"topic describe": 0, "broker list": 0},
        config={"offsets.topic.replication.factor": 1},
    ),
    "a disk is full": Drill(a_disk_is_full, DEAD, SEEN),
    "a follower is behind": Drill(
        a_follower_is_behind,
        all_say(
            r"under-replicated [1-9]",
            doctor="partition-under-replicated",
            once=r"\nt +6 +\d+ +\S+ +[1-6] +0",
            report=r'"under_replicated":[1-9]',
            metrics=r'under_replicated_partition\{partition="\d",topic="t"\} 1',
            topic_describe=r"Isr: [02],[02]\n",
            topic_offsets=None,
            broker_list=r"\n1 +127\S+ .*[1-9]\d*\n",
            **of_groups(None),
            console=r'"under_replicated": [1-9]',
        ),
        SEEN,
        config={"replica.lag.time.max.ms": 2000},
    ),
    "the chroot is forgotten": Drill(
        the_chroot_is_forgotten, all_say(r"but at 127.0.0.1:\d+"), fresh=True
    ),
    "the port is refused": Drill(the_port_is_refused, all_say("connection refused"), fresh=True),
    "the host is unknown": Drill(
        the_host_is_unknown, all_say("(?i)name or service|name resolution|not known"), fresh=True
    ),
}


@contextmanager
def prepared(drill: Drill) -> Iterator[Place]:
    config = {
        "zookeeper.session.timeout.ms": LONG_MS,
        "offsets.topic.replication.factor": 3,
        **drill.config,
    }
    with EmbeddedCluster(brokers=3, level=drill.level, config=config) as cluster:
        place = Place(cluster)
        with AdminClient(place.zookeeper) as admin:
            admin.create_topic(TOPIC, PARTITIONS, 3)
            admin.await_leaders(TOPIC)
        place.produce(TOPIC, MESSAGES)
        group = {
            "group.id": GROUP,
            "zookeeper.connect": place.zookeeper,
            "auto.offset.reset": "smallest",
            "offsets.storage": "kafka",
            "auto.commit.enable": "false",
        }
        with ConsumerConnector(ConsumerConfig(group)) as connector:
            [stream] = connector.create_message_streams({TOPIC: 1})[TOPIC]
            for _ in range(READ):
                next(stream)
            connector.commit_offsets()
        yield place


def held(drill: Drill) -> dict[str, Said]:
    """What each view said."""
    with prepared(drill) as place:
        if drill.fresh:
            with drill.breaks(place) as zookeeper, opened(zookeeper) as live:
                return ask_all(zookeeper, live, drill.says)
        with opened(place.zookeeper) as live:
            for view in live.values():
                assert GROUP in view.await_said(GROUP).text
            with drill.breaks(place) as zookeeper:
                return ask_all(zookeeper, live, drill.says)


@pytest.mark.parametrize("name", DRILLS)
def test_every_view_says_it(name: str) -> None:
    """Soon, not silently, and with exit code 1 if it does not know all that it was asked for."""
    drill = DRILLS[name]
    found = held(drill)
    slow = max(1.0, found.pop(CONTROL).at_s / CONTROL_S)
    for view, said in found.items():
        pattern = drill.says[view]
        if pattern is not None:
            assert re.search(pattern, said.text), (view, said.text)
        assert said.at_s < SOON_S * slow, (view, said.at_s)
        assert said.quiet_s < SILENT_S * slow, (view, said.quiet_s)
        if said.code is not None:
            healthy = SEEN[view] if pattern is None else drill.codes.get(view, 1)
            assert healthy == said.code, (view, said.text)


def test_an_offset_beyond_the_end_is_the_same_in_every_view() -> None:
    """Its lag is unknown; those of the other partitions count."""
    with prepared(DRILLS["a group has no members"]) as place, ZkClient(place.zookeeper) as zk:
        offsets = {TopicPartition(TOPIC, 0): 1000, TopicPartition(TOPIC, 1): 19}
        GroupStore(zk).commit_offsets("ahead", offsets)
        asked = partial(output, place.zookeeper)
        code, lag = asked("offsets", "lag", "ahead", "--json")
        assert (1, MESSAGES - 2 * 20 + 1) == (code, json.loads(lag)[0]["lag"])
        code, described = asked("group", "describe", "ahead", "--json")
        assert [None, 1] == [p["lag"] for p in json.loads(described)["partitions"]][:2]
        _, top = asked("top", "--once", "--json")
        [row] = [row for row in json.loads(top)["groups"] if row["group"] == "ahead"]
        assert (MESSAGES - 2 * 20 + 1, "BEYOND") == (row["lag"], row["verdict"])
        _, metrics = asked("metrics")
        assert 'kafka_consumergroup_lag_sum{consumergroup="ahead",topic="t"} 81.0' in metrics
        assert 'kafka_consumergroup_status{consumergroup="ahead"} 7.0' in metrics


def print_table(names: Sequence[str]) -> None:
    """The seconds until each view said it, and how long it was silent; `!` where it never did."""
    for name in names or DRILLS:
        found = held(DRILLS[name])
        say(f"{name}:")
        for view, said in found.items():
            pattern = DRILLS[name].says.get(view)
            says = "-" if pattern is None else "!" if not re.search(pattern, said.text) else ""
            say(f"  {view:15} {said.at_s:5.1f} {said.quiet_s:5.1f} {said.code} {says}")
            if says == "!":
                say(f"    {pattern!r} is not in: {said.text[-3000:]}")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    print_table(sys.argv[1:])
