"""Transactions of the Java clients, of 0.11 and of today, on brokers of ours."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from kafka08.embedded import EmbeddedCluster
from tests.histories.transaction_run import JAVA, run_once, transaction_cluster
from tests.interop.foreign_clients import POM_3_9_1, PROGRAMS, Program, needed
from tests.interop.jvm import POM_0_11, command, compiled

SOURCE = PROGRAMS / "JavaTransactions.java"
TIMEOUT_S = 120.0

_tries = count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, level="0.11.0") as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("name", "pom"),
    [("java-0.11.0.3", POM_0_11), ("java-3.9.1", POM_3_9_1)],
    ids=["0.11.0.3", "3.9.1"],
)
def test_a_java_producer_commits_and_aborts(cluster: EmbeddedCluster, name: str, pom: Path) -> None:
    """A hundred transactions, of which readers of committed messages see the committed half, in
    order; offsets of a group; a second producer that fences the first."""
    topic = f"{name}-{next(_tries)}"
    cluster.create_topic(topic, 2, 3)
    with needed(name):
        classes = compiled(SOURCE, pom)
        line = command("JavaTransactions", cluster.bootstrap, topic, classes=classes, pom=pom)
    with Program(name, line, {}) as program:
        said = program.finished(TIMEOUT_S)
    assert said == [
        "read 50 50 true true",
        "aborted offset none",
        "committed offset 8",
        "fenced",
        "read 51 51 true true",
    ]


@pytest.mark.timeout(300)
def test_java_producers_among_faults_break_no_rule(tmp_path: Path) -> None:
    """Beside ours and librdkafka's, as in tests/integration/test_transaction_histories: brokers are
    killed, frozen, cut off, full or slow; producers are killed, replaced and frozen."""
    for name in JAVA:
        with needed(name):
            compiled(PROGRAMS / "TransactionalMember.java", JAVA[name])
    with transaction_cluster() as cluster:
        summary, problems = run_once(
            cluster, "history", tmp_path / "run", random.Random(2), 20.0, [*JAVA]
        )
    assert problems == [], summary
