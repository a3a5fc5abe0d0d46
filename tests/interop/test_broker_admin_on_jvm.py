"""BrokerAdmin on JVM brokers of 0.11.0.3 to 4.4.0: what each serves, without ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any

import confluent_kafka.admin
import pytest
from click.testing import CliRunner

from kafka08.admin import Acl, BrokerAdmin, BrokerConfig
from kafka08.cli.root import root
from kafka08.client import ClusterClient, parse_bootstrap
from kafka08.consumer import KafkaConsumer
from kafka08.doctor import SnapshotReader, findings_of
from kafka08.errors import AdminError
from kafka08.exporter import Watch
from kafka08.groups import GroupReader
from kafka08.groups.views import shown
from kafka08.observe.commit_times import HOUR_MS, KafkaCommit
from kafka08.observe.place import ClusterPlace
from kafka08.observe.snapshot import COORDINATOR
from kafka08.observe.transactions import transactions, waiting_partitions
from kafka08.pages.details import group_details, topic_details
from kafka08.pages.live import Live
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.protocol.delete_records import HIGH_WATERMARK
from kafka08.protocol.transaction_records import TransactionState
from kafka08.runtime.threads import THREADS
from kafka08.structs import TopicPartition
from tests.interop.releases import RELEASES, Running, broker_of
from tests.waiting import until

_names = count()
confluent: Any = confluent_kafka.admin


@pytest.fixture(scope="module", params=list(RELEASES))
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    with broker_of(request.param, tmp_path_factory.mktemp("jvm")) as running:
        yield running


@pytest.fixture
def admin(broker: Running) -> Iterator[BrokerAdmin]:
    with BrokerAdmin(parse_bootstrap(broker.address)) as found:
        yield found


@pytest.fixture
def topic(admin: BrokerAdmin) -> str:
    name = f"t{next(_names)}"
    admin.create_topic(name, 2, config={"retention.ms": "100000"})
    return name


def producer_of(broker: Running) -> KafkaProducer:
    """It tries again: a broker may not lead a topic yet that was made a moment ago."""
    return KafkaProducer(bootstrap_servers=broker.address, retries=20)


def is_later_than_0_11(request: pytest.FixtureRequest) -> bool:
    return "0.11.0.3" not in request.node.name


def test_overrides_are_changed_one_by_one(admin: BrokerAdmin, topic: str) -> None:
    """Those that are not named stay; a dry run changes nothing; the broker says what is wrong."""
    (described,) = admin.describe_topics([topic])
    assert described.config == {"retention.ms": "100000"}
    changed = {"segment.ms": "70000"}
    admin.alter_topic(topic, config=changed, delete_config=["retention.ms"], dry_run=True)
    assert admin.overrides(topic) == {"retention.ms": "100000"}
    admin.alter_topic(topic, config=changed)
    until(lambda: len(admin.overrides(topic)) == 2, "the change")
    admin.alter_topic(topic, delete_config=["retention.ms"])
    until(lambda: admin.overrides(topic) == changed, "the removal")
    with pytest.raises(AdminError, match=r"segment\.ms"):
        admin.alter_topic(topic, config={"segment.ms": "soon"})
    with pytest.raises(AdminError, match=f"did you mean {topic}"):
        admin.alter_topic(f"{topic}x", config={"segment.ms": "1"})


def test_partitions_are_added(
    admin: BrokerAdmin, topic: str, request: pytest.FixtureRequest
) -> None:
    """From 1.0 on; before, the error says what is needed."""
    if not is_later_than_0_11(request):
        with pytest.raises(AdminError, match="older than the request to add partitions"):
            admin.alter_topic(topic, partitions=3)
        return
    assert admin.alter_topic(topic, partitions=4, dry_run=True) == {2: (), 3: ()}
    assert admin.alter_topic(topic, partitions=4) == {2: (1,), 3: (1,)}
    with pytest.raises(AdminError, match="4"):
        admin.alter_topic(topic, partitions=3)


def test_records_are_deleted(admin: BrokerAdmin, topic: str, broker: Running) -> None:
    """Those below an offset, or all."""
    with producer_of(broker) as producer:
        for future in [producer.send(ProducerRecord(topic, b"v", partition=0)) for _ in range(9)]:
            future.result(30)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert admin.delete_records({first: 4}) == {first: 4}
    everything = {first: HIGH_WATERMARK, second: HIGH_WATERMARK}
    assert admin.delete_records(everything) == {first: 9, second: 0}


def test_every_view_needs_brokers_alone(admin: BrokerAdmin, topic: str, broker: Running) -> None:
    """The snapshot, the doctor and the console's pages without ZooKeeper: topics, logs, groups with
    their lag; nothing is unknown, and there is no problem."""
    place = ClusterPlace(None, broker.address)
    with producer_of(broker) as producer:
        producer.send(ProducerRecord(topic, b"v", partition=0)).result(30)
    with KafkaConsumer(
        bootstrap_servers=broker.address, group_id=topic, auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([topic])
        until(lambda: consumer.poll(0.1), "the message")
        consumer.commit()
    with Watch(*place) as watch:
        view = watch.read_view()
        watch.add(view)
        rows = {row.group: row for row in watch.summary().groups}
    assert view.partitions[TopicPartition(topic, 0)].end == 1
    assert rows[topic].lag == 0
    assert not view.failed_requests
    with SnapshotReader(*place) as reader:
        snapshot = reader.read_snapshot()
    assert snapshot.topics[topic].config == {"retention.ms": "100000"}
    assert not [found for found in findings_of(snapshot) if found.is_problem]
    (row,) = admin.describe_brokers()
    assert (row.address, row.is_controller) == (broker.address, None)
    with Live(place, Watch(*place), THREADS) as live:
        live.look()
        assert topic_details(live, topic)["groups"][0]["lag"] == 0
        assert group_details(live, topic)["kinds"][0]["kind"] == "coordinator"


def test_groups_are_deleted(
    admin: BrokerAdmin, topic: str, broker: Running, request: pytest.FixtureRequest
) -> None:
    """Once they have no members, with their offsets. From 1.1 on."""
    with KafkaConsumer(bootstrap_servers=broker.address, group_id=topic) as consumer:
        consumer.subscribe([topic])
        until(lambda: consumer.poll(0.1) or consumer.assignment(), "an assignment")
        what = "has members" if is_later_than_0_11(request) else "older than the request to delete"
        with pytest.raises(AdminError, match=what):
            admin.delete_group(topic)
        consumer.commit()
    if is_later_than_0_11(request):
        admin.delete_group(topic)
        with pytest.raises(AdminError, match="does not exist"):
            admin.delete_group(topic)


def test_log_directories_have_their_replicas(
    admin: BrokerAdmin, topic: str, broker: Running, request: pytest.FixtureRequest
) -> None:
    """With the path on the broker, and the size of each. From 1.0 on."""
    if not is_later_than_0_11(request):
        with pytest.raises(AdminError, match="older than the request to describe log dir"):
            admin.log_dirs()
        return
    (found,) = admin.log_dirs()[1]
    assert (found.error_code, found.path) == (0, str(broker.log_dir))
    until(lambda: topic in {t.topic for d in admin.log_dirs()[1] for t in d.topics}, "its log")


def test_acls_are_read(
    admin: BrokerAdmin, topic: str, broker: Running, request: pytest.FixtureRequest
) -> None:
    """All, or those of a principal; with prefixes from 2.0 on."""
    kind, pattern = confluent.ResourceType, confluent.ResourcePatternType
    of_topic = pattern.PREFIXED if is_later_than_0_11(request) else pattern.LITERAL
    operation, permission = confluent.AclOperation, confluent.AclPermissionType
    entries = [
        confluent.AclBinding(
            *(kind.TOPIC, topic, of_topic, "User:zoe", "*", operation.READ, permission.ALLOW)
        ),
        confluent.AclBinding(
            *(kind.GROUP, "*", pattern.LITERAL, "User:yan", "10.0.0.1", operation.ALL),
            permission.DENY,
        ),
    ]
    client = confluent.AdminClient({"bootstrap.servers": broker.address})
    for future in client.create_acls(entries, request_timeout=30).values():
        future.result(30)
    of_zoe = Acl("topic", topic, of_topic.name.lower(), "User:zoe", "*", "read", True)
    of_yan = Acl("group", "*", "literal", "User:yan", "10.0.0.1", "all", False)
    until(lambda: admin.acls() == [of_yan, of_zoe], "both", explain=lambda: str(admin.acls()))
    assert admin.acls("User:zoe") == [of_zoe]
    for future in client.delete_acls(
        [
            confluent.AclBindingFilter(
                *(kind.ANY, None, pattern.ANY, None, None, operation.ANY, permission.ANY)
            )
        ]
    ).values():
        future.result(30)


def test_transactions_are_listed(admin: BrokerAdmin, topic: str, broker: Running) -> None:
    """With their states, and the partitions in which an open one keeps readers waiting."""
    tp = TopicPartition(topic, 0)
    bootstrap = parse_bootstrap(broker.address)
    with (
        KafkaProducer(bootstrap_servers=broker.address, transactional_id=topic) as producer,
        closing(ClusterClient(bootstrap, negotiates=True)) as cluster,
    ):
        producer.init_transactions()
        with producer.transaction():
            producer.send(ProducerRecord(topic, b"v", partition=0)).result(30)
            (open_,) = [t for t in transactions(cluster, THREADS) if t.transactional_id == topic]
            assert open_.record.partitions == {tp}
            (waiting,) = waiting_partitions(cluster, [tp], THREADS)
            assert (waiting.offset, waiting.end, waiting.transaction) == (0, 1, open_)
        until(
            lambda: (
                [t.record.state for t in transactions(cluster, THREADS)]
                == [TransactionState.COMPLETE_COMMIT]
            ),
            "the end",
        )
        assert waiting_partitions(cluster, [tp], THREADS) == []


def test_a_cluster_has_an_id(admin: BrokerAdmin) -> None:
    """And a topic is gone once it was deleted."""
    assert len(admin.cluster_id() or "") == 22
    admin.create_topic("gone")
    assert admin.delete_topic("gone")
    assert "gone" not in admin.list_topics()


def test_when_offsets_were_committed_and_expire(
    topic: str, broker: Running, request: pytest.FixtureRequest
) -> None:
    """Before 2.1 a day after the commit; later not while the group has members, then seven days
    after the last one left."""
    with producer_of(broker) as producer:
        producer.send(ProducerRecord(topic, b"v", partition=0)).result(30)
    tp = TopicPartition(topic, 0)
    began_ms = THREADS.time_ms()
    keys: dict[str, Any] = {"group_id": topic, "auto_offset_reset": "earliest"}
    with KafkaConsumer(bootstrap_servers=broker.address, **keys) as consumer:
        consumer.subscribe([topic])
        until(lambda: consumer.poll(0.1), "the message")
        consumer.commit()
        commit, expires_ms = expiry(broker, tp)
        assert began_ms <= commit.committed_ms <= THREADS.time_ms()
        if is_later_than_0_11(request):
            assert expires_ms is None
        else:
            assert expires_ms == commit.committed_ms + 24 * HOUR_MS
        left_ms = THREADS.time_ms()
    commit, expires_ms = expiry(broker, tp)
    assert expires_ms is not None
    if is_later_than_0_11(request):
        assert left_ms <= expires_ms - 7 * 24 * HOUR_MS <= THREADS.time_ms()


def expiry(broker: Running, tp: TopicPartition) -> tuple[KafkaCommit, int | None]:
    """The commit of a partition, and when it expires, of the group with the name of the topic."""
    with GroupReader(None, broker.address) as reader:
        view = shown(reader.snapshot(tp.topic), tp.topic, COORDINATOR)
        view.commits = reader.commits(tp.topic, view.partitions)
    return view.commits[tp], view.expires_ms(tp)


def test_configurations_of_brokers(
    admin: BrokerAdmin, broker: Running, request: pytest.FixtureRequest
) -> None:
    """All are shown, from 2.3 on those that a running broker can change are changed: of one and of
    all, also back. The broker says what is wrong."""
    (live,) = admin.live_brokers()
    found = admin.broker_configs(live)
    assert found["log.dirs"] == BrokerConfig(str(broker.log_dir), "file", is_read_only=True)
    assert found["num.io.threads"].source == "default"
    with pytest.raises(AdminError, match=f"Broker 77 does not live; these do: {live}"):
        admin.broker_configs(77)
    if not is_later_than_0_11(request):
        for change in (lambda: admin.alter_broker(live, config={"a": "b"}), admin.broker_configs):
            with pytest.raises(AdminError, match="are older than the request"):
                change()
        return
    key, new = "log.cleaner.backoff.ms", {"log.cleaner.backoff.ms": "7000"}
    before = found[key]
    admin.alter_broker(live, config=new, dry_run=True)
    assert admin.broker_configs(live)[key] == before
    admin.alter_broker(config=new)
    changed = BrokerConfig("7000", "all brokers", is_read_only=False)
    until(lambda: admin.broker_configs(live)[key] == changed, "the change of all")
    # KRaft has set some for all from the beginning.
    until(lambda: admin.broker_configs().get(key) == changed, "the change, for all")
    admin.alter_broker(live, config={key: 8000})
    own = BrokerConfig("8000", "broker", is_read_only=False)
    until(lambda: admin.broker_configs(live)[key] == own, "its own change")
    lines = [line.split() for line in output_of(broker, "configs", str(live)).splitlines()]
    assert [key, "8000", "broker", "-"] in lines
    says = f"Would update config for broker {live}: 0 set, 1 removed.\n"
    assert output_of(broker, "alter", str(live), "--delete-config", key, "--dry-run") == says
    admin.alter_broker(live, delete_config=[key])
    admin.alter_broker(delete_config=[key])
    until(lambda: admin.broker_configs(live)[key] == before, "the former value")
    with pytest.raises(AdminError, match=f"Configuration of broker {live}: .*log.cleaner.threads"):
        admin.alter_broker(live, config={"log.cleaner.threads": "many"})
    with pytest.raises(AdminError, match="Configuration of broker"):
        admin.alter_broker(live, config={"log.dirs": "/elsewhere"})


def output_of(broker: Running, *words: str) -> str:
    """The output of `kafka08 broker`."""
    done = CliRunner().invoke(root, ["broker", *words, "--bootstrap", broker.address])
    assert done.exit_code == 0, done.output
    return done.stdout
