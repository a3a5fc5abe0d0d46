"""docs/from-confluent-kafka.md: each row, with both clients at one broker of ours."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import confluent_kafka as theirs
import confluent_kafka.admin
import pytest

from kafka08.admin import BrokerAdmin
from kafka08.client import parse_bootstrap
from kafka08.consumer import KafkaConsumer, KafkaConsumerConfig
from kafka08.embedded import EmbeddedCluster
from kafka08.errors import BufferExhausted, Closed, ConfigError, KafkaError
from kafka08.groups import GroupReader
from kafka08.kernel import MessageAndMetadata
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.structs import OffsetAndMetadata, TopicPartition
from tests.waiting import until

PAGE: Final = Path(__file__).parents[2] / "docs" / "from-confluent-kafka.md"
ROWS: Final = [
    line.split(" | ")[0].removeprefix("| ")
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| confluent-kafka")
]
NOBODY: Final = "127.0.0.1:1"
TEN: Final = [b"%d" % n for n in range(10)]
admin_of: Any = confluent_kafka.admin
_names = count()
CHECKS: Final[dict[str, Callable[[Both], None]]] = {}


class Both:
    """A topic with ten messages in partition 0 of three, and the clients of each."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self.at = cluster.bootstrap
        self.topic = f"t{next(_names)}"
        cluster.create_topic(self.topic, partitions=3)
        self.tp = TopicPartition(self.topic, 0)
        with self.producer() as producer:
            producer.send_many(self.topic, TEN, partition=0).result(30)

    def their(self, offset: int = theirs.OFFSET_INVALID) -> Any:
        return theirs.TopicPartition(self.topic, 0, offset)

    def producer(self, **keys: Any) -> KafkaProducer:
        return KafkaProducer(bootstrap_servers=self.at, **keys)

    def consumer(self, **keys: Any) -> KafkaConsumer:
        """It has partition 0, from its start on."""
        made = KafkaConsumer(bootstrap_servers=self.at, group_id=self.topic, **keys)
        made.assign([self.tp])
        made.seek(self.tp, 0)
        return made

    def their_producer(self, **keys: Any) -> Any:
        return theirs.Producer({"bootstrap.servers": self.at, **dotted(keys)})

    def their_consumer(self, **keys: Any) -> Any:
        made = self.their_idle_consumer(**keys)
        made.assign([self.their(0)])
        return made

    def their_idle_consumer(self, **keys: Any) -> Any:
        return theirs.Consumer(
            {"bootstrap.servers": self.at, "group.id": f"{self.topic}-theirs", **dotted(keys)}
        )

    def message(self) -> MessageAndMetadata[Any, Any]:
        with self.consumer() as consumer:
            return until(lambda: consumer.poll(0.2), "a message")[0]

    def their_message(self) -> Any:
        consumer = self.their_consumer()
        found = until(lambda: consumer.poll(0.2), "their message")
        consumer.close()
        return found


def dotted(keys: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in keys.items()}


def row(begin: str) -> Callable[[Callable[[Both], None]], Callable[[Both], None]]:
    """The check of the row that begins so."""

    def add(check: Callable[[Both], None]) -> Callable[[Both], None]:
        (found,) = [one for one in ROWS if one.startswith(begin)]
        CHECKS[found] = check
        return check

    return add


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, config={"api.level": "0.11.0"}) as cluster:
        yield cluster


@pytest.mark.parametrize("name", ROWS)
def test_each_row_is_so(cluster: EmbeddedCluster, name: str) -> None:
    """What its two cells say."""
    CHECKS[name](Both(cluster))


# Everywhere


@row('`Consumer({"group.id"')
def keys_are_keywords(both: Both) -> None:
    both.their_idle_consumer().close()
    of_dict = KafkaConsumerConfig({"bootstrap.servers": both.at, "group.id": "shop"})
    with KafkaConsumer(bootstrap_servers=both.at, group_id="shop") as consumer:
        assert consumer.config.group_id == of_dict.group_id == "shop"


@row("an unknown key")
def unknown_keys(both: Both) -> None:
    with pytest.raises(theirs.KafkaException, match="No such configuration property"):
        both.their_producer(no_such_key=1)
    with pytest.raises(ConfigError, match=r"no\.such\.key"):
        both.producer(no_such_key=1)
    unknown = KafkaConsumerConfig({"bootstrap.servers": both.at, "no.such.key": "1"}).unknown
    assert unknown == {"no.such.key": "1"}


@row("`ssl.ca.location`")
def keys_of_librdkafka(both: Both) -> None:
    for name, of_kafka in {"ssl.ca.location": "truststore", "sasl.username": "jaas"}.items():
        keys = {"bootstrap.servers": both.at, name: "x", "security.protocol": "SASL_SSL"}
        with pytest.raises(ConfigError, match=f"a key of librdkafka; here it is s.*{of_kafka}"):
            KafkaConsumer(KafkaConsumerConfig(keys))


@row("`KafkaException` with")
def errors(both: Both) -> None:
    client = admin_of.AdminClient({"bootstrap.servers": both.at})
    (future,) = client.create_topics([admin_of.NewTopic(both.topic, 1, 1)]).values()
    with pytest.raises(theirs.KafkaException) as raised:
        future.result(30)
    assert raised.value.args[0].code() == theirs.KafkaError.TOPIC_ALREADY_EXISTS
    with BrokerAdmin(parse_bootstrap(both.at)) as admin, pytest.raises(KafkaError, match="exists"):
        admin.create_topic(both.topic)


@row("timeouts in seconds")
def timeouts(both: Both) -> None:
    with both.consumer() as consumer:
        consumer.seek_to_end()
        for poll in (both.their_idle_consumer().poll, consumer.poll):
            began = time.monotonic()
            assert not poll(0.5)
            assert time.monotonic() - began > 0.4


@row("`list_topics(topic")
def topics(both: Both) -> None:
    found = both.their_producer().list_topics(both.topic, timeout=30).topics[both.topic]
    with both.consumer() as consumer:
        ours = consumer.list_topics()[both.topic]
        assert consumer.partitions_for(both.topic) == ours
    assert len(found.partitions) == len(ours) == 3


@row("usable from several threads")
def threads(both: Both) -> None:
    their, started = both.their_idle_consumer(), threading.Event()
    with both.consumer() as consumer:
        consumer.seek_to_end()

        def poll() -> None:
            started.set()
            their.poll(1)
            consumer.poll(1)

        reader = threading.Thread(target=poll)
        reader.start()
        started.wait()
        assert their.poll(0.1) is None

        def is_refused() -> bool:
            with suppress(RuntimeError):
                consumer.lag(both.tp)
                return False
            return True

        until(is_refused, "a refusal")
        reader.join()


# Consumer


@row("`poll(timeout)`: one")
def polls(both: Both) -> None:
    assert both.their_message().value() == b"0"
    with both.consumer(max_poll_records=4) as consumer:
        found = until(lambda: consumer.poll(0.2), "messages")
        assert [message.value for message in found] == TEN[:4]
        assert next(iter(consumer)).value == TEN[4]


@row("`consume(n, timeout)`")
def consumes(both: Both) -> None:
    their, began = both.their_consumer(), time.monotonic()
    assert len(their.consume(100, 2)) == 10
    assert time.monotonic() - began > 1.9
    with both.consumer() as consumer:
        began = time.monotonic()
        assert len(until(lambda: consumer.poll(30), "messages")) == 10
        assert time.monotonic() - began < 25
        consumer.seek(both.tp, 0)
        assert next(iter(consumer.batches())).values() == TEN


@row("`message.error()`")
def errors_of_messages(both: Both) -> None:
    their = both.their_idle_consumer(auto_offset_reset="error")
    their.assign([both.their(99)])
    assert until(lambda: their.poll(0.2), "their error").error() is not None
    with both.consumer(auto_offset_reset="none") as consumer:
        consumer.seek(both.tp, 99)
        with pytest.raises(KafkaError):
            until(lambda: consumer.poll(0.2), "an error")


@row("`message.value()`")
def fields(both: Both) -> None:
    their, message = both.their_message(), both.message()
    assert (their.value(), their.topic(), their.offset()) == (b"0", both.topic, 0)
    assert (message.value, message.topic, message.offset) == (b"0", both.topic, 0)


@row("`message.timestamp()`")
def timestamps(both: Both) -> None:
    kind, time_ms = both.their_message().timestamp()
    message = both.message()
    assert (kind, theirs.TIMESTAMP_CREATE_TIME) == (1, 1)
    assert (message.timestamp, message.timestamp_type) == (time_ms, 0)


@row("`message.headers()`")
def headers(both: Both) -> None:
    assert both.their_message().headers() is None
    assert both.message().headers == ()


@row("`group.id` is needed")
def groups_are_optional(both: Both) -> None:
    with pytest.raises(ValueError, match=r"group\.id must be set"):
        theirs.Consumer({"bootstrap.servers": both.at})
    with KafkaConsumer(bootstrap_servers=both.at) as consumer:
        consumer.assign([both.tp])
        with pytest.raises(ConfigError, match=r"group\.id"):
            consumer.commit()


@row('`subscribe(["^logs"])`')
def patterns(both: Both) -> None:
    assigned: list[Any] = []
    their = both.their_idle_consumer()
    their.subscribe([f"^{both.topic}"], on_assign=lambda _, found: assigned.extend(found))
    until(lambda: their.poll(0.2) or assigned, "their assignment", 60)
    their.close()
    assert {one.topic for one in assigned} >= {both.topic}
    with KafkaConsumer(bootstrap_servers=both.at, group_id=both.topic) as consumer:
        consumer.subscribe(re.compile(both.topic[:-1] + "."))
        until(lambda: consumer.poll(0.2) or consumer.assignment(), "an assignment", 60)
        assert both.topic in {tp.topic for tp in consumer.assignment()}
        assert all(len(tp.topic) == len(both.topic) for tp in consumer.assignment())


@row("`on_assign=f(consumer")
def callbacks(both: Both) -> None:
    found: list[Any] = []
    their = both.their_idle_consumer()
    their.subscribe([both.topic], on_assign=lambda consumer, tps: found.append((consumer, tps)))
    until(lambda: their.poll(0.2) or found, "their assignment", 60)
    their.close()
    assert found[0][0] is their
    ours: list[Any] = []
    with KafkaConsumer(bootstrap_servers=both.at, group_id=both.topic) as consumer:
        consumer.subscribe([both.topic], on_assigned=ours.append, on_revoked=print, on_lost=print)
        until(lambda: consumer.poll(0.2) or ours, "an assignment", 60)
    assert both.tp in ours[0]


@row('`assign([TopicPartition("t", 0, 5)])`')
def assigned_offsets(both: Both) -> None:
    their = both.their_idle_consumer()
    their.assign([both.their(5)])
    assert until(lambda: their.poll(0.2), "their message").offset() == 5
    with both.consumer() as consumer:
        consumer.seek(both.tp, 5)
        assert until(lambda: consumer.poll(0.2), "messages")[0].offset == 5


@row('`seek(TopicPartition("t", 0, 5))`')
def seeks(both: Both) -> None:
    their = both.their_idle_consumer()
    with pytest.raises(theirs.KafkaException, match="Failed to seek"):
        their.seek(both.their(5))
    with both.consumer() as consumer:
        consumer.seek(both.tp, 5)
        assert consumer.position(both.tp) == 5


@row("`commit()` returns at once")
def commits(both: Both) -> None:
    their = both.their_consumer(enable_auto_commit=False)
    until(lambda: their.poll(0.2), "their message")
    assert their.commit() is None
    assert their.commit(asynchronous=False)[0].offset == 1
    with both.consumer() as consumer:
        until(lambda: consumer.poll(0.2), "messages")
        consumer.commit()
        assert consumer.committed(both.tp) == {both.tp: OffsetAndMetadata(10)}
        consumer.commit_async()


@row("`commit(message=m)`")
def commits_of_messages(both: Both) -> None:
    their = both.their_consumer(enable_auto_commit=False)
    message = until(lambda: their.poll(0.2), "their message")
    assert their.commit(message=message, asynchronous=False)[0].offset == 1
    with both.consumer() as consumer:
        m = until(lambda: consumer.poll(0.2), "messages")[0]
        consumer.commit({TopicPartition(m.topic, m.partition): m.offset + 1})
        assert consumer.committed(both.tp) == {both.tp: OffsetAndMetadata(1)}


@row("`store_offsets(…)`")
def stored_offsets(both: Both) -> None:
    their = both.their_consumer(enable_auto_offset_store=False)
    message = until(lambda: their.poll(0.2), "their message")
    their.store_offsets(message)
    their.close()
    again = both.their_idle_consumer()
    assert again.committed([both.their()], 30)[0].offset == 1
    with both.consumer(max_poll_records=4) as consumer:
        until(lambda: consumer.poll(0.2), "messages")
        until(lambda: consumer.poll(0.2), "more, so that the first four are finished")
        consumer.close()
    with both.consumer() as consumer:
        assert consumer.committed(both.tp) == {both.tp: OffsetAndMetadata(4)}


@row("`committed([tp])`")
def committed(both: Both) -> None:
    assert both.their_idle_consumer().committed([both.their()], 30)[0].offset == -1001
    with both.consumer() as consumer:
        assert consumer.committed(both.tp) == {both.tp: None}


@row("`position([tp])`")
def positions(both: Both) -> None:
    their = both.their_consumer()
    assert their.position([both.their()])[0].offset == -1001
    with both.consumer() as consumer:
        consumer.seek_to_end()
        assert consumer.position(both.tp) == 10
        assert consumer.positions() == {both.tp: OffsetAndMetadata(10)}


@row("`get_watermark_offsets")
def watermarks(both: Both) -> None:
    assert both.their_idle_consumer().get_watermark_offsets(both.their(), 30) == (0, 10)
    with both.consumer() as consumer:
        assert consumer.beginning_offsets([both.tp]) == {both.tp: 0}
        assert consumer.end_offsets([both.tp]) == {both.tp: 10}


@row("`offsets_for_times")
def times(both: Both) -> None:
    assert both.their_idle_consumer().offsets_for_times([both.their(1)], 30)[0].offset == 0
    with both.consumer() as consumer:
        found = consumer.offsets_for_times({both.tp: 1})[both.tp]
    assert found is not None
    assert found.offset == 0


@row("`pause([tp])`")
def pauses(both: Both) -> None:
    their = both.their_consumer()
    their.pause([both.their()])
    assert their.poll(0.5) is None
    their.resume([both.their()])
    until(lambda: their.poll(0.2), "their message")
    with both.consumer() as consumer:
        consumer.pause(both.tp)
        assert not consumer.poll(0.5)
        consumer.resume(both.tp)
        until(lambda: consumer.poll(0.2), "messages")


@row("`isolation.level`")
def isolation(both: Both) -> None:
    with both.producer(transactional_id=both.topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(ProducerRecord(both.topic, b"aborted", partition=0)).result(30)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(ProducerRecord(both.topic, b"last", partition=0))
        producer.commit_transaction()
    found: dict[str, list[Any]] = {"theirs": [], "ours": [], "committed": []}
    their = both.their_consumer()
    committed_alone = {"isolation_level": "read_committed"}
    with both.consumer() as consumer, both.consumer(**committed_alone) as strict:

        def read() -> bool:
            found["theirs"] += [one.value() for one in their.consume(20, 0.2)]
            found["ours"] += [one.value for one in consumer.poll(0.2)]
            found["committed"] += [one.value for one in strict.poll(0.2)]
            return all(b"last" in values for values in found.values())

        until(read, "the last message")
    assert found["theirs"] == found["committed"] == [*TEN, b"last"]
    assert found["ours"] == [*TEN, b"aborted", b"last"]


@row("`partition.assignment.strategy`")
def strategies(both: Both) -> None:
    group: dict[str, Any] = {"group_id": both.topic, "auto_offset_reset": "earliest"}
    assigned: list[Any] = []
    their = theirs.Consumer({"bootstrap.servers": both.at, **dotted(group)})
    their.subscribe([both.topic], on_assign=lambda _, found: assigned.append(found))
    with KafkaConsumer(bootstrap_servers=both.at, **group) as consumer:
        consumer.subscribe([both.topic])

        def is_shared() -> bool:
            consumer.poll(0.1)
            their.poll(0.1)
            shares = [len(consumer.assignment()), len(their.assignment())]
            return sorted(shares) == [1, 2]

        until(is_shared, "both to have a share", 60)
        with GroupReader(bootstrap=both.at) as reader:
            facts = reader.coordinated_facts(both.topic)
        assert facts is not None
        assert facts.group.protocol == "range"
    their.close()


@row("after `close()`")
def closed(both: Both) -> None:
    their, ours = both.their_consumer(), both.consumer()
    their.close()
    ours.close()
    with pytest.raises(RuntimeError, match="closed"):
        their.poll(0)
    with pytest.raises(Closed):
        ours.poll(0)


# Producer


@row('`produce("t", value')
def futures(both: Both) -> None:
    their = both.their_producer()
    assert their.produce(both.topic, b"v", b"k", headers=[("a", b"1")]) is None
    assert their.flush(30) == 0
    with both.producer() as producer:
        record = ProducerRecord(both.topic, b"v", b"k", headers=[("a", b"1")])
        assert producer.send(record).result(30).topic == both.topic
        producer.send_many(both.topic, [b"v"], [b"k"]).result(30)


@row("texts are encoded")
def texts(both: Both) -> None:
    their = both.their_producer()
    their.produce(both.topic, "text")
    assert their.flush(30) == 0
    with both.producer() as producer, pytest.raises(TypeError, match="must be bytes"):
        producer.send(ProducerRecord(both.topic, "text"))
    with both.producer(value_serializer=lambda _, text: text.encode()) as producer:
        producer.send(ProducerRecord(both.topic, "text")).result(30)


@row("`on_delivery=f(error, message)`")
def deliveries(both: Both) -> None:
    told: list[Any] = []
    their = both.their_producer()
    me = threading.current_thread()

    def delivered(*of_message: Any) -> None:
        told.append((*of_message, threading.current_thread()))

    their.produce(both.topic, b"v", on_delivery=delivered)
    time.sleep(0.5)
    assert not told
    their.flush(30)
    ((error, message, where),) = told
    assert (error, message.topic(), where) == (None, both.topic, me)
    told.clear()
    with both.producer() as producer:
        producer.send(ProducerRecord(both.topic, b"v"), delivered)
        until(lambda: told, "the callback")
    ((metadata, failed, where),) = told
    assert (metadata.topic, failed) == (both.topic, None)
    assert where is not me


@row("`poll(0)`")
def no_poll(both: Both) -> None:
    assert both.their_producer().poll(0) == 0
    assert not hasattr(KafkaProducer, "poll")


@row("a full queue")
def full(both: Both) -> None:
    their = theirs.Producer({"bootstrap.servers": NOBODY, "queue.buffering.max.messages": 1})
    their.produce(both.topic, b"v")
    with pytest.raises(BufferError, match="Queue full"):
        their.produce(both.topic, b"v")
    their.purge()
    keys: dict[str, Any] = {"buffer_memory": 20_000, "max_block_ms": 500}
    with both.producer(**keys) as producer:
        producer.partitions_for(both.topic)
        both.cluster.pause(0)
        try:
            record = ProducerRecord(both.topic, bytes(1000), partition=1)
            futures = [producer.send(record) for _ in range(25)]
            assert isinstance(futures[-1].exception(0), BufferExhausted)
        finally:
            both.cluster.resume(0)


@row("`flush(timeout)` returns")
def flushes(both: Both) -> None:
    their = theirs.Producer({"bootstrap.servers": NOBODY})
    their.produce(both.topic, b"v")
    assert their.flush(0.1) == 1
    their.purge()
    with both.producer() as producer:
        producer.send(ProducerRecord(both.topic, b"v"))
        with suppress(TimeoutError):
            producer.flush(0.0)
        producer.flush(30)


END_OF_THEIRS: Final = """
import sys, confluent_kafka, os
producer = confluent_kafka.Producer({"bootstrap.servers": sys.argv[1], "linger.ms": 5000})
producer.produce(sys.argv[2], b"theirs", partition=1)
"""
END_OF_OURS: Final = """
import sys
from kafka08.producer import KafkaProducer, ProducerRecord
producer = KafkaProducer(bootstrap_servers=sys.argv[1], linger_ms=5000)
producer.send(ProducerRecord(sys.argv[2], b"ours", partition=1))
"""


@row("a program that ends without")
def ends(both: Both) -> None:
    for program in (END_OF_THEIRS, END_OF_OURS):
        command = [sys.executable, "-c", program, both.at, both.topic]
        subprocess.run(command, check=True, timeout=60)
    with both.consumer() as consumer:
        consumer.assign([TopicPartition(both.topic, 1)])
        consumer.seek_to_beginning()
        found = until(lambda: consumer.poll(0.2), "the message")
    assert [message.value for message in found] == [b"ours"]


@row("the default partitioner")
def partitioners(both: Both) -> None:
    keys = [b"k%d" % n for n in range(30)]

    def partitions(**settings: Any) -> list[int]:
        found: dict[bytes, int] = {}
        their = both.their_producer(**settings)
        for key in keys:
            their.produce(
                both.topic,
                b"v",
                key,
                on_delivery=lambda _, m: found.__setitem__(m.key(), m.partition()),
            )
        their.flush(30)
        return [found[key] for key in keys]

    with both.producer() as producer:
        ours = [
            producer.send(ProducerRecord(both.topic, b"v", key)).result(30).partition
            for key in keys
        ]
    assert partitions(partitioner="murmur2_random") == ours
    assert partitions() != ours


@row("`acks=all`")
def safety(both: Both) -> None:
    with both.producer() as producer:
        acks, retries, _ = producer.config.terms(once=True)
        assert acks == -1
        assert retries > 1_000_000
        assert producer.config.terms(once=False)[:2] == (1, 0)


@row("`send_offsets_to_transaction")
def offsets_in_transactions(both: Both) -> None:
    their = both.their_consumer(enable_auto_commit=False)
    until(lambda: their.poll(0.2), "their message")
    producer = both.their_producer(transactional_id=f"{both.topic}-theirs")
    producer.init_transactions(30)
    producer.begin_transaction()
    positions = their.position([both.their()])
    producer.send_offsets_to_transaction(positions, their.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    with (
        both.consumer() as consumer,
        both.producer(transactional_id=f"{both.topic}-ours") as ours,
    ):
        until(lambda: consumer.poll(0.2), "messages")
        ours.init_transactions()
        with ours.transaction():
            ours.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())
        stored = until(lambda: consumer.committed(both.tp)[both.tp], "the commit")
        assert stored.offset == 10


# Admin


@row("`AdminClient({…})`")
def admins(both: Both) -> None:
    assert (
        both.topic
        in admin_of.AdminClient({"bootstrap.servers": both.at}).list_topics(timeout=30).topics
    )
    with BrokerAdmin(parse_bootstrap(both.at)) as admin:
        assert both.topic in admin.list_topics()


@row("`create_topics(")
def created(both: Both) -> None:
    client = admin_of.AdminClient({"bootstrap.servers": both.at})
    (future,) = client.create_topics([admin_of.NewTopic(f"{both.topic}-theirs", 3, 1)]).values()
    assert future.result(30) is None
    with BrokerAdmin(parse_bootstrap(both.at)) as admin:
        assert len(admin.create_topic(f"{both.topic}-ours", 3, 1)) == 3


@row("`describe_configs`")
def configs(both: Both) -> None:
    with BrokerAdmin(parse_bootstrap(both.at)) as admin:
        admin.alter_topic(both.topic, config={"retention.ms": "1000000", "segment.ms": "70000"})
        until(lambda: len(admin.overrides(both.topic)) == 2, "the change")
        admin.alter_topic(both.topic, delete_config=["segment.ms"])
        until(lambda: admin.overrides(both.topic) == {"retention.ms": "1000000"}, "the removal")
    client = admin_of.AdminClient({"bootstrap.servers": both.at})
    resource = admin_of.ConfigResource(admin_of.ConfigResource.Type.TOPIC, both.topic)
    (future,) = client.describe_configs([resource]).values()
    assert future.result(30)["retention.ms"].value == "1000000"


@row("`list_consumer_groups()`")
def groups(both: Both) -> None:
    with both.consumer() as consumer:
        consumer.commit({both.tp: 1})
    client = admin_of.AdminClient({"bootstrap.servers": both.at})
    found = client.list_consumer_groups(request_timeout=30).result(30).valid
    assert both.topic in {one.group_id for one in found}
    with GroupReader(bootstrap=both.at) as reader:
        assert both.topic in {one.name for one in reader.coordinated_groups().groups}


def test_no_row_is_left_out() -> None:
    """Each row has a check."""
    assert set(CHECKS) == set(ROWS)
