"""CleanerWorkers: when the cleaner runs, and what stops it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.process.log_cleaner import CleanerWorkers
from kafka08.broker.settings.config import BrokerConfig
from kafka08.errors import StorageError
from kafka08.log.cleaner import LogCleaner
from kafka08.log.manager import LogManager
from kafka08.protocol import message_set
from kafka08.structs import TopicPartition
from tests.broker.fake_runtime import FakeRuntime, Halted

TP = TopicPartition("t", 0)


class Ended(BaseException):
    """Raised when the test has seen enough."""


class Napping(FakeRuntime):
    """Ends a worker at its third pause, and records the pauses."""

    def __init__(self) -> None:
        super().__init__()
        self.naps: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        if len(self.naps) >= 3:
            raise Ended

    def spawn(self, call: Callable[..., object], *args: object, name: str) -> Any:
        try:
            return super().spawn(call, *args, name=name)
        except Ended:
            return None


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[LogManager]:
    config = BrokerConfig(broker_id=1, zookeeper_connect="x", log_cleanup_policy="compact")
    opened = LogManager([tmp_path], config.log_config())
    opened.load()
    log = opened.get_or_create(TP)
    for _ in range(2):
        log.append(bytearray(message_set.encode([(b"k", b"v")])))
        log.roll()
    yield opened
    opened._release()


class Replicas:
    """The part of a ReplicaManager that has the high watermark. None: there is no replica yet, and
    nothing is known to be committed."""

    def __init__(self, log_manager: LogManager, high_watermark: int | None = 2) -> None:
        self.log_manager = log_manager
        self.high_watermark = high_watermark

    def committed_on_disk(self, _: TopicPartition) -> int:
        return 0 if self.high_watermark is None else self.high_watermark


def workers(
    manager: LogManager, runtime: FakeRuntime, high_watermark: int | None = 2, **keys: Any
) -> CleanerWorkers:
    config = BrokerConfig(broker_id=1, zookeeper_connect="x", **keys)
    replicas: Any = Replicas(manager, high_watermark)
    return CleanerWorkers(config, runtime, replicas)


def test_it_is_off_by_default(manager: LogManager) -> None:
    """log.cleaner.enable is false by default, as in 0.8.2.2."""
    runtime = Napping()
    workers(manager, runtime).start()
    assert [] == runtime.spawned


def test_it_cleans_and_then_pauses(manager: LogManager) -> None:
    """Each of log.cleaner.threads workers cleans all there is, and pauses for
    log.cleaner.backoff.ms."""
    runtime = Napping()
    started = workers(
        manager,
        runtime,
        log_cleaner_enable=True,
        log_cleaner_backoff_ms=700,
        log_cleaner_threads=2,
    )
    started.start()
    assert ["kafka-log-cleaner-0", "kafka-log-cleaner-1"] == runtime.spawned
    assert 0.7 == runtime.naps[0]
    assert started.cleaner.last_stats is not None
    assert 2 == manager.cleaner_points.get(manager.directories[0], TP)


@pytest.mark.parametrize(("high_watermark", "cleaned"), [(None, None), (0, None), (1, 1), (2, 2)])
def test_it_stays_below_the_high_watermark(
    manager: LogManager, high_watermark: int | None, cleaned: int | None
) -> None:
    """Nothing above the HW is cleaned, because it may still be truncated. Before the first
    LeaderAndIsr, nothing is."""
    runtime = Napping()
    workers(manager, runtime, high_watermark, log_cleaner_enable=True).start()
    assert cleaned == manager.cleaner_points.get(manager.directories[0], TP)


def test_no_backoff_is_no_busy_loop(manager: LogManager) -> None:
    """A worker without work pauses even if log.cleaner.backoff.ms is 0."""
    runtime = Napping()
    workers(manager, runtime, log_cleaner_enable=True, log_cleaner_backoff_ms=0).start()
    assert 0 < min(runtime.naps)


def test_a_bug_does_not_end_the_cleaner(
    manager: LogManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The error of a pass is logged, and the worker continues."""

    def fail(_: LogCleaner) -> bool:
        raise AssertionError("a bug")

    monkeypatch.setattr(LogCleaner, "clean_one", fail)
    runtime = Napping()
    workers(manager, runtime, log_cleaner_enable=True).start()
    assert len(runtime.naps) >= 3
    assert "a bug" in caplog.text


def test_a_disk_that_fails_in_a_swap_ends_the_broker(
    manager: LogManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk fails during a swap, the broker halts: only the next start can tell which files
    are valid."""

    def fail(_: LogCleaner) -> bool:
        raise StorageError("cannot rename")

    monkeypatch.setattr(LogCleaner, "clean_one", fail)
    with pytest.raises(Halted):
        workers(manager, Napping(), log_cleaner_enable=True).start()
