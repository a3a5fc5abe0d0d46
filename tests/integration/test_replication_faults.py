"""Three brokers, three replicas, acks=-1, and something breaks. Nothing acknowledged may be lost.

Each test runs a workload with a checked history (tests/histories) over a fault, heals the cluster,
and then compares: every replica's log is the same, byte for byte, and sound (check_log).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from kafka08.admin import AdminClient
from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.client.log_offsets import log_ends
from kafka08.embedded.broker import EmbeddedBroker
from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.errors import KafkaError
from kafka08.log.check import check_log
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from kafka08.profile import CLASSIC, PROFILES
from kafka08.structs import TopicPartition
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from tests.histories.workload import Workload
from tests.in_sync import await_full_isr
from tests.waiting import until

DEADLINE_S = 60.0
PARTITIONS = 2
CONFIG = {
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "2000",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "controlled.shutdown.retry.backoff.ms": "100",
}
SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
topics = (f"faults-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, level="0.8.2", config=CONFIG, cuttable=True) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: EmbeddedCluster) -> EmbeddedCluster:
    running.heal()
    return running


@pytest.fixture
def topic(cluster: EmbeddedCluster) -> str:
    name = next(topics)
    cluster.create_topic(name, PARTITIONS, 3, SAFE)
    return name


def controller(cluster: EmbeddedCluster) -> EmbeddedBroker:
    with ZkClient(cluster.zookeeper.connect_string) as zk:
        node = ClusterStore(zk).controller()
    assert node is not None
    return cluster.brokers[node.broker_id]


def create_led_by(cluster: EmbeddedCluster, broker: EmbeddedBroker) -> str:
    """Create a topic whose first partition this broker leads."""
    others = [other.id for other in cluster.brokers if other is not broker]
    assignment = dict.fromkeys(range(PARTITIONS), (broker.id, *others))
    name = next(topics)
    with AdminClient(cluster.zookeeper.connect_string) as admin:
        admin.create_topic(name, config=SAFE, assignment=assignment)
    await_full_isr(cluster, name)
    return name


def segments(broker: EmbeddedBroker, topic: str, partition: int) -> dict[str, bytes]:
    directory = broker.partition_directory(topic, partition)
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.log"))}


def assert_replicas_equal(cluster: EmbeddedCluster, topic: str) -> None:
    """All replicas become identical, and each log is consistent."""
    for number in range(PARTITIONS):
        until(
            lambda number=number: (  # type: ignore[misc]
                segments(cluster.brokers[0], topic, number)
                == segments(cluster.brokers[1], topic, number)
                == segments(cluster.brokers[2], topic, number)
            ),
            f"the replicas of [{topic},{number}] to be equal",
        )
        for broker in cluster.brokers:
            assert [] == check_log(broker.partition_directory(topic, number))


def kill_all(cluster: EmbeddedCluster) -> None:
    for broker in cluster.brokers:
        broker.kill()


def stop_all(cluster: EmbeddedCluster) -> None:
    """Stop all brokers at once: each hands its partitions to others that are stopping too."""
    for broker in cluster.brokers:
        broker.begin_stop()
    for broker in cluster.brokers:
        broker.stop()


def torn_tail(cluster: EmbeddedCluster, topic: str) -> None:
    """A leader is killed, and the end of its log is corrupt when it restarts."""
    leader = cluster.leader_of(topic)
    cluster.kill(leader)
    cluster.corrupt_tail(leader, topic, size=7)


def restart_zookeeper(cluster: EmbeddedCluster, topic: str) -> None:
    """Brokers continue without ZooKeeper; sessions survive or are created again."""
    cluster.zookeeper.stop()
    cluster.zookeeper.start()


FAULTS: dict[str, Callable[[EmbeddedCluster, str], object]] = {
    "leader killed": lambda cluster, topic: cluster.kill(cluster.leader_of(topic)),
    "follower killed": lambda cluster, topic: cluster.kill(cluster.followers_of(topic)[0]),
    "follower paused": lambda cluster, topic: cluster.pause(cluster.followers_of(topic)[0]),
    "controller killed": lambda cluster, topic: cluster.kill(controller(cluster)),
    "leader stopped cleanly": lambda cluster, topic: cluster.leader_of(topic).stop(),
    "leader's session expires": lambda cluster, topic: cluster.expire_session(
        cluster.leader_of(topic)
    ),
    "torn tail": torn_tail,
    "ZooKeeper restarts": restart_zookeeper,
}
"""Faults with which two brokers go on: the workload must make progress before it is healed."""


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_lost_when_one_broker_fails(
    cluster: EmbeddedCluster, topic: str, fault: str
) -> None:
    """Two in-sync replicas remain, so producing continues, and the third catches up afterwards."""
    with Workload(cluster.bootstrap, topic, partitions=PARTITIONS) as work:
        work.await_progress()
        FAULTS[fault](cluster, topic)
        work.await_progress()
        cluster.heal()
        await_full_isr(cluster, topic)
        work.await_progress()
    assert [] == work.problems()
    assert_replicas_equal(cluster, topic)


LONG_FAULTS: dict[str, Callable[[EmbeddedCluster, EmbeddedBroker], object]] = {
    "paused": EmbeddedCluster.pause,
    "cut off": EmbeddedCluster.cut,
}


@pytest.mark.parametrize("fault", LONG_FAULTS)
def test_an_unreachable_leader_is_replaced(cluster: EmbeddedCluster, fault: str) -> None:
    """It lives, but ZooKeeper cannot reach it: another broker leads once its session ends, and it
    follows when it is back. The paused broker is the controller too, so another is elected first,
    and pending changes of the old one have no effect."""
    old = controller(cluster)
    leader = old if fault == "paused" else next(b for b in cluster.brokers if b is not old)
    topic = create_led_by(cluster, leader)
    with Workload(cluster.bootstrap, topic, partitions=PARTITIONS) as work:
        work.await_progress()
        LONG_FAULTS[fault](cluster, leader)
        until(lambda: cluster.leader_of(topic) is not leader, "another leader")
        assert controller(cluster) is not leader
        work.await_progress()
        cluster.heal()
        await_full_isr(cluster, topic)
        work.await_progress()
    assert [] == work.problems()
    assert_replicas_equal(cluster, topic)


def test_a_broker_that_stops_cleanly_stays_out_of_every_isr(cluster: EmbeddedCluster) -> None:
    """During a controlled shutdown it fetches none of the partitions that it led or followed: no
    leader takes it back into an ISR, which would delay acks=-1."""
    topic = next(topics)
    cluster.create_topic(topic, 30, 3)
    await_full_isr(cluster, topic)
    stopping, *others = cluster.brokers
    logs = [other.directory / "server.log" for other in others]
    before = [len(log.read_text()) for log in logs]
    stopping.stop()
    await_full_isr(cluster, topic, 2)
    texts = [log.read_text()[length:] for log, length in zip(logs, before, strict=True)]
    # On a busy machine the others may put each other out, and back.
    grown = re.findall(r"Expanding ISR for .* to ([\d,]+)", "\n".join(texts))
    assert [] == [isr for isr in grown if str(stopping.id) in isr.split(",")]


def test_nothing_is_lost_when_all_brokers_are_killed_at_once(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """Their disks are kept, and the first broker of the ISR that returns leads."""
    with Workload(cluster.bootstrap, topic, partitions=PARTITIONS) as work:
        work.await_progress()
        kill_all(cluster)
        cluster.heal()
        await_full_isr(cluster, topic)
        work.await_progress()
    assert [] == work.problems()
    assert_replicas_equal(cluster, topic)


def test_nothing_is_lost_when_all_brokers_stop_at_once(cluster: EmbeddedCluster) -> None:
    """Each hands its leadership to brokers that stop as well and have an older high watermark: they
    keep the messages above it instead of truncating them."""
    topic = next(topics)
    partitions = range(12)
    cluster.create_topic(topic, len(partitions), 3)
    await_full_isr(cluster, topic)
    config = KafkaProducerConfig({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    with KafkaProducer(config) as producer:
        sent = [producer.send(ProducerRecord(topic, b"v", partition=p)) for p in partitions]
        assert [0] * len(sent) == [future.result(DEADLINE_S).offset for future in sent]
    stop_all(cluster)
    cluster.heal()
    await_full_isr(cluster, topic)
    with closing(ClusterClient(parse_bootstrap(cluster.bootstrap))) as client:
        ends = log_ends(client, [TopicPartition(topic, p) for p in partitions])
    assert {1} == set(ends.values())


@pytest.mark.parametrize("profile", PROFILES)
def test_the_classic_loss(profile: str) -> None:
    """A follower is disconnected, the lone leader goes on, the leader dies, the follower returns.
    With 0.8's defaults the follower leads, and messages that the lone leader acknowledged are lost.
    With the safe profile the lone leader acknowledges no message, the partition has no leader until
    it is back, and no message is lost."""
    config = {**CONFIG, "kafka08.profile": profile}
    with EmbeddedCluster(brokers=2, level="0.8.2", config=config, cuttable=True) as cluster:
        cluster.create_topic("loss", 1, 2)
        with Workload(cluster.bootstrap, "loss") as work:
            work.await_progress()
            leader, (follower,) = cluster.leader_of("loss"), cluster.followers_of("loss")
            cluster.cut(follower)
            until(lambda: isr_of(cluster, "loss") == (leader.id,), "the leader to be alone")
            if profile == CLASSIC:
                work.await_progress()
            else:
                work.await_failures(3)
            cluster.kill(leader)
            cluster.restore(follower)
            cluster.await_ready([follower])
            if profile == CLASSIC:
                until(lambda: led_by(cluster, follower), "the follower to lead")
            leader.start()
            cluster.await_ready()
            await_full_isr(cluster, "loss", 2)
            work.await_sends()
        lost = [p for p in work.problems() if p.startswith("lost")]
    assert bool(lost) == (profile == CLASSIC)


def isr_of(cluster: EmbeddedCluster, topic: str) -> tuple[int, ...]:
    with AdminClient(cluster.zookeeper.connect_string) as admin:
        [described] = admin.describe_topics([topic])
    return described.partitions[0].isr


def led_by(cluster: EmbeddedCluster, broker: EmbeddedBroker) -> bool:
    try:
        return cluster.leader_of("loss") is broker
    except KafkaError:
        return False
