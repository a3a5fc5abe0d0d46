"""The user's parts of a KafkaProducer (serializers, partitioner, interceptors), and send_many."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import pytest

from kafka08.client.metadata import PartitionInfo
from kafka08.errors import (
    ConfigError,
    MessageTooLarge,
    RecordTooLarge,
    UnknownTopicOrPartition,
)
from kafka08.hashing import murmur2
from kafka08.producer import KafkaProducer, KeyedMessage, ProducerRecord, RecordMetadata
from kafka08.producer.future import RecordFuture
from tests.producer.producers import (
    SECONDS,
    T1,
    U0,
    Interceptor,
    config_on,
    producer_on,
    values,
)
from tests.producer.tcp_cluster import TcpCluster
from tests.waiting import until


def test_a_subclass_has_its_own_send(cluster: TcpCluster) -> None:
    """A subclass that overrides `send` sees every record, and may pass it on."""

    class Loud(KafkaProducer):
        def send(self, record: ProducerRecord, callback: Any = None) -> RecordFuture:
            return super().send(record._replace(value=record.value.upper()), callback)

    with Loud(config_on(cluster)) as producer:
        producer.send(ProducerRecord("u", b"a")).result(SECONDS)
        producer.send(ProducerRecord("u", b"b", partition=0)).result(SECONDS)
    assert values(cluster, U0) == [b"A", b"B"]


def test_serializers_see_topic_and_object(cluster: TcpCluster) -> None:
    """A serializer has Java's name or is any callable that gets topic and object. None is sent as
    null. A result that is not bytes is refused."""
    strings = "org.apache.kafka.common.serialization.StringSerializer"
    config = config_on(cluster, key_serializer=strings)
    with KafkaProducer(
        config, value_serializer=lambda t, v: b"%s=%d" % (t.encode(), v)
    ) as producer:
        producer.send(ProducerRecord("u", 7, "é")).result(SECONDS)
        producer.send(ProducerRecord("u", None, None)).result(SECONDS)
        producer.send_many("u", [8, 9], ["a", "b"]).result(SECONDS)
        with pytest.raises(TypeError, match="StringSerializer takes str"):
            producer.send(ProducerRecord("u", 7, b"bytes"))
    assert cluster.messages(U0) == [
        ("é".encode(), b"u=7"),
        (None, None),
        (b"a", b"u=8"),
        (b"b", b"u=9"),
    ]


def test_wide_items_are_counted_in_bytes(cluster: TcpCluster) -> None:
    """The size of a memoryview of wide items is its bytes, not its length."""
    wide = memoryview(bytes(400)).cast("q")
    with producer_on(cluster, batch_size=100) as producer:
        producer.send(ProducerRecord("u", b"first")).result(SECONDS)
        assert producer.send(ProducerRecord("u", wide)).result(SECONDS).offset == 1
    assert values(cluster, U0) == [b"first", bytes(400)]


@pytest.mark.parametrize("bad", ["text", 7])
def test_keys_and_values_must_be_bytes(cluster: TcpCluster, bad: object) -> None:
    """A key or value that is not bytes is a TypeError of send(). bytearray and memoryview are
    copied."""
    with producer_on(cluster) as producer:
        changing = bytearray(b"abc")
        future = producer.send(ProducerRecord("u", changing, memoryview(b"k")))
        changing[:] = b"xyz"
        future.result(SECONDS)
        for record in (ProducerRecord("u", bad), ProducerRecord("u", b"", bad)):
            with pytest.raises(TypeError, match=type(bad).__name__):
                producer.send(record)
        with pytest.raises(TypeError):
            producer.send_many("u", [b"", bad])
    assert cluster.messages(U0) == [(b"k", b"abc")]


def test_a_partitioner_of_ones_own(cluster: TcpCluster) -> None:
    """A partitioner of the user gives the hot key a partition of its own, as in the seeds."""

    def hot_last(
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        partitions: Sequence[PartitionInfo],
    ) -> int:
        assert (topic, key_bytes, value_bytes) == ("t", key, value)
        return len(partitions) - 1 if b"hot" in key else 0

    with KafkaProducer(config_on(cluster), partitioner=hot_last) as producer:
        for n in range(10):
            producer.send(ProducerRecord("t", b"%d" % n, b"hot_data" if n % 2 else b"other"))
    assert values(cluster, T1) == [b"1", b"3", b"5", b"7", b"9"]


def test_interceptors_see_every_record(cluster: TcpCluster) -> None:
    """Interceptors see every record when it is sent and when its result is known. Their errors are
    logged and change nothing."""
    interceptor, told = Interceptor(), []
    with KafkaProducer(config_on(cluster), interceptors=[interceptor]) as producer:
        producer.send(ProducerRecord("u", b"a"), lambda *both: told.append(both)).result(SECONDS)
        until(lambda: len(told) == 1)
        interceptor.fail = True
        producer.send(ProducerRecord("u", b"b")).result(SECONDS)
    assert values(cluster, U0) == [b"A", b"b"]
    assert told == [(RecordMetadata("u", 0, 0), None)]
    assert interceptor.told == [(RecordMetadata("u", 0, n), None) for n in range(2)]
    assert interceptor.closed == 1


def test_a_hook_without_return_is_an_error(cluster: TcpCluster) -> None:
    """on_send and the partitioner: without a result nothing of the user's would be sent, or
    elsewhere."""

    class Forgetful(Interceptor):
        def on_send(self, record: ProducerRecord) -> Any:
            """Lacks its return."""

    record = ProducerRecord("t", b"v")
    with (
        KafkaProducer(config_on(cluster), interceptors=[Forgetful()]) as producer,
        pytest.raises(TypeError, match="returned None, not a ProducerRecord"),
    ):
        producer.send(record)
    partitioner: Any = lambda *_: None  # noqa: E731
    with (
        KafkaProducer(config_on(cluster), partitioner=partitioner) as producer,
        pytest.raises(TypeError, match="returned None: let it return a partition number"),
    ):
        producer.send(record)


def test_ctrl_c_in_an_interceptor_reaches_the_caller(cluster: TcpCluster) -> None:
    """`send` reports its own failures in the caller's thread, where Ctrl-C ends the program. The
    other interceptors and the callback hear of the record first."""

    class Interrupted(Interceptor):
        def on_acknowledgement(self, *_: Any) -> None:
            raise KeyboardInterrupt

    config = config_on(cluster, max_request_size=100)
    last, told = Interceptor(), []
    with (
        KafkaProducer(config, interceptors=[Interrupted(), last]) as producer,
        pytest.raises(KeyboardInterrupt),
    ):
        producer.send(ProducerRecord("u", b"x" * 200), lambda *both: told.append(both))
    assert [type(error) for _, error in told] == [RecordTooLarge]
    assert last.told == told


def test_parts_are_named_by_the_configuration(cluster: TcpCluster) -> None:
    """partitioner.class and interceptor.classes name their classes as module:callable."""
    config = config_on(
        cluster,
        partitioner_class=f"{__name__}:always_one",
        interceptor_classes=f"{__name__}:Interceptor",
    )
    with KafkaProducer(config) as producer:
        producer.send(ProducerRecord("t", b"a"))
    assert values(cluster, T1) == [b"A"]


def always_one(*_: Any) -> int:
    return 1


# -------------------------------------------------------------------------------- many at a time


@pytest.mark.parametrize("codec", ["none", "snappy"])
@pytest.mark.parametrize("keyed", [False, True])
def test_send_many_is_send_many_times(cluster: TcpCluster, keyed: bool, codec: str) -> None:
    """Every record of send_many is at the offset in its future, and keys choose the same partitions
    as in send()."""
    some = [b"%d" % n * (n % 50) if n % 9 else None for n in range(1000)]
    keys = [b"%d" % (n % 13) if n % 4 else None for n in range(1000)] if keyed else None
    with producer_on(cluster, batch_size=300, compression_type=codec) as producer:
        future = producer.send_many("t", some, keys)
        seen: set[int] = set()
        for tp, offset, places in future.result(SECONDS):
            log = cluster.messages(tp)
            assert list(places) == sorted(places)
            for n, place in enumerate(places):
                assert log[offset + n] == (keys and keys[place], some[place])
                if keys and keys[place] is not None:
                    assert tp.partition == (murmur2(keys[place] or b"") & 0x7FFFFFFF) % 2
                seen.add(place)
        assert seen == set(range(1000))
        assert future.done()
        assert producer.free_bytes == producer.config.buffer_memory
        assert producer.send_many("t", [], None).result(SECONDS) == []


def test_send_many_to_one_partition(cluster: TcpCluster) -> None:
    """Records for one partition are stored in the order of the call."""
    with producer_on(cluster, batch_size=100) as producer:
        producer.send_many("t", [b"%d" % n for n in range(100)], partition=1).result(SECONDS)
        with pytest.raises(UnknownTopicOrPartition):
            producer.send_many("t", [b""], partition=9).result(SECONDS)
        with pytest.raises(ValueError, match="1 keys for 2 values"):
            producer.send_many("t", [b"", b""], [b""])
    assert values(cluster, T1) == [b"%d" % n for n in range(100)]


def test_send_many_says_which_records_failed(cluster: TcpCluster) -> None:
    """A record that is too large fails alone, and the others are stored."""
    some = [b"a" * 50, b"x" * 2000, b"b" * 50]
    with producer_on(cluster, max_request_size=1000) as producer:
        future = producer.send_many("u", some)
        [(places, error)] = future.failures(SECONDS)
        assert list(places) == [1]
        assert isinstance(error, MessageTooLarge)
        with pytest.raises(MessageTooLarge):
            future.result(SECONDS)
    assert values(cluster, U0) == [some[0], some[2]]


def test_send_many_stops_where_memory_ends(cluster: TcpCluster) -> None:
    """After a record that finds no memory, all later ones of the call are refused too, so the order
    is kept."""
    keys = {"max_block_ms": 20, "metadata_fetch_timeout_ms": SECONDS * 1000}
    with producer_on(cluster, buffer_memory=1000, batch_size=300, **keys) as producer:
        producer.partitions_for("u")
        cluster.pause(2)
        future = producer.send_many("u", [b"%0200d" % n for n in range(10)])
        cluster.resume(2)
        refused = [place for places, _ in future.failures(SECONDS) for place in places]
        assert refused == list(range(4, 10))
    assert values(cluster, U0) == [b"%0200d" % n for n in range(4)]


@pytest.mark.parametrize("is_open", [False, True], ids=["first of a batch", "batch open"])
@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (b"v", b"v"),
        (bytearray(b"v"), b"v"),
        (memoryview(b"vw")[:1], b"v"),
        (None, None),
        (memoryview(b"abcdef")[::2], TypeError),
        (array("i", [1, 2]), TypeError),
        ("text", TypeError),
        (7, TypeError),
    ],
)
def test_a_type_is_taken_or_refused_whatever_the_clock(
    cluster: TcpCluster, value: Any, stored: Any, is_open: bool
) -> None:
    """Also with an open batch, where the kernel appends: it took every buffer as its raw bytes."""
    with producer_on(cluster, linger_ms=60_000) as producer:
        producer.partitions_for("t")
        if is_open:
            producer.send(ProducerRecord("t", b"first", b"first", partition=1))
        for record in (
            ProducerRecord("t", value, b"k", partition=1),
            ProducerRecord("t", b"v", value, partition=1),
        ):
            if stored is TypeError:
                with pytest.raises(TypeError, match="keys and values must be bytes"):
                    producer.send(record)
            else:
                producer.send(record)
    sent = [] if stored is TypeError else [(b"k", stored), (stored, b"v")]
    assert cluster.messages(T1)[is_open:] == sent


class Whole:
    """A whole number of another library, as numpy.int32."""

    def __index__(self) -> int:
        return 1


def test_any_whole_number_is_a_partition(cluster: TcpCluster) -> None:
    """Partitioners that compute with numpy return its numbers."""
    one: Any = Whole()
    with KafkaProducer(config_on(cluster), partitioner=lambda *_: one) as producer:
        producer.send(ProducerRecord("t", b"1")).result(SECONDS)
        producer.send(ProducerRecord("t", b"2", partition=one)).result(SECONDS)
    with producer_on(cluster) as producer:
        producer.send(ProducerRecord("t", b"3", partition=one)).result(SECONDS)
        producer.send_many("t", [b"4"], partition=one).result(SECONDS)
    assert values(cluster, T1) == [b"1", b"2", b"3", b"4"]


def test_other_arguments_than_a_record_say_what_send_takes(cluster: TcpCluster) -> None:
    """Those of other libraries: a topic and a value, a dict of keys, a partition as text."""
    with producer_on(cluster) as producer:
        send: Any = producer.send
        for wrong in ("topic", "pages", b"v", {"topic": "t"}, KeyedMessage("t", b"v")):
            with pytest.raises(TypeError, match="send takes a ProducerRecord, not"):
                send(wrong, b"v")
        with pytest.raises(TypeError, match="a partition must be an int, not '0'"):
            send(ProducerRecord("t", b"v", None, "0"))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"pass KafkaProducerConfig\(\{...\}\) or keywords"):
        KafkaProducer({"bootstrap.servers": cluster.servers})  # type: ignore[arg-type]
