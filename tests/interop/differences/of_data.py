"""Produce, Fetch and ListOffsets: sets, limits and offsets that are odd or wrong."""

from __future__ import annotations

import time
from struct import pack, unpack_from
from typing import Final

from kafka08.levels import Level
from tests.interop.differences.frames import (
    NULL_ARRAY,
    array,
    data,
    entry,
    fetch,
    fetched,
    list_offsets,
    listed,
    message,
    produce,
    produced,
    request,
    text,
    topics,
    wrapper,
)
from tests.interop.differences.sequence import sequence
from tests.interop.differences.talk import Talk

LONG_MAX = 2**63 - 1
GZIP, SNAPPY, LZ4 = 1, 2, 3
Named = list[tuple[str | None, list[bytes]]]
"""The topics of a request, with their partitions."""
NOW: Final = int(time.time() * 1000)
FIXED_TIME = 1_400_000_000_000
V0 = message()
V1 = message(magic=1, timestamp=FIXED_TIME)
PRODUCE_SINCE = (Level.V0_8_2, Level.V0_9_0, Level.V0_10_2)
FETCH_SINCE = (Level.V0_8_2, Level.V0_9_0, Level.V0_10_2, Level.V0_10_2)


def several(*messages: bytes, first: int = 0) -> bytes:
    return b"".join(entry(first + number, one) for number, one in enumerate(messages))


def of_magic(magic: int, attributes: int = 0) -> bytes:
    return message(magic=magic, timestamp=FIXED_TIME, attributes=attributes)


PLAIN_SETS: Final[dict[str, bytes]] = {
    "nothing": b"",
    "one of magic 0": entry(0, V0),
    "three of magic 0": several(V0, message(b"w"), message(b"x", b"k")),
    "offsets of its own": entry(17, V0) + entry(3, V0) + entry(-1, V0),
    "null key and null value": entry(0, message(None)),
    "empty key and empty value": entry(0, message(b"", b"")),
    "key without value": entry(0, message(None, b"k")),
    "wrong CRC": entry(0, message(wrong_crc=True)),
    "wrong CRC behind a good one": entry(0, V0) + entry(1, message(wrong_crc=True)),
    "size 0": entry(0, b""),
    "size 5": entry(0, V0[:5]),
    "size 13": entry(0, V0[:13]),
    "size negative": entry(0, V0, -1),
    "size above the set": entry(0, V0, 100),
    "size below its message": entry(0, V0, 14),
    "good, then a part": several(V0, V0)[:-3],
    "good, then 3 bytes": entry(0, V0) + b"abc",
    "good, then 12 zeros": entry(0, V0) + bytes(12),
    "good, then 30 zeros": entry(0, V0) + bytes(30),
    "good, then size 5": entry(0, V0) + entry(1, V0[:5]),
    "a part alone": entry(0, V0)[:-1],
    "magic -1": entry(0, message(magic=-1)),
    "magic 3": entry(0, message(magic=3)),
    "codec 4": entry(0, message(attributes=4)),
    "codec 7": entry(0, message(attributes=7)),
    "upper attribute bits": entry(0, message(attributes=-16)),
    "time type in magic 0": entry(0, message(attributes=8)),
    "key length -2": entry(0, message(body=pack(">i", -2) + data(b"v"))),
    "key beyond the message": entry(0, message(body=pack(">i", 500) + data(b"v"))),
    "value length -2": entry(0, message(body=data(None) + pack(">i", -2))),
    "value beyond the message": entry(0, message(body=data(None) + pack(">i", 500) + b"v")),
    "value shorter than the message": entry(0, message(body=data(None) + data(b"v") + b"left")),
    "100 bytes": entry(0, message(b"v" * 74)),
    "101 bytes": entry(0, message(b"v" * 75)),
    "92 bytes": entry(0, message(b"v" * 66)),
    "93 bytes": entry(0, message(b"v" * 67)),
}
PACKED_SETS: Final[dict[str, bytes]] = {
    "gzip of one": wrapper(GZIP, entry(0, V0)),
    "gzip of three": wrapper(GZIP, several(V0, message(b"w"), message(b"x", b"k")), offset=2),
    "snappy of two": wrapper(SNAPPY, several(V0, V0)),
    "lz4 of two": wrapper(LZ4, several(V0, V0)),
    "gzip of nothing": wrapper(GZIP, b""),
    "gzip of a part": wrapper(GZIP, entry(0, V0)[:-2]),
    "gzip of one and a part": wrapper(GZIP, several(V0, V0)[:-3]),
    "gzip of one and 5 bytes": wrapper(GZIP, entry(0, V0) + b"abcde"),
    "gzip of a wrong size": wrapper(GZIP, entry(0, V0, -1)),
    "gzip of size 5": wrapper(GZIP, entry(0, V0[:5])),
    "gzip of a wrong CRC": wrapper(GZIP, entry(0, message(wrong_crc=True))),
    "gzip of gzip": wrapper(GZIP, wrapper(GZIP, entry(0, V0))),
    "gzip of snappy": wrapper(GZIP, wrapper(SNAPPY, entry(0, V0))),
    "gzip of codec 7": wrapper(GZIP, entry(0, message(attributes=7))),
    "gzip, then plain": wrapper(GZIP, several(V0, V0)) + entry(2, V0),
    "plain, then gzip": entry(0, V0) + wrapper(GZIP, several(V0, V0)),
    "gzip twice": wrapper(GZIP, entry(0, V0)) * 2,
    "gzip, then snappy": wrapper(GZIP, entry(0, V0)) + wrapper(SNAPPY, entry(0, message(b"w"))),
    "gzip of no gzip": entry(0, message(b"no gzip", attributes=GZIP)),
    "snappy of no snappy": entry(0, message(b"no snappy", attributes=SNAPPY)),
    "lz4 of no lz4": entry(0, message(b"no lz4", attributes=LZ4)),
    "gzip of a null value": entry(0, message(None, attributes=GZIP)),
    "gzip of an empty value": entry(0, message(b"", attributes=GZIP)),
    "snappy of an empty value": entry(0, message(b"", attributes=SNAPPY)),
    "gzip of null keys": wrapper(GZIP, several(message(b"v", b"k"), V0)),
    "gzip of keys": wrapper(GZIP, several(message(b"v", b"k"), message(b"w", b"l"))),
    "gzip with a key": entry(0, message(wrapper(GZIP, entry(0, V0))[26:], b"key", attributes=GZIP)),
    "gzip, wrong CRC": wrapper(GZIP, entry(0, V0))[:-1] + b"\1",
    "gzip of offsets 5 and 9": wrapper(GZIP, entry(5, V0) + entry(9, V0)),
    "gzip above 100 bytes, small inside": wrapper(GZIP, several(*[V0] * 3)),
}
LATER_SETS: Final[dict[str, bytes]] = {
    "one of magic 1": entry(0, V1),
    "three of magic 1": several(V1, of_magic(1), message(b"x", b"k", magic=1, timestamp=NOW)),
    "magic 0 and 1": several(V0, V1),
    "magic 1 and 0": several(V1, V0),
    "magic 1 with a wrong CRC": entry(0, message(magic=1, wrong_crc=True)),
    "magic 1, size 21": entry(0, V1[:21]),
    "magic 1, size 14": entry(0, V1[:14]),
    "time -1": entry(0, message(magic=1)),
    "time -2": entry(0, message(magic=1, timestamp=-2)),
    "time 0": entry(0, message(magic=1, timestamp=0)),
    "time now": entry(0, message(magic=1, timestamp=NOW)),
    "time of the end": entry(0, message(magic=1, timestamp=LONG_MAX)),
    "time of the start": entry(0, message(magic=1, timestamp=-LONG_MAX - 1)),
    "time in two days": entry(0, message(magic=1, timestamp=NOW + 2 * 86_400_000)),
    "type LogAppendTime": entry(0, message(magic=1, attributes=8, timestamp=FIXED_TIME)),
    "magic 1, upper attribute bits": entry(0, of_magic(1, attributes=-16)),
    "magic 1, codec 7": entry(0, of_magic(1, attributes=7)),
    "magic 1, key length -2": entry(0, message(magic=1, body=pack(">i", -2) + data(b"v"))),
    "magic 1, value too short": entry(0, message(magic=1, body=data(None) + data(b"v") + b"x")),
    "gzip 1 of two": wrapper(GZIP, several(V1, V1), offset=1, magic=1, timestamp=FIXED_TIME),
    "gzip 1 of two, offset 0": wrapper(GZIP, several(V1, V1), magic=1, timestamp=FIXED_TIME),
    "gzip 1 of two, offset -1": wrapper(GZIP, several(V1, V1), offset=-1, magic=1),
    "gzip 1 of two, offset 99": wrapper(GZIP, several(V1, V1), offset=99, magic=1),
    "gzip 1 of two, absolute": wrapper(GZIP, several(V1, V1, first=5), offset=6, magic=1),
    "gzip 1 of offsets 0 and 0": wrapper(GZIP, entry(0, V1) * 2, offset=1, magic=1),
    "gzip 1 of offsets 1 and 0": wrapper(GZIP, entry(1, V1) + entry(0, V1), offset=1, magic=1),
    "gzip 1 of offsets 0 and 2": wrapper(GZIP, entry(0, V1) + entry(2, V1), offset=2, magic=1),
    "gzip 1 of magic 0": wrapper(GZIP, several(V0, V0), offset=1, magic=1),
    "gzip 0 of magic 1": wrapper(GZIP, several(V1, V1), offset=1),
    "gzip 1 of both magics": wrapper(GZIP, several(V1, V0), offset=1, magic=1),
    "gzip 1, time of the wrapper": wrapper(GZIP, entry(0, V1), magic=1, timestamp=5),
    "gzip 1, wrapper typed": wrapper(GZIP, entry(0, V1), magic=1, timestamp=5, flags=8),
    "gzip 1, inner typed": wrapper(GZIP, entry(0, of_magic(1, attributes=8)), magic=1),
    "gzip 1, inner time -2": wrapper(GZIP, entry(0, message(magic=1, timestamp=-2)), magic=1),
    "gzip 1 of times": wrapper(
        GZIP,
        several(of_magic(1), message(magic=1, timestamp=FIXED_TIME + 9), message(magic=1)),
        offset=2,
        magic=1,
    ),
    "gzip 1 of nothing": wrapper(GZIP, b"", magic=1),
    "gzip 1 of a part": wrapper(GZIP, entry(0, V1)[:-2], magic=1),
    "gzip 1 of one and a part": wrapper(GZIP, several(V1, V1)[:-3], magic=1),
    "gzip 1 of one and 5 bytes": wrapper(GZIP, entry(0, V1) + b"abcde", magic=1),
    "gzip 1 of gzip 1": wrapper(GZIP, wrapper(GZIP, entry(0, V1), magic=1), magic=1),
    "gzip 1 twice": wrapper(GZIP, entry(0, V1), magic=1) * 2,
    "gzip 1, then plain": wrapper(GZIP, entry(0, V1), magic=1) + entry(1, V1),
    "snappy 1 of two": wrapper(SNAPPY, several(V1, V1), offset=1, magic=1, timestamp=FIXED_TIME),
    "lz4 1 of two": wrapper(LZ4, several(V1, V1), offset=1, magic=1, timestamp=FIXED_TIME),
    "lz4 1 of no lz4": entry(0, message(b"no lz4", magic=1, attributes=LZ4)),
    "gzip 1 of no gzip": entry(0, message(b"no gzip", magic=1, attributes=GZIP)),
    "gzip 1 of a null value": entry(0, message(None, magic=1, attributes=GZIP)),
    "gzip 1 of null keys": wrapper(GZIP, several(message(b"v", b"k", magic=1), V1), magic=1),
}
SET_TOPICS: Final = {
    "t": Level.V0_8_2,
    "compacted": Level.V0_8_2,
    "narrow": Level.V0_8_2,
    "gzipped": Level.V0_9_0,
    "plain": Level.V0_9_0,
    "stamped": Level.V0_10_2,
    "old": Level.V0_10_2,
    "strict": Level.V0_10_2,
}


def end_of(talk: Talk, topic: str) -> int:
    """The log end, without a line in the transcript."""
    lines = len(talk.lines)
    found = talk.ask(list_offsets(0, (topic, [listed(0, 0)])))
    del talk.lines[lines:]
    end: int = unpack_from(">q", found, len(found) - 8)[0]
    return end


def produce_and_fetch(talk: Talk, topic: str, message_set: bytes, level: Level) -> None:
    """Each version of Produce, then each of Fetch."""
    before = end_of(talk, topic)
    for version, since in enumerate(PRODUCE_SINCE):
        if since <= level:
            talk.ask(produce(version, (topic, [produced(0, message_set)])), f"Produce {version}")
    for version, since in enumerate(FETCH_SINCE):
        if since <= level:
            talk.ask_set(version, fetch(version, (topic, [fetched(0, before)])), f"Fetch {version}")
    if level >= Level.V0_10_2 and topic != "strict":
        for time_ms in (0, FIXED_TIME, FIXED_TIME + 1):
            talk.ask(list_offsets(1, (topic, [listed(1, 0, time_ms)])), f"at {time_ms}")


for key, version, head, since in (
    *((0, version, pack(">hi", 1, 1000), s) for version, s in enumerate(PRODUCE_SINCE)),
    *((1, version, pack(">iii", -1, 0, 0), s) for version, s in enumerate(FETCH_SINCE[:3])),
    (1, 3, pack(">iiii", -1, 0, 0, 100), Level.V0_10_2),
    (2, 0, pack(">i", -1), Level.V0_8_2),
    (2, 1, pack(">i", -1), Level.V0_10_2),
):

    @sequence(
        f"key {key} version {version}, null arrays",
        since=since,
        departs=(Level.V0_8_2, Level.V0_9_0),
    )
    def _(talk: Talk, key: int = key, version: int = version, head: bytes = head) -> None:
        talk.ask(request(key, version, head + NULL_ARRAY), "null topics")
        talk.ask(request(key, version, head + array(text("t") + NULL_ARRAY)), "null partitions")


for version, since in enumerate(PRODUCE_SINCE):

    @sequence(f"Produce {version}, null topic", since=since, departs=(Level.V0_9_0,))
    def _(talk: Talk, version: int = version) -> None:
        talk.ask(produce(version, (None, [produced(0, entry(0, V0))])))

    @sequence(f"Produce {version}, impossible sizes", since=since, departs=(Level.V0_9_0,))
    def _(talk: Talk, version: int = version) -> None:
        talk.ask(produce(version, ("t", [pack(">ii", 0, -1)])), "null set")
        if talk.level is not Level.V0_9_0:
            talk.ask(produce(version, ("t", [pack(">ii", 0, -2)])), "set of size -2")
            talk.ask(request(0, version, pack(">hii", 1, 1000, 50)), "more topics than bytes")


for version, since in enumerate(FETCH_SINCE):

    @sequence(f"Fetch {version}, null topic", since=since, departs=(Level.V0_8_2, Level.V0_9_0))
    def _(talk: Talk, version: int = version) -> None:
        for replica in (-1, -2):
            talk.ask(fetch(version, (None, [fetched(0)]), replica=replica), f"for {replica}")


CONVERTED = ("t", "compacted", "narrow", "gzipped", "plain", "stamped", "strict")
STORED = ("t", "gzipped", "plain", "stamped", "old", "strict")
DEPARTS_AT_0_10_2: Final[dict[str, tuple[str, ...]]] = {
    "magic -1": tuple(SET_TOPICS),
    "magic 3": tuple(SET_TOPICS),
    "time type in magic 0": ("gzipped",),
    "key beyond the message": CONVERTED,
    "value beyond the message": ("t", "narrow", "gzipped", "plain", "stamped"),
    "gzip of a wrong CRC": STORED,
    "gzip of codec 7": ("compacted", *STORED),
    "time -2": ("t", "gzipped", "plain", "old"),
    "time of the start": ("t", "gzipped", "plain", "old"),
    "gzip 1, inner time -2": ("t", "gzipped", "plain", "old"),
    "gzip 1, then plain": ("t", "gzipped", "stamped"),
    "gzip 1, wrapper typed": ("compacted",),
    "gzip 1 of both magics": ("strict",),
}
"""Set → the topics where ours differs from 0.10.2.2 on purpose."""
FLATTENED = ("t", "gzipped", "plain")
DEPARTS_AT_0_9_0: Final[dict[str, tuple[str, ...]]] = {
    "empty key and empty value": ("compacted",),
    "gzip of gzip": FLATTENED,
    "gzip of snappy": FLATTENED,
    "gzip of codec 7": ("compacted", *FLATTENED),
}
"""The same for 0.9.0.1."""


def departing(name: str, topic: str) -> tuple[Level, ...]:
    found = {Level.V0_9_0: DEPARTS_AT_0_9_0, Level.V0_10_2: DEPARTS_AT_0_10_2}
    return tuple(level for level, sets in found.items() if topic in sets.get(name, ()))


for sets, sets_since in (
    (PLAIN_SETS, Level.V0_8_2),
    (PACKED_SETS, Level.V0_8_2),
    (LATER_SETS, Level.V0_10_2),
):
    for name, message_set in sets.items():
        for topic, since in SET_TOPICS.items():
            if topic == "narrow" and sets is not PLAIN_SETS:
                continue  # what is compressed again has a size of its own

            @sequence(
                f"{name}, into {topic}",
                since=max(since, sets_since),
                until=Level.V0_10_2,  # how 0.11 checks messages comes with record batches
                departs=departing(name, topic),
            )
            def _(talk: Talk, topic: str = topic, message_set: bytes = message_set) -> None:
                produce_and_fetch(talk, topic, message_set, talk.level)


for version, since in enumerate(PRODUCE_SINCE):

    @sequence(f"Produce {version}, acks and timeouts", since=since)
    def _(talk: Talk, version: int = version) -> None:
        one = produced(0, entry(0, V0))
        for acks in (2, -2, -1, 1, 32767):
            for timeout_ms in (-1, 0, 50):
                frame = produce(version, ("t", [one]), acks=acks, timeout_ms=timeout_ms)
                talk.ask(frame, f"acks {acks} within {timeout_ms}")
        for topic in ("mindful", "nosuch", "dead", "a b", "__consumer_offsets"):
            for acks in (1, -1, 2):
                frame = produce(version, (topic, [one]), acks=acks, timeout_ms=50)
                talk.ask(frame, f"acks {acks} to {topic}")

    @sequence(f"Produce {version}, no acks", since=since)
    def _(talk: Talk, version: int = version) -> None:
        one = produced(0, entry(0, V0))
        for topic in ("t", "nosuch", "a b", "__consumer_offsets"):
            talk.ask(produce(version, (topic, [one]), acks=0), f"to {topic}", is_silent=True)
        talk.ask(produce(version, acks=0), "to nothing", is_silent=True)
        wrong = produced(0, entry(0, message(wrong_crc=True)))
        talk.ask(produce(version, ("t", [wrong]), acks=0), "a wrong CRC", is_silent=True)
        talk.ask(produce(version, ("t", [produced(9, b"")]), acks=0), "to t 9", is_silent=True)

    @sequence(f"Produce {version}, names and arrays", since=since)
    def _(talk: Talk, version: int = version) -> None:
        one, other = produced(0, entry(0, V0)), produced(1, entry(0, V0))
        for label, frame in {
            "no topic": produce(version),
            "no partition": produce(version, ("t", [])),
            "partition -1": produce(version, ("t", [produced(-1, entry(0, V0))])),
            "partition 3": produce(version, ("t", [produced(3, entry(0, V0))])),
            "partition twice": produce(version, ("t", [one, one])),
            "topic twice": produce(version, ("t", [one]), ("t", [one])),
            "topic twice, two partitions": produce(version, ("t", [one]), ("t", [other])),
            "empty topic": produce(version, ("", [one])),
        }.items():
            talk.ask(frame, label)


for version, since in enumerate(FETCH_SINCE):

    @sequence(f"Fetch {version}, offsets and limits", since=since)
    def _(talk: Talk, version: int = version) -> None:
        end = end_of(talk, "full")
        while end < 10:
            talk.ask(produce(0, ("full", [produced(0, several(V0, V0))])))
            end = end_of(talk, "full")
        # 0.9: a follower that is no replica gets an error of version 0 also for version 1.
        followers = () if version and talk.level is Level.V0_9_0 else (5,)
        for replica in (-1, -2, -3, *followers):
            for offset in (-2, -1, 0, 1, 5, end - 1, end, end + 1, LONG_MAX, -LONG_MAX - 1):
                for limit in (0, -1, 1, 11, 12, 27, 28, 60, 1 << 16):
                    one = fetched(0, offset, limit)
                    label = f"{offset - end} of {limit} for {replica}"
                    talk.ask(fetch(version, ("full", [one]), replica=replica), label)

    @sequence(f"Fetch {version}, waits", since=since)
    def _(talk: Talk, version: int = version) -> None:
        end = end_of(talk, "full")
        for replica in (-1, -2):
            for wait_ms in (-1, 0, 20):
                for min_bytes in (-1, 0, 1, 1 << 30):
                    for offset in (0, end, end + 1):
                        frame = fetch(
                            version,
                            ("full", [fetched(0, offset, 100)]),
                            replica=replica,
                            wait_ms=wait_ms,
                            min_bytes=min_bytes,
                        )
                        label = f"{offset - end}: {min_bytes} within {wait_ms} for {replica}"
                        talk.ask(frame, label)

    @sequence(f"Fetch {version}, names and arrays", since=since)
    def _(talk: Talk, version: int = version) -> None:
        for replica in (-1, -2):
            names: dict[str, Named] = {
                "no topic": [],
                "no partition": [("t", [])],
                "unknown topic": [("nosuch", [fetched(0)])],
                "illegal topic": [("a b", [fetched(0)])],
                "empty topic": [("", [fetched(0)])],
                "topic of a dead broker": [("dead", [fetched(0)])],
                "partition -1": [("t", [fetched(-1)])],
                "partition 3": [("t", [fetched(3)])],
                "partition twice": [("full", [fetched(0, 0, 30), fetched(0, 1, 60)])],
                "topic twice": [("full", [fetched(0, 0, 30)]), ("full", [fetched(0, 1, 60)])],
                "topic again": [
                    ("full", [fetched(0, 0, 30)]),
                    ("nosuch", [fetched(0)]),
                    ("full", [fetched(0, 1, 60), fetched(1)]),
                ],
                "unknown one between": [
                    ("nosuch", [fetched(0)]),
                    ("full", [fetched(0, 0, 30)]),
                ],
            }
            for label, named in names.items():
                frame = fetch(version, *named, replica=replica)
                talk.ask(frame, f"{label} for {replica}")


@sequence("Fetch 3, limits of the response", since=Level.V0_10_2)
def _(talk: Talk) -> None:
    for most in (-(2**31), -1, 0, 1, 11, 12, 28, 29, 56, 60):
        for replica in (-1, -2):
            for named in (
                [("full", [fetched(0, 0, 100)]), ("t", [fetched(0, 0, 100), fetched(2)])],
                [("full", [fetched(0, 0, 0)]), ("t", [fetched(0, 0, -1)])],
                [("nosuch", [fetched(0)]), ("full", [fetched(0, 0, 1)])],
                [("full", [fetched(0, 99999)]), ("full", [fetched(0, 0, 1)])],
            ):
                frame = fetch(3, *named, max_bytes=most, replica=replica)
                talk.ask_set(3, frame, f"{most} for {replica}")


for version, since in enumerate((Level.V0_8_2, Level.V0_10_2)):

    @sequence(f"ListOffsets {version}", since=since)
    def _(talk: Talk, version: int = version) -> None:
        for replica in (-1, -2, 1, 5, -3):
            for time_ms in (-1, -2, -3, 0, 1, NOW + 10**9, LONG_MAX, -LONG_MAX - 1):
                for most in (1, 0, -1, 2, 100) if version == 0 else (1,):
                    one = listed(version, 0, time_ms, most)
                    frame = list_offsets(version, ("full", [one]), replica=replica)
                    talk.ask(frame, f"{most} before {time_ms} for {replica}")
            names: dict[str, Named] = {
                "no topic": [],
                "no partition": [("t", [])],
                "unknown topic": [("nosuch", [listed(version, 0)])],
                "illegal topic": [("a b", [listed(version, 0)])],
                "null topic": [(None, [listed(version, 0)])],
                "topic of a dead broker": [("dead", [listed(version, 0)])],
                "partition -1": [("t", [listed(version, -1)])],
                "empty partition": [("t", [listed(version, 2, -1)])],
                "start of an empty partition": [("t", [listed(version, 2, -2)])],
                "time in an empty partition": [("t", [listed(version, 2, 5)])],
                "partition twice": [("full", [listed(version, 0, -1), listed(version, 0, -2)])],
                "topic twice": [("full", [listed(version, 0, -1)]), ("full", [listed(version, 0)])],
            }
            for label, named in names.items():
                talk.ask(list_offsets(version, *named, replica=replica), f"{label} for {replica}")


@sequence("ListOffsets 1 in topics without times", since=Level.V0_10_2)
def _(talk: Talk) -> None:
    for topic in ("old", "stamped", "compacted", "__consumer_offsets"):
        for time_ms in (-1, -2, -3, 5):
            talk.ask(list_offsets(1, (topic, [listed(1, 0, time_ms)])), f"{topic} at {time_ms}")


@sequence("topics of one request are all answered", since=Level.V0_8_2)
def _(talk: Talk) -> None:
    talk.ask(request(1, 0, pack(">iii", -1, 0, 0) + topics(("t", [fetched(2), fetched(1)]))))
