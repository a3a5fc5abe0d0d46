"""Produce, Fetch and ListOffsets with several replicas: leaders, followers, the HW and the ISR.

Broker 7 does not exist. A sequence plays it, so it decides when that follower fetches.
"""

from __future__ import annotations

from functools import partial
from struct import unpack_from

from kafka08.levels import Level
from tests.interop.differences.frames import (
    entry,
    fetch,
    fetched,
    list_offsets,
    listed,
    message,
    produce,
    produced,
)
from tests.interop.differences.sequence import Stage, cluster_sequence
from tests.interop.differences.talk import Talk, Talks
from tests.waiting import until

ONE = entry(0, message())
PRODUCE_SINCE = (Level.V0_8_2, Level.V0_9_0, Level.V0_10_2)
FETCH_SINCE = (Level.V0_8_2, Level.V0_9_0, Level.V0_10_2, Level.V0_10_2)
LIST_SINCE = (Level.V0_8_2, Level.V0_10_2)
PLACES = [("both", 0), ("both", 1), ("both", 9), ("one", 0), ("two", 0), ("dead", 0), ("none", 0)]
STRICT_TOPICS = ("strict", "played-strict")
MINUTE_MS = 60_000
ENOUGH_MS = {1: MINUTE_MS, -1: MINUTE_MS, 0: MINUTE_MS, 2: 50, -2: MINUTE_MS}
"""acks → a timeout: where there is one replica, two never acknowledge."""


def await_followers(talks: Talks) -> None:
    """Until both followers of the topic "both" know the HW at the log end."""
    for partition, (leader, follower) in enumerate(((1, 2), (2, 1))):
        one = ("both", [produced(partition, ONE)])
        done = talks[leader].probe(produce(0, one, acks=-1, timeout_ms=MINUTE_MS))
        end = unpack_from(">q", done, len(done) - 8)[0] + 1
        until(partial(has_high_watermark, talks[follower], partition, end), "a follower's HW")


def has_high_watermark(talk: Talk, partition: int, offset: int) -> bool:
    empty = fetch(0, ("both", [fetched(partition, 0, 0)]), replica=-2)
    (found,) = unpack_from(">q", talk.probe(empty)[-12:])
    return bool(found == offset)


for version, since in enumerate(PRODUCE_SINCE):

    @cluster_sequence(f"Produce {version} to all and none", since=since)
    def _(talks: Talks, version: int = version) -> None:
        for topic, partition in PLACES:
            for acks in (1, -1, 0, 2, -2):
                wanted = (topic, [produced(partition, ONE)])
                frame = produce(version, wanted, acks=acks, timeout_ms=ENOUGH_MS[acks])
                for broker_id in (1, 2):
                    label = f"{topic} {partition} with acks {acks} at {broker_id}"
                    talks[broker_id].ask(frame, label, is_silent=acks == 0)

    @cluster_sequence(f"Produce {version} to one that leads and one that does not", since=since)
    def _(talks: Talks, version: int = version) -> None:
        for acks in (1, -1, 0):
            both = ("both", [produced(0, ONE), produced(1, ONE)])
            other = ("two", [produced(0, ONE)])
            frame = produce(version, both, other, acks=acks, timeout_ms=MINUTE_MS)
            talks[1].ask(frame, f"acks {acks}", is_silent=acks == 0)


for version, since in enumerate(FETCH_SINCE):

    @cluster_sequence(f"Fetch {version} from all and none", since=since)
    def _(talks: Talks, version: int = version) -> None:
        await_followers(talks)
        for topic, partition in PLACES:
            for replica in (-1, -2, -3):
                frame = fetch(version, (topic, [fetched(partition, 0, 60)]), replica=replica)
                talks.each(frame, f"{topic} {partition} as {replica}")

    @cluster_sequence(f"Fetch {version} behind the end", since=since)
    def _(talks: Talks, version: int = version) -> None:
        for replica in (-1, -2, 7):
            wanted = ("played", [fetched(2, 1 << 40)])
            talks[1].ask(fetch(version, wanted, replica=replica), f"as {replica}")
            talks[2].ask(fetch(version, wanted, replica=replica), f"as {replica}, elsewhere")

    @cluster_sequence(f"Fetch {version} from one that leads and one that does not", since=since)
    def _(talks: Talks, version: int = version) -> None:
        await_followers(talks)
        both = ("both", [fetched(0, 0, 60), fetched(1, 0, 60)])
        frame = fetch(version, both, ("two", [fetched(0)]), wait_ms=MINUTE_MS, min_bytes=1 << 20)
        talks[1].ask(frame)

    odd = (Level.V0_9_0,) if version else ()

    @cluster_sequence(f"Fetch {version} as a replica that is none", since=since, departs=odd)
    def _(talks: Talks, version: int = version) -> None:
        for replica in (1, 2, 7, 9, 0):
            for topic in ("one", "two", "dead"):
                frame = fetch(version, (topic, [fetched(0, 0, 60)]), replica=replica)
                talks[1].ask(frame, f"{topic} as {replica}")


for version, since in enumerate(LIST_SINCE):

    @cluster_sequence(f"ListOffsets {version} of all and none", since=since)
    def _(talks: Talks, version: int = version) -> None:
        for topic, partition in PLACES:
            for replica in (-1, -2, 1, 2, 7):
                wanted = (topic, [listed(version, partition, -2)])
                frame = list_offsets(version, wanted, replica=replica)
                talks.each(frame, f"{topic} {partition} as {replica}")


def newest(talk: Talk) -> int:
    """The highest version of Fetch."""
    return {Level.V0_8_2: 0, Level.V0_9_0: 1}.get(talk.level, 3)


def follow(talk: Talk, topic: str, partition: int, offset: int, label: str) -> None:
    """Fetch as the follower that is played."""
    wanted = (topic, [fetched(partition, offset)])
    talk.ask(fetch(newest(talk), wanted, replica=7), label, on=7)


def join_isr(talk: Talk, topic: str, partition: int, offset: int, label: str) -> None:
    """The follower that is played fetches at the log end, and is in the ISR soon: ours responds
    while ZooKeeper is asked, the JVM's broker afterwards."""
    follow(talk, topic, partition, offset, label)
    acks = -1 if topic in STRICT_TOPICS else 2
    if acks == -1 or talk.level == Level.V0_8_2:
        nothing = produce(0, (topic, [produced(partition, b"")]), acks=acks, timeout_ms=50)
        until(lambda: code_at_end(talk.probe(nothing)) == 0, "the ISR to grow")


def code_at_end(payload: bytes) -> int:
    """The code in a response to Produce 0 for one partition."""
    code: int = unpack_from(">h", payload, len(payload) - 10)[0]
    return code


def send_one(
    talk: Talk, place: tuple[str, int], end: int, *, acks: int, on: int, version: int = 0
) -> None:
    """Send a message that is appended at once and acknowledged later; `end`: the log's, then."""
    topic, partition = place
    wanted = (topic, [produced(partition, ONE)])
    talk.send(produce(version, wanted, acks=acks, timeout_ms=MINUTE_MS), on=on)
    last = list_offsets(0, (topic, [listed(0, partition)]), replica=-2)
    until(lambda: unpack_from(">q", talk.probe(last)[-8:])[0] == end, "the append")


def consume(talk: Talk, topic: str, partition: int, label: str) -> None:
    """What a consumer sees: the HW, and messages below it. Then what is beyond."""
    for replica in (-1, -2):
        wanted = (topic, [fetched(partition, 0)])
        talk.ask(fetch(newest(talk), wanted, replica=replica), f"{label}, as {replica}")
    for number in (-1, -2):
        asked = (topic, [listed(0, partition, number)])
        talk.ask(list_offsets(0, asked), f"{label}, end {number}")


@cluster_sequence("the HW follows the ISR")
def _(talks: Talks) -> None:
    """The follower is played: it joins the ISR at the log end, and the HW waits for it."""
    talk, place = talks[1], ("played", 0)
    one = ("played", [produced(0, ONE)])
    talk.ask(produce(0, one), "first")
    consume(talk, *place, "alone")
    follow(talk, *place, 0, "from the start")
    talk.ask(produce(0, one, acks=-1), "not in the ISR yet")
    join_isr(talk, *place, 2, "at the end")
    talk.ask(produce(0, one), "with acks 1")
    consume(talk, *place, "above the HW")
    send_one(talk, place, 4, acks=-1, on=1)
    follow(talk, *place, 3, "the third is there")
    consume(talk, *place, "the HW at the third")
    follow(talk, *place, 4, "the fourth, too")
    talk.receive("acknowledged", on=1)
    consume(talk, *place, "all")
    for acks, timeout_ms in ((2, 100), (-1, 100), (3, 100), (2, 0), (-1, 0), (-1, -1), (-2, 100)):
        label = f"acks {acks} within {timeout_ms}"
        talk.ask(produce(0, one, acks=acks, timeout_ms=timeout_ms), label)
    takes_two = talk.level == Level.V0_8_2  # later ones append nothing for acks 2, 3 and -2
    end = 12 if takes_two else 8
    send_one(talk, place, end, acks=2 if takes_two else -1, on=1)
    follow(talk, *place, end - 3, "further")
    follow(talk, *place, end, "to the end")
    talk.receive("the last one", on=1)
    follow(talk, *place, 5, "back")
    consume(talk, *place, "afterwards")
    follow(talk, *place, 99, "beyond the end")


@cluster_sequence("a waiting fetch of a follower")
def _(talks: Talks) -> None:
    talk, version = talks[1], newest(talks[1])
    talk.ask(produce(0, ("played", [produced(2, ONE)])), "first")
    join_isr(talk, "played", 2, 1, "joins")
    waits = fetch(version, ("played", [fetched(2, 1)]), replica=7, wait_ms=MINUTE_MS, min_bytes=1)
    talk.send(waits, on=7)
    talk.send(produce(0, ("played", [produced(2, ONE)]), acks=-1, timeout_ms=MINUTE_MS), on=1)
    talk.receive("gets the message", on=7)
    watches = fetch(version, ("played", [fetched(2, 1)]), wait_ms=MINUTE_MS, min_bytes=1)
    talk.send(watches, on=2)
    follow(talk, "played", 2, 2, "has it")
    talk.receive("acknowledged", on=1)
    talk.receive("a consumer that waited for the HW", on=2)


for topic, version in (("strict", 0), ("strict", 1), ("played-strict", 1)):
    since = PRODUCE_SINCE[version]

    @cluster_sequence(f"Produce {version} to {topic}, which needs two in sync", since=since)
    def _(talks: Talks, topic: str = topic, version: int = version) -> None:
        for acks in (-1, 1, -2, 2, -1):
            wanted = (topic, [produced(0, ONE)])
            frame = produce(version, wanted, acks=acks, timeout_ms=ENOUGH_MS[acks])
            talks.each(frame, f"acks {acks}")


@cluster_sequence("two in sync, until one stops")
def _(talks: Talks) -> None:
    """19 before the follower is in sync; 20 once it is not any more; 19 from then on."""
    talk, place = talks[1], ("played-strict", 1)
    one = ("played-strict", [produced(1, ONE)])
    strictly = produce(0, one, acks=-1, timeout_ms=MINUTE_MS)
    talk.ask(strictly, "one in sync")
    join_isr(talk, *place, 0, "joins")
    send_one(talk, place, 1, acks=-1, on=1)
    follow(talk, *place, 0, "gets it")
    follow(talk, *place, 1, "has it")
    talk.receive("two in sync", on=1)
    send_one(talk, place, 2, acks=-1, on=1)
    takes_others = talk.level == Level.V0_8_2
    if takes_others:
        send_one(talk, place, 3, acks=-2, on=2)
    talk.receive("acks -1, too few after the append", on=1)
    if takes_others:
        talk.receive("acks -2, too few after the append", on=2)
    talk.ask(strictly, "acks -1, too few")
    talk.ask(produce(0, one, acks=-2), "acks -2, too few")
    consume(talk, *place, "afterwards")


@cluster_sequence("Produce and Fetch after a broker was killed", stage=Stage.ONE_LEADS)
def _(talks: Talks) -> None:
    talk = talks[1]
    for topic in ("both", "strict", "two", "three"):
        for partition in (0, 1):
            label = f"{topic} {partition}"
            for acks in (1, -1, 2, 0):
                wanted = (topic, [produced(partition, ONE)])
                frame = produce(0, wanted, acks=acks, timeout_ms=ENOUGH_MS[acks])
                talk.ask(frame, f"{label} with acks {acks}", is_silent=acks == 0)
            for replica in (-1, 2):
                wanted = (topic, [fetched(partition, 0, 60)])
                talk.ask(fetch(newest(talk), wanted, replica=replica), f"{label} as {replica}")
