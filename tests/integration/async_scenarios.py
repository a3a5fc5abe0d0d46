"""What AsyncKafkaConsumer and AsyncKafkaProducer do, on brokers of any release: each scenario gets
the brokers' addresses and a new topic of four partitions."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest

from kafka08.consumer import AsyncKafkaConsumer
from kafka08.errors import WokenUp
from kafka08.producer import AsyncKafkaProducer, ProducerRecord
from kafka08.structs import TopicPartition
from tests.integration.polling_cluster import Message

Scenario = Callable[[str, str], Awaitable[None]]
LIMIT_S = 60


def run(scenario: Scenario, bootstrap: str, topic: str) -> None:
    asyncio.run(asyncio.wait_for(scenario(bootstrap, topic), LIMIT_S))


def producer_of(bootstrap: str, **keys: Any) -> AsyncKafkaProducer:
    return AsyncKafkaProducer(bootstrap_servers=bootstrap, **{"retries": 1000, **keys})


def consumer_of(bootstrap: str, group: str = "", **keys: Any) -> AsyncKafkaConsumer:
    short = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 200, "fetch_max_wait_ms": 100}
    return AsyncKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        **{**short, **keys},
    )


async def fill(bootstrap: str, topic: str, count: int) -> None:
    async with producer_of(bootstrap, acks="all") as producer:
        await (await producer.send_many(topic, [b"%d" % n for n in range(count)]))


def numbers(messages: Iterable[Message]) -> list[int]:
    return sorted(int(message.value or b"") for message in messages)


def place(message: Message) -> tuple[int, int, bytes]:
    return message.partition, message.offset, message.value or b""


async def there_and_back(bootstrap: str, topic: str) -> None:
    """Single records and many; messages one by one, in lists and in batches, without a thread."""
    threads = set(threading.enumerate())
    async with producer_of(bootstrap) as producer:
        sent = [await producer.send(ProducerRecord(topic, b"%d" % n, b"k")) for n in range(50)]
        stored = await asyncio.gather(*sent)
        assert sorted(one.offset for one in stored) == list(range(50))
        assert await sent[0] == stored[0]
        await producer.flush()
    await fill(bootstrap, topic, 150)
    wanted = sorted([*range(50), *range(150)])
    async with consumer_of(bootstrap, topic) as consumer:
        await consumer.subscribe([topic])
        found = []
        async for message in consumer:
            found.append(message)
            if len(found) == 200:
                break
        assert numbers(found) == wanted
        await consumer.seek_to_beginning()
        polled: list[Message] = []
        while len(polled) < 200:
            polled += await consumer.poll(5)
        assert numbers(polled) == wanted
        await consumer.seek_to_beginning()
        left = 200
        async for batch in consumer.batches(max_messages=7):
            assert len(batch) <= 7
            left -= len(batch)
            if not left:
                break
    new = {t.name for t in set(threading.enumerate()) - threads}
    assert all(name.startswith("asyncio_") for name in new), new  # those that look up names


async def commits_are_kept(bootstrap: str, topic: str) -> None:
    """What a member has finished is not read by the next one."""
    await fill(bootstrap, topic, 40)
    async with consumer_of(bootstrap, topic, enable_auto_commit=False) as consumer:
        await consumer.subscribe([topic])
        found = []
        async for message in consumer:
            found.append(message)
            if len(found) == 15:
                await consumer.commit()
                break
    async with consumer_of(bootstrap, topic) as consumer:
        await consumer.subscribe([topic])
        while len(found) < 40:
            found += await consumer.poll(5)
    assert numbers(found) == list(range(40))


async def nothing_is_lost_when_cancelled(bootstrap: str, topic: str) -> None:
    """Whatever await is cancelled, the messages that nobody got are read again: each once, in
    order."""
    await fill(bootstrap, topic, 3000)
    draw = random.Random(47)
    seen: list[tuple[int, int, bytes]] = []
    cancelled = 0
    async with consumer_of(bootstrap, topic, max_poll_records=40) as consumer:
        await consumer.subscribe([topic])

        async def read() -> None:
            kind = draw.randrange(3)
            if kind == 0:
                seen.extend([place(message) for message in await consumer.poll(5)])
            elif kind == 1:
                if (batch := await consumer.poll_batch(5, 30)) is not None:
                    rows = zip(batch.offsets, batch.values(), strict=True)
                    seen.extend([(batch.partition, at, value or b"") for at, value in rows])
            else:
                left = 20
                async for message in consumer:
                    seen.append(place(message))
                    left -= 1
                    if not left:
                        break

        while len(seen) < 3000:
            task = asyncio.create_task(read())
            for _ in range(draw.randrange(4)):
                await asyncio.sleep(0)
            if draw.random() < 0.5:
                await asyncio.sleep(draw.random() / 200)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            cancelled += task.cancelled()
    assert cancelled > 20
    assert sorted(int(value) for _, _, value in seen) == list(range(3000))
    for number in range(4):
        offsets = [offset for partition, offset, _ in seen if partition == number]
        assert offsets == list(range(len(offsets)))


async def back_pressure(bootstrap: str, topic: str) -> None:
    """A `send` without memory waits, while other tasks run; a cancelled one has no record."""
    async with producer_of(
        bootstrap, acks="all", buffer_memory=20_000, batch_size=4000, max_block_ms=30_000
    ) as producer:
        await producer.partitions_for(topic)
        ran = 0

        async def others() -> None:
            nonlocal ran
            while True:
                await asyncio.sleep(0)
                ran += 1

        busy = asyncio.create_task(others())
        futures = [
            await producer.send(ProducerRecord(topic, b"%d" % n + bytes(1000), partition=0))
            for n in range(500)
        ]
        busy.cancel()
        assert ran > 50
        offsets = [one.offset for one in await asyncio.gather(*futures)]
        assert sorted(offsets) == list(range(500)), offsets


async def callbacks_of_a_rebalance(bootstrap: str, topic: str) -> None:
    """Coroutine functions that use the consumer. Two members in one loop share the partitions."""
    await fill(bootstrap, topic, 40)
    events = []
    async with (
        consumer_of(bootstrap, topic, enable_auto_commit=False) as one,
        consumer_of(bootstrap, topic, enable_auto_commit=False) as two,
    ):

        async def assigned(partitions: list[TopicPartition]) -> None:
            await asyncio.sleep(0.01)
            events.append(("assigned", len(partitions)))
            for tp in partitions:
                await one.position(tp)

        async def revoked(partitions: list[TopicPartition]) -> None:
            await one.commit()
            events.append(("revoked", len(partitions)))

        await one.subscribe([topic], on_assigned=assigned, on_revoked=revoked)
        found: list[Message] = []
        while len(found) < 40:
            found += await one.poll(5)
        await two.subscribe([topic])
        while not (len(one.assignment()) == len(two.assignment()) == 2):
            for again in await asyncio.gather(one.poll(0.1), two.poll(0.1)):
                assert not again, "a committed message was read again"
    assert events == [("assigned", 4), ("revoked", 4), ("assigned", 2)]


async def one_task_at_a_time(bootstrap: str, topic: str) -> None:
    """The second of two tasks in calls at once gets a RuntimeError; `wakeup` is for any task."""
    async with consumer_of(bootstrap) as consumer:
        await consumer.assign([(topic, 0)])
        waiting = asyncio.create_task(consumer.poll(30))
        await asyncio.sleep(0.05)
        with pytest.raises(RuntimeError, match="at a time"):
            await consumer.poll(1)
        consumer.wakeup()
        with pytest.raises(WokenUp):
            await waiting


async def dropped_clients(bootstrap: str, topic: str) -> None:
    """A ResourceWarning for each that was not closed; their tasks end."""

    async def drop() -> None:
        consumer = consumer_of(bootstrap)
        await consumer.assign([(topic, 0)])
        await consumer.poll(0.2)
        producer = producer_of(bootstrap)
        await (await producer.send(ProducerRecord(topic, b"x")))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await drop()
        gc.collect()
    names = sorted(str(one.message).split()[1] for one in caught)
    assert names == ["<AsyncKafkaConsumer", "<AsyncKafkaProducer"]
    loop: Any = asyncio.get_running_loop()
    while len(loop._selector.get_map()) > 1:  # all but what wakes the loop
        await asyncio.sleep(0.01)


async def transactions(bootstrap: str, topic: str) -> None:
    """A block is committed at its end; aborted if it raises, or is cancelled."""
    async with producer_of(bootstrap, transactional_id=topic) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send_many(topic, [b"committed"] * 3, partition=0)

        async def failing() -> None:
            async with producer.transaction():
                await producer.send_many(topic, [b"aborted"] * 3, partition=0)
                raise KeyError

        with pytest.raises(KeyError):
            await failing()

        async def stuck() -> None:
            async with producer.transaction():
                await (await producer.send_many(topic, [b"cancelled"] * 3, partition=0))
                await asyncio.sleep(100)

        task = asyncio.create_task(stuck())
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with producer.transaction():
            await producer.send_many(topic, [b"last"], partition=0)
            offsets = {TopicPartition(topic, 0): 2}
            await producer.send_offsets_to_transaction(offsets, topic)
    async with consumer_of(bootstrap, topic, isolation_level="read_committed") as consumer:
        await consumer.assign([(topic, 0)])
        # The marker of the offsets comes after the response to the commit.
        while (await consumer.committed()).get(TopicPartition(topic, 0)) is None:
            await asyncio.sleep(0.01)
        await consumer.seek(TopicPartition(topic, 0), 0)
        found: list[Message] = []
        while len(found) < 4:
            found += await consumer.poll(5)
        assert [m.value for m in found] == [b"committed"] * 3 + [b"last"]


ON_ANY: tuple[Scenario, ...] = (
    there_and_back,
    commits_are_kept,
    nothing_is_lost_when_cancelled,
    back_pressure,
    callbacks_of_a_rebalance,
    one_task_at_a_time,
    dropped_clients,
)
