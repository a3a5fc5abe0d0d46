"""confluent-kafka, as foreign_clients.py says. Further arguments are KEY=VALUE."""

from __future__ import annotations

import signal
import sys
import time
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def produce(bootstrap: str, topic: str, codec: str, first: str, count: str, **keys: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, **keys})
    say(f"sent {send(producer, topic, first, count)}")


def transact(bootstrap: str, topic: str, first: str, count: str, **keys: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, **keys})
    producer.init_transactions(30)
    producer.begin_transaction()
    send(producer, topic, first, count)
    producer.abort_transaction(30)
    say(f"aborted {count}")
    producer.begin_transaction()
    send(producer, topic, first, count)
    producer.commit_transaction(30)
    say(f"committed {count}")


def send(producer: Producer, topic: str, first: str, count: str) -> int:
    """The number of messages that are acknowledged."""
    sent: list[int] = []

    def delivered(error: object, message: object) -> None:
        if error is not None:
            raise SystemExit(f"not delivered: {error}")
        sent.append(1)

    for n in range(int(first), int(first) + int(count)):
        producer.produce(topic, key=f"k{n}", value=str(n), on_delivery=delivered)
    if left := producer.flush(30):
        raise SystemExit(f"{left} messages left")
    return len(sent)


def consume(bootstrap: str, topic: str, group: str, count: str, **keys: str) -> None:
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", **keys}
    )
    consumer.subscribe([topic], on_assign=lambda _, found: say(f"assigned {len(found)}"))
    seen = 0
    while not stopped and (count == "0" or seen < int(count)):
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error():
            sys.stderr.write(f"{message.error()}\n")
            continue
        key, value = (message.key() or b"-").decode(), (message.value() or b"").decode()
        at = message.timestamp()[1]
        say(f"message {message.partition()} {message.offset()} {key} {value} {at}")
        seen += 1
        consumer.commit(message=message, asynchronous=False)
        say(f"committed {seen}")
    consumer.close()
    say("left")


def admin(bootstrap: str, topic: str, group: str, **keys: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap, **keys})
    client.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
    say(f"created {topic}")
    while topic not in client.list_topics(timeout=30).topics:  # any broker answers, in its turn
        time.sleep(0.1)
    say(f"listed {topic}")
    if any(g.group_id == group for g in client.list_consumer_groups().result(30).valid):
        say(f"group {group}")
    found = client.describe_consumer_groups([group])[group].result(30)
    say(f"state {found.state.name.title()} {len(found.members)}")
    client.delete_topics([topic])[topic].result(30)
    say(f"deleted {topic}")


if __name__ == "__main__":
    words = [w for w in sys.argv[2:] if "=" not in w]
    keys = dict(w.split("=", 1) for w in sys.argv[2:] if "=" in w)
    verbs: dict[str, Any] = {
        "produce": produce,
        "transact": transact,
        "consume": consume,
        "admin": admin,
    }
    verbs[sys.argv[1]](*words, **keys)
