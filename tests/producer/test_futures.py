"""Futures of many records, and those that other libraries wait for."""

from __future__ import annotations

import asyncio
from concurrent.futures import wait
from typing import Any

import pytest

from kafka08.errors import RecordTooLarge
from kafka08.producer import ProducerRecord
from tests.producer.producers import SECONDS, T0, producer_on, values
from tests.producer.tcp_cluster import TcpCluster
from tests.waiting import until


def test_asyncio_waits_for_records(cluster: TcpCluster) -> None:
    """For one and for many; their errors are raised."""
    with producer_on(cluster, max_request_size=100) as producer:

        async def send() -> tuple[int, list[int]]:
            one = producer.send(ProducerRecord("t", b"1", partition=0)).as_concurrent_future()
            offset = (await asyncio.wrap_future(one)).offset
            many = producer.send_many("t", [b"2", b"3"], partition=0).as_concurrent_future()
            stored = await asyncio.wrap_future(many)
            too_large = producer.send(ProducerRecord("t", b"x" * 1000)).as_concurrent_future()
            with pytest.raises(RecordTooLarge):
                await asyncio.wrap_future(too_large)
            return offset, [one.offset for one in stored]

        assert asyncio.run(asyncio.wait_for(send(), SECONDS)) == (0, [1])


def test_it_cannot_be_cancelled(cluster: TcpCluster) -> None:
    """The record is sent already: its result is still to come."""
    with producer_on(cluster, linger_ms=60_000) as producer:
        future = producer.send(ProducerRecord("t", b"1", partition=0)).as_concurrent_future()
        assert not future.cancel()
        producer.flush()
        assert wait([future], SECONDS).done == {future}
        assert future.result(0).offset == 0


def test_the_callback_of_many_records_is_called_once(cluster: TcpCluster) -> None:
    """When the last partition has responded; at once if all are done, or if there are none."""
    called: list[Any] = []
    with producer_on(cluster) as producer:
        cluster.pause(2)
        future = producer.send_many("t", [b"v"] * 8, [b"%d" % key for key in range(8)])
        future.add_done_callback(called.append)
        until(lambda: bool(values(cluster, T0)))
        assert not called
        cluster.resume(2)
        until(lambda: called == [future])
        future.add_done_callback(called.append)
        producer.send_many("t", []).add_done_callback(called.append)
    assert len(called) == 3
