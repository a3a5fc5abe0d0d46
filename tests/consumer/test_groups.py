"""Groups on a real ZooKeeper: which member owns which partition while members, topics and sessions
come and go."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kafka08.consumer import (
    Blacklist,
    ConsumerConfig,
    ConsumerConnector,
    ConsumerState,
    Whitelist,
)
from kafka08.consumer.subscription import thread_ids
from kafka08.consumer.zookeeper.assignors import range_assign, round_robin_assign
from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.errors import (
    Closed,
    ConfigError,
    ConsumerRebalanceFailed,
    ConsumerTimeout,
    KafkaError,
    MessageStreamsExist,
    NodeExists,
    SessionLost,
)
from kafka08.structs import Broker, TopicPartition
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.group_store import GroupStore
from kafka08.zk.operations import Create, Delete
from kafka08.zk.store import ClusterStore
from tests.consumer.few_threads import FewThreads
from tests.consumer.groups import MakeMember, PaperCluster, expire_session, owned, settled
from tests.waiting import until


def test_a_member_alone_owns_everything(cluster: PaperCluster, member: MakeMember) -> None:
    """create_message_streams() returns when the member owns all partitions. Its znodes are those of
    0.8.2.2 with one key more, which a migration of offsets reads and 0.8.2.2 ignores."""
    cluster.create_topic("tt", 3)
    a = member("a")
    streams = a.create_message_streams({"tt": 2})
    assert (len(streams["tt"]), a.state) == (2, ConsumerState.SETTLED)
    assert cluster.owners("tt") == {0: "g_a-0", 1: "g_a-0", 2: "g_a-1"}
    text = cluster.zk.get(paths.consumer_id("g", "g_a")).data or ""
    expected = (
        r'\{"version":1,"subscription":\{"tt":2\},"pattern":"static","timestamp":"\d+",'
        r'"kafka08":\{"offsets.storage":"zookeeper","dual.commit.enabled":"false",'
        r'"auto.commit.enable":"true","auto.commit.interval.ms":"60000"\}\}'
    )
    assert re.fullmatch(expected, text)
    for path in (paths.consumer_ids("g"), paths.owners("g", "tt")):
        assert cluster.zk.get(path).data is None


def test_generated_ids_look_like_the_jvms(cluster: PaperCluster, member: MakeMember) -> None:
    """A generated consumer id is `<group>_<host>-<ms>-<8 hex digits>`."""
    assert re.fullmatch(r"g_.+-\d{13}-[0-9a-f]{8}", member(None).consumer_id)


def test_members_share_by_range(cluster: PaperCluster, member: MakeMember) -> None:
    """With up to three members each partition has one owner, the one that the assignor chose. The
    first member's share shrinks with each new member and grows when they leave."""
    cluster.create_topic("tt", 7)
    members = []
    for name in "abc":
        members.append(member(name))
        members[-1].create_message_streams({"tt": 1})
        threads = {"tt": [f"g_{m}-0" for m in "abc"[: len(members)]]}
        expected = {tp.partition: t for tp, t in range_assign({"tt": range(7)}, threads).items()}
        cluster.wait_for_owners("tt", expected)
    members[1].shutdown()
    expected = dict.fromkeys(range(4), "g_a-0") | dict.fromkeys((4, 5, 6), "g_c-0")
    cluster.wait_for_owners("tt", expected)


def test_members_share_by_round_robin(cluster: PaperCluster, member: MakeMember) -> None:
    """Two topics are spread over two members with two streams each, in the order of Java's
    hashes."""
    for topic in ("tt", "uu"):
        cluster.create_topic(topic, 5)
    members = [member(n, partition_assignment_strategy="roundrobin") for n in "ab"]
    for connector in members:
        connector.create_message_streams_by_filter(Whitelist("tt|uu"), 2)
    threads = [t for name in ("g_a", "g_b") for t in thread_ids(name, 2)]
    assignment = round_robin_assign(
        {"tt": range(5), "uu": range(5)}, {"tt": threads, "uu": threads}
    )
    for topic in ("tt", "uu"):
        expected = {tp.partition: t for tp, t in assignment.items() if tp.topic == topic}
        cluster.wait_for_owners(topic, expected)


def test_round_robin_with_unequal_subscriptions_stalls(
    cluster: PaperCluster, member: MakeMember
) -> None:
    """The stalled member says why, and continues by itself once subscriptions are equal again."""
    cluster.create_topic("tt", 1)
    cluster.create_topic("uu", 1)
    keys = {"partition_assignment_strategy": "roundrobin", "rebalance_max_retries": 1}
    a, b = member("a", **keys), member("b", **keys)
    a.create_message_streams({"tt": 1})
    b.create_message_streams({"tt": 1, "uu": 1})
    until(lambda: b.state is ConsumerState.STALLED, "a stall")
    assert "uu" in str(b.stall_cause)
    a.shutdown()
    until(lambda: settled(b), "b alone")


def test_partitions_that_stay_keep_their_owner(cluster: PaperCluster, member: MakeMember) -> None:
    """When a second member joins, partitions that stay with the first keep their owner znodes.
    (0.8.2.2 releases all first.)"""
    cluster.create_topic("tt", 4)
    a = member("a")
    a.create_message_streams({"tt": 1})
    before = cluster.zk.stat(paths.owner("g", "tt", 0))
    b = member("b")
    b.create_message_streams({"tt": 1})
    until(lambda: len(owned(a)) == 2 and len(owned(b)) == 2, "two each")
    assert cluster.zk.stat(paths.owner("g", "tt", 0)) == before


def test_a_foreign_owner_blocks_until_it_goes(
    cluster: PaperCluster, member: MakeMember, zk_connect: str, caplog: pytest.LogCaptureFixture
) -> None:
    """While another client owns one of three partitions, the member claims none. The stall is
    raised once with its cause, and deleting the owner's znode ends it at once."""
    caplog.set_level(logging.INFO, logger="kafka08.consumer")
    cluster.create_topic("tt", 3)
    with ZkClient(zk_connect) as other:
        other.create(paths.owner("g", "tt", 1), "stranger-0", ephemeral=True)
        a = member("a", rebalance_backoff_ms=60_000, zookeeper_session_timeout_ms=1000)
        creator = threading.Thread(target=a.create_message_streams, args=({"tt": 1},), daemon=True)
        creator.start()
        until(lambda: "try #0 failed" in caplog.text, "a failed attempt")
        assert cluster.owners("tt") == {1: "stranger-0"}
        assert owned(a) == []
    until(lambda: settled(a), "a to settle without waiting for its backoff", 30)
    assert cluster.owners("tt") == dict.fromkeys(range(3), "g_a-0")
    creator.join(60)


def test_a_stall_is_raised_and_ends(
    cluster: PaperCluster, member: MakeMember, zk_connect: str
) -> None:
    """After rebalance.max.retries × backoff the stream raises the reason. Iteration continues, and
    the group settles later."""
    cluster.create_topic("tt", 1)
    cluster.zk.create(paths.owner("g", "tt", 0), "somebody-0")
    a = member("a", rebalance_backoff_ms=50, rebalance_max_retries=2)
    [stream] = a.create_message_streams({"tt": 1})["tt"]
    assert a.state is ConsumerState.STALLED
    with pytest.raises(ConsumerRebalanceFailed, match="owners/tt/0 belongs to somebody-0"):
        next(stream)
    with pytest.raises(ConsumerTimeout):
        next(stream)
    cluster.zk.delete(paths.owner("g", "tt", 0))
    until(lambda: settled(a), "the end of the stall")
    assert a.stall_cause is None


def test_a_lost_session_is_replaced(cluster: PaperCluster, member: MakeMember) -> None:
    """The member registers under a new session and owns the same partitions. Between the sessions
    it returns no message and commits nothing."""
    cluster.create_topic("tt", 2)
    a = member("a")
    a.create_message_streams({"tt": 1})
    old = cluster.zk.stat(paths.consumer_id("g", "g_a"))
    assert old is not None
    expire_session(a._member._zk)
    until(lambda: a._member._zk.session_id != old.ephemeral_owner, "a new session")

    def owned_anew() -> bool:
        owner = cluster.zk.stat(paths.owner("g", "tt", 1))
        return owner is not None and owner.ephemeral_owner == a._member._zk.session_id

    until(lambda: settled(a) and owned_anew(), "everything owned under the new session")
    assert cluster.owners("tt") == {0: "g_a-0", 1: "g_a-0"}


def test_partitions_of_a_lost_session_go_to_others(
    cluster: PaperCluster, member: MakeMember
) -> None:
    """After the session of one of two members expires, each owns half of the partitions again."""
    cluster.create_topic("tt", 4)
    a, b = member("a"), member("b")
    for connector in (a, b):
        connector.create_message_streams({"tt": 1})
    until(lambda: len(owned(a)) == len(owned(b)) == 2, "two each")
    for _ in range(3):
        expire_session(a._member._zk)
    expected = {0: "g_a-0", 1: "g_a-0", 2: "g_b-0", 3: "g_b-0"}
    until(lambda: settled(a, b) and cluster.owners("tt") == expected, f"owners {expected}")


def test_a_removed_registration_is_made_again(cluster: PaperCluster, member: MakeMember) -> None:
    """If the id znode is deleted by hand, commits are refused until the member has registered
    again."""
    cluster.create_topic("tt", 1)
    a = member("a")
    a.create_message_streams({"tt": 1})
    cluster.zk.delete(paths.consumer_id("g", "g_a"))
    until(lambda: cluster.zk.exists(paths.consumer_id("g", "g_a")), "a new registration")
    until(lambda: settled(a) and len(owned(a)) == 1, "its partition")


def test_partitions_added_and_topics_created(cluster: PaperCluster, member: MakeMember) -> None:
    """A named topic may be created later, and may get more partitions."""
    a = member("a")
    a.create_message_streams({"later": 1})
    assert settled(a)
    cluster.create_topic("later", 2)
    until(lambda: len(owned(a)) == 2, "the topic that came")
    cluster.set_partitions("later", 5)
    until(lambda: len(owned(a)) == 5, "the partitions that were added")
    cluster.delete_topic("later")
    until(lambda: not owned(a), "the topic that went")
    until(lambda: cluster.owners("later") == {}, "the claims on it, which are given up afterwards")


@pytest.mark.parametrize("is_seen_gone", [True, False])
def test_a_topic_made_again_is_read_from_its_start(
    cluster: PaperCluster, member: MakeMember, is_seen_gone: bool
) -> None:
    """What is committed for it is of the former topic: messages below it would be skipped. Another
    topic, and one that gets more partitions, go on."""
    for topic in ("again", "other"):
        cluster.create_topic(topic, 2)
    store = GroupStore(cluster.zk)
    a = member("a", auto_commit_interval_ms=20)
    a.create_message_streams({"again": 1, "other": 1})
    until(lambda: len(owned(a)) == 4, "its partitions")
    committed = {TopicPartition(topic, n): 500 for topic in ("again", "other") for n in range(2)}
    assert {} == store.commit_offsets("g", committed)
    path = paths.topic("again")
    if is_seen_gone:
        cluster.delete_topic("again")
        until(lambda: len(owned(a)) == 2, "the topic that went")
        cluster.create_topic("again", 2)
    else:
        text = cluster.zk.get(path).data or ""
        cluster.zk.multi([Delete(path), Create(path, text)])
    cluster.set_partitions("other", 3)
    again = {tp: 0 for tp in committed if tp.topic == "again"}
    until(lambda: store.offsets("g", committed) == {**committed, **again}, "offset 0")
    until(lambda: len(owned(a)) == 5, "all partitions")


def test_patterns_pick_topics_up(cluster: PaperCluster, member: MakeMember) -> None:
    """A whitelist and a blacklist gain topics that are created and lose those that are deleted."""
    cluster.create_topic("logs.a", 1)
    cluster.create_topic("other", 1)
    a, b = member("a"), member("b")
    a.create_message_streams_by_filter(Whitelist(r"logs\..*"))
    b.create_message_streams_by_filter(Blacklist(r"logs\..*"))
    assert {tp.topic for tp in owned(a)} == {"logs.a"}
    assert {tp.topic for tp in owned(b)} == {"other"}
    cluster.create_topic("logs.b", 1)
    cluster.create_topic("__consumer_offsets", 1)
    until(lambda: {tp.topic for tp in owned(a)} == {"logs.a", "logs.b"}, "logs.b")
    cluster.delete_topic("logs.a")
    until(lambda: {tp.topic for tp in owned(a)} == {"logs.b"}, "logs.a to go")
    assert {tp.topic for tp in owned(b)} == {"other"}
    text = cluster.zk.get(paths.consumer_id("g", "g_a")).data or ""
    assert json.loads(text)["subscription"] == {r"logs\..*": 1}
    assert json.loads(text)["pattern"] == "white_list"


def test_without_brokers_it_waits_for_one(
    zk: ZkClient, zk_connect: str, member: MakeMember, cluster: PaperCluster
) -> None:
    """Without a registered broker the member settles with no partitions, until a broker registers
    (as 0.8.2.2)."""
    zk.delete(paths.broker(1))
    cluster.create_topic("tt", 1)
    a = member("a")
    a.create_message_streams({"tt": 1})
    assert settled(a)
    assert not owned(a)
    ClusterStore(zk).register_broker(Broker(1, "127.0.0.1", 1), timestamp_ms=1)
    until(lambda: len(owned(a)) == 1, "the broker to be noticed")


def test_a_restarted_member_waits_for_its_own_old_node(
    cluster: PaperCluster, member: MakeMember, zk_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a configured consumer.id the member waits until its earlier session has ended."""
    cluster.create_topic("tt", 1)
    refusals = threading.Semaphore(0)
    create_ephemeral = ZkClient.create_ephemeral

    def create_noted(zk: ZkClient, path: str, data: str) -> None:
        try:
            create_ephemeral(zk, path, data)
        except NodeExists:
            refusals.release()
            raise

    with ZkClient(zk_connect) as old:
        old.create(paths.consumer_id("g", "g_a"), "{}", ephemeral=True)
        old.create(paths.owner("g", "tt", 0), "g_a-0", ephemeral=True)
        monkeypatch.setattr(ZkClient, "create_ephemeral", create_noted)
        a = member("a", zookeeper_session_timeout_ms=1000)
        creator = threading.Thread(target=a.create_message_streams, args=({"tt": 1},), daemon=True)
        creator.start()
        for _ in range(2):
            assert refusals.acquire(timeout=60), "it tries again, and takes nothing by force"
        assert not owned(a)
        assert cluster.zk.get(paths.consumer_id("g", "g_a")).data == "{}"
    until(lambda: settled(a) and len(owned(a)) == 1, "its turn")
    creator.join(60)


def test_guarantee_3_a_consumer_id_that_is_taken(cluster: PaperCluster, member: MakeMember) -> None:
    """The second of two processes with one consumer.id stalls with a reason and waits until the
    first leaves. Its shutdown does not."""
    cluster.create_topic("tt", 1)
    a = member("same")
    a.create_message_streams({"tt": 1})
    short = {"zookeeper_session_timeout_ms": 1000, "rebalance_max_retries": 1}
    b, c = member("same", **short), member("same", **short)
    [stream] = b.create_message_streams({"tt": 1})["tt"]
    until(lambda: b.stall_cause is not None, "a stall")
    with pytest.raises(ConsumerRebalanceFailed, match=r"two processes use one consumer\.id"):
        next(stream)
    waiting = threading.Thread(target=c.create_message_streams, args=({"tt": 1},), daemon=True)
    waiting.start()
    until(lambda: c.state is ConsumerState.SUSPENDED, "an attempt")
    c.shutdown()  # while `a` stays for as long as the test wants
    waiting.join(60)
    assert not waiting.is_alive()
    a.shutdown()
    until(lambda: settled(b) and len(owned(b)) == 1, "its turn")


def test_twenty_members_settle_and_half_of_them_go(
    cluster: PaperCluster, member: MakeMember, zk_connect: str
) -> None:
    """Twenty members start within moments and half of them leave. Each time every partition has
    exactly one owner."""
    cluster.create_topic("tt", 40)
    members = [member(f"{n:02}") for n in range(20)]
    starts = [
        threading.Thread(target=m.create_message_streams, args=({"tt": 1},), daemon=True)
        for m in members
    ]
    for start in starts:
        start.start()
    for start in starts:
        start.join(60)
    until(lambda: all(len(owned(m)) == 2 for m in members), "two each", 60)
    assert len(cluster.owners("tt")) == 40
    stops = [threading.Thread(target=m.shutdown, daemon=True) for m in members[::2]]
    for stop in stops:
        stop.start()
    for stop in stops:
        stop.join(60)
    until(lambda: all(len(owned(m)) == 4 for m in members[1::2]), "four each", 60)
    counts = [list(cluster.owners("tt").values()).count(f"g_{m:02}-0") for m in range(1, 20, 2)]
    assert counts == [4] * 10


def test_streams_are_made_once(cluster: PaperCluster, member: MakeMember) -> None:
    """A second call of either method that creates streams is an error."""
    a = member("a")
    a.create_message_streams({"tt": 1})
    with pytest.raises(MessageStreamsExist):
        a.create_message_streams({"uu": 1})
    with pytest.raises(MessageStreamsExist):
        a.create_message_streams_by_filter(Whitelist("uu"))


@pytest.mark.parametrize("topic_streams", [{"tt": 0}, {"a/b": 1}, {"": 1}, {"..": 1}])
def test_impossible_subscriptions_are_refused(
    cluster: PaperCluster, member: MakeMember, topic_streams: dict[str, int]
) -> None:
    """Fewer than one stream, or an illegal topic name, is refused before the member registers."""
    with pytest.raises(ConfigError):
        member("a").create_message_streams(topic_streams)
    assert cluster.zk.children_or_empty(paths.consumer_ids("g")) == []


def test_shutdown_leaves_nothing_of_the_member(cluster: PaperCluster, member: MakeMember) -> None:
    """When shutdown returns, the member's id and owner znodes are deleted. Streams end, and later
    calls fail with that reason."""
    cluster.create_topic("tt", 2)
    a = member("a")
    [stream] = a.create_message_streams({"tt": 1})["tt"]
    a.shutdown()
    assert cluster.owners("tt") == {}
    assert cluster.zk.children(paths.consumer_ids("g")) == []
    assert list(stream) == []
    assert a.state is ConsumerState.CLOSED
    with pytest.raises(Closed):
        a.commit_offsets()
    a.shutdown()
    a.delete_group()
    assert not cluster.zk.exists(paths.group("g"))


def test_a_shutdown_that_is_interrupted_leaves_the_group(
    cluster: PaperCluster, member: MakeMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C during the last commit ends the shutdown, but the member's znodes are deleted: in a
    program that continues they kept its partitions from the group, and another `shutdown` did
    nothing."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    cluster.create_topic("tt", 2)
    a = member("a")
    a.create_message_streams({"tt": 1})
    monkeypatch.setattr(a._member._ownership, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        a.shutdown()
    assert cluster.owners("tt") == {}
    assert a.state is ConsumerState.CLOSED


def test_a_group_with_members_is_not_deleted(cluster: PaperCluster, member: MakeMember) -> None:
    """delete_group refuses a group with members."""
    a, b = member("a"), member("b")
    b.create_message_streams({"tt": 1})
    a.shutdown()
    with pytest.raises(KafkaError, match="g_b"):
        a.delete_group()


@pytest.mark.parametrize("scarce", ["g_a_watcher_executor", "g_a-autocommit", "g_a-unread-streams"])
def test_a_member_that_finds_no_thread_leaves_the_group(cluster: PaperCluster, scarce: str) -> None:
    """Its caller has no streams, so it would own partitions that nobody reads."""
    cluster.create_topic("tt", 2)
    config = ConsumerConfig(group_id="g", consumer_id="a", zookeeper_connect=cluster.connect)
    runtime = FewThreads(scarce)
    with ConsumerConnector(config, runtime=runtime) as connector:
        with pytest.raises(RuntimeError, match="can't start new thread"):
            connector.create_message_streams({"tt": 2})
        assert {} == cluster.owners("tt")
        assert [] == cluster.zk.children_or_empty(paths.consumer_ids("g"))
        with pytest.raises(Closed):
            connector.create_message_streams({"tt": 2})


def test_shutdown_is_bounded_when_zookeeper_is_gone() -> None:
    """Without ZooKeeper a shutdown ends in time, and no message is returned or committed."""
    with EmbeddedZooKeeper() as server:
        with ZkClient(server.connect_string) as zk:
            cluster = PaperCluster(zk, server.connect_string)
            cluster.create_topic("tt", 1)
            a = cluster.member("a", zookeeper_session_timeout_ms=2000)
            [stream] = a.create_message_streams({"tt": 1})["tt"]
        server.stop()
        until(lambda: a.state is ConsumerState.SUSPENDED, "the loss to be noticed")
        with pytest.raises(SessionLost):
            a.commit_offsets()
        with pytest.raises(ConsumerTimeout):
            next(stream)
        started = time.monotonic()
        a.shutdown()
        assert time.monotonic() - started < 20


def test_a_deleted_topic_is_forgotten(cluster: PaperCluster, member: MakeMember) -> None:
    """Of topics that come and go a member keeps only when each was made: a program that reads them
    for months would grow."""
    a = member("a")
    a.create_message_streams_by_filter(Whitelist("t.*"))
    store, registry = a._member._storage._zookeeper, a._member._rebalancer._registry  # type: ignore[union-attr]
    for topic in ("t1", "t2"):
        cluster.create_topic(topic, 2)
        a_topic = {topic}
        until(lambda: settled(a) and {tp.topic for tp in owned(a)} == a_topic)  # noqa: B023
        assert {tp.topic for tp in store._checkpointed} == registry._parents == {topic}
        cluster.delete_topic(topic)
        until(lambda: settled(a) and not owned(a))
        until(lambda: not (store._checkpointed or store._existing or registry._parents))


@pytest.mark.parametrize("read", [iter, lambda stream: stream.batches()], ids=["loop", "batches"])
def test_a_dropped_connector_leaves_the_group_after_a_warning(
    cluster: PaperCluster, read: Callable[[Any], object]
) -> None:
    """As a cell of a notebook that runs again: else it would own the partitions for good. A loop
    over one of its streams is enough to keep it."""
    cluster.create_topic("tt", 1)
    connector = cluster.member("a")
    loop = read(connector.create_message_streams({"tt": 1})["tt"][0])
    del connector
    assert cluster.owners("tt") == {0: "g_a-0"}
    with pytest.warns(ResourceWarning, match="unclosed <ConsumerConnector g_a: settled, 1 part"):
        del loop
    until(lambda: cluster.zk.children_or_empty(paths.consumer_ids("g")) == [], "its end")


def test_a_member_without_partitions_names_the_one_of_its_own_process(
    cluster: PaperCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """A notebook that still holds the connector of an earlier run of its cell would wait without a
    word. A member that is shut down is not named."""
    cluster.create_topic("tt", 1)
    first, second = cluster.member("a"), cluster.member("b")
    first.create_message_streams({"tt": 1})
    until(lambda: settled(first) and owned(first))
    second.create_message_streams({"tt": 1})
    says = "[g_b] owns no partition: g_a of this same process is in the group"
    until(lambda: says in caplog.text, "the warning")
    first.shutdown()
    caplog.clear()
    third = cluster.member("c")
    third.create_message_streams({"tt": 1})
    until(lambda: settled(third))
    assert "g_a of this" not in caplog.text
    second.shutdown()
    third.shutdown()
