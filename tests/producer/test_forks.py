"""Producers in a process forked from theirs, as with gunicorn --preload, Celery and
multiprocessing: an error says so, nothing is lost without a word, and the parent goes on."""

from __future__ import annotations

import threading
from functools import partial

from kafka08.producer import KeyedMessage, Producer, ProducerConfig, ProducerRecord
from tests.forking import in_child
from tests.producer.producers import SECONDS, T0, producer_on, values
from tests.producer.tcp_cluster import TcpCluster
from tests.waiting import until

REFUSED = "RuntimeError: the threads and connections of this "


def test_send_refuses(cluster: TcpCluster) -> None:
    """Also by a method that was looked up before the fork; the parent's records are stored."""
    with producer_on(cluster) as producer:
        send = producer.send
        record = ProducerRecord("t", b"v", partition=0)
        send(record).result(SECONDS)
        for call in (lambda: producer.send(record), lambda: send(record)):
            assert in_child(call).startswith(REFUSED + "KafkaProducer belong")
        assert in_child(producer.close) == "None"
        send(record).result(SECONDS)
    assert values(cluster, T0) == [b"v"] * 2


def test_a_result_stays_with_the_process_that_sent(cluster: TcpCluster) -> None:
    """A future that was pending at the fork raises, instead of waiting for ever; one that was done
    has its result."""
    with producer_on(cluster) as producer:
        done = producer.send(ProducerRecord("t", b"v", partition=0))
        producer.flush()
        cluster.pause(1)
        pending = producer.send(ProducerRecord("t", b"v", partition=0))
        many = producer.send_many("t", [b"v"], partition=0)
        assert in_child(lambda: done.result().offset) == "0"
        alone = "RuntimeError: [t,0]: the process that sent this record"
        assert in_child(pending.result).startswith(alone)
        assert in_child(many.result).startswith(alone)
        assert in_child(lambda: pending.add_done_callback(print)).startswith(alone)
        cluster.resume(1)
        assert pending.result(SECONDS).offset == 1


def test_a_fork_while_another_thread_sends(cluster: TcpCluster) -> None:
    """No lock that was held at the fork keeps the child waiting."""
    ended = threading.Event()
    with producer_on(cluster) as producer:
        record = ProducerRecord("t", b"v" * 1000)

        def send_on() -> None:
            while not ended.is_set():
                producer.send(record)

        sending = threading.Thread(target=send_on)
        sending.start()
        try:
            for _ in range(5):
                assert in_child(lambda: producer.send(record)).startswith(REFUSED)
        finally:
            ended.set()
            sending.join()


def test_the_old_producer_refuses_in_both_modes(cluster: TcpCluster) -> None:
    """Async: a message that was put into the child's copy of the queue would be lost."""
    message = KeyedMessage("t", b"v")
    for mode in ("sync", "async"):
        config = ProducerConfig(
            metadata_broker_list=cluster.servers, producer_type=mode, request_required_acks=1
        )
        with Producer(config) as producer:
            producer.send(message)
            assert in_child(lambda: producer.send(message)).startswith(REFUSED + "Producer belong")
            send = partial(producer.send, message)
            assert in_child(send).startswith(("RuntimeError", "ProducerClosed"))
            assert in_child(producer.close) == "None"
    until(lambda: sum(len(cluster.messages(tp)) for tp in cluster.logs) == 2)
