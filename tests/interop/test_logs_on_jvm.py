"""Logs of level 0.10.2 against kafka.log.Log of 0.10.2.2: the same appends, the same files."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from kafka08 import kernel
from kafka08.errors import (
    ApiError,
    InvalidMessage,
    InvalidTimestamp,
    MessageSetSizeTooLarge,
    MessageSizeTooLarge,
    UnknownError,
)
from kafka08.levels import Level
from kafka08.log.check import check_log
from kafka08.log.config import LogConfig
from kafka08.log.dump import LogDump
from kafka08.log.log import Log
from kafka08.protocol import compression, message_set
from tests.interop.jvm import POM_0_10_2, run_tool
from tests.interop.log_oracle import LogOracle, Refused
from tests.log.compaction import cleaning
from tests.log.conftest import ManualClock

NOW = 1_700_000_000_000
SMALL = {"segment.bytes": 3000, "index.interval.bytes": 200, "segment.index.bytes": 1200}
CODECS = (0, compression.GZIP, compression.SNAPPY, compression.LZ4)
ERRORS: dict[type[ApiError], set[str]] = {
    InvalidMessage: {"CorruptRecordException", "InvalidRecordException", "InvalidMessageException"},
    InvalidTimestamp: {"InvalidTimestampException"},
    MessageSizeTooLarge: {"RecordTooLargeException"},
    MessageSetSizeTooLarge: {"RecordBatchTooLargeException"},
}
"""The errors that 0.10.2.2 throws; any other is -1 to a producer."""
Message = tuple[bytes | None, bytes | None]


@pytest.fixture(scope="module")
def oracle() -> Iterator[LogOracle]:
    with LogOracle() as running:
        yield running


ODD_TIMES: Final = (-5, 0, 1, -(1 << 63), (1 << 63) - 1)


class Pair:
    """The same log twice: `ours`, and the JVM's of the oracle."""

    def __init__(self, oracle: LogOracle, directory: Path, **settings: Any) -> None:
        self.settings = {**SMALL, **settings}
        values = {name: str(value) for name, value in self.settings.items()}
        self.config = LogConfig(level=Level.V0_10_2).from_stored("t", values)
        self.oracle = oracle
        self.clock = ManualClock(NOW)
        self.our_directory, self.jvm_directory = directory / "ours-0", directory / "jvm-0"
        self.open()

    def open(self, recovery_point: int = 0) -> None:
        """After a crash, as far as both know."""
        self.ours = Log(
            self.our_directory, self.config, clock=self.clock, recovery_point=recovery_point
        )
        end = self.oracle.open(self.jvm_directory, self.settings, recovery_point)
        assert end == self.ours.log_end_offset

    def append(self, now_ms: int, data: bytes) -> None:
        """Both take it, and say the same, or both refuse it."""
        self.clock.now_ms = now_ms
        try:
            theirs = self.oracle.append(now_ms, data)
        except Refused as refused:
            code = {name: cls for cls, names in ERRORS.items() for name in names}
            with pytest.raises(code.get(refused.error, UnknownError)):
                self.ours.append(bytearray(data))
        else:
            info = self.ours.append(bytearray(data))
            assert theirs == (info.first_offset, info.last_offset, info.log_append_time_ms)

    def close(self) -> None:
        self.ours.close()
        self.oracle.close_log()

    def files(self, directory: Path, *suffixes: str) -> dict[str, bytes]:
        return {
            path.name: path.read_bytes()
            for path in sorted(directory.iterdir())
            if path.suffix in suffixes
        }

    def same_files(self, *suffixes: str) -> None:
        ours = self.files(self.our_directory, *suffixes)
        assert self.files(self.jvm_directory, *suffixes) == ours
        assert ours


class Stored(NamedTuple):
    """An entry as it lies in a segment. Of a wrapper the value is what it holds: no two codecs pack
    alike."""

    offset: int
    magic: int
    attributes: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def stored(directory: Path) -> list[Stored]:
    found = []
    for path in sorted(directory.glob("*.log")):
        for entry in kernel.entries(path.read_bytes(), verify_crc=True):
            value = entry.value
            if entry.codec:
                value = bytes(message_set.unpack(entry.codec, value or b""))
            head = (entry.offset, entry.magic, entry.attributes, entry.timestamp_ms)
            found.append(Stored(*head, entry.key, value))
    return found


class Sets:
    """Produced sets at random: right ones and wrong ones."""

    def __init__(self, seed: int, odd_times: Sequence[int] = ()) -> None:
        self.rng = random.Random(seed)
        self._odd_times = odd_times

    def time(self, now_ms: int) -> int:
        near = now_ms - self.rng.randrange(60_000)
        return self.rng.choice((near, now_ms, -1, NOW // 2, *self._odd_times))

    def messages(self, keyed: bool) -> list[Message]:
        count = self.rng.choice((1, 1, 2, 5, 12))
        return [
            (
                b"k%d" % self.rng.randrange(9) if keyed or self.rng.random() < 0.7 else None,
                None if self.rng.random() < 0.1 else b"v" * self.rng.randrange(90),
            )
            for _ in range(count)
        ]

    def a_set(self, now_ms: int, magic: int, codec: int, *, keyed: bool = True) -> bytes:
        """As a client sends it: numbered from 0."""
        messages = self.messages(keyed)
        times = [self.time(now_ms) for _ in messages] if magic else None
        return message_set.encode(messages, codec, 0, magic, times)

    def odd(self, now_ms: int) -> bytes:
        """Sets that no good client sends."""
        magic = self.rng.randrange(2)
        codec = self.rng.choice(CODECS)
        data = bytearray(self.a_set(now_ms, magic, codec, keyed=False))
        match self.rng.randrange(8):
            case 0:  # a wrong CRC
                data[-1] ^= 1
            case 1:  # typed LogAppendTime
                times = [now_ms] * 2
                inner = message_set.encode([(b"k", b"v")] * 2, 0, 0, 1, times)
                if codec:
                    packed = compression.compress(codec, inner, 1)
                    return bytes(kernel.wrap(packed, 1, codec, 1, now_ms, True))
                return bytes(kernel.build_set([(b"k", b"v")], 0, 8, 1, [now_ms]))
            case 2:  # cut
                return bytes(data[: self.rng.randrange(len(data))])
            case 3:  # plain and compressed
                return bytes(data) + self.a_set(now_ms, 1, self.rng.choice(CODECS))
            case 4:  # of both magics
                return bytes(data) + self.a_set(now_ms, 1 - magic, 0)
            case 5:  # inner offsets that do not start at 0
                inner = message_set.encode([(b"k", b"v")] * 2, 0, 7, 1, [5, 6])
                return bytes(message_set.pack(inner, codec or 1, 8, 1, 6))
            case 6:  # another magic inside
                inner = message_set.encode([(b"k", b"v")] * 2, 0, 0, 1 - magic)
                return bytes(message_set.pack(inner, codec or 1, 1, magic))
            case _:  # a wrapper in a wrapper
                inner = message_set.encode([(b"k", b"v")] * 2, 1, 0, magic)
                return bytes(message_set.pack(inner, codec or 1, 1, magic))
        return bytes(data)


@pytest.mark.parametrize("seed", [0, 1, 2, 34, 40, 45])
@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_plain_sets_and_valid_wrappers_leave_the_same_files(
    oracle: LogOracle, tmp_path: Path, seed: int, kind: str
) -> None:
    """Messages, index and time index are equal byte for byte after rolls by size and time,
    truncation and recovery, and each lookup by time returns the same offset."""
    sets = Sets(seed)
    rng = sets.rng
    pair = Pair(oracle, tmp_path, **{"message.timestamp.type": kind, "segment.ms": 40_000})
    now_ms, ends = NOW, [0]
    for _ in range(150):
        now_ms += rng.randrange(3000)
        match rng.randrange(40):
            case 0:
                offset = ends[rng.randrange(len(ends) // 2, len(ends))]
                ends = [end for end in ends if end <= offset]
                pair.ours.truncate_to(offset)
                oracle.truncate(offset)
            case 1:
                pair.close()
                pair.open(rng.randrange(pair.ours.log_end_offset + 1))
            case _:
                messages = sets.messages(keyed=False)
                times = [now_ms - rng.randrange(9000) for _ in messages]
                codec = rng.choice((0, *CODECS))
                pair.append(now_ms, message_set.encode(messages, codec, 0, 1, times))
                ends.append(pair.ours.log_end_offset)
    if kind == "CreateTime":
        for target in range(NOW - 9000, now_ms + 1000, 1700):
            ours = pair.ours.offset_at_time(target)
            assert oracle.find(target) == ours, target
    pair.close()
    pair.same_files(".log", ".index", ".timeindex")
    assert [] == check_log(pair.our_directory)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"message.timestamp.type": "LogAppendTime"},
        {"message.timestamp.difference.max.ms": 30_000},
        {"cleanup.policy": "compact"},
        {"compression.type": "gzip"},
        {"compression.type": "uncompressed"},
        {"compression.type": "lz4", "message.timestamp.type": "LogAppendTime"},
        {"message.format.version": "0.9.0"},
        {"message.format.version": "0.9.0", "compression.type": "snappy"},
        {"max.message.bytes": 120, "compression.type": "uncompressed"},
    ],
    ids=lambda settings: " ".join(map(str, settings.values())) or "defaults",
)
def test_any_set_gets_the_same_response_and_is_stored_alike(
    oracle: LogOracle, tmp_path: Path, settings: dict[str, Any], seed: int
) -> None:
    """Valid and invalid sets, with any timestamp, get the same response; repacked wrappers hold the
    same messages. Topics of magic 0 differ for times below -1: docs/compatibility.md."""
    sets = Sets(seed, () if "message.format.version" in settings else ODD_TIMES)
    pair = Pair(oracle, tmp_path, **{"segment.bytes": 1 << 20, **settings})
    for number in range(120):
        now_ms = NOW + number * 100
        if sets.rng.random() < 0.3:
            pair.append(now_ms, sets.odd(now_ms))
        else:
            magic, codec = sets.rng.randrange(2), sets.rng.choice(CODECS)
            pair.append(now_ms, sets.a_set(now_ms, magic, codec, keyed=sets.rng.random() < 0.9))
    pair.close()
    assert stored(pair.jvm_directory) == stored(pair.our_directory)
    assert len(stored(pair.our_directory)) > 20


def test_a_follower_writes_the_same_files(oracle: LogOracle, tmp_path: Path) -> None:
    """A follower writes the JVM's files from a leader's sets of both magics, gaps in the offsets
    included."""
    sets = Sets(0)
    pair = Pair(oracle, tmp_path)
    offset = 0
    for number in range(120):
        now_ms = NOW + number * 100
        codec = sets.rng.choice(CODECS)
        messages = sets.messages(keyed=True)
        magic = number > 60
        times = [now_ms] * len(messages) if magic else None
        data = message_set.encode(messages, codec, offset, int(magic), times)
        pair.clock.now_ms = now_ms
        oracle.follow(now_ms, data)
        pair.ours.append_as_follower(data)
        offset += len(messages)
    pair.close()
    pair.same_files(".log", ".timeindex")


@pytest.mark.parametrize("ours_first", [True, False])
def test_each_opens_the_others_logs(oracle: LogOracle, tmp_path: Path, ours_first: bool) -> None:
    """Each broker opens the other's log after a crash, with the indexes of that moment, and appends
    to it."""
    sets = Sets(1)
    pair = Pair(oracle, tmp_path)
    for number in range(80):
        now_ms = NOW + number * 100
        pair.append(now_ms, sets.a_set(now_ms, 1, sets.rng.choice(CODECS)))
    if ours_first:
        pair.ours.close()
    else:
        oracle.close_log()
    source, target = pair.our_directory, pair.jvm_directory
    if not ours_first:
        source, target = target, source
    pair.close()
    shutil.rmtree(target)
    shutil.copytree(source, target)
    pair.open(pair.ours.log_end_offset // 2)
    for number in range(80, 120):
        now_ms = NOW + number * 100
        pair.append(now_ms, sets.a_set(now_ms, 1, sets.rng.choice(CODECS)))
    pair.close()
    pair.same_files(".log", ".index", ".timeindex")


def test_recovery_writes_our_cleaners_indexes_again(oracle: LogOracle, tmp_path: Path) -> None:
    """0.10.2.2 recovers a log that we cleaned, and both its indexes equal ours: wrappers of both
    magics with gaps inside."""
    sets = Sets(3)
    pair = Pair(oracle, tmp_path, **{"cleanup.policy": "compact"})
    for number in range(200):
        now_ms = NOW + number * 100
        magic = int(number > 60)
        data = message_set.encode(
            [(b"k%d" % sets.rng.randrange(60), b"v" * sets.rng.randrange(90)) for _ in range(4)],
            sets.rng.choice(CODECS),
            pair.ours.log_end_offset,
            magic,
            [now_ms - n for n in range(4)] if magic else None,
        )
        pair.ours.append_as_follower(data)
    before = pair.ours.size
    cleaning(pair.ours).run()
    assert pair.ours.size < before // 2
    assert [] == check_log(pair.our_directory)
    pair.ours.close()
    oracle.close_log()
    shutil.rmtree(pair.jvm_directory)
    shutil.copytree(
        pair.our_directory, pair.jvm_directory, ignore=shutil.ignore_patterns("*.deleted")
    )
    assert pair.ours.log_end_offset == oracle.open(pair.jvm_directory, pair.settings)
    oracle.close_log()
    # The active segment was not cleaned: its index has an entry for a set, not for a message.
    for directory in (pair.our_directory, pair.jvm_directory):
        for path in directory.glob(f"{pair.ours.active_base_offset:020d}.*"):
            path.unlink()
    pair.same_files(".log", ".index", ".timeindex")


@pytest.mark.parametrize("deep", [False, True])
def test_both_dump_tools_print_the_same(tmp_path: Path, deep: bool) -> None:
    """Both tools print the same lines, contents included, and report no problem: magic 0 and 1,
    every codec, both timestamp types."""
    sets = Sets(2)
    directory = tmp_path / "t-0"
    clock = ManualClock(NOW)
    stages: list[dict[str, Any]] = [
        {"message_format_version": "0.9.0"},
        {},
        {"message_timestamp_type": "LogAppendTime"},
    ]
    for number, stage in enumerate(stages):
        log = Log(
            directory,
            LogConfig(level=Level.V0_10_2, segment_bytes=3000, index_interval_bytes=200, **stage),
            clock=clock,
            clean_shutdown=number > 0,
        )
        for _ in range(30):
            clock.now_ms += 100
            magic, codec = int(number > 0), sets.rng.choice(CODECS)
            log.append(bytearray(sets.a_set(clock.now_ms, magic, codec)))
        log.close()
    assert [] == check_log(directory)
    paths = sorted(p for p in directory.iterdir() if p.stat().st_size or p.suffix == ".log")
    options = ["--print-data-log", *(["--deep-iteration"] if deep else [])]
    done = run_tool(
        "kafka.tools.DumpLogSegments", "--files", ",".join(map(str, paths)), *options,
        pom=POM_0_10_2,
    )  # fmt: skip
    dump = LogDump(print_data_log=True, deep_iteration=deep)
    ours = [line for path in paths for line in dump.lines(path)]
    theirs = done.stdout.splitlines()
    if not deep:  # what a compressed value looks like as text is not specified
        ours, theirs = (
            [line.split(" payload: ")[0] for line in lines if ": " in line]
            for lines in (ours, theirs)
        )
    assert theirs == ours
    assert 0 == done.rc
    assert [] == list(dump.complaints())
    for word in ("mismatch", "Mismatches", "out of order", "not found"):
        assert word not in done.stderr
