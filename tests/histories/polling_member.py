"""A PollingMember as a process of its own, to be killed and stopped: what befalls it, line by line.

    python -m tests.histories.polling_member NAME TOPIC SEED key=value...

Each line begins with the seconds of the machine's monotonic clock, by which the lines of several
processes are put in order, and is written before the member does anything else. SIGTERM makes it
leave its group, SIGUSR1 write the stacks of its threads to stderr.
"""

from __future__ import annotations

import faulthandler
import logging
import signal
import sys
from collections.abc import Iterable, Mapping

from kafka08.config import parse_overrides
from kafka08.consumer.group.kafka_consumer_config import KafkaConsumerConfig
from kafka08.runtime.threads import THREADS
from kafka08.simulation.polling_member import Habits, PollingMember
from kafka08.structs import TopicPartition

LONG_S = 3.0
"""Longer than a session, and than some max.poll.interval.ms."""
WORK_S = 5.0


class Lines:
    """The GroupEvents, as lines."""

    def assigned(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        say("assigned", member, *(tp.partition for tp in partitions))

    def revoked(self, member: str, partitions: Iterable[TopicPartition]) -> None:
        say("revoked", member, *(tp.partition for tp in partitions))

    def handed(self, member: str, tp: TopicPartition, offset: int) -> None:
        say("handed", member, tp.partition, offset)

    def processed(self, tp: TopicPartition, offset: int) -> None:
        say("processed", "-", tp.partition, offset)

    def committed(self, member: str, offsets: Mapping[TopicPartition, int]) -> None:
        for tp, offset in offsets.items():
            say("committed", member, tp.partition, offset)


def say(*words: object) -> None:
    sys.stdout.write(f"{THREADS.monotonic():.6f} {' '.join(map(str, words))}\n")
    sys.stdout.flush()


def main(name: str, topic: str, seed: str, *overrides: str) -> None:
    faulthandler.register(signal.SIGUSR1)
    logging.basicConfig(level=logging.WARNING, format="%(relativeCreated)d %(message)s")
    random = THREADS.random
    random.seed(f"{seed}/{name}")
    keys = {
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": random.choice(["range", "sticky"]) + ",roundrobin",
        "auto.commit.interval.ms": random.choice([50, 500]),
        "session.timeout.ms": 2000,
        "heartbeat.interval.ms": 200,
        "max.poll.interval.ms": random.choice([2000, 30_000]),
        "max.poll.records": random.choice([1, 50]),
        "metadata.max.age.ms": 2000,
    }
    habits = Habits.draw(random, long_seconds=LONG_S)
    config = KafkaConsumerConfig({**keys, **parse_overrides(overrides)})
    member = PollingMember(THREADS, config, topic, habits, Lines(), name, work_seconds=WORK_S)
    signal.signal(signal.SIGTERM, lambda *_: member.end())
    member.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
