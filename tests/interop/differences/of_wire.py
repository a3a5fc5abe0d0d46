"""Requests that are wrong as bytes: headers, versions, lengths, and what comes behind the body."""

from __future__ import annotations

from struct import pack
from typing import Final

from kafka08.levels import Level
from tests.interop.differences.frames import (
    CORRELATION_ID,
    LIST_GROUPS,
    NULL_ARRAY,
    array,
    commit,
    committed,
    coordinator,
    create_topics,
    delete_topics,
    describe_groups,
    fetch,
    fetch_offsets,
    fetched,
    heartbeat,
    join,
    leave,
    list_offsets,
    listed,
    metadata,
    new_topic,
    produce,
    produced,
    request,
    sync,
    text,
)
from tests.interop.differences.sequence import ask, sequence
from tests.interop.differences.talk import Talk

STALE = pack(">ii", 1, 0)
"""A controller with an epoch of the past."""
MEMBER = "m-00000000-0000-4000-8000-000000000000"

PLAIN: Final[dict[tuple[int, int], bytes]] = {
    **{(0, version): produce(version, ("t", [produced(0, b"")])) for version in range(3)},
    **{(1, version): fetch(version, ("t", [fetched(1)])) for version in range(4)},
    **{(2, version): list_offsets(version, ("t", [listed(version, 1)])) for version in range(2)},
    **{(3, version): metadata(version, "t") for version in range(3)},
    (4, 0): request(4, 0, STALE + array() + array()),
    (5, 0): request(5, 0, STALE + b"\0" + array()),
    (6, 0): request(6, 0, STALE + array() + array()),
    (6, 1): request(6, 1, STALE + array() + array()),
    (6, 2): request(6, 2, STALE + array() + array()),
    (6, 3): request(6, 3, STALE + array() + array()),
    (7, 0): pack(">ihhii", 12, 7, 0, CORRELATION_ID, 99),
    (7, 1): request(7, 1, pack(">i", 99)),
    **{
        (8, version): commit(version, "wire", ("t", [committed(version, 0)]))
        for version in range(3)
    },
    **{(9, version): fetch_offsets(version, "wire", ("t", [0])) for version in range(3)},
    (10, 0): coordinator("wire"),
    **{(11, version): join(version, "wire", MEMBER) for version in range(2)},
    (12, 0): heartbeat("wire", 3, MEMBER),
    (13, 0): leave("wire", MEMBER),
    (14, 0): sync("wire", 3, MEMBER, (MEMBER, b"a")),
    (15, 0): describe_groups("wire"),
    (16, 0): LIST_GROUPS,
    (17, 0): request(17, 0, text("PLAIN")),
    (18, 0): request(18, 0),
    (19, 0): create_topics(0, new_topic("a b", 1, 1)),
    (19, 1): create_topics(1, new_topic("a b", 1, 1)),
    (20, 0): delete_topics("nosuch"),
}
"""A whole frame of each (key, version), which changes nothing."""
SINCE: Final[dict[tuple[int, int], Level]] = {
    **dict.fromkeys([(0, 1), (1, 1), (6, 1), (7, 1), (8, 2)], Level.V0_9_0),
    **dict.fromkeys([(key, 0) for key in range(11, 17)], Level.V0_9_0),
    **dict.fromkeys(
        [(0, 2), (1, 2), (1, 3), (2, 1), (3, 1), (3, 2), (6, 2), (6, 3)], Level.V0_10_2
    ),
    **dict.fromkeys([(9, 2), (11, 1), (17, 0), (18, 0), (19, 0), (19, 1), (20, 0)], Level.V0_10_2),
}


def with_body(frame: bytes, change: bytes) -> bytes:
    return pack(">i", len(frame) - 4 + len(change)) + frame[4:] + change


def cut(frame: bytes, size: int) -> bytes:
    """The first bytes of a payload, in a frame of their size."""
    return pack(">i", size) + frame[4 : 4 + size]


def with_version(frame: bytes, version: int) -> bytes:
    return frame[:6] + pack(">h", version) + frame[8:]


for (key, version), frame in PLAIN.items():
    since = SINCE.get((key, version), Level.V0_8_2)
    until = Level.V0_9_0 if (key, version) == (7, 0) else Level.V0_10_2
    name = f"key {key} version {version}"
    ask(f"{name}, as it is", frame, since=since, until=until)
    ask(f"{name}, bytes behind", with_body(frame, b"12345"), since=since, until=until)

    ignored = (Level.V0_9_0, Level.V0_10_2) if key == 7 else (Level.V0_9_0,) if key < 10 else ()

    @sequence(f"{name}, cut off", since=since, until=until, departs=ignored)
    def _(talk: Talk, frame: bytes = frame, ignored: tuple[Level, ...] = ignored) -> None:
        size = len(frame) - 4
        sizes = {8, 9, 10, 11, size * 2 // 3, size - 4, size - 1}
        # Each takes the seconds in which a request without a response might still get one.
        for left in sorted({size - 1} if talk.level in ignored else sizes):
            if 8 <= left < size:
                talk.ask(cut(frame, left), f"{left} of {size} bytes")

    if (key, version) != (7, 0):
        head, body = frame[4:8], frame[15:]

        nameless = (Level.V0_9_0,) if key in {0, 1, *range(10, 17)} else ()

        @sequence(f"{name}, no client", since=since, departs=nameless)
        def _(talk: Talk, key: int = key, version: int = version, body: bytes = body) -> None:
            talk.ask(request(key, version, body, client=None), "null client")
            client = pack(">hhih", key, version, 5, -2)
            talk.ask(pack(">i", len(client + body)) + client + body, "client of length -2")

        @sequence(f"{name}, headers", since=since)
        def _(talk: Talk, key: int = key, version: int = version, body: bytes = body) -> None:
            talk.ask(request(key, version, body, correlation_id=-5), "negative id")
            talk.ask(request(key, version, body, client=""), "empty client")
            talk.ask(request(key, version, body, client=b"\xff\xfe\xc3"), "client is no UTF-8")
            talk.ask(request(key, version, body, client="x" * 300), "long client")


@sequence("versions that are not served", since=Level.V0_10_2)
def _(talk: Talk) -> None:
    for key in range(21):
        if key != 7:
            highest = max(version for of, version in PLAIN if of == key)
            frame = PLAIN[key, highest]
            for version in (-1, highest + 1, 100):
                talk.ask(with_version(frame, version), f"key {key} version {version}")


@sequence("versions that are not served, before 0.10", until=Level.V0_8_2)
def _(talk: Talk) -> None:
    for key in range(11):
        if key not in {4, 5, 6, 7}:
            for version in (-1, 2, 100):
                talk.ask(with_version(PLAIN[key, 0], version), f"key {key} version {version}")


@sequence("versions that are not served, 0.9", since=Level.V0_9_0, until=Level.V0_9_0)
def _(talk: Talk) -> None:
    for key in (0, 3, 8, 9, 11, 16):
        highest = max(
            v
            for of, v in PLAIN
            if of == key and (of, v) in PLAIN and SINCE.get((of, v), Level.V0_8_2) <= Level.V0_9_0
        )
        talk.ask(with_version(PLAIN[key, highest], highest + 1), f"key {key}")


@sequence("keys that do not exist", since=Level.V0_10_2)
def _(talk: Talk) -> None:
    for key in (-1, 21, 22, 99, 32767, -32768):
        for version in (0, 1):
            talk.ask(request(key, version, bytes(40)), f"key {key} version {version}")


@sequence("keys that do not exist, before 0.9", until=Level.V0_8_2)
def _(talk: Talk) -> None:
    for key in (-1, 11, 12, 13, 18, 99):
        talk.ask(request(key, 0, bytes(40)), f"key {key}")


@sequence("keys that do not exist, 0.9", since=Level.V0_9_0, until=Level.V0_9_0)
def _(talk: Talk) -> None:
    for key in (-1, 18):
        talk.ask(request(key, 0, bytes(40)), f"key {key}")


@sequence("frames without a key", departs=(Level.V0_9_0, Level.V0_10_2))
def _(talk: Talk) -> None:
    for size in (0, 1):
        talk.ask(pack(">i", size) + bytes(size), f"{size} bytes of zeros")


@sequence("frames that are too small or too large", departs=(Level.V0_9_0,))
def _(talk: Talk) -> None:
    for size in (2, 3, 4, 7, 8) if talk.level != Level.V0_9_0 else (4,):
        talk.ask(pack(">i", size) + bytes(size), f"{size} bytes of zeros")
    talk.ask(pack(">i", -1), "size -1")
    talk.ask(pack(">i", 104857601), "above socket.request.max.bytes")


@sequence("two requests in one packet")
def _(talk: Talk) -> None:
    talk.send(metadata(0, "t") + list_offsets(0, ("t", [listed(0, 1)])))
    talk.receive("first", on=0)
    talk.receive("second", on=0)


@sequence("one request in many packets")
def _(talk: Talk) -> None:
    frame = list_offsets(0, ("t", [listed(0, 0)]))
    for position in range(len(frame) - 1):
        talk.send(frame[position : position + 1])
    talk.ask(frame[-1:])


for version in range(3):

    @sequence(
        f"Metadata {version}, arrays",
        since=Level.V0_8_2 if version == 0 else Level.V0_10_2,
        departs=(Level.V0_9_0,),
    )
    def _(talk: Talk, version: int = version) -> None:
        talk.ask(request(3, version, NULL_ARRAY), "null")
        if talk.level is Level.V0_9_0:
            return
        talk.ask(request(3, version, pack(">i", 1000)), "a thousand, and none there")
        talk.ask(request(3, version, pack(">i", 2147483647)), "more than fits")


ask("ApiVersions 0 with a body", request(18, 0, b"12345"), since=Level.V0_10_2)
ask("ApiVersions 1 with a body", request(18, 1, b"12345"), since=Level.V0_10_2)
ask("ApiVersions 32767", request(18, 32767), since=Level.V0_10_2)
ask("SaslHandshake of a null name", request(17, 0, text(None)), since=Level.V0_10_2)
ask("SaslHandshake of no name", request(17, 0, text("")), since=Level.V0_10_2)
ask("SaslHandshake of GSSAPI", request(17, 0, text("GSSAPI")), since=Level.V0_10_2)
