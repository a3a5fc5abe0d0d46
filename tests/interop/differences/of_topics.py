"""Metadata, CreateTopics and DeleteTopics."""

from __future__ import annotations

from struct import pack
from typing import Any

from kafka08.errors import NO_ERROR
from kafka08.levels import Level
from kafka08.protocol.codec import decode_response
from kafka08.protocol.metadata import MetadataRequest
from tests.interop.differences.frames import (
    NULL_ARRAY,
    array,
    create_topics,
    delete_topics,
    metadata,
    new_topic,
    request,
    text,
)
from tests.interop.differences.sequence import sequence
from tests.interop.differences.talk import Talk
from tests.waiting import until

METADATA_SINCE = (Level.V0_8_2, Level.V0_10_2, Level.V0_10_2)
NEW = "new"

for version, since in enumerate(METADATA_SINCE):

    @sequence(f"Metadata {version}, names", since=since)
    def _(talk: Talk, version: int = version) -> None:
        for names in (
            [],
            ["t"],
            ["t", "t"],
            ["dead"],
            ["__consumer_offsets"],
            ["a b"],
            ["t", "a b"],
            [""],
            [".."],
            ["."],
            ["x" * 249],
            ["x" * 250],
            ["x" * 256],
            [f"made.by-{version}"],
            [f"made_by-{version}"],
            [f"first-{version}", f"second-{version}"],
        ):
            talk.ask(metadata(version, *names), f"{[name and name[:20] for name in names]}")

    @sequence(f"Metadata {version}, null name", since=since, departs=(Level.V0_9_0,))
    def _(talk: Talk, version: int = version) -> None:
        talk.ask(metadata(version, None), "alone")
        talk.ask(metadata(version, "t", None), "behind another")


def make(talk: Talk, name: str) -> None:
    """Create a topic by asking for it, and wait for its leader; the transcript has neither."""

    def has_leader() -> bool:
        found: Any = decode_response(MetadataRequest, talk.probe(metadata(1, name)), 1)[1]
        return all(topic.error_code == NO_ERROR for topic in found.topics)

    until(has_leader, f"a leader of {name}")


ODD_TOPICS = {
    "good": new_topic(NEW),
    "two partitions": new_topic(NEW, 2),
    "exists": new_topic("t"),
    "illegal": new_topic("a b"),
    "empty": new_topic(""),
    "null": new_topic(None),
    ".": new_topic("."),
    "..": new_topic(".."),
    "249 letters": new_topic("y" * 249),
    "250 letters": new_topic("y" * 250),
    "internal": new_topic("__consumer_offsets"),
    "colliding": new_topic("to.collide"),
    "no partitions": new_topic(NEW, 0),
    "partitions -1": new_topic(NEW, -1, 1),
    "partitions -2": new_topic(NEW, -2, 1),
    "no replicas": new_topic(NEW, 1, 0),
    "replicas -1": new_topic(NEW, 1, -1),
    "replicas -2": new_topic(NEW, 1, -2),
    "two replicas": new_topic(NEW, 1, 2),
    "neither": new_topic(NEW, -1, -1),
    "both": new_topic(NEW, 1, 1, ((0, (1,)),)),
    "partitions and assignment": new_topic(NEW, 1, -1, ((0, (1,)),)),
    "replicas and assignment": new_topic(NEW, -1, 1, ((0, (1,)),)),
    "assigned": new_topic(NEW, -1, -1, ((0, (1,)),)),
    "assigned to an unknown broker": new_topic(NEW, -1, -1, ((0, (9,)),)),
    "assigned twice": new_topic(NEW, -1, -1, ((0, (1, 1)),)),
    "assigned unequally": new_topic(NEW, -1, -1, ((0, (1,)), (1, (1, 2)))),
    "assigned from 1": new_topic(NEW, -1, -1, ((1, (1,)),)),
    "assigned with a hole": new_topic(NEW, -1, -1, ((0, (1,)), (2, (1,)))),
    "partition assigned twice": new_topic(NEW, -1, -1, ((0, (1,)), (0, (2,)))),
    **{
        f"{key}={value}": new_topic(NEW, 1, 1, (), ((key, value),))
        for key, value in (
            ("retention.ms", "1"),
            ("retention.ms", "-1"),
            ("retention.ms", "-2"),
            ("retention.ms", "x"),
            ("retention.ms", ""),
            ("retention.ms", None),
            ("retention.ms", " 5 "),
            ("nosuch", "1"),
            ("", "1"),
            (None, "1"),
            ("cleanup.policy", "compact"),
            ("cleanup.policy", "compact,delete"),
            ("cleanup.policy", "Compact"),
            ("cleanup.policy", "nosuch"),
            ("cleanup.policy", ""),
            ("cleanup.policy", " compact , x,y"),
            ("cleanup.policy", "compact,"),
            ("segment.bytes", "13"),
            ("segment.bytes", " +13 "),
            ("segment.bytes", "1_3"),
            ("segment.index.bytes", "-1"),
            ("file.delete.delay.ms", "2147483648"),
            ("file.delete.delay.ms", "9223372036854775808"),
            ("segment.bytes", "14"),
            ("segment.bytes", "2147483648"),
            ("min.insync.replicas", "0"),
            ("compression.type", "zstd"),
            ("compression.type", "snappy"),
            ("min.cleanable.dirty.ratio", "1.1"),
            ("min.cleanable.dirty.ratio", "1"),
            ("min.cleanable.dirty.ratio", "2"),
            ("min.cleanable.dirty.ratio", "-1e-5"),
            ("min.cleanable.dirty.ratio", "123456789"),
            ("min.cleanable.dirty.ratio", "1e400"),
            ("min.cleanable.dirty.ratio", "inf"),
            ("min.cleanable.dirty.ratio", ""),
            ("unclean.leader.election.enable", "yes"),
            ("unclean.leader.election.enable", "TRUE"),
            ("preallocate", "1"),
            ("index.interval.bytes", "-1"),
            ("max.message.bytes", "-1"),
            ("flush.ms", "-1"),
            ("flush.messages", "0"),
            ("message.timestamp.difference.max.ms", "-1"),
            ("leader.replication.throttled.replicas", "*"),
            ("leader.replication.throttled.replicas", "x"),
            ("follower.replication.throttled.replicas", "0:1 , x,,1:1"),
            ("leader.replication.throttled.replicas", "0:1,1:1"),
        )
    },
    "bad key and bad value": new_topic(NEW, 1, 1, (), (("nosuch", "1"), ("retention.ms", "x"))),
    "bad values": new_topic(
        NEW,
        1,
        1,
        (),
        tuple((key, "-1") for key in ("flush.ms", "segment.ms", "segment.bytes", "preallocate")),
    ),
    "key twice": new_topic(NEW, 1, 1, (), (("retention.ms", "1"), ("retention.ms", "x"))),
    "bad name and bad key": new_topic("a b", 1, 1, (), (("nosuch", "1"),)),
    "bad name and no partitions": new_topic("a b", 0, 1),
    "exists and two replicas": new_topic("t", 1, 2),
    "exists and bad key": new_topic("t", 1, 1, (), (("nosuch", "1"),)),
    "exists and both": new_topic("t", 1, 1, ((0, (1,)),)),
}


@sequence("CreateTopics 1, one topic, validated only", since=Level.V0_10_2)
def _(talk: Talk) -> None:
    make(talk, "to_collide")
    for label, one in ODD_TOPICS.items():
        talk.ask(create_topics(1, one, validate_only=1), label)


for label, unreadable in {
    "to nobody": (0, ()),
    "to broker -1": (0, (-1,)),
    "at partition -1": (-1, (1,)),
}.items():

    @sequence(f"CreateTopics 1, assigned {label}", since=Level.V0_10_2, departs=(Level.V0_10_2,))
    def _(talk: Talk, assignment: tuple[int, tuple[int, ...]] = unreadable) -> None:
        talk.ask(create_topics(1, new_topic(NEW, -1, -1, (assignment,)), validate_only=1))


@sequence("CreateTopics 0, one topic that cannot be made", since=Level.V0_10_2)
def _(talk: Talk) -> None:
    make(talk, "to_collide")
    for label in (
        *("exists", "illegal", "empty", ".", "250 letters", "internal", "colliding"),
        *("no partitions", "partitions -1", "no replicas", "two replicas", "neither", "both"),
        *("assigned twice", "assigned unequally", "nosuch=1", "retention.ms=x", "null"),
    ):
        talk.ask(create_topics(0, ODD_TOPICS[label]), label)


@sequence("CreateTopics, several topics", since=Level.V0_10_2)
def _(talk: Talk) -> None:
    for version in (0, 1):
        for label, wanted in {
            "none": [],
            "one twice": [new_topic(NEW), new_topic(NEW)],
            "one twice, differently": [new_topic(NEW), new_topic(NEW, 0)],
            "one that exists, twice": [new_topic("t"), new_topic("t")],
        }.items():
            talk.ask(create_topics(version, *wanted), f"{label}, CreateTopics {version}")
        rest = pack(">i", 100) + (b"\0" if version else b"")
        talk.ask(request(19, version, NULL_ARRAY + rest), "null topics")
        null_assignment = text(NEW) + pack(">ih", 1, 1) + NULL_ARRAY + array()
        talk.ask(request(19, version, array(null_assignment) + rest), "null assignment")
        null_configs = text(NEW) + pack(">ih", 1, 1) + array() + NULL_ARRAY
        talk.ask(request(19, version, array(null_configs) + rest), "null configs")
        null_replicas = text(NEW) + pack(">ih", -1, -1) + array(pack(">ii", 0, -1)) + array()
        talk.ask(request(19, version, array(null_replicas) + rest), "null replicas")


@sequence("topics that come and go", since=Level.V0_10_2)
def _(talk: Talk) -> None:
    for version in (0, 1):
        for label, timeout_ms in (("soon", 10_000), ("at once", 0), ("before", -1)):
            name = f"go-{version}-{timeout_ms}"
            talk.ask(create_topics(version, new_topic(name), timeout_ms=timeout_ms), label)
            talk.ask(create_topics(version, new_topic(name)), f"{label}, again")
            if timeout_ms > 0:
                talk.ask(delete_topics(name), f"{label}, deleted")
                talk.ask(delete_topics(name), f"{label}, deleted again")
    talk.ask(create_topics(1, new_topic("valid"), validate_only=1, timeout_ms=0), "only valid")
    talk.ask(create_topics(1, new_topic("valid"), validate_only=2), "only valid, flag 2")
    talk.ask(delete_topics("valid"), "not made")
    talk.ask(create_topics(1, new_topic("dead-new", -1, -1, ((0, (9,)),)), timeout_ms=200), "dead")


@sequence("DeleteTopics of topics that are not there", since=Level.V0_10_2)
def _(talk: Talk) -> None:
    for names in ([], ["nosuch"], ["nosuch", "nosuch"], [""], ["a b"], [None]):
        for timeout_ms in (-1, 0, 10_000):
            talk.ask(delete_topics(*names, timeout_ms=timeout_ms), f"{names} within {timeout_ms}")
    talk.ask(request(20, 0, NULL_ARRAY + pack(">i", 100)), "null")
