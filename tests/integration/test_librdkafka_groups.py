"""Groups of another client: librdkafka as it speaks to 0.9.0, on brokers of that level."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafka08.embedded import EmbeddedCluster
from tests.integration.librdkafka_member import SPEAK_0_9

PARTITIONS = 6
PART = 300
"""Messages between two changes of the group."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    config = {"api.level": "0.9.0", "offsets.topic.num.partitions": 3}
    with EmbeddedCluster(brokers=2, config=config) as cluster:
        cluster.create_topic("t", partitions=PARTITIONS)
        yield cluster


class Member:
    """A member process; what it says goes to a file."""

    def __init__(self, cluster: EmbeddedCluster, directory: Path, number: int) -> None:
        self._path = directory / f"member-{number}"
        module = "tests.integration.librdkafka_member"
        with self._path.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, cluster.bootstrap, "t", "g"], stdout=output
            )

    @property
    def lines(self) -> list[str]:
        text = self._path.read_text()
        return text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]

    @property
    def assigned(self) -> int:
        """Partitions of its last assignment."""
        counts = [line for line in self.lines if line.startswith("assigned")]
        return int(counts[-1].split()[1]) if counts else 0

    @property
    def values(self) -> list[str]:
        return [line for line in self.lines if not line.startswith("assigned")]


def eventually(what: str, check: object, seconds: float = 30) -> None:
    assert callable(check)
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def test_members_join_leave_and_die(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """Every message is delivered, and only a killed member's last one can come twice."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **SPEAK_0_9})
    sent = 0

    def produce() -> None:
        nonlocal sent
        for value in range(sent, sent + PART):
            producer.produce("t", str(value).encode(), partition=value % PARTITIONS)
        sent += PART
        assert producer.flush(20) == 0

    members: list[Member] = []

    def settled(*counts: int) -> bool:
        alive = [m for m in members if m.process.poll() is None]
        return list(counts) == sorted(m.assigned for m in alive)

    def delivered() -> bool:
        return sent == len({value for member in members for value in member.values})

    try:
        for number in range(3):
            members.append(Member(cluster, tmp_path, number))
            produce()
        eventually("three members share the partitions", lambda: settled(2, 2, 2))
        members[0].process.terminate()
        assert members[0].process.wait(20) == 0
        produce()
        eventually("the others share what a member left", lambda: settled(3, 3))
        members[1].process.kill()
        members[1].process.wait(20)
        produce()
        eventually("the last one takes what a dead member had", lambda: settled(6))
        eventually("all is delivered", delivered)
    finally:
        for member in members:
            member.process.kill()
            member.process.wait()
    counts = Counter(value for member in members for value in member.values)
    assert {str(value) for value in range(sent)} == counts.keys()
    assert sum(counts.values()) - sent <= 1
