"""`kafka08 log`: damage is printed and gives exit code 1; no file is changed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka08.embedded import EmbeddedCluster
from tests.cli.conftest import Commands, Done, Inspector

SEGMENT = "00000000000000000000.log"
INDEX = "00000000000000000000.index"


@pytest.fixture
def partition(
    kafka08: Commands, inspect: Inspector, kafka08_cluster: EmbeddedCluster, tmp_path: Path
) -> Path:
    """A copy of a partition's directory with ten messages, which a test may damage."""
    topic = f"log-{tmp_path.name}"[-200:].replace("_", "-")
    inspect.create_topic(topic)
    kafka08("produce", topic, stdin=b"message\n" * 10)
    [found] = kafka08_cluster.data_dir.glob(f"broker-*/logs/{topic}-0")
    return Path(shutil.copytree(found, tmp_path / "data" / "t-0"))


def log(*arguments: object) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "kafka08.cli", "log", *map(str, arguments)],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return Done(done.returncode, done.stdout, done.stderr.decode())


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_a_dump_for_machines(partition: Path) -> None:
    """--json prints an object per message and index entry, with its file. Complaints are on
    stderr."""
    append(partition / SEGMENT, b"torn")
    done = log("dump", partition / SEGMENT, "--json", "--print-data-log")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [(n, True, 7, "message") for n in range(10)] == [
        (r["offset"], r["isvalid"], r["payloadsize"], r["payload"]) for r in rows
    ]
    assert {str(partition / SEGMENT)} == {row["file"] for row in rows}
    assert "Found 4 invalid bytes" in done.err


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def test_a_sound_partition_has_no_problems(partition: Path) -> None:
    """A sound partition has no problems, by its own directory and by its log.dir."""
    for directory in (partition, partition.parent):
        assert (0, b"", "Checked 1 partition: 0 problems\n") == log("check", directory)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (
            lambda p: append(p / SEGMENT, b"tail"),
            f"{SEGMENT} at byte 330: the last 4 bytes are lost",
        ),
        (lambda p: flip(p / SEGMENT, 96), f"{SEGMENT} at byte 66: stored crc"),
        (lambda p: append(p / INDEX, b"odd"), f"{INDEX} at byte"),
        (lambda p: (p / INDEX).unlink(), f"{INDEX}: is missing"),
        (lambda p: (p / "x.log").touch(), "x.log: is not named after the base offset"),
        (lambda p: (p / SEGMENT).rename(p / "y.log"), "y.log: is not named after the base offset"),
    ],
)
def test_damage_is_named(partition: Path, damage: Callable[[Path], object], problem: str) -> None:
    """File, byte and reason are on stdout, and the exit code is 1."""
    damage(partition)
    before = {path.name: path.read_bytes() for path in partition.iterdir()}
    done = log("check", partition)
    assert 1 == done.code
    assert problem in done.out.decode()
    assert before == {path.name: path.read_bytes() for path in partition.iterdir()}


def test_a_partition_that_cannot_be_read_hides_no_other(partition: Path) -> None:
    """The problems of all partitions are told although a file of the first cannot be read."""
    append(partition / SEGMENT, b"tail")
    unreadable = partition.parent / "a-0"
    unreadable.mkdir()
    (unreadable / SEGMENT).touch()
    (unreadable / INDEX).mkdir()  # also root cannot read it as a file
    done = log("check", partition.parent)
    assert 1 == done.code
    first, second = done.out.decode().splitlines()
    assert first.startswith(f"{unreadable}: not checked to its end: cannot ")
    assert second.endswith("the last entry is not whole")
    assert done.err == "Checked 2 partitions: 2 problems\n"


def test_a_partition_without_its_segment_is_a_problem(partition: Path) -> None:
    """A partition that has lost its files is not left out, nor is one with a directory in place of
    its segment sound."""
    (partition / SEGMENT).unlink()
    (partition / SEGMENT).mkdir()
    (partition.parent / "t-1").mkdir()
    (partition.parent / "lost+found").mkdir()
    done = log("check", partition.parent)
    assert 1 == done.code
    says = "has no segment; a broker would begin it as an empty log"
    assert done.out.decode().splitlines() == [
        f"{partition}: {says}",
        f"{partition.parent / 't-1'}: {says}",
    ]


def test_nothing_to_check_is_not_success(tmp_path: Path) -> None:
    """A path without partitions is an error, since a typing mistake would look like a sound log. A
    log.dir without partitions is sound."""
    done = log("check", tmp_path)
    assert (1, b"") == done[:2]
    assert "is neither a log.dir nor the directory of a partition" in done.err
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    assert 0 == log("check", tmp_path).code
    assert 2 == log("check", tmp_path / "absent").code


def test_a_dump_shows_messages_and_damage(partition: Path) -> None:
    """A dump has the text of kafka.tools.DumpLogSegments. A damaged message is marked."""
    append(partition / SEGMENT, b"tail")
    flip(partition / SEGMENT, 32)
    done = log("dump", partition / SEGMENT, "--print-data-log")
    lines = done.out.decode().splitlines()
    assert 1 == done.code
    assert done.err.endswith(": 9 of 10 entries are sound, 297 of 334 bytes\n")
    assert "Starting offset: 0" == lines[1]
    assert lines[2].startswith("offset: 0 position: 0 isvalid: false")
    assert lines[3].startswith("offset: 1 position: 33 isvalid: true payloadsize: 7")
    assert lines[3].endswith("payload: message")
    assert f"Found 4 invalid bytes at the end of {SEGMENT}" == lines[-1]


def test_a_file_that_cannot_be_dumped_hides_no_other(partition: Path, tmp_path: Path) -> None:
    """Those named after it are dumped."""
    (tmp_path / "x.log").touch()
    done = log("dump", tmp_path / "x.log", partition / SEGMENT)
    assert 1 == done.code
    assert "is not named after the base offset" in done.err
    assert 10 == done.out.decode().count("isvalid: true")


def test_other_files_are_not_dumped(tmp_path: Path) -> None:
    """Another file is left out with a warning and exit code 1. A wrong name is refused. No file at
    all is misuse."""
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "x.log").touch()
    ignored = log("dump", tmp_path / "notes.txt")
    assert (1, b"") == ignored[:2]
    known = "it reads .log, .index, .timeindex, .txnindex and .snapshot files"
    assert f"notes.txt: {known}" in ignored.err
    assert "is not named after the base offset" in log("dump", tmp_path / "x.log").err
    assert 2 == log("dump", tmp_path / "absent.log").code
    assert 2 == log("dump", tmp_path).code
