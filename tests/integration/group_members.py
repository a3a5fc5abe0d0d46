"""Processes of librdkafka_member.py, and what they saw."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from kafka08.embedded import EmbeddedCluster
from kafka08.structs import TopicPartition
from tests.integration.librdkafka_member import CLIENT_KEYS


class Event(NamedTuple):
    """A message that was delivered, or whose commit was acknowledged; `at` in seconds."""

    at: float
    partition: int
    offset: int
    value: str = ""


class Member:
    """A member process; its output goes to a file."""

    def __init__(
        self, cluster: EmbeddedCluster, level: str, topic: str, group: str, output: Path
    ) -> None:
        self._path = output
        module = "tests.integration.librdkafka_member"
        with self._path.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, cluster.bootstrap, topic, group, level], stdout=file
            )

    @property
    def assigned(self) -> int:
        """The partitions of its last assignment."""
        counts = [words[2] for words in self._lines("assigned")]
        return int(counts[-1]) if counts else 0

    @property
    def delivered(self) -> list[Event]:
        return [Event(float(at), int(p), int(o), v) for at, _, p, o, v in self._lines("message")]

    @property
    def committed(self) -> list[Event]:
        return [Event(float(at), int(p), int(o)) for at, _, p, o in self._lines("committed")]

    def end(self) -> None:
        """Stop at once, without leaving the group."""
        self.process.kill()
        self.process.wait()

    def _lines(self, word: str) -> Iterator[list[str]]:
        text = self._path.read_text()
        for line in text[: text.rfind("\n") + 1].splitlines():
            words = line.split()
            if words[1] == word:
                yield words


class Workload:
    """A producer of numbered values, and the members that consume them."""

    def __init__(self, cluster: EmbeddedCluster, level: str, topic: str, partitions: int) -> None:
        self.members: list[Member] = []
        self.sent = 0
        self._cluster, self._level = cluster, level
        self._topic, self._partitions = topic, partitions
        keys = {"bootstrap.servers": cluster.bootstrap, "acks": -1, **CLIENT_KEYS[level]}
        self._producer = Producer(keys)

    def join(self, group: str, directory: Path) -> Member:
        output = directory / f"member-{len(self.members)}"
        member = Member(self._cluster, self._level, self._topic, group, output)
        self.members.append(member)
        return member

    def produce(self, count: int) -> None:
        """Produce the next values, round-robin over the partitions, acknowledged by the whole
        ISR."""
        for value in range(self.sent, self.sent + count):
            self._producer.produce(
                self._topic, str(value).encode(), partition=value % self._partitions
            )
        self.sent += count
        assert self._producer.flush(30) == 0

    @property
    def delivered(self) -> list[Event]:
        return [event for member in self.members for event in member.delivered]

    @property
    def committed(self) -> list[Event]:
        return [event for member in self.members for event in member.committed]

    def settled(self, *counts: int) -> bool:
        """Whether the live members have these numbers of partitions, in any order."""
        alive = [m for m in self.members if m.process.poll() is None]
        return sorted(counts) == sorted(m.assigned for m in alive)

    def all_delivered(self) -> bool:
        return self.sent == len({event.value for event in self.delivered})

    def all_committed(self) -> bool:
        return self.sent == len({event[1:3] for event in self.committed})

    def end(self) -> None:
        for member in self.members:
            member.end()


def delivered_again(delivered: Iterable[Event], committed: Sequence[Event]) -> list[Event]:
    """The deliveries of messages after the commit of these or later messages was acknowledged.
    There are none, unless a commit was lost or went back."""
    return [
        event
        for event in delivered
        if any(
            c.at < event.at and c.partition == event.partition and c.offset >= event.offset
            for c in committed
        )
    ]


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]
