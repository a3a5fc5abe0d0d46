"""Logs for tests: a clock that only the test moves, background work that runs when the test says
so, and the full consistency check of every log that a test leaves on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.log.background import PendingFlush
from kafka08.log.check import check_log
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.log.offset_index import INDEX_ENTRY, IndexEntry, OffsetIndex
from kafka08.protocol import message_set
from kafka08.runtime.disk import Close, Disk
from kafka08.runtime.system_disk import SYSTEM_DISK

START_MS = 1_700_000_000_000


class ManualClock:
    """A clock that only the test moves."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    def time_ms(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.now_ms / 1000

    def sleep(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)


class Deferred:
    """A `Background` that keeps flushes and jobs until the test runs them. It closes files at
    once."""

    def __init__(self) -> None:
        self.closed = 0
        self.flushes: list[PendingFlush] = []
        self.tasks: list[tuple[int, Callable[[], None]]] = []

    def flush_soon(self, flush: PendingFlush) -> None:
        self.flushes.append(flush)

    def run_later(self, delay_ms: int, task: Callable[[], None]) -> None:
        self.tasks.append((delay_ms, task))

    def close_soon(self, close: Close) -> None:
        self.closed += 1
        close()

    def run_all(self) -> None:
        while self.flushes:
            self.flushes.pop(0).run()
        while self.tasks:
            self.tasks.pop(0)[1]()


class Died(BaseException):
    """Raised at a crash point, in place of the process's death."""


class CrashAt:
    """A crash hook that raises Died when the log passes one named point for the n-th time."""

    def __init__(self, name: str, passes: int = 0) -> None:
        self.name = name
        self.passes = passes
        self.seen: list[str] = []

    def __call__(self, name: str) -> None:
        self.seen.append(name)
        if name == self.name:
            if not self.passes:
                raise Died(name)
            self.passes -= 1


OpenLog = Callable[..., Log]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def background() -> Deferred:
    return Deferred()


@pytest.fixture
def disk() -> Disk:
    """The real disk. A test module may override this fixture."""
    return SYSTEM_DISK


@pytest.fixture
def open_log(tmp_path: Path, clock: ManualClock, background: Deferred, disk: Disk) -> OpenLog:
    """Opens the log `t-0` under tmp_path. Keywords are arguments of Log, or else of LogConfig."""

    def open_it(
        name: str = "t-0",
        *,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        clean_shutdown: bool = False,
        crash: Callable[[str], None] = lambda _name: None,
        draw_jitter: Callable[[int], int] = lambda _limit: 0,
        **config: Any,
    ) -> Log:
        return Log(
            tmp_path / name,
            LogConfig(**config),
            clock=clock,
            disk=disk,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            clean_shutdown=clean_shutdown,
            background=background,
            draw_jitter=draw_jitter,
            crash=crash,
        )

    return open_it


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files and directories that were synced, in order."""
    names: list[str] = []

    def fsync(fd: int) -> None:
        names.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)

    monkeypatch.setattr(os, "fsync", fsync)
    return names


@pytest.fixture
def broken_logs() -> None:
    """Request this fixture in a test that leaves a damaged log on purpose."""


@pytest.fixture(autouse=True)
def every_log_is_sound(
    tmp_path: Path, disk: Disk, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Every log that a test leaves under tmp_path passes the full check."""
    yield
    if "broken_logs" not in request.fixturenames:
        assert [] == problems_under(tmp_path, disk)


def problems_under(directory: Path, disk: Disk) -> list[str]:
    """The problems that the full check finds in a directory and its subdirectories."""
    found = [problem for path in disk.directories_in(directory)
             for problem in problems_under(path, disk)]  # fmt: skip
    if any(path.suffix == ".log" for path in disk.files_in(directory)):
        found += [str(problem) for problem in check_log(directory, disk)]
    return found


def index_entries(index: OffsetIndex) -> list[IndexEntry]:
    """Every entry of an index file, in order."""
    pairs = INDEX_ENTRY.iter_unpack(index.path.read_bytes()[: index.size])
    return [IndexEntry(index.base_offset + relative, position) for relative, position in pairs]


def a_set(*values: bytes, codec: int = 0, base_offset: int = 0) -> bytearray:
    """A set of messages without keys, in a writable buffer, as Log.append requires."""
    return bytearray(message_set.encode([(None, value) for value in values], codec, base_offset))


def values_of(log: Log, offset: int, max_bytes: int = 1 << 20) -> list[tuple[int, bytes | None]]:
    """(offset, value) of every message that one read returns."""
    data = log.read(offset, max_bytes).bytes()
    return [(message.offset, message.value) for message in message_set.decode(data, offset)]


def all_values(log: Log) -> list[tuple[int, bytes | None]]:
    """(offset, value) of the whole log, read as a consumer reads it."""
    found: list[tuple[int, bytes | None]] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        batch = values_of(log, offset)
        if not batch:
            break
        found += batch
        offset = batch[-1][0] + 1
    return found


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def bases(log: Log) -> list[int]:
    """The base offsets of the log's segments."""
    return [facts.base_offset for facts in log.segment_facts]


def set_times(log: Log, *ages_ms: int) -> None:
    """Sets the modification times of the segments, as ages before START_MS."""
    for facts, age_ms in zip(log.segment_facts, ages_ms, strict=True):
        path = log.directory / f"{facts.base_offset:020d}.log"
        when = (START_MS - age_ms) / 1000
        os.utime(path, (when, when))
