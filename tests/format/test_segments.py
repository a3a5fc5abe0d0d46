"""The log's own readers on the data directories of a live 0.11.0.3."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.log.check import check_log
from kafka08.log.config import LogConfig
from kafka08.log.dump import LogDump
from kafka08.log.log import Log
from tests.format.captures import DATA, LOGS

DIRECTORIES = sorted({name.partition("/")[0] for name in LOGS})
ODD = {"v-misc2-0"}
"""0.11.0.3 gave offsets twice that a client had counted wrongly."""


def write(directory: Path, name: str) -> Path:
    """The captured files of a partition; indexes without the zeros behind their entries."""
    target = directory / name
    target.mkdir()
    for file, content in DATA[name].items():
        if "hex" in content:
            (target / file).write_bytes(bytes.fromhex(content["hex"]))
    return target


def dumped(dump: LogDump, directory: Path, paths: str) -> list[str]:
    """The lines for these files, whose names are relative."""
    for name in {path.partition("/")[0] for path in paths.split(",")}:
        if not (directory / name).exists():
            write(directory, name)
    lines = [line for path in paths.split(",") for line in dump.lines(directory / path)]
    return [line.replace(f"{directory}/", "") for line in lines]


@pytest.mark.parametrize("kind", ["batches", "records"])
def test_the_dump_is_that_of_0_11_0_3(tmp_path: Path, kind: str) -> None:
    """Lines of batches, and of their records with headers, markers, keys and values."""
    tool = DATA["DumpLogSegments"][kind]
    deep = kind == "records"
    found = dumped(LogDump(deep_iteration=deep, print_data_log=deep), tmp_path, tool["args"][-1])
    assert [line for line in tool["stdout"] if line] == found


def test_aborted_transactions_are_dumped(tmp_path: Path) -> None:
    """The captured line."""
    theirs = [line for line in DATA["DumpLogSegments"]["others"]["stdout"] if "version:" in line]
    found = dumped(LogDump(), tmp_path, "v-txn-0/00000000000000000003.txnindex")
    assert theirs == found[1:] != []


def test_a_time_index_is_dumped_without_complaint(tmp_path: Path) -> None:
    """The entry of the captured time index names the last offset of its batch."""
    dump = LogDump()
    found = dumped(dump, tmp_path, "v-plain-0/00000000000000000000.timeindex")
    assert ["timestamp: 1500000000090 offset: 5"] == found[1:]
    assert not list(dump.complaints())


@pytest.mark.parametrize("name", sorted(set(DIRECTORIES) - ODD))
def test_no_problem_is_found(tmp_path: Path, name: str) -> None:
    """A directory of the real broker is sound."""
    assert [] == [str(problem) for problem in check_log(write(tmp_path, name))]


@pytest.mark.parametrize("name", sorted(set(DIRECTORIES) - ODD))
def test_a_killed_brokers_log_recovers(tmp_path: Path, name: str) -> None:
    """Without its indexes a log is recovered whole: every offset is found where its batch is, and
    the new indexes are sound."""
    directory = write(tmp_path, name)
    for path in directory.iterdir():
        if path.suffix in {".index", ".timeindex"}:
            path.unlink()
    before = sum(path.stat().st_size for path in directory.glob("*.log"))
    log = Log(directory, LogConfig(index_interval_bytes=1))
    assert before == log.size
    names = sorted(key for key in LOGS if key.startswith(f"{name}/"))
    for key in names:
        data, decoded = LOGS[key]
        for entry in decoded:
            if entry["magic"] != 2:
                continue
            last = entry["base_offset"] + entry["last_offset_delta"]
            found = log.read(last, 1 << 20).bytes()
            assert data[entry["pos"] :] == found
    log.close()
    assert [] == [str(problem) for problem in check_log(directory)]
