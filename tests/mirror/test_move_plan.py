"""What a move makes at the target, and what stands against it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka08.admin import PartitionDescription, TopicDescription
from kafka08.mirror.move_plan import TopicStep, step_of


def described(
    name: str, partitions: int, replicas: int = 1, config: Mapping[str, str] = {}
) -> TopicDescription:
    ids = tuple(range(1, replicas + 1))
    return TopicDescription(
        name, tuple(PartitionDescription(n, 1, ids, ids) for n in range(partitions)), config
    )


def step(
    here: TopicDescription,
    there: TopicDescription | None = None,
    brokers: int = 3,
    *,
    written: Collection[str] = (),
    moved: Collection[str] = (),
    replication_factor: int | None = None,
) -> TopicStep:
    return step_of(
        *(here, there, brokers),
        written=written,
        moved=moved,
        replication_factor=replication_factor,
    )


def test_a_topic_is_made_like_that_of_the_source() -> None:
    """With its partitions, replicas and overrides; those about formats and files stay behind."""
    config = {"retention.ms": "5", "message.format.version": "0.10.2", "segment.index.bytes": "9"}
    made = step(described("t", 4, 3, config))
    assert (made.does, made.partitions, made.replicas) == ("create", 4, 3)
    assert made.config == {"retention.ms": "5"}
    assert made.left_out == ("message.format.version", "segment.index.bytes")
    assert not made.refusals


def test_fewer_brokers_have_fewer_replicas() -> None:
    """And no minimum of in-sync replicas that they could never have."""
    made = step(described("t", 1, 3, {"min.insync.replicas": "2"}), brokers=1)
    assert (made.replicas, made.config, made.left_out) == (1, {}, ("min.insync.replicas",))
    refused = step(described("t", 1, 3), brokers=2, replication_factor=3)
    assert refused.refusals == ("3 replicas need as many brokers, the target has 2",)


def test_partitions_are_added_and_never_taken_away() -> None:
    """A topic that has grown at the source grows at the target."""
    assert step(described("t", 4), described("t", 2)).does == "add partitions"
    assert step(described("t", 4), described("t", 4)).does == "none"
    refused = step(described("t", 2), described("t", 4))
    assert refused.refusals == ("it has 4 partitions at the target, 2 here",)


def test_messages_of_others_are_not_mixed_with_copies() -> None:
    """A topic with messages is the move's own, or refused."""
    here, there = described("t", 1), described("t", 1)
    assert step(here, there, written={"t"}).refusals
    assert not step(here, there, written={"t"}, moved={"t"}).refusals
    assert not step(here, there).refusals
