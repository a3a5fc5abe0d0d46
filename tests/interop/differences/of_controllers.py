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
from tests.interop.differences.of_groups import joined
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
CONTROLLER_EPOCH, LATER_EPOCH = 1, 9

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
    for number in range(4):
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
        groups = [group_on(number) for number in range(4)]
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


@cluster_sequence("a group whose records cannot be stored", since=Level.V0_9_0)
def _(talks: Talks) -> None:
    """Too few replicas are in sync."""
    talk, group = talks[1], group_on(3)
    for _ in range(2):
        member = joined(talk.ask(join(0, group, session_ms=MINUTE_MS), "joins")).member_id
        talk.ask(sync(group, 1, member, (member, b"all")), "syncs")
        talk.ask(heartbeat(group, 1, member), "heartbeat")
        mine = ("both", [committed(2, 0)])
        talk.ask(commit(2, group, mine, generation=1, member=member), "commits")
        talk.ask(commit(2, group, mine), "commits without a generation")
        talk.ask(fetch_offsets(1, group, ("both", [0])), "nothing is committed")
        talk.ask(describe_groups(group), "described")
        talk.ask(join(0, group, member, session_ms=MINUTE_MS), "joins again")
        talk.ask(sync(group, 2, member, (member, b"all")), "syncs again")
        talk.ask(leave(group, member), "leaves")
        talk.ask(describe_groups(group), "described")


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
    key: int,
    epoch: int,
    *states: bytes,
    controller_id: int = 1,
    flag: bytes = b"",
    brokers: tuple[bytes, ...] = (),
) -> bytes:
    """LeaderAndIsr, StopReplica or UpdateMetadata 0."""
    behind = b"" if key == 5 else array(*brokers)
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
    }.items():
        talk.ask(frame, label)
        talk.ask(produce(0, ("one", [produced(0, ONE)])), f"{label}: to lead")
        talk.ask(metadata(0, "one"), f"{label}: metadata")
    talk.ask(controls(5, epoch, text("one") + pack(">i", 0), flag=b"\1"), "a deletion")
    talk.ask(produce(0, ("one", [produced(0, ONE)])), "deleted")
    for topic in (OFFSETS, "both"):
        talk.ask(metadata(0, topic), f"{topic} at last")


UPDATE_SINCE = (Level.V0_8_2, Level.V0_9_0, Level.V0_10_2, Level.V0_10_2)
PLAINTEXT, SSL = 0, 1


def live(version: int, broker_id: int, host: str, port: int, protocol: int = PLAINTEXT) -> bytes:
    """A broker with one address, as a version of UpdateMetadata has it."""
    if version == 0:
        return pack(">i", broker_id) + text(host) + pack(">i", port)
    listener = text(("PLAINTEXT", "SSL")[protocol]) if version >= 3 else b""
    endpoint = pack(">i", port) + text(host) + listener + pack(">h", protocol)
    rack = text(f"rack of {host}") if version >= 2 else b""
    return pack(">i", broker_id) + array(endpoint) + rack


def nowhere(version: int, broker_id: int) -> bytes:
    """A broker without an address."""
    return pack(">i", broker_id) + array() + (text(None) if version >= 2 else b"")


def update(version: int, epoch: int, states: list[bytes], brokers: list[bytes]) -> bytes:
    body = pack(">ii", 1, epoch) + array(*states) + array(*brokers)
    return request(6, version, body)


for version, since in enumerate(UPDATE_SINCE):

    @cluster_sequence(
        f"UpdateMetadata {version} as of a later controller",
        since=since,
        stage=Stage.ODD_CONTROLLER,
    )
    def _(talks: Talks, version: int = version) -> None:
        """The present one may send its own at any time, for a changed ISR: they are refused."""
        talk, name = talks[1], f"shown-{version}"
        one, two = live(version, 1, "one", 9001), live(version, 2, "two", 9002)
        three = (1, 2, 3)
        updates: dict[str, tuple[list[bytes], list[bytes]]] = {
            "all alive": ([state(name, isr=(1, 2), replicas=(1, 2))], [one, two]),
            "a dead replica": ([state(name, isr=(1, 2), replicas=three)], [one, two]),
            "a dead one in the ISR": ([state(name, isr=three, replicas=three)], [one, two]),
            "a dead leader": ([state(name, leader=3, isr=three, replicas=three)], [one, two]),
            "no leader": ([state(name, leader=-1, isr=(), replicas=(1, 2))], [one, two]),
            "more partitions": ([state(name, n) for n in (1, 3)], [one]),
            "a partition goes": ([state(name, 1, leader=-2)], [one]),
            "an older epoch": (
                [state(name, 3, leader=2, isr=(2,), replicas=(2,), epoch=-1)],
                [two],
            ),
            "the ISR is no replica": ([state(name, isr=(2,), replicas=(1,))], [one, two]),
            "another order": ([state(name, leader=2, isr=(2, 1), replicas=(2, 1))], [two, one]),
            "only one": ([], [two]),
            "odd addresses": ([], [live(version, 1, "", -1), live(version, 2, "two", 70000)]),
            "no broker": ([], []),
            "all again": ([], [one, two]),
            "all partitions go": ([state(name, n, leader=-2) for n in (0, 3)], [one, two]),
        }
        for label, (states, brokers) in updates.items():
            talk.ask(update(version, LATER_EPOCH, states, brokers), label)
            for asked in range(3 if talk.level >= Level.V0_10_2 else 1):
                talk.ask(metadata(asked, name), f"{label}, Metadata {asked}")

    if version == 0:
        continue

    @cluster_sequence(
        f"UpdateMetadata {version} without a plain address",
        since=since,
        departs=(Level.V0_9_0, Level.V0_10_2),
        stage=Stage.ODD_CONTROLLER,
    )
    def _(talks: Talks, version: int = version) -> None:
        talk, name = talks[1], f"safe-{version}"
        one = live(version, 1, "one", 9001)
        for label, second in {
            "SSL": live(version, 2, "two", 9002, SSL),
            "none": nowhere(version, 2),
        }.items():
            for leader, isr in ((1, (1,)), (1, (1, 2)), (2, (2,))):
                states = [state(name, leader=leader, isr=isr, replicas=(1, 2))]
                talk.ask(update(version, LATER_EPOCH, states, [one, second]), label)
                for asked in range(3 if talk.level >= Level.V0_10_2 else 1):
                    talk.ask(metadata(asked, name), f"{label}, led by {leader}, Metadata {asked}")


@cluster_sequence("requests as of a later controller", stage=Stage.ODD_CONTROLLER)
def _(talks: Talks) -> None:
    """Those of the former one are refused from then on."""
    talk, epoch, second = talks[1], LATER_EPOCH, live(0, 2, "127.0.0.1", 1)
    for label, frame in {
        "metadata": controls(6, epoch, brokers=(live(0, 1, "127.0.0.1", 1), second)),
        "leaders": controls(4, epoch, state("both", epoch=20, controller_epoch=epoch)),
        "leaders of the former one": controls(4, CONTROLLER_EPOCH, state("both", epoch=30)),
        "metadata of the former one": controls(6, CONTROLLER_EPOCH),
        "a stop of the former one": controls(5, CONTROLLER_EPOCH, flag=b"\0"),
        "the same leaders": controls(4, epoch, state("both", epoch=20, controller_epoch=epoch)),
        "to follow": controls(
            4,
            epoch,
            state("both", leader=2, isr=(2,), replicas=(1, 2), epoch=21, controller_epoch=epoch),
            brokers=(second,),
        ),
        "to lead again": controls(4, epoch, state("both", epoch=22, controller_epoch=epoch)),
    }.items():
        talk.ask(frame, label)
        for acks in (1, -1):
            one = ("both", [produced(0, ONE)])
            talk.ask(produce(0, one, acks=acks), f"{label}: to lead with acks {acks}")
