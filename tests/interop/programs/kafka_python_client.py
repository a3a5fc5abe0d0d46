"""kafka-python, as foreign_clients.py says. Further arguments are KEY=VALUE in Python's words.
`consume` writes its client's log to stderr."""

from __future__ import annotations

import ast
import logging
import signal
import sys
import time
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic

CODECS = {"none": None}


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def produce(bootstrap: str, topic: str, codec: str, first: str, count: str, **keys: Any) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=CODECS.get(codec, codec), **keys
    )
    send(producer, topic, first, count)
    producer.close()
    say(f"sent {count}")


def transact(bootstrap: str, topic: str, first: str, count: str, **keys: Any) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic, **keys)
    producer.init_transactions()
    producer.begin_transaction()
    send(producer, topic, first, count)
    producer.abort_transaction()
    say(f"aborted {count}")
    producer.begin_transaction()
    send(producer, topic, first, count)
    producer.commit_transaction()
    producer.close()
    say(f"committed {count}")


def send(producer: Any, topic: str, first: str, count: str) -> None:
    numbers = range(int(first), int(first) + int(count))
    for one in [producer.send(topic, key=b"k%d" % n, value=b"%d" % n) for n in numbers]:
        one.get(30)


class Assigned(ConsumerRebalanceListener):  # type: ignore[misc]
    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        say(f"assigned {len(assigned)}")


def consume(bootstrap: str, topic: str, group: str, count: str, **keys: Any) -> None:
    logging.basicConfig(level=logging.DEBUG, format="%(relativeCreated)d %(name)s %(message)s")
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", **keys
    )
    consumer.subscribe([topic], listener=Assigned())
    # A leader that does not know the partitions yet assigns none, and joins again when it does.
    # kafka-python 3.0.12 loses that second join if the time of a poll ends in it: its own
    # _perform_assignment has made need_rejoin() false by then, so no later poll takes the result,
    # and the member stays without partitions (_ensure_active_group in coordinator/base.py).
    while not consumer.partitions_for_topic(topic):
        time.sleep(0.1)
    seen = 0
    while not stopped and (count == "0" or seen < int(count)):
        for records in consumer.poll(100).values():
            for r in records:
                key = (r.key or b"-").decode()
                say(f"message {r.partition} {r.offset} {key} {r.value.decode()} {r.timestamp}")
                seen += 1
            consumer.commit()
            say(f"committed {seen}")
    consumer.close()
    say("left")


def admin(bootstrap: str, topic: str, group: str, **keys: Any) -> None:
    client = KafkaAdminClient(bootstrap_servers=bootstrap, **keys)
    client.create_topics([NewTopic(topic, 2, 1)])
    say(f"created {topic}")
    while topic not in client.list_topics():  # any broker answers, and hears of it in its turn
        time.sleep(0.1)
    say(f"listed {topic}")
    if any(listed["group_id"] == group for listed in client.list_groups()):
        say(f"group {group}")
    found = client.describe_groups([group])[group]
    say(f"state {found['group_state']} {len(found['members'])}")
    client.delete_topics([topic])
    say(f"deleted {topic}")
    client.close()


if __name__ == "__main__":
    words = [w for w in sys.argv[2:] if "=" not in w]
    keys = {k: ast.literal_eval(v) for k, v in (w.split("=", 1) for w in sys.argv[2:] if "=" in w)}
    verbs: dict[str, Any] = {
        "produce": produce,
        "transact": transact,
        "consume": consume,
        "admin": admin,
    }
    verbs[sys.argv[1]](*words, **keys)
