"""KafkaProducer asks each broker for its versions: those from 0.10.0 on get messages with
timestamps, older ones the bytes of 0.8."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafka08 import kernel
from kafka08.errors import FailedToSend, UnsupportedForMessageFormat
from kafka08.format import batches
from kafka08.format.v2 import encoded_headers
from kafka08.levels import Level
from kafka08.producer import KafkaProducer, ProducerRecord, RecordMetadata
from kafka08.producer.batch import RecordBatch
from kafka08.protocol import compression, message_set
from kafka08.protocol.produce import ProduceRequest
from tests.producer.producers import SECONDS, T0, U0, Interceptor, config_on, values
from tests.producer.tcp_cluster import TcpCluster

CODECS = list(compression.CODECS.values())
MOMENT = 1_600_000_000_000


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    """Two brokers of 0.10.2: 1 leads [t,0], 2 leads [t,1] and [u,0]."""
    with TcpCluster({"t": {0: 1, 1: 2}, "u": {0: 2}}) as cluster:
        cluster.levels = dict.fromkeys(cluster.levels, Level.V0_10_2)
        yield cluster


def producer_on(cluster: TcpCluster, **keys: Any) -> KafkaProducer:
    return KafkaProducer(config_on(cluster, api_version_request=True, **keys))


def sets(request: ProduceRequest) -> list[bytes]:
    return [bytes(part.message_set) for topic in request.topics for part in topic.partitions]


def times(cluster: TcpCluster) -> list[int]:
    """The timestamps of all messages that arrived."""
    return [
        message.timestamp
        for request in cluster.produced()
        for data in sets(request)
        for message in message_set.decode(data)
    ]


# ------------------------------------------------------------------------------ brokers of 0.10


@pytest.mark.parametrize("codec", CODECS)
def test_messages_have_their_timestamps(cluster: TcpCluster, codec: str) -> None:
    """Each message has the time of its record, or of its send; futures and callbacks have it too.
    Offsets inside a wrapper begin at 0; the wrapper has the largest time and the last offset."""
    told: list[RecordMetadata | None] = []
    given = [MOMENT + 5, MOMENT + 9, None, MOMENT]
    before = time.time_ns() // 1_000_000
    with producer_on(cluster, compression_type=codec, linger_ms=1_000_000) as producer:
        futures = [
            producer.send(ProducerRecord("u", b"%d" % n, timestamp=at), lambda m, _: told.append(m))
            for n, at in enumerate(given)
        ]
        producer.flush(SECONDS)
        found = [future.result(SECONDS) for future in futures]
    after = time.time_ns() // 1_000_000
    [request] = cluster.produced()
    [data] = sets(request)
    assert request.version == 2
    assert [m.timestamp for m in found] == times(cluster)
    assert told == found
    assert [m.timestamp for m in found[:2] + found[3:]] == [MOMENT + 5, MOMENT + 9, MOMENT]
    assert before <= found[2].timestamp <= after
    entries = list(kernel.entries(data))
    assert {entry.magic for entry in entries} == {1}
    if codec != "none":
        [wrapper] = entries
        assert (wrapper.offset, wrapper.timestamp_ms) == (3, found[2].timestamp)
        inner = compression.decompress(wrapper.codec, wrapper.value or b"", 1 << 20, magic=1)
        entries = list(kernel.entries(inner))
    assert [entry.offset for entry in entries] == [0, 1, 2, 3]


def test_the_brokers_time_is_told(cluster: TcpCluster) -> None:
    """With message.timestamp.type=LogAppendTime the metadata has the time that the broker set."""
    cluster.log_append_time_ms = MOMENT
    with producer_on(cluster) as producer:
        assert producer.send(ProducerRecord("u", b"a")).result(SECONDS).timestamp == MOMENT


def test_interceptors_see_and_set_timestamps(cluster: TcpCluster) -> None:
    """An interceptor may give a record another timestamp, and sees the one that was stored."""

    class Stamping(Interceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(timestamp=MOMENT)

    interceptor = Stamping()
    config = config_on(cluster, api_version_request=True)
    with KafkaProducer(config, interceptors=[interceptor]) as producer:
        producer.send(ProducerRecord("u", b"a")).result(SECONDS)
    assert interceptor.told == [(RecordMetadata("u", 0, 0, MOMENT), None)]


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_many_records_have_their_timestamps(cluster: TcpCluster, codec: str, keyed: bool) -> None:
    """send_many takes one for each record, None for the time of the call."""
    some = [b"%d" % n for n in range(100)]
    given = [MOMENT + n if n % 3 else None for n in range(100)]
    keys = some if keyed else None
    before = time.time_ns() // 1_000_000
    with producer_on(cluster, batch_size=300, compression_type=codec) as producer:
        producer.send_many("t", some, keys, timestamps=given).result(SECONDS)
        wrong: Any
        for wrong, error in (([1], ValueError), ([-1] * 100, ValueError), ([1.0] * 100, TypeError)):
            with pytest.raises(error, match="timestamps"):
                producer.send_many("t", some, timestamps=wrong)
    stored = {
        m.value: m.timestamp
        for request in cluster.produced()
        for data in sets(request)
        for m in message_set.decode(data)
    }
    for value, at in zip(some, given, strict=True):
        assert stored[value] == at if at is not None else stored[value] >= before


def test_columns_have_their_timestamps(cluster: TcpCluster) -> None:
    """send_columns takes them as milliseconds or as Arrow's timestamps; null and -1 are the time of
    the call, an earlier time is refused."""
    pyarrow = pytest.importorskip("pyarrow")
    given = [MOMENT, None, -1, MOMENT + 1]
    numbers = pyarrow.array(given, pyarrow.int64())
    moments = pyarrow.array([MOMENT, None, None, MOMENT + 1], pyarrow.timestamp("ms", "UTC"))
    before = time.time_ns() // 1_000_000
    with producer_on(cluster) as producer:
        for column in (numbers, moments.cast(pyarrow.timestamp("us", "UTC"))):
            columns = {"value": [b"a", b"b", b"c", b"d"], "timestamp": column}
            producer.send_columns("u", pyarrow.record_batch(columns)).result(SECONDS)
            sliced = pyarrow.record_batch(columns).slice(1)
            producer.send_columns("u", sliced).result(SECONDS)
        with pytest.raises(ValueError, match="-2 ms is before 1970"):
            producer.send_columns("u", pyarrow.record_batch({"value": [b""], "timestamp": [-2]}))
    found = times(cluster)
    for run in (found[:4], found[7:11]):
        assert (run[0], run[3]) == (MOMENT, MOMENT + 1)
        assert min(run[1:3]) >= before
    for run in (found[4:7], found[11:]):
        assert run[2] == MOMENT + 1
        assert min(run[:2]) >= before


@pytest.mark.parametrize("is_later", [False, True])
def test_a_later_broker_gets_one_batch_at_a_time(cluster: TcpCluster, is_later: bool) -> None:
    """A broker of 0.10 takes several compressed batches in a set and packs them again. Later ones
    refuse such a set, and later batches would overtake it."""
    cluster.is_later = is_later
    with producer_on(cluster, compression_type="snappy", batch_size=300) as producer:
        producer.partitions_for("u")
        cluster.pause(2)
        futures = [producer.send(ProducerRecord("u", b"%d" % n)) for n in range(200)]
        cluster.resume(2)
        assert [future.result(SECONDS).offset for future in futures] == list(range(200))
    most = max(len(list(batches(d))) for r in cluster.produced() for d in sets(r))
    assert (most > 1) is not is_later


# ------------------------------------------------------------------------------ brokers of 0.11


@pytest.mark.parametrize("codec", CODECS)
def test_a_broker_of_0_11_gets_record_batches(cluster: TcpCluster, codec: str) -> None:
    """Produce 3, whatever the call: with timestamps, and headers of the records that have some."""
    cluster.is_later = True
    headers = [("a", b"1"), ("ü", None), ("a", b"")]
    told: list[RecordMetadata | None] = []
    with producer_on(cluster, compression_type=codec, linger_ms=1_000_000) as producer:
        futures = [
            producer.send(
                ProducerRecord(
                    "u", b"%d" % n, timestamp=MOMENT + n, headers=headers if n else None
                ),
                lambda m, _: told.append(m),
            )
            for n in range(3)
        ]
        many = producer.send_many("u", [b"3", None], [b"k", None], timestamps=[MOMENT, None])
        producer.flush(SECONDS)
        assert told == [future.result(SECONDS) for future in futures]
        assert [one.timestamp for one in told if one] == [MOMENT, MOMENT + 1, MOMENT + 2]
        many.result(SECONDS)
    assert {request.version for request in cluster.produced()} == {3}
    data = b"".join(data for request in cluster.produced() for data in sets(request))
    assert {batch.magic for batch in batches(data)} == {2}
    assert set(cluster.codecs) == {CODECS.index(codec)}
    found = list(message_set.decode(data))
    assert [(m.key, m.value) for m in found[3:]] == [(b"k", b"3"), (None, None)]
    assert [m.headers for m in found] == [(), tuple(headers), tuple(headers), (), ()]


def test_columns_become_record_batches(cluster: TcpCluster) -> None:
    """send_columns builds them of Arrow's buffers."""
    pyarrow = pytest.importorskip("pyarrow")
    cluster.is_later = True
    columns = {"key": [b"a", None], "value": [None, b"2"], "timestamp": [MOMENT, MOMENT + 1]}
    with producer_on(cluster) as producer:
        producer.send_columns("u", pyarrow.record_batch(columns)).result(SECONDS)
    [data] = [data for request in cluster.produced() for data in sets(request)]
    found = [(m.key, m.value, m.timestamp) for m in message_set.decode(data)]
    assert found == [(b"a", None, MOMENT), (None, b"2", MOMENT + 1)]


def test_headers_need_a_broker_that_stores_them(cluster: TcpCluster) -> None:
    """To one before 0.11 they would be lost without a word; the record fails. What is no header is
    an error of the call."""
    with producer_on(cluster) as producer:
        producer.partitions_for("u")
        future = producer.send(ProducerRecord("u", b"a", headers=[("h", b"1")]))
        with pytest.raises(UnsupportedForMessageFormat, match="no headers"):
            future.result(SECONDS)
        wrong: Any = [("h", "text")]
        with pytest.raises(TypeError, match="a header is text"):
            producer.send(ProducerRecord("u", b"a", headers=wrong))
        producer.send(ProducerRecord("u", b"b", headers=[])).result(SECONDS)
    assert values(cluster, U0) == [b"b"]


def test_zstd_needs_a_broker_that_has_it(cluster: TcpCluster) -> None:
    """A record that the leader cannot take fails; it is not sent in another codec."""
    for is_later in (False, True):
        cluster.is_later = is_later
        with producer_on(cluster, compression_type="zstd") as producer:
            future = producer.send(ProducerRecord("u", b"a"))
            with pytest.raises(UnsupportedForMessageFormat, match="zstd"):
                future.result(SECONDS)
    assert cluster.produced() == []


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_batch_is_converted_for_another_leader(codec: str) -> None:
    """One that was filled for a broker of 0.11 goes to an older one, and the reverse. One with
    headers cannot be stored there."""
    number = CODECS.index(codec)
    for magic, to, times in ((2, 1, 5), (2, 0, 5), (0, 2, None), (1, 2, 5), (1, 0, 5)):
        data = kernel.build_from_lists(None, [b"a", b"b"], 0, 2, magic, times)
        stamps = -1 if times is None else times
        batch = RecordBatch(
            *(U0, number, 1000, 0.0), magic=magic, data=data, count=2, timestamps=stamps
        )
        batch.pack()
        sent = bytes(batch.message_set(to))
        assert {one.magic for one in batches(sent)} == {to}
        found = list(message_set.decode(sent))
        assert [m.value for m in found] == [b"a", b"b"]
        assert (
            {m.timestamp for m in found} == {-1}
            if to == 0
            else min(m.timestamp for m in found) >= 5
        )
    builder = kernel.SetBuilder(1000, None, kernel.MessageRef, 2)
    builder.append(None, b"a", None, 5, encoded_headers([("h", b"1")]))
    batch = RecordBatch(U0, number, 1000, 0.0, magic=2, data=builder.finish(), count=1)
    with pytest.raises(UnsupportedForMessageFormat, match="no headers"):
        batch.message_set(1)


def test_unsent_records_keep_their_timestamps(cluster: TcpCluster) -> None:
    """The records in FailedToSend can be sent again as they are."""
    producer = producer_on(cluster)
    producer.partitions_for("u")
    cluster.pause(2)
    producer.send(ProducerRecord("u", b"a", timestamp=MOMENT))
    with pytest.raises(FailedToSend) as failed:
        producer.close(timeout=0)
    assert failed.value.messages == (ProducerRecord("u", b"a", None, 0, MOMENT),)


# --------------------------------------------------------------------------------- older brokers


@pytest.mark.parametrize("level", [Level.V0_8_2, Level.V0_9_0])
@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_older_brokers_get_the_bytes_of_0_8(cluster: TcpCluster, level: Level, codec: str) -> None:
    """The same requests as without the question, whatever timestamps the records have. Brokers of
    0.8 close the connection that asks; each gets one that does not."""
    cluster.levels = dict.fromkeys(cluster.levels, level)
    opened, written = [], []
    for asks in (True, False):
        connections, requests = cluster.opened, len(cluster.produced())
        keys = {"compression_type": codec, "batch_size": 400, "linger_ms": 1_000_000}
        config = config_on(cluster, api_version_request=asks, **keys)
        with KafkaProducer(config) as producer:
            futures = [
                producer.send(ProducerRecord("u", b"%d" % n, timestamp=MOMENT)) for n in range(200)
            ]
            producer.flush(SECONDS)
            assert {future.result(SECONDS).timestamp for future in futures} == {-1}
            many = producer.send_many("u", [b"many"] * 50, timestamps=[1] * 50)
            producer.flush(SECONDS)
            many.result(SECONDS)
        opened.append(cluster.opened - connections)
        new = cluster.produced()[requests:]
        assert {request.version for request in new} == {0}
        written.append(b"".join(data for request in new for data in sets(request)))
    assert written[0] == written[1]
    assert opened[0] == opened[1] * (2 if level is Level.V0_8_2 else 1)


def test_each_broker_gets_its_own_version(cluster: TcpCluster) -> None:
    """In a cluster of 0.8 and 0.10, as during an upgrade, only brokers of 0.10 get timestamps."""
    cluster.levels[1] = Level.V0_8_2
    with producer_on(cluster) as producer:
        for _ in range(2):  # the first batch of a leader that was not asked yet may lose its times
            old = producer.send(ProducerRecord("t", b"a", partition=0)).result(SECONDS)
            new = producer.send(ProducerRecord("t", b"b", partition=1)).result(SECONDS)
    assert old.timestamp == -1
    assert new.timestamp > 0


@pytest.mark.parametrize("codec", CODECS)
def test_a_partition_that_moves_to_an_old_broker(cluster: TcpCluster, codec: str) -> None:
    """A batch that was filled for a broker of 0.10 goes to one of 0.8 without its timestamps."""
    cluster.levels[2] = Level.V0_8_2
    with producer_on(cluster, compression_type=codec, retries=10, linger_ms=20) as producer:
        assert producer.send(ProducerRecord("t", b"0", partition=0)).result(SECONDS).timestamp > 0
        cluster.leaders[T0] = 2
        futures = [producer.send(ProducerRecord("t", b"%d" % n, partition=0)) for n in range(1, 9)]
        assert {future.result(SECONDS).timestamp for future in futures} == {-1}
    assert values(cluster, T0) == [b"%d" % n for n in range(9)]
    assert set(cluster.codecs) == {CODECS.index(codec)}


@pytest.mark.parametrize("is_upgrade", [True, False])
def test_a_broker_that_changes_its_release(cluster: TcpCluster, is_upgrade: bool) -> None:
    """A new connection asks again, so a running producer follows an upgrade and a downgrade."""
    before, after = Level.V0_8_2, Level.V0_10_2
    if not is_upgrade:
        before, after = after, before
    cluster.levels = dict.fromkeys(cluster.levels, before)
    with producer_on(cluster, retries=10) as producer:
        first = producer.send(ProducerRecord("u", b"a")).result(SECONDS)
        cluster.levels = dict.fromkeys(cluster.levels, after)
        cluster.hang_up(2)
        cluster.hang_up(1)
        producer.send(ProducerRecord("u", b"b")).result(SECONDS)
        last = producer.send(ProducerRecord("u", b"c")).result(SECONDS)
    assert (first.timestamp > 0, last.timestamp > 0) == (not is_upgrade, is_upgrade)
    assert values(cluster, U0) == [b"a", b"b", b"c"]


def test_a_starting_broker_is_not_taken_for_an_old_one(cluster: TcpCluster) -> None:
    """A proxy, such as a published port of a container, closes connections while its broker starts.
    Only a broker that has answered something else before is of 0.8."""
    cluster.unborn = 5
    with producer_on(cluster, reconnect_backoff_ms=1) as producer:
        assert producer.send(ProducerRecord("u", b"a")).result(SECONDS).timestamp > 0


# -------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("wrong", "error"),
    [(-1, ValueError), (1 << 63, ValueError), (1.5e12, TypeError), ("now", TypeError)],
)
def test_a_timestamp_that_cannot_be(wrong: Any, error: type[Exception]) -> None:
    """As in Java, a record with a negative timestamp cannot be made; the error says the unit."""
    with pytest.raises(error, match="milliseconds since 1970"):
        ProducerRecord("t", b"", timestamp=wrong)
