"""Static and cooperative members at JVM brokers of today, alone and beside members of Java and
librdkafka."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from kafka08.admin import BrokerAdmin
from kafka08.client import parse_bootstrap
from tests.integration.group_scenarios import (
    STATIC,
    GroupScenario,
    Member,
    fill,
    only_what_moves_is_revoked,
    together,
)
from tests.interop.foreign_clients import POM_3_9_1
from tests.interop.foreign_member import Foreign
from tests.interop.jvm import TOOL_FLAGS, command
from tests.interop.releases import TODAYS, Running, broker_of

JAVA_MEMBER = Path(__file__).parent / "PollingMember.java"
JAVA_STRATEGIES = {
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
}
_names = count()


@pytest.fixture(scope="module", params=TODAYS)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    with broker_of(request.param, tmp_path_factory.mktemp("jvm")) as running:
        yield running


@pytest.fixture
def topic(broker: Running) -> str:
    name = f"t{next(_names)}"
    with BrokerAdmin(parse_bootstrap(broker.address)) as admin:
        admin.create_topic(name, 4)
    return name


@pytest.mark.parametrize("scenario", [*STATIC, only_what_moves_is_revoked])
def test_members(broker: Running, topic: str, scenario: GroupScenario) -> None:
    """What each scenario says."""
    scenario(broker.address, topic)


def java_member(broker: Running, topic: str, strategy: str) -> list[str]:
    keys = (
        f"bootstrap.servers={broker.address}",
        f"group.id={topic}",
        "auto.offset.reset=earliest",
        "enable.auto.commit=false",
        "session.timeout.ms=6000",
        "heartbeat.interval.ms=200",
        f"partition.assignment.strategy={JAVA_STRATEGIES[strategy]}",
    )
    return command(str(JAVA_MEMBER), topic, *keys, flags=TOOL_FLAGS, pom=POM_3_9_1)


def librdkafka_member(broker: Running, topic: str, strategy: str) -> list[str]:
    module = "tests.integration.librdkafka_member"
    return [sys.executable, "-m", module, broker.address, topic, topic, "0.10.2", strategy]


@pytest.mark.parametrize("strategy", JAVA_STRATEGIES)
@pytest.mark.parametrize("other", [java_member, librdkafka_member])
def test_one_group_with_another_client(
    broker: Running,
    topic: str,
    tmp_path: Path,
    other: Callable[[Running, str, str], list[str]],
    strategy: str,
) -> None:
    """Our member leads, then the other client's after ours has left, and shares with ours when that
    comes back: every message goes to exactly one member."""
    sent = 0

    def produce() -> None:
        nonlocal sent
        fill(broker.address, topic, 25)
        sent += 100

    members: list[Member] = []

    def join() -> Member:
        keys = {"partition_assignment_strategy": strategy, "heartbeat_interval_ms": 200}
        members.append(Member(broker.address, topic, **keys))
        return members[-1]

    foreign = None
    try:
        first = join()
        produce()
        together(first, until_done=lambda: len(first.read) == sent)
        foreign = there = Foreign(other(broker, topic, strategy), tmp_path, "member")

        def all_is_read() -> bool:
            return len(there.values) + sum(len(one.read) for one in members) >= sent

        together(first, until_done=lambda: len(first.numbers) == 2 and there.assigned == 2)
        produce()
        together(first, until_done=all_is_read)
        first.consumer.commit()
        first.consumer.close()
        produce()
        together(until_done=all_is_read)
        second = join()
        together(second, until_done=lambda: len(second.numbers) == 2)
        produce()
        together(second, until_done=all_is_read)
        assert len(second.numbers) == 2
        second.consumer.close()
    finally:
        if foreign is not None:
            foreign.end()
    seen = Counter(place for one in members for place in one.read)
    seen.update(foreign.places)
    assert sum(seen.values()) == sent
    assert set(seen.values()) == {1}
