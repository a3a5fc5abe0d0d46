"""Committed offsets and the coordinator of a group without members."""

from __future__ import annotations

from struct import pack

from kafka08.levels import Level
from tests.interop.differences.frames import (
    NULL_ARRAY,
    array,
    commit,
    committed,
    coordinator,
    fetch_offsets,
    request,
    text,
)
from tests.interop.differences.sequence import ask, sequence
from tests.interop.differences.talk import Talk

COMMIT_SINCE = (Level.V0_8_2, Level.V0_8_2, Level.V0_9_0)
FETCH_SINCE = (Level.V0_8_2, Level.V0_8_2, Level.V0_10_2)
LONG_MAX = 2**63 - 1


def fetch_all(talk: Talk, group: str | None, *named: tuple[str | None, list[int]]) -> None:
    for version, since in enumerate(FETCH_SINCE):
        if since <= talk.level:
            talk.ask(fetch_offsets(version, group, *named), f"OffsetFetch {version}")


for version, since in enumerate(COMMIT_SINCE):

    @sequence(f"OffsetCommit {version}, values", since=since)
    def _(talk: Talk, version: int = version) -> None:
        group = f"values-{version}"
        for label, one in {
            "offset -1": committed(version, 0, -1),
            "offset -2": committed(version, 0, -2),
            "offset of the end": committed(version, 0, LONG_MAX),
            "empty metadata": committed(version, 0, 7, ""),
            "metadata of 4096": committed(version, 0, 8, "x" * 4096),
            "metadata of 4096 letters, 8192 bytes": committed(version, 0, 10, "\u00e4" * 4096),
            "partition -1": committed(version, -1),
            "partition 99": committed(version, 99),
        }.items():
            talk.ask(commit(version, group, ("t", [one])), label)
            fetch_all(talk, group, ("t", [0, -1, 99]))

    @sequence(
        f"OffsetCommit {version}, null metadata",
        since=since,
        departs=(Level.V0_9_0,) if version else (),
    )
    def _(talk: Talk, version: int = version) -> None:
        talk.ask(commit(version, "null", ("t", [committed(version, 0, 7, None)])))
        fetch_all(talk, "null", ("t", [0]))

    @sequence(
        f"OffsetCommit {version}, too large",
        since=since,
        departs=(Level.V0_8_2,) if version == 1 else (),
    )
    def _(talk: Talk, version: int = version) -> None:
        group = f"large-{version}"
        for label, one in {
            "metadata of 4097": committed(version, 0, 9, "x" * 4097),
            "metadata of 4097 letters": committed(version, 0, 11, "\u00e4" * 4097),
        }.items():
            talk.ask(commit(version, group, ("t", [committed(version, 0, 8)])), "before")
            talk.ask(commit(version, group, ("t", [one])), label)
            fetch_all(talk, group, ("t", [0]))
        two = [committed(version, 0), committed(version, 1, 8, "x" * 5000)]
        talk.ask(commit(version, "larger", ("t", two)), "one too large")
        fetch_all(talk, "larger", ("t", [0, 1]))

    @sequence(f"OffsetCommit {version}, names and arrays", since=since)
    def _(talk: Talk, version: int = version) -> None:
        one = committed(version, 0)
        for label, frame in {
            "no topic": commit(version, "names"),
            "no partition": commit(version, "names", ("t", [])),
            "no partition of one": commit(version, "names", ("full", []), ("t", [one])),
            "unknown topic": commit(version, "names", ("nosuch", [one])),
            "unknown topic and known": commit(version, "names", ("nosuch", [one]), ("t", [one])),
            "illegal topic": commit(version, "names", ("a b", [one])),
            "topic of a dead broker": commit(version, "names", ("dead", [one])),
            "empty topic": commit(version, "names", ("", [one])),
            "partition twice": commit(version, "names", ("t", [one, committed(version, 0, 6)])),
            "topic twice": commit(
                version, "names", ("t", [one]), ("t", [committed(version, 0, 7)])
            ),
            "topic twice, two partitions": commit(
                version, "names", ("t", [one]), ("t", [committed(version, 1, 7)])
            ),
            "empty group": commit(version, "", ("t", [one])),
            "group with a slash": commit(version, "a/b", ("t", [one])),
            "group of 300 letters": commit(version, "g" * 300, ("t", [one])),
        }.items():
            talk.ask(frame, label)
        fetch_all(talk, "names", ("t", [0, 1]))
        fetch_all(talk, "", ("t", [0]))
        fetch_all(talk, "a/b", ("t", [0]))
        fetch_all(talk, "g" * 300, ("t", [0]))

    if version:

        @sequence(f"OffsetCommit {version}, generation and member", since=since)
        def _(talk: Talk, version: int = version) -> None:
            one = committed(version, 0)
            for generation in (-2, -1, 0, 1, 99):
                for member in ("", "m"):
                    for group in ("members", f"members-{generation}-{member}"):
                        frame = commit(
                            version, group, ("t", [one]), generation=generation, member=member
                        )
                        talk.ask(frame, f"{generation} of {member!r} in {group}")

        @sequence(
            f"OffsetCommit {version}, null member",
            since=since,
            departs=(Level.V0_9_0,) if version == 2 else (),
        )
        def _(talk: Talk, version: int = version) -> None:
            one = committed(version, 0)
            talk.ask(commit(version, "members", ("t", [one]), member=None))

        @sequence(f"OffsetCommit {version}, times", since=since)
        def _(talk: Talk, version: int = version) -> None:
            for time_ms in (-2, 0, 1, LONG_MAX, -LONG_MAX - 1):
                one = committed(version, 0, 5, "m", time_ms)
                frame = commit(
                    version, f"times-{version}-{time_ms}", ("t", [one]), retention_ms=time_ms
                )
                talk.ask(frame, f"{time_ms}")
                fetch_all(talk, f"times-{version}-{time_ms}", ("t", [0]))

    @sequence(
        f"OffsetCommit {version}, null arrays",
        since=since,
        departs=(Level.V0_8_2, Level.V0_9_0),
    )
    def _(talk: Talk, version: int = version) -> None:
        head = text("g") + (pack(">i", -1) + text("") if version else b"")
        head += pack(">q", -1) if version >= 2 else b""
        talk.ask(request(8, version, head + NULL_ARRAY), "null topics")
        talk.ask(request(8, version, head + array(text("t") + NULL_ARRAY)), "null partitions")


@sequence("metadata of a commit that is no UTF-8", since=Level.V0_8_2)
def _(talk: Talk) -> None:
    for version, since in enumerate(COMMIT_SINCE):
        if since <= talk.level:
            time = pack(">q", -1) if version == 1 else b""
            one = pack(">iq", 0, 3) + time + text(b"\xff\xfe")
            talk.ask(commit(version, f"letters-{version}", ("t", [one])), f"OffsetCommit {version}")
            fetch_all(talk, f"letters-{version}", ("t", [0]))


for version, since in enumerate(FETCH_SINCE):

    @sequence(f"OffsetFetch {version}, names and arrays", since=since)
    def _(talk: Talk, version: int = version) -> None:
        stored = [committed(1, 0, 3), committed(1, 2, 4)]
        talk.ask(commit(1, "fetches", ("t", stored)))
        talk.ask(commit(0, "fetches", ("t", [committed(0, 0, 3)])))
        for group in ("fetches", "nosuch", ""):
            for label, frame in {
                "no topic": fetch_offsets(version, group),
                "no partition": fetch_offsets(version, group, ("t", [])),
                "not committed": fetch_offsets(version, group, ("t", [1])),
                "partition -1": fetch_offsets(version, group, ("t", [-1])),
                "partition 99": fetch_offsets(version, group, ("t", [99])),
                "unknown topic": fetch_offsets(version, group, ("nosuch", [0])),
                "illegal topic": fetch_offsets(version, group, ("a b", [0])),
                "topic of a dead broker": fetch_offsets(version, group, ("dead", [0])),
                "empty topic": fetch_offsets(version, group, ("", [0])),
                "partition twice": fetch_offsets(version, group, ("t", [0, 0])),
                "topic twice": fetch_offsets(version, group, ("t", [0]), ("t", [0])),
            }.items():
                talk.ask(frame, f"{label} of {group!r}")

    @sequence(
        f"OffsetFetch {version}, null arrays",
        since=since,
        departs=(Level.V0_8_2, Level.V0_9_0),
    )
    def _(talk: Talk, version: int = version) -> None:
        talk.ask(request(9, version, text("fetches") + NULL_ARRAY), "null topics")
        null = array(text("t") + NULL_ARRAY)
        talk.ask(request(9, version, text("fetches") + null), "null partitions")


@sequence("OffsetFetch 2 of all", since=Level.V0_10_2)
def _(talk: Talk) -> None:
    talk.ask(commit(2, "all", ("t", [committed(2, 1, 3)])))
    talk.ask(request(9, 2, text("all") + NULL_ARRAY))


for group in ("", "g", "\u00e4", "g" * 1000, "a/b", "a b"):
    ask(f"GroupCoordinator of {group[:9]!r}", coordinator(group))
ask("GroupCoordinator of null", coordinator(None), departs=(Level.V0_8_2, Level.V0_9_0))
