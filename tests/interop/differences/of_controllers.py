"""Metadata, topics, coordinators and the controller's requests, with two brokers."""

from __future__ import annotations

from struct import pack

from kafka08.levels import Level
from kafka08.protocol.codec import decode_response
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from tests.interop.differences.cluster_pair import OFFSETS, TOPICS, group_on
from tests.interop.differences.frames import (
    CORRELATION_ID,
    LIST_GROUPS,
    array,
    commit,
    committed,
    coordinator,
    create_topics,
    delete_topics,
    describe_groups,
    fetch_offsets,
    heartbeat,
    join,
    leave,
    metadata,
    new_topic,
    produce,
    produced,
    request,
    sync,
    text,
)
from tests.interop.differences.of_replicas import ONE
from tests.interop.differences.sequence import Stage, cluster_sequence
from tests.interop.differences.talk import Talk, Talks
from tests.waiting import until

METADATA_SINCE = (Level.V0_8_2, Level.V0_10_2, Level.V0_10_2)
STILL = [topic for topic in TOPICS if not topic.startswith("played")]
"""Topics whose ISR does not change."""
MEMBER = "m-00000000-0000-4000-8000-000000000000"
MINUTE_MS = 30_000
NEW = "new"
CONTROLLER_EPOCH = 1

# Metadata


def ask_metadata(talk: Talk, version: int) -> None:
    for topic in STILL:
        talk.ask(metadata(version, topic), topic)
    talk.ask(metadata(version, *STILL), "all of them")
    talk.ask(metadata(version, "nosuch", "both", "a b"), "some of them")


for version, since in enumerate(METADATA_SINCE):

    @cluster_sequence(f"Metadata {version}", since=since)
    def _(talks: Talks, version: int = version) -> None:
        ask_metadata(talks[1], version)
        ask_metadata(talks[2], version)

    @cluster_sequence(
        f"Metadata {version} after a broker was killed", since=since, stage=Stage.ONE_LEADS
    )
    def _(talks: Talks, version: int = version) -> None:
        ask_metadata(talks[1], version)


# Coordinators


def ask_coordinators(talks: Talks, brokers: tuple[int, ...], level: Level) -> None:
    for number in range(3):
        group = group_on(number)
        frames = {
            "coordinator": coordinator(group),
            "commit 0": commit(0, group, ("both", [committed(0, 0)])),
            "commit 1": commit(1, group, ("both", [committed(1, 0)])),
            "offsets 0": fetch_offsets(0, group, ("both", [0])),
            "offsets 1": fetch_offsets(1, group, ("both", [0, 1])),
        }
        if level >= Level.V0_9_0:
            frames |= {
                "commit 2": commit(2, group, ("both", [committed(2, 0)])),
                "commit 2 of a member": commit(
                    2, group, ("both", [committed(2, 0)]), generation=1, member=MEMBER
                ),
                "join of a member": join(0, group, MEMBER, session_ms=MINUTE_MS),
                "join with a bad session": join(0, group, session_ms=1),
                "sync": sync(group, 1, MEMBER),
                "heartbeat": heartbeat(group, 1, MEMBER),
                "leave": leave(group, MEMBER),
                "describe": describe_groups(group),
            }
        if level >= Level.V0_10_2:
            frames |= {
                "offsets 2": fetch_offsets(2, group, ("both", [0])),
                "join 1": join(1, group, MEMBER, session_ms=MINUTE_MS),
            }
        for label, frame in frames.items():
            for broker_id in brokers:
                talks[broker_id].ask(frame, f"{label} on {number} at {broker_id}")
    if level >= Level.V0_9_0:
        groups = [group_on(number) for number in range(3)]
        for broker_id in brokers:
            talks[broker_id].ask(describe_groups(*groups), f"described at {broker_id}")
            talks[broker_id].ask(LIST_GROUPS, f"groups at {broker_id}")


@cluster_sequence("requests to coordinators, right and wrong")
def _(talks: Talks) -> None:
    ask_coordinators(talks, (1, 2), talks.level)


@cluster_sequence("requests to coordinators after a broker was killed", stage=Stage.ONE_LEADS)
def _(talks: Talks) -> None:
    ask_coordinators(talks, (1,), talks.level)


@cluster_sequence("a member at the wrong coordinator", since=Level.V0_9_0)
def _(talks: Talks) -> None:
    group = group_on(1)
    talks.each(join(0, group, session_ms=MINUTE_MS), "joins")
    talks.each(describe_groups(group), "described")


# Topics


@cluster_sequence("topics at a broker that is not the controller", since=Level.V0_10_2)
def _(talks: Talks) -> None:
    for version in (0, 1):
        for label, wanted in {
            "none": [],
            "one": [new_topic(NEW)],
            "three": [new_topic(NEW), new_topic("a b"), new_topic("both")],
            "twice": [new_topic(NEW), new_topic(NEW)],
            "null": [new_topic(None)],
        }.items():
            talks[2].ask(create_topics(version, *wanted), f"create {label}, version {version}")
    talks[2].ask(create_topics(1, new_topic(NEW), validate_only=1), "only validated")
    for names in ([], [NEW], ["both", "nosuch"], ["both", "both"], [None], ["a b"]):
        talks[2].ask(delete_topics(*names), f"delete {names}")
    talks.each(metadata(1, NEW), "not made")


ASSIGNED = {
    "both": ((0, (1, 2)), (1, (2, 1))),
    "both, the other first": ((1, (2, 1)), (0, (1, 2))),
    "dead second": ((0, (1, 7)), (1, (2, 7))),
    "dead first": ((0, (7, 2)), (1, (7, 1))),
    "three": ((0, (1, 2, 7)),),
}


@cluster_sequence("topics with replicas", since=Level.V0_10_2)
def _(talks: Talks) -> None:
    for number, (label, assignment) in enumerate(ASSIGNED.items()):
        name = f"assigned-{number}"
        one = new_topic(name, -1, -1, assignment)
        talks[1].ask(create_topics(1, one, validate_only=1), f"{label}, only validated")
        talks[1].ask(create_topics(1, one, timeout_ms=MINUTE_MS), label)
        talks[1].ask(metadata(1, name), f"{label}, metadata")
        if 7 not in {broker for _, brokers in assignment for broker in brokers}:
            talks[1].ask(delete_topics(name, timeout_ms=MINUTE_MS), f"{label}, deleted")
            talks[1].ask(metadata(1, name), f"{label}, no metadata")
    for replicas in (2, 3):
        one = new_topic("counted", 1, replicas)
        talks[1].ask(create_topics(1, one, validate_only=1), f"{replicas} replicas")
    duplicate = new_topic("counted", -1, -1, ((0, (2, 2)),))
    talks[1].ask(create_topics(1, duplicate), "a broker twice")


@cluster_sequence("a topic with a dead replica is deleted", since=Level.V0_10_2)
def _(talks: Talks) -> None:
    talk = talks[1]
    one = new_topic("dead-replica", -1, -1, ((0, (1, 7)),))
    talk.ask(create_topics(1, one, timeout_ms=MINUTE_MS), "made")
    talk.ask(delete_topics("dead-replica", timeout_ms=0), "at once")
    gone = b"\0\0\0\1\0\3" + text("dead-replica")
    until(lambda: gone in talk.probe(metadata(0, "dead-replica")), "the metadata to go")
    talk.ask(delete_topics("dead-replica", timeout_ms=100), "once more")
    talk.ask(create_topics(1, one, timeout_ms=100), "made again")
    talk.ask(delete_topics("dead-replica", "nosuch", timeout_ms=100), "with one that is not there")


# The controller's requests


def state(
    topic: str,
    partition: int = 0,
    *,
    leader: int = 1,
    isr: tuple[int, ...] = (1,),
    replicas: tuple[int, ...] = (1,),
    epoch: int = 0,
    controller_epoch: int = CONTROLLER_EPOCH,
) -> bytes:
    return (
        text(topic)
        + pack(">iiii", partition, controller_epoch, leader, epoch)
        + array(*(pack(">i", one) for one in isr))
        + pack(">i", 0)
        + array(*(pack(">i", one) for one in replicas))
    )


def controls(
    key: int, epoch: int, *states: bytes, controller_id: int = 1, flag: bytes = b""
) -> bytes:
    """LeaderAndIsr, StopReplica or UpdateMetadata 0, without brokers."""
    behind = b"" if key == 5 else array()
    body = pack(">ii", controller_id, epoch) + flag + array(*states) + behind
    return request(key, 0, body)


ANYTHING = {
    "nothing": controls(4, 0),
    "leaders": controls(4, 0, state("one", epoch=9), state("both", 1, epoch=9)),
    "leaders of an unknown controller": controls(4, 0, state("one", epoch=9), controller_id=9),
    "no stop": controls(5, 0, flag=b"\0"),
    "a stop": controls(5, 0, text("one") + pack(">i", 0), flag=b"\0"),
    "a deletion": controls(5, 0, text("one") + pack(">i", 0), flag=b"\1"),
    "no metadata": controls(6, 0),
    "metadata": controls(6, 0, state("one", leader=2, epoch=9)),
}


@cluster_sequence("requests of a former controller")
def _(talks: Talks) -> None:
    """They change nothing."""
    for label, frame in ANYTHING.items():
        talks.each(frame, label)
    for topic in ("one", "both"):
        talks.each(metadata(0, topic), "as before")
        talks[1].ask(produce(0, (topic, [produced(0, ONE)])), "it leads")


def shutdown(version: int, broker_id: int) -> bytes:
    if version:
        return request(7, version, pack(">i", broker_id))
    return pack(">ihhii", 12, 7, 0, CORRELATION_ID, broker_id)


@cluster_sequence("ControlledShutdown that is refused")
def _(talks: Talks) -> None:
    for version in (0, 1) if talks.level >= Level.V0_9_0 else (0,):
        for broker_id in (7, 99, -1):
            talks.each(shutdown(version, broker_id), f"of {broker_id}, version {version}")
        for broker_id in (1, 2):
            talks[2].ask(shutdown(version, broker_id), f"of {broker_id}, version {version}")


def leads_alone(payload: bytes) -> bool:
    """Whether broker 2 leads only what it alone has, by a response to Metadata 0."""
    _, found = decode_response(MetadataRequest, payload, 0)
    assert isinstance(found, MetadataResponse)
    return all(
        p.leader != 2 or p.replicas == [2] for topic in found.topics for p in topic.partitions
    )


@cluster_sequence("ControlledShutdown", stage=Stage.TWO_STOPS)
def _(talks: Talks) -> None:
    """Broker 2 leads nothing with several replicas afterwards. Whether it is in the ISRs depends on
    which broker of the JVM hears of it first."""
    version = 1 if talks.level >= Level.V0_9_0 else 0
    for _ in range(2):
        talks[1].ask(shutdown(version, 2), "of the other broker")
    until(lambda: leads_alone(talks[1].probe(metadata(0, *STILL))), "its leaders to move")
    for topic in ("both", "strict", "two", "three"):
        for partition in (0, 1):
            frame = produce(0, (topic, [produced(partition, ONE)]))
            talks[1].ask(frame, f"{topic} {partition}")


@cluster_sequence("requests as of the controller", stage=Stage.ODD_CONTROLLER)
def _(talks: Talks) -> None:
    talk, epoch = talks[1], CONTROLLER_EPOCH
    for label, frame in {
        "no leaders": controls(4, epoch),
        "known epochs": controls(4, epoch, state("one"), state("both", epoch=0)),
        "an older epoch": controls(4, epoch, state("one", epoch=-1)),
        "no replica": controls(4, epoch, state("two", leader=2, isr=(2,), replicas=(2,), epoch=9)),
        "an unknown leader": controls(4, epoch, state("one", leader=9, isr=(9,), epoch=2)),
        "itself again": controls(4, epoch, state("one", epoch=3)),
        "no stops": controls(5, epoch, flag=b"\0"),
        "a stop of what is not here": controls(5, epoch, text("two") + pack(">i", 0), flag=b"\1"),
        "a stop of what does not exist": controls(5, epoch, text("x") + pack(">i", 0), flag=b"\1"),
        "a stop": controls(5, epoch, text("one") + pack(">i", 0), flag=b"\0"),
        "no metadata": controls(6, epoch),
    }.items():
        talk.ask(frame, label)
        talk.ask(produce(0, ("one", [produced(0, ONE)])), f"{label}: to lead")
        talk.ask(metadata(0, "one"), f"{label}: metadata")
    talk.ask(controls(5, epoch, text("one") + pack(">i", 0), flag=b"\1"), "a deletion")
    talk.ask(produce(0, ("one", [produced(0, ONE)])), "deleted")
    for topic in (OFFSETS, "both"):
        talk.ask(metadata(0, topic), f"{topic} at last")
