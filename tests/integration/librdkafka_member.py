"""A librdkafka consumer of a group as a process of its own, to be stopped or killed.

    python -m tests.integration.librdkafka_member BOOTSTRAP TOPIC GROUP

Speaks as to a broker of 0.9.0. Writes `assigned <count>` for each assignment and the value of each
message, one a line, then commits the message. SIGTERM makes it leave the group.
"""

from __future__ import annotations

import signal
import sys

from confluent_kafka import Consumer

SPEAK_0_9 = {"api.version.request": False, "broker.version.fallback": "0.9.0", "log_level": 0}


def main(bootstrap: str, topic: str, group: str) -> None:
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            **SPEAK_0_9,
        }
    )
    consumer.subscribe([topic], on_assign=lambda _, found: say(f"assigned {len(found)}"))
    while not stopped:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            say((message.value() or b"").decode())
            consumer.commit(message=message, asynchronous=False)
    consumer.close()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
