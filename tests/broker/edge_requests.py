"""Requests without names or partitions, and the responses of 0.8.2.2.

They use the topic `edge`, which must exist with one partition, and the group `edge`, whose
coordinator must be loaded. Send them in this order. tests/interop sends them to the real broker,
tests/broker to ours."""

from __future__ import annotations

from struct import pack
from typing import NamedTuple

CORRELATION_ID = 77


class EdgeRequest(NamedTuple):
    """A frame, and the payload of the response behind its correlation id."""

    name: str
    frame: bytes
    response: bytes


def text(value: str | None) -> bytes:
    data = (value or "").encode()
    return pack(">h", -1 if value is None else len(data)) + data


def array(*items: bytes) -> bytes:
    return pack(">i", len(items)) + b"".join(items)


def topics(*named: tuple[str | None, list[bytes]]) -> bytes:
    return array(*(text(name) + array(*partitions) for name, partitions in named))


def frame(key: int, version: int, body: bytes) -> bytes:
    payload = pack(">hhi", key, version, CORRELATION_ID) + text("c") + body
    return pack(">i", len(payload)) + payload


PRODUCED = pack(">ii", 0, 0)
FETCHED = pack(">iqi", 0, 0, 100)
ASKED = pack(">iqi", 0, -1, 1)
PARTITION = pack(">i", 0)


def produce(*named: tuple[str | None, list[bytes]], acks: int = 1, version: int = 0) -> bytes:
    return frame(0, version, pack(">hi", acks, 1000) + topics(*named))


def fetch(
    version: int, replica_id: int, max_bytes: int, *named: tuple[str | None, list[bytes]]
) -> bytes:
    limit = pack(">i", max_bytes) if version >= 3 else b""
    return frame(1, version, pack(">iii", replica_id, 0, 0) + limit + topics(*named))


def commit(version: int, group: str | None, *named: tuple[str | None, list[bytes]]) -> bytes:
    member = pack(">i", -1) + text("") if version else b""
    member += pack(">q", -1) if version >= 2 else b""
    return frame(8, version, text(group) + member + topics(*named))


def committed(version: int) -> bytes:
    return pack(">iq", 0, 5) + (pack(">q", -1) if version else b"") + text("m")


def fetch_offsets(version: int, group: str | None, *named: tuple[str | None, list[bytes]]) -> bytes:
    return frame(9, version, text(group) + topics(*named))


def code(value: int) -> bytes:
    """A response with this code for partition 0 of a commit."""
    return pack(">ih", 0, value)


def offset(value: int, metadata: str, error_code: int) -> bytes:
    """A response with this offset for partition 0 of an offset fetch."""
    return pack(">iq", 0, value) + text(metadata) + pack(">h", error_code)


def of_commits(version: int) -> list[EdgeRequest]:
    one, nameless_code = committed(version), -1 if version else 3
    nameless_group = -1 if version else 0
    return [
        EdgeRequest(f"{name}, OffsetCommit v{version}", *pair)
        for name, *pair in (
            ("one", commit(version, "edge", ("edge", [one])), topics(("edge", [code(0)]))),
            ("no topic", commit(version, "edge"), topics()),
            ("no partition", commit(version, "edge", ("edge", [])), topics()),
            (
                "no partition of one",
                commit(version, "edge", ("other", []), ("edge", [one])),
                topics(("edge", [code(0)])),
            ),
            ("twice", commit(version, "edge", ("edge", [one, one])), topics(("edge", [code(0)]))),
            (
                "topic twice",
                commit(version, "edge", ("edge", [one]), ("edge", [one])),
                topics(("edge", [code(0)])),
            ),
            (
                "null topic",
                commit(version, "edge", (None, [one])),
                topics((None, [code(nameless_code)])),
            ),
            (
                "null group",
                commit(version, None, ("edge", [one])),
                topics(("edge", [code(nameless_group)])),
            ),
        )
    ]


def of_offset_fetches(version: int) -> list[EdgeRequest]:
    found = offset(5, "m" if version else "", 0)
    unnamed = offset(-1, "", -1) if version else found
    return [
        EdgeRequest(f"{name}, OffsetFetch v{version}", *pair)
        for name, *pair in (
            (
                "one",
                fetch_offsets(version, "edge", ("edge", [PARTITION])),
                topics(("edge", [found])),
            ),
            ("no topic", fetch_offsets(version, "edge"), topics()),
            ("no partition", fetch_offsets(version, "edge", ("edge", [])), topics()),
            (
                "no partition of one",
                fetch_offsets(version, "edge", ("other", []), ("edge", [PARTITION])),
                topics(("edge", [found])),
            ),
            (
                "twice",
                fetch_offsets(version, "edge", ("edge", [PARTITION, PARTITION])),
                topics(("edge", [found])),
            ),
            (
                "null topic",
                fetch_offsets(version, "edge", (None, [PARTITION])),
                topics((None, [offset(-1, "", 3)])),
            ),
            (
                "null group",
                fetch_offsets(version, None, ("edge", [PARTITION])),
                topics(("edge", [unnamed])),
            ),
        )
    ]


EDGE_REQUESTS = [
    EdgeRequest("no topic, Produce", produce(), topics()),
    EdgeRequest("no partition, Produce", produce(("edge", [])), topics()),
    EdgeRequest(
        "null topic, Produce",
        produce((None, [PRODUCED])),
        topics((None, [pack(">ihq", 0, 3, -1)])),
    ),
    EdgeRequest(
        "null topic, Produce with acks -1",
        produce((None, [PRODUCED]), acks=-1),
        topics((None, [pack(">ihq", 0, 3, -1)])),
    ),
    EdgeRequest(
        "no partition, Fetch",
        frame(1, 0, pack(">iii", -1, 0, 0) + topics(("edge", []))),
        topics(),
    ),
    EdgeRequest(
        "null topic, Fetch",
        frame(1, 0, pack(">iii", -1, 0, 0) + topics((None, [FETCHED]))),
        topics((None, [pack(">ihqi", 0, 3, -1, 0)])),
    ),
    EdgeRequest(
        "no partition, Offsets", frame(2, 0, pack(">i", -1) + topics(("edge", []))), topics()
    ),
    EdgeRequest(
        "null topic, Offsets",
        frame(2, 0, pack(">i", -1) + topics((None, [ASKED]))),
        topics((None, [pack(">ihi", 0, 3, 0)])),
    ),
    EdgeRequest(
        "null topic, Metadata",
        frame(3, 0, array(text(None))),
        array() + array(pack(">h", -1) + text(None) + array()),
    ),
    *of_commits(0),
    *of_offset_fetches(0),
    *of_commits(1),
    *of_offset_fetches(1),
    EdgeRequest(
        "empty group and unknown topic, OffsetCommit v0",
        commit(0, "", ("nosuch", [committed(0)])),
        topics(("nosuch", [code(3)])),
    ),
    EdgeRequest(
        "empty group and unknown topic, OffsetFetch v0",
        fetch_offsets(0, "", ("nosuch", [PARTITION])),
        topics(("nosuch", [offset(-1, "", 3)])),
    ),
    EdgeRequest(
        "twice, the second one too long, OffsetCommit v0",
        commit(0, "long", ("edge", [committed(0), pack(">iq", 0, 6) + text("x" * 5000)])),
        topics(("edge", [code(12)])),
    ),
    EdgeRequest(
        "which is then not there, OffsetFetch v0",
        fetch_offsets(0, "long", ("edge", [PARTITION])),
        topics(("edge", [offset(-1, "", 3)])),
    ),
    EdgeRequest(
        "empty group, OffsetCommit v0",
        commit(0, "", ("edge", [committed(0)])),
        topics(("edge", [code(-1)])),
    ),
    EdgeRequest(
        "empty group, OffsetFetch v0",
        fetch_offsets(0, "", ("edge", [PARTITION])),
        topics(("edge", [offset(-1, "", -1)])),
    ),
]
