"""Kafka's own DumpLogSegments on directories that kafka08.log wrote, line by line against ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.log.background import Inline
from kafka08.log.check import check_log
from kafka08.log.config import LogConfig
from kafka08.log.dump import LogDump
from kafka08.log.log import Log
from kafka08.protocol import message_set
from tests.interop.jvm import POM, POM_0_10_2, run_tool

TOOL = "kafka.tools.DumpLogSegments"


@pytest.fixture(scope="module")
def log_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every codec, keys, nulls, several segments with indexes, a clean close."""
    directory = tmp_path_factory.mktemp("dump") / "t-0"
    config = LogConfig(segment_bytes=6000, index_interval_bytes=300)
    log = Log(directory, config, background=Inline())
    for number in range(80):
        messages = [
            (b"key-%d" % number, b"value %d " % number * 9),
            (None, b"unkeyed"),
            (b"tombstone", None),
        ]
        log.append(bytearray(message_set.encode(messages, codec=number % 4)))
    log.flush()
    log.close()
    assert [] == check_log(directory)
    return directory


@pytest.mark.parametrize("deep", [False, True])
def test_the_tool_reads_our_messages_and_agrees_with_our_dump(
    log_directory: Path, deep: bool
) -> None:
    """DumpLogSegments prints the lines of our dump for every segment, contents included, and
    nothing to stderr."""
    paths = sorted(log_directory.glob("*.log"))
    assert len(paths) > 2
    options = ["--print-data-log", *(["--deep-iteration"] if deep else [])]
    done = run_tool(TOOL, "--files", ",".join(map(str, paths)), *options)
    dump = LogDump(print_data_log=True, deep_iteration=deep)
    ours = [line for path in paths for line in dump.lines(path)]
    theirs = done.stdout.splitlines()
    if not deep:  # what a compressed value looks like as text is not specified
        ours, theirs = _without_values(ours), _without_values(theirs)
    assert (0, theirs) == (done.rc, ours)
    assert 240 == sum(line.startswith("offset:") for line in ours) or not deep
    assert "Non-secutive" not in done.stderr
    assert "Mismatches" not in done.stderr


def _without_values(lines: list[str]) -> list[str]:
    return [line.split(" payload: ")[0] for line in lines if line.startswith("offset:")]


def test_the_tool_finds_our_indexes_right(log_directory: Path) -> None:
    """Every entry of every index leads to its message; both dumps are equal."""
    paths = sorted(log_directory.glob("*.index"))
    done = run_tool(TOOL, "--files", ",".join(map(str, paths)))
    dump = LogDump()
    ours = [line for path in paths for line in dump.lines(path)]
    assert (0, ours) == (done.rc, done.stdout.splitlines())
    assert len(ours) > 3 * len(paths)
    assert [] == list(dump.complaints())
    assert "Mismatches" not in done.stderr


def test_both_report_the_same_damage(tmp_path: Path) -> None:
    """Both tools report the gaps of a compacted log, an index entry that points at another message,
    and bytes at the end."""
    log = Log(tmp_path / "t-0", LogConfig(index_interval_bytes=0))
    for offset in (0, 4, 9):
        log.append_as_follower(message_set.encode([(None, b"v")], base_offset=offset))
    log.close()
    messages, index = (tmp_path / "t-0" / f"{0:020d}{suffix}" for suffix in (".log", ".index"))
    messages.write_bytes(messages.read_bytes() + b"junk")
    done = run_tool(TOOL, "--files", f"{messages},{index}")
    dump = LogDump()
    ours = [*dump.lines(messages), *dump.lines(index)]
    assert ours == done.stdout.splitlines()
    *complaints, ours_alone = dump.complaints()
    assert 6 == len(complaints)
    assert complaints == [line for line in done.stderr.splitlines() if line in complaints]
    assert ours_alone.startswith("Damaged ")


@pytest.mark.parametrize("pom", [POM, POM_0_10_2], ids=["0.8.2", "0.10.2"])
def test_both_go_on_behind_a_damaged_length(tmp_path: Path, pom: Path) -> None:
    """The size of an entry leads to the next one, whatever the message says of its value."""
    log = Log(tmp_path / "t-0", LogConfig())
    for _ in range(6):
        log.append(bytearray(message_set.encode([(b"key", b"value")])))
    log.close()
    path = tmp_path / "t-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[2 * len(data) // 6 + 28] = 40
    path.write_bytes(data)
    done = run_tool(TOOL, "--files", str(path), pom=pom)
    theirs, ours = done.stdout.splitlines(), list(LogDump().lines(path))
    assert [0, 1, 2, 3, 4, 5] == _offsets(theirs)
    assert _offsets(theirs) == _offsets(ours)


def _offsets(lines: list[str]) -> list[int]:
    return [int(line.split()[1]) for line in lines if line.startswith("offset:")]
