"""AdminClient against a real ZooKeeper: what it writes, refuses and shows."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kafka08.admin import AdminClient, MoveStatus, describe_lines
from kafka08.errors import AdminError, ConfigError, ZooKeeperError, ZooKeeperUnreachable
from kafka08.levels import Level
from kafka08.runtime.threads import ThreadRuntime
from kafka08.structs import OFFSETS_TOPIC, Broker, Endpoint, LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore


@pytest.fixture
def store(zk: ZkClient) -> ClusterStore:
    """A cluster of two registered brokers."""
    store = ClusterStore(zk)
    store.create_common_paths()
    for broker_id in (1, 2):
        store.register_broker(Broker(broker_id, "127.0.0.1", broker_id), timestamp_ms=1)
    return store


@pytest.fixture
def admin(store: ClusterStore) -> AdminClient:
    return AdminClient(zk=store.zk, runtime=ThreadRuntime(rng=random.Random(1)))


def admin_at(zk: ZkClient, version: int) -> AdminClient:
    """Of a cluster with one broker; `version` is that of its registration."""
    store = ClusterStore(zk)
    store.create_common_paths()
    level = Level.V0_8_2 if version == 1 else Level.V0_10_2
    advertised = nodes.Advertised(level, version, (Endpoint("PLAINTEXT", "h", 1),))
    store.register_broker(Broker(1, "h", 1), timestamp_ms=1, advertised=advertised)
    return AdminClient(zk=zk)


def test_a_silent_server_takes_the_time_that_the_error_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And not that of a session on top, for which the connection's thread waits."""
    monkeypatch.setattr("kafka08.admin.client.ZOOKEEPER_TIMEOUT_MS", 300)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        with pytest.raises(ZooKeeperUnreachable, match="within 300 ms"):
            AdminClient(f"127.0.0.1:{silent.getsockname()[1]}")
        assert time.monotonic() - begun < 5


def test_it_prints_its_cluster(admin: AdminClient, zk: ZkClient) -> None:
    """Its repr has the connect string, chroot included."""
    assert repr(admin) == f"<AdminClient {zk.connect}>"


def test_a_topic_is_its_configuration_and_its_assignment(admin: AdminClient, zk: ZkClient) -> None:
    """Both znodes have 0.8.2.2's text, an empty configuration too."""
    given = admin.create_topic("tt", 3, config={"segment.bytes": "5000"})
    assert sorted(given) == [0, 1, 2]
    text = ",".join(f'"{number}":[{replicas[0]}]' for number, replicas in given.items())
    assert zk.get(paths.topic("tt")).data == f'{{"version":1,"partitions":{{{text}}}}}'
    config = zk.get(paths.topic_config("tt")).data
    assert config == '{"version":1,"config":{"segment.bytes":"5000"}}'
    admin.create_topic("plain")
    assert zk.get(paths.topic_config("plain")).data == '{"version":1,"config":{}}'
    assert admin.list_topics() == ["plain", "tt"]


def test_overrides_are_stored_without_blanks(admin: AdminClient, zk: ZkClient) -> None:
    """A broker of 0.8.2.2 on the JVM cannot parse a number with blanks, and has no log then."""
    admin.create_topic("tt", config={"retention.ms": " 1000 "})
    assert {"retention.ms": "1000"} == ClusterStore(zk).topic_config("tt")
    admin.alter_topic("tt", config={"unclean.leader.election.enable": " false"})
    stored = {"retention.ms": "1000", "unclean.leader.election.enable": "false"}
    assert stored == ClusterStore(zk).topic_config("tt")


def test_a_manual_assignment_is_taken_as_it_is(admin: AdminClient, zk: ZkClient) -> None:
    """Its brokers need not be there."""
    admin.create_topic("tt", assignment={0: [9], 1: [2]})
    assert zk.get(paths.topic("tt")).data == '{"version":1,"partitions":{"0":[9],"1":[2]}}'


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("", "can't be empty"),
        (".", "cannot be"),
        ("..", "cannot be"),
        ("a" * 256, "can't be longer than 255"),
        ("a/b", "contains a character other than"),
        ("ä", "contains a character other than"),
        ("a\n", "contains a character other than"),
    ],
)
def test_illegal_names_are_refused(admin: AdminClient, name: str, complaint: str) -> None:
    """A legal name has 1 to 255 of [a-zA-Z0-9._-], and is not "." or ".."."""
    with pytest.raises(AdminError, match=complaint):
        admin.create_topic(name)


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"segment.byte": "1"}, 'Unknown configuration "segment.byte"'),
        ({"segment.bytes": "many"}, "segment.bytes: 'many' is not a number"),
        ({"min.insync.replicas": "0"}, "min.insync.replicas: '0' is outside the range 1 to"),
        ({"cleanup.policy": "keep"}, "cleanup.policy: 'keep' is not one of delete, compact"),
    ],
)
def test_bad_overrides_are_refused(
    admin: AdminClient, config: dict[str, str], complaint: str
) -> None:
    """Names and values are checked before anything is written."""
    with pytest.raises(ConfigError, match=complaint):
        admin.create_topic("tt", config=config)
    assert admin.list_topics() == []


def test_an_impossible_request_changes_nothing(admin: AdminClient, zk: ZkClient) -> None:
    """Existing topics, too few brokers, no partitions and a dry run write no znode."""
    admin.create_topic("tt", config={"retention.ms": "1"})
    with pytest.raises(AdminError, match='Topic "tt" already exists'):
        admin.create_topic("tt")
    with pytest.raises(AdminError, match="replication factor: 9 larger than available brokers"):
        admin.create_topic("uu", 1, 9)
    with pytest.raises(AdminError, match="number of partitions must be larger than 0"):
        admin.create_topic("uu", 0)
    assert sorted(admin.create_topic("uu", 2, dry_run=True)) == [0, 1]
    assert admin.list_topics() == ["tt"]
    assert zk.children(paths.TOPIC_CONFIGS) == ["tt"]
    assert zk.get(paths.topic_config("tt")).version == 0


def test_without_brokers_there_is_no_topic(zk: ZkClient) -> None:
    """The message is 0.8.2.2's."""
    with pytest.raises(AdminError, match="replication factor: 1 larger than available brokers: 0"):
        AdminClient(zk=zk).create_topic("tt")


def test_a_left_over_configuration_is_replaced(admin: AdminClient, zk: ZkClient) -> None:
    """The configuration of a topic that is gone does not stand in the way of a new one."""
    zk.create(paths.topic_config("tt"), '{"version":1,"config":{"retention.ms":"1"}}')
    admin.create_topic("tt")
    assert zk.get(paths.topic_config("tt")).data == '{"version":1,"config":{}}'


def test_deletion_is_a_request(admin: AdminClient, zk: ZkClient) -> None:
    """A deletion creates an empty znode; a second request and an absent topic have different
    errors."""
    admin.create_topic("tt")
    assert admin.delete_topic("tt", dry_run=True) is True
    assert admin.topics_marked_for_deletion() == []
    assert admin.delete_topic("tt") is True
    assert zk.get(paths.delete_topic("tt")).data == ""
    assert admin.delete_topic("tt") is False
    assert admin.topics_marked_for_deletion() == ["tt"]
    assert admin.describe_topics()[0].marked_for_deletion
    with pytest.raises(AdminError, match="Topic nn does not exist"):
        admin.delete_topic("nn")


def test_description_shows_zookeepers_state(admin: AdminClient, store: ClusterStore) -> None:
    """The leader is None before the first election and -1 when no replica is left; filters are
    those of kafka-topics."""
    admin.create_topic(
        "tt",
        config={"retention.ms": "7", "segment.bytes": "5000"},
        assignment={0: [1], 1: [2], 2: [1]},
    )
    admin.create_topic("zz")
    store.create_leader_and_isr(
        {
            TopicPartition("tt", 0): LeaderAndIsr(1, 0, (1,), 0, 1),
            TopicPartition("tt", 1): LeaderAndIsr(-1, 1, (), 0, 1),
        }
    )
    [topic] = admin.describe_topics(["tt"])
    header = (
        "Topic:tt\tPartitionCount:3\tReplicationFactor:1\tConfigs:retention.ms=7,segment.bytes=5000"
    )
    lines = [
        "\tTopic: tt\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1",
        "\tTopic: tt\tPartition: 1\tLeader: -1\tReplicas: 2\tIsr: ",
        "\tTopic: tt\tPartition: 2\tLeader: none\tReplicas: 1\tIsr: ",
    ]
    assert list(describe_lines([topic])) == [header, *lines]
    assert list(describe_lines([topic], under_replicated=True)) == lines[1:]
    assert list(describe_lines([topic], unavailable=True, live_brokers=[1, 2])) == lines[1:]
    assert list(describe_lines(admin.describe_topics(), with_overrides=True)) == [header]
    assert topic.as_dict()["partitions"][1] == {
        "partition": 1,
        "leader": -1,
        "replicas": (2,),
        "isr": (),
    }
    with pytest.raises(AdminError, match="Topic nn does not exist"):
        admin.describe_topics(["nn"])


def test_leaders_are_awaited(admin: AdminClient, store: ClusterStore) -> None:
    """await_leaders returns when the controller has done its part, and gives up in time."""
    admin.create_topic("tt", assignment={0: [1], 1: [2]})
    with pytest.raises(AdminError, match=r"no leader after 1 ms for partitions \[0, 1\]"):
        admin.await_leaders("tt", timeout_ms=1)

    def lead() -> None:
        time.sleep(0.05)
        store.create_leader_and_isr(
            {TopicPartition("tt", n): LeaderAndIsr(n + 1, 0, (n + 1,), 0, 1) for n in (0, 1)}
        )

    controller = threading.Thread(target=lead)
    controller.start()
    admin.await_leaders("tt")
    controller.join()


def test_it_has_a_session_of_its_own_or_the_callers(zk_connect: str) -> None:
    """Given a connect string it connects and closes by itself; neither or both is a mistake."""
    with AdminClient(zookeeper=zk_connect) as admin:
        assert admin.list_topics() == []
        assert admin.live_brokers() == []
    with pytest.raises(TypeError, match="either"):
        AdminClient()


def test_in_a_safe_cluster_topics_carry_its_overrides(admin: AdminClient, zk: ZkClient) -> None:
    """Brokers say in ZooKeeper that they run under the safe profile; what is given is stronger."""
    ClusterStore(zk).put_profile("safe")
    admin.create_topic("tt", assignment={0: [1, 2]})
    assert {
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": "2",
    } == ClusterStore(zk).topic_config("tt")
    admin.create_topic("uu", config={"unclean.leader.election.enable": "true"})
    assert {"unclean.leader.election.enable": "true"} == ClusterStore(zk).topic_config("uu")


def config_changes(zk: ZkClient) -> list[str | None]:
    names = zk.children(paths.CONFIG_CHANGES)
    nodes_ = [zk.get_or_none(f"{paths.CONFIG_CHANGES}/{name}") for name in names]
    return [node.data for node in nodes_ if node is not None]


LATER_CHANGE = '{"version":1,"entity_type":"topics","entity_name":"tt"}'


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ((), ['"tt"']),
        ((1, 1), ['"tt"']),
        ((4, 4), [LATER_CHANGE]),
        ((1, 2), [LATER_CHANGE, '"tt"']),
    ],
)
def test_a_change_is_announced_as_the_registered_brokers_read_it(
    zk: ZkClient, versions: tuple[int, ...], expected: list[str]
) -> None:
    """Brokers of 0.8 ignore the form of 0.9, and the other way round."""
    store = ClusterStore(zk)
    store.create_common_paths()
    for broker_id, version in enumerate(versions):
        level = Level.V0_8_2 if version == 1 else Level.V0_10_2
        ends = (Endpoint("PLAINTEXT", "h", broker_id),)
        advertised = nodes.Advertised(level, version, ends)
        store.register_broker(
            Broker(broker_id, "h", broker_id), timestamp_ms=1, advertised=advertised
        )
    store.create_topic("tt", {0: [1]}, {})
    AdminClient(zk=zk).alter_topic("tt", config={"retention.ms": "2"})
    assert expected == config_changes(zk)


@pytest.mark.parametrize(("version", "refused_at"), [(1, "0.8.2"), (2, "0.9.0"), (4, None)])
def test_configurations_of_a_later_release(
    zk: ZkClient, version: int, refused_at: str | None
) -> None:
    """Where no broker is of that release they are refused, by name and release."""
    admin = admin_at(zk, version)
    config = {"message.timestamp.type": "LogAppendTime"}
    if refused_at is None:
        admin.create_topic("tt", config=config)
        assert config == admin.overrides("tt")
        with pytest.raises(ConfigError, match="is not one of CreateTime, LogAppendTime"):
            admin.alter_topic("tt", config={"message.timestamp.type": "Now"})
    else:
        text = rf"level {refused_at} do not have it, those of 0\.10\.2"
        with pytest.raises(ConfigError, match=text):
            admin.create_topic("tt", config=config)


@pytest.mark.parametrize("version", [1, 2, 4])
def test_an_internal_topic_is_deleted_at_0_8_alone(zk: ZkClient, version: int) -> None:
    """The TopicCommand of 0.9.0.1 and 0.10.2.2 refuses it: every group would lose its offsets."""
    admin = admin_at(zk, version)
    admin.create_topic(OFFSETS_TOPIC)
    if version == 1:
        assert admin.delete_topic(OFFSETS_TOPIC)
    else:
        for dry_run in (True, False):
            with pytest.raises(AdminError, match="is a kafka internal topic"):
                admin.delete_topic(OFFSETS_TOPIC, dry_run=dry_run)
        assert admin.topics_marked_for_deletion() == []


@pytest.mark.parametrize(
    ("version", "name", "complaint"),
    [
        (1, "a_b.c", None),
        (2, "a_b.c", 'Topic "a_b.c" collides with existing topics: a.b.c, a_b_c'),
        (2, "a-b", None),
        (2, "x" * 255, None),
        (4, "a_b.c", "collides with existing topics"),
        (4, "x" * 249, None),
        (4, "x" * 250, "can't be longer than 249 characters"),
    ],
)
def test_names_that_a_later_release_refuses(
    zk: ZkClient, version: int, name: str, complaint: str | None
) -> None:
    """From 0.9 on names that differ in `.` and `_` alone collide, from 0.10.2 on one has 249
    characters at most."""
    admin = admin_at(zk, version)
    for other in ("a.b.c", "a_b_c"):  # of brokers of 0.8
        ClusterStore(zk).create_topic(other, {0: (1,)}, {})
    if complaint is None:
        admin.create_topic(name)
    else:
        with pytest.raises(AdminError, match=complaint):
            admin.create_topic(name)
    assert (complaint is None) == (name in admin.list_topics())


def test_replicas_are_spread_over_racks(zk: ZkClient) -> None:
    """Of new topics, added partitions and moves, unless racks are to be disregarded; with the rack
    of one broker missing nothing is assigned."""
    store = ClusterStore(zk)
    store.create_common_paths()
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "a", 4: "b"}

    def register(broker_id: int) -> None:
        ends = (Endpoint("PLAINTEXT", "h", broker_id),)
        advertised = nodes.Advertised(Level.V0_10_2, 4, ends, racks[broker_id])
        store.register_broker(
            Broker(broker_id, "h", broker_id), timestamp_ms=1, advertised=advertised
        )

    for broker_id in racks:
        register(broker_id)
    admin = AdminClient(zk=zk, runtime=ThreadRuntime(rng=random.Random(1)))
    created = admin.create_topic("tt", 8, 2)
    added = admin.alter_topic("tt", partitions=12)
    moved = admin.plan_moves(["tt"], [1, 2, 4])
    for replicas in (*created.values(), *added.values(), *moved.values()):
        assert {"a", "b"} == {racks[replica] for replica in replicas}
    unaware = admin.create_topic("uu", 8, 2, rack_aware=False)
    assert any(4 not in replicas for replicas in unaware.values())
    zk.delete(paths.broker(2))
    racks[2] = None
    register(2)
    with pytest.raises(AdminError, match=r"brokers 2 have no broker\.rack"):
        admin.create_topic("vv", 1, 1)


def test_overrides_are_altered_and_announced(admin: AdminClient, zk: ZkClient) -> None:
    """Set, dropped and kept; one notification for each change, in 0.8.2.2's form."""
    admin.create_topic("tt", config={"retention.ms": "1", "segment.bytes": "100"})
    admin.alter_topic("tt", config={"retention.ms": "2"}, delete_config=["segment.bytes"])
    assert {"retention.ms": "2"} == ClusterStore(zk).topic_config("tt")
    [change] = zk.children(paths.CONFIG_CHANGES)
    assert '"tt"' == zk.get(f"{paths.CONFIG_CHANGES}/{change}").data
    with pytest.raises(ConfigError, match=r"retention\.ms"):
        admin.alter_topic("tt", config={"retention.ms": "soon"})
    admin.alter_topic("tt", config={"retention.ms": "3"}, dry_run=True)
    assert {"retention.ms": "2"} == ClusterStore(zk).topic_config("tt")


def test_overrides_that_cannot_be_read_are_not_replaced(admin: AdminClient, zk: ZkClient) -> None:
    """A topic with an unreadable configuration is shown without overrides. A change of one would
    drop all others, cleanup.policy=compact for instance, so it is refused, as by 0.8.2.2's tool."""
    admin.create_topic("tt", config={"retention.ms": "1"})
    zk.put(paths.topic_config("tt"), "no json")
    assert {} == admin.describe_topics(["tt"])[0].config == admin.overrides("tt")
    with pytest.raises(AdminError, match=r"/config/topics/tt: .* restore the text"):
        admin.alter_topic("tt", config={"retention.ms": "2"}, partitions=2)
    assert "no json" == zk.get(paths.topic_config("tt")).data
    assert 1 == len(ClusterStore(zk).assignments(["tt"])["tt"])
    zk.delete(paths.topic_config("tt"))
    admin.alter_topic("tt", config={"retention.ms": "2"})
    assert {"retention.ms": "2"} == ClusterStore(zk).topic_config("tt")


def test_two_tools_alter_one_topic(
    admin: AdminClient, zk: ZkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another tool sets another key between the read and the write: both are set."""
    admin.create_topic("tt", config={"segment.bytes": "100"})
    register = ClusterStore.newest_level

    def while_altered(store: ClusterStore) -> Level:
        monkeypatch.undo()
        overrides = {"segment.bytes": "100", "cleanup.policy": "compact"}
        zk.set(paths.topic_config("tt"), nodes.encode_topic_config(overrides))
        return register(store)

    monkeypatch.setattr(ClusterStore, "newest_level", while_altered)
    admin.alter_topic("tt", config={"retention.ms": "2"}, delete_config=["segment.bytes"])
    assert {"retention.ms": "2", "cleanup.policy": "compact"} == admin.overrides("tt")


def test_only_possible_overrides_are_dropped(admin: AdminClient, zk: ZkClient) -> None:
    """A key may be dropped if it can be an override or exists as one, from another version;
    dropping one that is not set changes nothing."""
    admin.create_topic("tt", config={"retention.ms": "1"})
    with pytest.raises(ConfigError, match="Unknown configuration"):
        admin.alter_topic("tt", delete_config=["retention.ms", "retention.msec"])
    assert {"retention.ms": "1"} == ClusterStore(zk).topic_config("tt")
    zk.put(paths.topic_config("tt"), nodes.encode_topic_config({"of.tomorrow": "1"}))
    admin.alter_topic("tt", delete_config=["of.tomorrow", "retention.ms"])
    assert {} == ClusterStore(zk).topic_config("tt")


def test_partitions_are_added(admin: AdminClient, zk: ZkClient) -> None:
    """Those there were stay where they are; there can only be more."""
    before = admin.create_topic("tt", 2)
    added = admin.alter_topic("tt", partitions=4)
    assert [2, 3] == sorted(added)
    assert {**before, **added} == ClusterStore(zk).assignment("tt")
    for bad in ({"partitions": 4}, {"partitions": 6, "assignment": [[0]]}):
        with pytest.raises(AdminError):
            admin.alter_topic("tt", **bad)
    with pytest.raises(AdminError, match="does not exist"):
        admin.alter_topic("absent", partitions=2)
    with pytest.raises(AdminError, match="can't be empty"):
        admin.alter_topic("", config={"retention.ms": 1})
    zk.create(paths.topic("empty"), nodes.encode_assignment({}))
    with pytest.raises(AdminError, match="no partitions"):
        admin.alter_topic("empty", partitions=2)


def test_a_broker_with_an_unreadable_registration_gets_no_replica(
    admin: AdminClient, zk: ZkClient
) -> None:
    """The controller does not count it as alive: the partition would have no leader."""
    before = admin.live_brokers()
    zk.create(paths.broker(77), "{}")
    admin.create_topic("tt", partitions=20)
    admin.alter_topic("tt", partitions=40)
    assigned = nodes.decode_assignment(zk.get(paths.topic("tt")).data)
    assert set(before) == {broker for replicas in assigned.values() for broker in replicas}
    assert before == admin.live_brokers()


def test_partitions_are_not_added_to_a_changed_assignment(
    store: ClusterStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A concurrent move by the controller must not be undone."""
    admin = AdminClient(zk=store.zk, runtime=ThreadRuntime(rng=random.Random(1)))
    admin.create_topic("tt", assignment={0: [0]})
    moved = nodes.encode_assignment({0: [1, 0]})

    def broker_ids(store: ClusterStore) -> list[int]:
        store.zk.set(paths.topic("tt"), moved)
        return [0, 1]

    monkeypatch.setattr(ClusterStore, "broker_ids", broker_ids)
    with pytest.raises(AdminError, match="tt changed after it was read; try again"):
        admin.alter_topic("tt", partitions=2, config={"retention.ms": 1})
    assert moved == store.zk.get(paths.topic("tt")).data
    assert {} == store.topic_config("tt")


@pytest.mark.parametrize("at", ["read", "sent"])
@pytest.mark.parametrize("change", [{"partitions": 2}, {"config": {"retention.ms": 1}}])
def test_a_topic_that_was_created_again_is_not_changed(
    store: ClusterStore, monkeypatch: pytest.MonkeyPatch, at: str, change: dict[str, Any]
) -> None:
    """Its znodes have the versions of the former ones: while the tool plans, and while its write is
    on its way."""
    zk = store.zk
    admin = AdminClient(zk=zk, runtime=ThreadRuntime(rng=random.Random(1)))
    admin.create_topic("tt", assignment={0: [1]})
    again = {0: (2,), 1: (2,), 2: (2,)}

    def meanwhile(call: Callable[..., Any]) -> Callable[..., Any]:
        def late(*args: Any, **options: Any) -> Any:
            monkeypatch.undo()
            zk.delete_recursive(paths.topic("tt"))
            zk.delete_recursive(paths.topic_config("tt"))
            store.create_topic("tt", again, {"segment.bytes": "1000"})
            return call(*args, **options)

        return late

    of = {"read": AdminClient, "sent": ZkClient}[at]
    name = {"read": "_write_while_it_lives", "sent": "multi"}[at]
    monkeypatch.setattr(of, name, meanwhile(getattr(of, name)))
    with pytest.raises(AdminError, match="Topic tt was deleted after it was read"):
        admin.alter_topic("tt", **change)
    assert store.assignment("tt") == again
    assert store.topic_config("tt") == {"segment.bytes": "1000"}
    assert zk.children(paths.topic("tt")) == []


def test_a_topic_that_cannot_be_read_hides_no_other(admin: AdminClient, zk: ZkClient) -> None:
    """All topics are described, and elected, without it; the error of the topic itself names its
    znode."""
    admin.create_topic("tt", assignment={0: [0]})
    zk.create(paths.topic("bad"), '{"partitions":{"0":[-1]}}')
    assert ["tt"] == [topic.name for topic in admin.describe_topics()]
    assert 1 == admin.elect_preferred()
    with pytest.raises(ZooKeeperError, match="/brokers/topics/bad: topic assignment"):
        admin.describe_topics(["bad"])


def test_moves_and_elections_are_asked_for_one_at_a_time(admin: AdminClient, zk: ZkClient) -> None:
    """There is one znode for each kind of request; what does not exist, or cannot be done, is
    refused here already."""
    admin.create_topic("tt", assignment={0: [0], 1: [0]})
    tp = TopicPartition("tt", 0)
    admin.move_partitions({tp: (1,)})
    assert {tp: MoveStatus.IN_PROGRESS} == admin.move_statuses({tp: (1,)})
    assert 2 == admin.elect_preferred()
    for ask in (lambda: admin.move_partitions({tp: (1,)}), admin.elect_preferred):
        with pytest.raises(AdminError, match="in progress"):
            ask()
    absent = TopicPartition("tt", 9)
    with pytest.raises(AdminError, match=r"no partition \[tt,9\]"):
        admin.move_partitions({absent: (1,)})
    with pytest.raises(AdminError, match=r"no partition \[tt,9\]"):
        admin.elect_preferred([absent])
    with pytest.raises(AdminError, match=r"\[tt,0\] has \[99999999999\]"):
        admin.move_partitions({tp: (99_999_999_999,)})
    zk.delete(paths.REASSIGN_PARTITIONS)
    assert {tp: MoveStatus.FAILED} == admin.move_statuses({tp: (1,)})


def test_what_is_being_moved_is_no_measure_of_replicas(admin: AdminClient) -> None:
    """Old and new replicas are assigned together until a move ends. (A topic that grew meanwhile
    got partitions of three replicas instead of two, and a plan for it widened it for good.)"""
    admin.create_topic("tt", assignment={0: [1, 2]})
    admin.move_partitions({TopicPartition("tt", 0): (2, 1)})
    for ask in (
        lambda: admin.alter_topic("tt", partitions=2),
        lambda: admin.plan_moves(["tt"], [1, 2]),
    ):
        with pytest.raises(AdminError, match="A partition reassignment is in progress of"):
            ask()
    admin.alter_topic("tt", config={"retention.ms": 1})


@pytest.mark.parametrize(("versions", "known"), [((1,), False), ((1, 2), False), ((1, 4), True)])
def test_overrides_are_those_of_the_newest_broker(
    zk: ZkClient, versions: tuple[int, ...], known: bool
) -> None:
    """The version of a broker's registration shows its level: 1 is 0.8, 2 is 0.9, 4 is 0.10.2."""
    store = ClusterStore(zk)
    store.create_common_paths()
    for broker_id, version in enumerate(versions):
        level = Level.V0_8_2 if version == 1 else Level.V0_10_2
        ends = (Endpoint("PLAINTEXT", "h", broker_id),)
        advertised = nodes.Advertised(level, version, ends)
        store.register_broker(
            Broker(broker_id, "h", broker_id), timestamp_ms=1, advertised=advertised
        )
    admin = AdminClient(zk=zk)
    config = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topic("tt", assignment={0: [1]})
    if known:
        admin.create_topic("uu", config=config, assignment={0: [1]})
        admin.alter_topic("tt", config=config)
        admin.alter_topic("tt", delete_config=["message.timestamp.type", "message.format.version"])
    else:
        with pytest.raises(ConfigError, match="Unknown configuration"):
            admin.create_topic("uu", config=config, assignment={0: [1]})
        with pytest.raises(ConfigError, match="Unknown configuration"):
            admin.alter_topic("tt", config=config)


def test_nothing_is_planned_by_a_widened_assignment(admin: AdminClient, zk: ZkClient) -> None:
    """While a partition is moved its old and new replicas are assigned together. Added partitions
    and plans of that topic got all of them, for good; other topics are not concerned."""
    for name in ("tt", "other"):
        admin.create_topic(name, assignment={0: [0, 1]})
    admin.move_partitions({TopicPartition("tt", 0): (1, 2)})
    zk.set(paths.topic("tt"), nodes.encode_assignment({0: (2, 0, 1)}))
    with pytest.raises(AdminError, match=r"in progress of \[tt,0\]"):
        admin.alter_topic("tt", partitions=2)
    with pytest.raises(AdminError, match=r"in progress of \[tt,0\]"):
        admin.plan_moves(["other", "tt"], [0, 1])
    admin.alter_topic("other", partitions=2)
    zk.delete(paths.REASSIGN_PARTITIONS)
    zk.set(paths.topic("tt"), nodes.encode_assignment({0: (0, 1)}))
    admin.alter_topic("tt", partitions=2, config={"retention.ms": 1})
