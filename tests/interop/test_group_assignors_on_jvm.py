"""Range and round robin of coordinator groups give what Java's own classes give."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka08.consumer.group.assignors import (
    PartitionAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    Shares,
)
from kafka08.structs import TopicPartition
from tests.interop.java_oracle import JavaOracle, on_0_10_2

SOURCE = Path(__file__).parent / "GroupAssignorOracle.java"
TOPICS = ("a", "b", "tt", "logs.web", "A-1", "x_y")

names = st.text("abcXYZ019-_.é\uffee\U0001f600", min_size=1, max_size=6)
topic_sizes = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 24))
members = st.dictionaries(
    names, st.lists(st.sampled_from(TOPICS), min_size=1, max_size=5), min_size=1, max_size=8
)


class GroupAssignorOracle(JavaOracle):
    """One JVM that answers many cases. Skips the test where Java or its compiler is missing."""

    def __init__(self) -> None:
        super().__init__(on_0_10_2(SOURCE), stderr=subprocess.PIPE)

    def shares(
        self, strategy: str, counts: Mapping[str, int], topics: Mapping[str, Sequence[str]]
    ) -> dict[str, set[TopicPartition]]:
        lines = [f"topic\t{topic}\t{count}" for topic, count in counts.items()]
        lines += ["\t".join(("member", member, *wanted)) for member, wanted in topics.items()]
        lines.append(f"assign\t{strategy}")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n".join(lines) + "\n")
        self._process.stdin.flush()
        found: dict[str, set[TopicPartition]] = {member: set() for member in topics}
        for line in self._process.stdout:
            words = line.rstrip("\n").split("\t")
            if words == ["end"]:
                return found
            member, topic, partition = words
            found[member].add(TopicPartition(topic, int(partition)))
        assert self._process.stderr is not None
        said = self._process.stderr.read()
        if "jdk.compiler" in said:
            pytest.skip(f"needs a JDK, not only a JRE: {said.strip()}")
        raise AssertionError(f"the oracle ended: {said}")


@pytest.fixture(scope="module")
def oracle() -> Iterator[GroupAssignorOracle]:
    with GroupAssignorOracle() as running:
        yield running


@pytest.mark.parametrize("assignor", [RangeAssignor(), RoundRobinAssignor()], ids=lambda a: a.name)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(counts=topic_sizes, topics=members)
def test_guarantee_9_assignments_are_javas(
    oracle: GroupAssignorOracle,
    assignor: PartitionAssignor,
    counts: dict[str, int],
    topics: dict[str, list[str]],
) -> None:
    """Our assignments equal Java's for members with different topics, missing or repeated ones, and
    ids beyond ASCII."""
    ours: Shares = assignor.share(counts, topics)
    theirs = oracle.shares(assignor.name, counts, topics)
    assert {member: set(share) for member, share in ours.items()} == theirs
