"""Groups with a coordinator in simulated clusters: members and brokers are killed, suspended and
cut off. Each member is handed only what it holds, the group every message, and it commits all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kafka08.broker.groups.group_member import Member
from kafka08.consumer.group.assignors import RangeAssignor, RoundRobinAssignor, Shares
from kafka08.consumer.group.kafka_consumer import KafkaConsumer
from kafka08.consumer.group.partitions import Partitions
from kafka08.consumer.group.polled_stream import Message
from kafka08.profile import SAFE
from kafka08.simulation.plan import draw_plan, with_coordinator
from kafka08.simulation.run import simulate
from kafka08.structs import TopicPartition


@pytest.mark.parametrize("level", ["0.9.0", "0.10.2"])
@pytest.mark.parametrize("seed", [2, 3, 8])
def test_the_group_reads_and_commits_everything(seed: int, level: str) -> None:
    """The group processes and commits every message, whatever happens to its members, brokers and
    network."""
    outcome = simulate(seed, plan=with_coordinator(draw_plan(seed, SAFE), level))
    assert outcome.verdict is None
    assert outcome.acknowledged > 0


def test_a_run_is_the_same_again() -> None:
    """Two runs of a seed have the same hash, threads of the consumers included."""
    digests = {
        simulate(8, plan=with_coordinator(draw_plan(8, SAFE), "0.10.2")).digest for _ in range(2)
    }
    assert len(digests) == 1


def test_a_planted_defect_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run finds a consumer that commits one message more than it has returned."""

    def too_far(self: Partitions) -> dict[TopicPartition, int]:
        return {tp: offset + 1 for tp, offset in positions(self).items()}

    positions = Partitions.positions
    monkeypatch.setattr(Partitions, "positions", too_far)
    assert_found("no member has processed")


def test_messages_in_work_are_not_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run finds a consumer whose automatic commits have the messages of the last poll."""
    monkeypatch.setattr(Partitions, "finished", Partitions.positions)
    assert_found("no member has processed")


def test_an_uneven_assignment_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run finds a leader of a group that gives all partitions to one member."""

    def all_to_one(
        _self: object, counts: Mapping[str, int], topics: Mapping[str, object]
    ) -> Shares:
        shares: Shares = {member: [] for member in topics}
        shares[min(topics)] = [
            TopicPartition(topic, number) for topic, of in counts.items() for number in range(of)
        ]
        return shares

    for assignor in (RangeAssignor, RoundRobinAssignor):
        monkeypatch.setattr(assignor, "share", all_to_one)
    assert_found("share its partitions evenly")


def test_heartbeats_that_renew_no_session_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run finds a coordinator that expels a member although it sends heartbeats."""
    monkeypatch.setattr(Member, "renew_session", lambda *_: None)
    assert_found("to stay as it is")


def test_a_call_that_does_not_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run finds a consumer whose poll waits for the next generation of its group."""

    def slowly(self: KafkaConsumer, timeout: float) -> list[Message]:
        return poll(self, timeout * 100)

    poll = KafkaConsumer.poll
    monkeypatch.setattr(KafkaConsumer, "poll", slowly)
    assert_found("are its limit")


def assert_found(verdict: str) -> None:
    """One of a few runs breaks the rule."""
    found = []
    for seed in range(2, 12):
        plan = with_coordinator(draw_plan(seed, SAFE), "0.10.2")
        if plan.members > 1:
            found.append(simulate(seed, plan=replace(plan, faults=())).verdict or "")
            if verdict in found[-1]:
                return
    pytest.fail(f"no run finds it: {found}")
