"""A librdkafka consumer of a group as a process of its own, to be stopped or killed.

    python -m tests.integration.librdkafka_member BOOTSTRAP TOPIC GROUP LEVEL [STRATEGY]

Commits each message, and again until the coordinator takes the commit or the member has lost the
partition. Writes a line for each thing that happens, after the time on the machine's monotonic
clock in seconds:

    1.5 assigned 2          the number of partitions that it got
    1.6 message 0 17 a17    partition, offset, value
    1.7 committed 0 17      the same message, once its commit is acknowledged

SIGTERM makes it leave the group.
"""

from __future__ import annotations

import signal
import sys
import time
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

CLIENT_KEYS: Final[dict[str, dict[str, str | int | bool]]] = {
    "0.9.0": {"api.version.request": False, "broker.version.fallback": "0.9.0", "log_level": 0},
    "0.10.2": {"log_level": 0},
}
"""Settings with which librdkafka speaks to a broker of a level: none from 0.10 on."""
SESSION_TIMEOUT_S: Final = 6
FENCED: Final = {
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
}
"""Answers to a commit of a member that has lost its partitions, or will."""


def main(
    bootstrap: str, topic: str, group: str, level: str, strategy: str = "range,roundrobin"
) -> None:
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "partition.assignment.strategy": strategy,
            "session.timeout.ms": SESSION_TIMEOUT_S * 1000,
            "heartbeat.interval.ms": 500,
            # librdkafka asks for the coordinator on a connection on which a Fetch may wait. If that
            # takes longer than its retried commit (100 ms), the commit declares the coordinator
            # dead that was just found, again and again, and the session ends meanwhile.
            "fetch.wait.max.ms": 50,
            **CLIENT_KEYS[level],
        }
    )
    consumer.subscribe([topic], on_assign=lambda _, found: say(f"assigned {len(found)}"))
    while not stopped:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            where = f"{message.partition()} {message.offset()}"
            say(f"message {where} {(message.value() or b'').decode()}")
            if commit(consumer, message):
                say(f"committed {where}")
    consumer.close()


def commit(consumer: Consumer, message: Message) -> bool:
    """Commit, and repeat it while the coordinator moves. Returns whether it was accepted."""
    while True:
        try:
            responses = consumer.commit(message=message, asynchronous=False)
            errors = [response.error for response in responses or () if response.error is not None]
        except KafkaException as failure:
            errors = [failure.args[0]]
        if not errors:
            return True
        if errors[0].code() in FENCED:
            return False
        time.sleep(0.1)


def say(line: str) -> None:
    sys.stdout.write(f"{time.monotonic():.3f} {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
