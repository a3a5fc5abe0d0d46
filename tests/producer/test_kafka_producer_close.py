"""KafkaProducer.close and flush on scripted brokers: how long they wait, and what they report."""

from __future__ import annotations

import gc
import threading
import warnings
from typing import Any

import pytest

from kafka08.errors import (
    FailedToSend,
    KafkaError,
    ProducerClosed,
)
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.producer.batch import RecordBatch
from tests.producer.producers import (
    SECONDS,
    T0,
    T1,
    U0,
    Interceptor,
    config_on,
    producer_on,
)
from tests.producer.tcp_cluster import TcpCluster
from tests.waiting import until

STRINGS = "org.apache.kafka.common.serialization.StringSerializer"


def test_close_sends_accepted_records(cluster: TcpCluster) -> None:
    """close() sends accepted records at once, whatever linger.ms is. Later, send() raises. close()
    may be called again."""
    producer = producer_on(cluster, linger_ms=1_000_000)
    futures = [producer.send(ProducerRecord("t", b"%d" % n)) for n in range(100)]
    producer.close()
    producer.close()
    assert all(future.exception(0) is None for future in futures)
    assert len(cluster.messages(T0)) + len(cluster.messages(T1)) == 100
    with pytest.raises(ProducerClosed):
        producer.send(ProducerRecord("t", b""))
    with pytest.raises(ProducerClosed):
        producer.send_many("t", [b""])


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_close_raises_with_unsent_records(cluster: TcpCluster, codec: str) -> None:
    """After its timeout close() raises FailedToSend with the unsent records. Futures and callbacks
    get ProducerClosed."""
    told: list[KafkaError | None] = []
    producer = producer_on(cluster, compression_type=codec)
    producer.partitions_for("u")
    cluster.pause(2)
    futures = [
        producer.send(
            ProducerRecord("u", b"%d" % n, b"k"), lambda metadata, error: told.append(error)
        )
        for n in range(10)
    ]
    with pytest.raises(FailedToSend, match=r"10 records .* 10 for \[u,0\]") as caught:
        producer.close(timeout=0.05)
    assert caught.value.messages == tuple(
        ProducerRecord("u", b"%d" % n, b"k", 0) for n in range(10)
    )
    assert all(isinstance(future.exception(0), ProducerClosed) for future in futures)
    assert told == [futures[0].exception(0)] * 10
    assert producer.free_bytes == producer.config.buffer_memory


@pytest.mark.parametrize("is_plain", [True, False])
def test_send_many_has_the_results_of_what_a_close_has_cut_off(
    cluster: TcpCluster, is_plain: bool
) -> None:
    """A close during send_many fails the rest in its future, which has the results of the records
    that were accepted. It raised ProducerClosed as if none was, and their results were lost."""
    keys = {} if is_plain else {"key_serializer": STRINGS}
    producer = producer_on(cluster, buffer_memory=1000, batch_size=500, **keys)
    producer.partitions_for("u")
    cluster.pause(2)
    found: list[Any] = []

    def send() -> None:
        try:
            found.append(producer.send_many("u", [b"x" * 300] * 10).failures(SECONDS))
        except KafkaError as error:
            found.append(error)

    sending = threading.Thread(target=send)
    sending.start()
    until(lambda: bool(producer._accumulator._waiting), "send_many to wait for memory")
    with pytest.raises(FailedToSend):
        producer.close(timeout=0.05)
    sending.join(SECONDS)
    [failures] = found
    assert not isinstance(failures, KafkaError)
    assert list(range(10)) == sorted(place for places, _ in failures for place in places)
    assert {ProducerClosed} == {type(error) for _, error in failures}


def test_close_does_not_wait_for_a_sender_that_is_held_up(
    cluster: TcpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """close() does not wait for a sender that is blocked, for example by DNS. FailedToSend has the
    records, once, and their futures fail when the thread returns."""
    monkeypatch.setattr("kafka08.producer.sender.GIVE_UP_S", 0.01)
    entered, go = threading.Event(), threading.Event()
    producer = producer_on(cluster, linger_ms=1_000_000)
    producer.partitions_for("u")
    future = producer.send(ProducerRecord("u", b"a"))
    poll = producer._network.poll

    def held_up(timeout_s: float) -> Any:
        entered.set()
        go.wait(SECONDS)
        return poll(0)

    producer._network.poll = held_up  # type: ignore[method-assign]
    producer._network.wake_up()
    assert entered.wait(SECONDS)
    with pytest.raises(FailedToSend) as raised:
        producer.close(0)
    assert [record.value for record in raised.value.messages] == [b"a"]  # type: ignore[attr-defined]
    producer.close(0)
    assert not future.done()
    go.set()
    assert isinstance(future.exception(SECONDS), ProducerClosed)
    producer._sender.join(SECONDS)


def test_a_signal_handler_may_close_during_close(cluster: TcpCluster) -> None:
    """A signal handler may call close() while its own thread is in close(). (That used to wait for
    itself.) Both calls report the unsent records, and interceptors are closed once."""
    interceptor = Interceptor()
    producer = KafkaProducer(config_on(cluster), interceptors=[interceptor])
    producer.partitions_for("u")
    cluster.pause(2)
    producer.send(ProducerRecord("u", b"a"))
    sender = producer._sender
    unsent: list[list[bytes | None]] = []

    def close(timeout: float | None = None) -> None:
        with pytest.raises(FailedToSend) as raised:
            producer.close(timeout)
        unsent.append([record.value for record in raised.value.messages])  # type: ignore[attr-defined]

    def interrupted(timeout: float | None = None) -> None:
        del sender.join
        close(timeout=0)
        sender.join(timeout)

    sender.join = interrupted  # type: ignore[method-assign]
    closing = threading.Thread(target=close, daemon=True)
    closing.start()
    closing.join(SECONDS)
    assert unsent == [[b"A"], [b"A"]]
    assert interceptor.closed == 1


def test_a_batch_may_be_done_before_it_is_packed() -> None:
    """The sender may pack and send a batch before the thread that filled it does. The last record
    of that thread counts as accepted all the same."""
    batch = RecordBatch(U0, 1, 100, 0.0, data=b"x" * 100, count=1)
    lock = batch._lock

    class Late:
        """A lock that this thread acquires only when the sender is done."""

        def __enter__(self) -> None:
            batch._lock = lock
            batch.complete(7)
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()

    batch._lock = Late()  # type: ignore[assignment]
    batch.pack()
    assert batch.metadata(0).offset == 7


def test_close_within_a_callback_does_not_wait_for_itself(cluster: TcpCluster) -> None:
    """close() within a callback does not wait for the callback. The producer stops after it."""
    producer = producer_on(cluster)
    producer.send(ProducerRecord("u", b"a"), lambda metadata, error: producer.close())
    producer._sender.join(SECONDS)
    assert not producer._sender.is_alive
    producer.close()


def test_flush_may_run_out_of_time(cluster: TcpCluster) -> None:
    """flush() with a timeout raises TimeoutError. The records are still sent later."""
    with producer_on(cluster) as producer:
        producer.partitions_for("u")
        cluster.pause(2)
        future = producer.send(ProducerRecord("u", b"a"))
        with pytest.raises(TimeoutError):
            producer.flush(0.05)
        cluster.resume(2)
        assert future.result(SECONDS).offset == 0


# ---------------------------------------------------------------------------- the user's own parts


def test_a_dropped_producer_ends_after_a_warning(cluster: TcpCluster) -> None:
    """Its thread and its connections end once everything accepted is stored."""
    threads = threading.active_count()
    producer = producer_on(cluster, linger_ms=60_000)
    future = producer.send(ProducerRecord("t", b"v", partition=0))
    del producer
    with pytest.warns(ResourceWarning, match="unclosed <KafkaProducer to"):
        gc.collect()
    assert future.result(SECONDS).offset == 0
    until(lambda: threading.active_count() <= threads)


def test_it_ends_also_where_warnings_are_errors(cluster: TcpCluster) -> None:
    """As under `python -W error`: the warning, an exception then, kept its thread alive."""
    producer = producer_on(cluster, linger_ms=60_000)
    future = producer.send(ProducerRecord("t", b"v", partition=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ResourceWarning):
            producer._drop()
    assert future.result(SECONDS).offset == 0
    until(lambda: not producer._sender.is_alive)
