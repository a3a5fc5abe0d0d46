"""aiokafka, as foreign_clients.py says. Further arguments are KEY=VALUE in Python's words."""

from __future__ import annotations

import ast
import asyncio
import signal
import sys
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

CODECS = {"none": None}


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def produce(
    bootstrap: str, topic: str, codec: str, first: str, count: str, **keys: Any
) -> None:
    compression = CODECS.get(codec, codec)
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, compression_type=compression, **keys
    ) as producer:
        await send(producer, topic, first, count)
    say(f"sent {count}")


async def transact(bootstrap: str, topic: str, first: str, count: str, **keys: Any) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=topic, **keys
    ) as producer:
        await producer.begin_transaction()
        await send(producer, topic, first, count)
        await producer.abort_transaction()
        say(f"aborted {count}")
        async with producer.transaction():
            await send(producer, topic, first, count)
    say(f"committed {count}")


async def send(producer: Any, topic: str, first: str, count: str) -> None:
    numbers = range(int(first), int(first) + int(count))
    for one in [await producer.send(topic, key=b"k%d" % n, value=b"%d" % n) for n in numbers]:
        await one


class Assigned(ConsumerRebalanceListener):  # type: ignore[misc]
    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        say(f"assigned {len(assigned)}")


async def consume(bootstrap: str, topic: str, group: str, count: str, **keys: Any) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **keys,
    )
    consumer.subscribe([topic], listener=Assigned())
    await consumer.start()
    seen = 0
    while not stopped.is_set() and (count == "0" or seen < int(count)):
        for records in (await consumer.getmany(timeout_ms=100)).values():
            for r in records:
                key = (r.key or b"-").decode()
                say(f"message {r.partition} {r.offset} {key} {r.value.decode()} {r.timestamp}")
                seen += 1
            await consumer.commit()
            say(f"committed {seen}")
    await consumer.stop()
    say("left")


async def admin(bootstrap: str, topic: str, group: str, **keys: Any) -> None:
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap, **keys)
    await client.start()
    await client.create_topics([NewTopic(topic, 2, 1)])
    say(f"created {topic}")
    while topic not in await client.list_topics():  # any broker answers, in its turn
        await asyncio.sleep(0.1)
    say(f"listed {topic}")
    if any(listed[0] == group for listed in await client.list_consumer_groups()):
        say(f"group {group}")
    [response] = await client.describe_consumer_groups([group])
    [found] = response.groups
    say(f"state {found[2]} {len(found[5])}")
    await client.delete_topics([topic])
    say(f"deleted {topic}")
    await client.close()


if __name__ == "__main__":
    words = [w for w in sys.argv[2:] if "=" not in w]
    keys = {k: ast.literal_eval(v) for k, v in (w.split("=", 1) for w in sys.argv[2:] if "=" in w)}
    verbs: dict[str, Any] = {
        "produce": produce,
        "transact": transact,
        "consume": consume,
        "admin": admin,
    }
    asyncio.run(verbs[sys.argv[1]](*words, **keys))
