"""The native threads of the real runtime."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any

import gevent
import pytest

from kafka08.errors import StorageError
from kafka08.runtime.greenlets import GeventRuntime, NativePool, NativeTurns

DEADLINE = 60.0


class Loop:
    """An event loop with one async watcher, whose callback the test calls."""

    def __init__(self) -> None:
        self.signals = threading.Semaphore(0)
        self.callback: Callable[[], object] | None = None

    def async_(self) -> Loop:
        return self

    def start(self, callback: Callable[[], object]) -> None:
        self.callback = callback

    def send(self) -> None:
        self.signals.release()


class Unhalted:
    """A runtime that nothing halts."""

    def halt(self, status: int) -> None:
        raise AssertionError(status)


class HaltNoted(GeventRuntime):
    """A runtime of a broker that notes its halt, and goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.halts: list[int] = []

    def halt(self, status: int) -> None:
        self.halts.append(status)


def starts(runtime: HaltNoted) -> dict[str, Callable[[Callable[[], object]], object]]:
    """Each way in which a runtime begins work."""
    return {
        "spawn": lambda call: runtime.spawn(call, name="test"),
        "every": lambda call: runtime.every(0.001, call, name="test"),
        "call_soon": runtime.call_soon,
        "call_later": lambda call: runtime.call_later(0.001, call),
        "run_native_later": lambda call: runtime.run_native_later(lambda *_: call(), len, ""),
    }


@pytest.mark.parametrize("start", starts(HaltNoted()))
def test_a_failed_disk_halts_the_broker_wherever_it_is_met(start: str) -> None:
    """A storage error that reaches the beginning of a greenlet, a series, a callback of the loop or
    the end of a native job halts the broker. Any other error is logged, and does not."""
    runtime = HaltNoted()
    calls: list[type[Exception]] = []

    def fail(kind: type[Exception]) -> None:
        calls.append(kind)
        raise kind("as injected")

    for kind, halts in ((RuntimeError, 0), (StorageError, 1)):
        series = starts(runtime)[start](partial(fail, kind))
        with gevent.Timeout(DEADLINE):
            while kind not in calls:
                gevent.sleep(0.001)
        if start == "every":
            series.kill()  # type: ignore[attr-defined]
        assert halts == (1 in runtime.halts)


@pytest.mark.parametrize(
    ("found", "resolved"),
    [
        (["::2", "10.0.0.1", "10.0.0.2"], "10.0.0.1"),
        (["::2", "::3"], "::2"),
        (["::ffff:10.0.0.1"], "10.0.0.1"),
    ],
)
def test_a_host_resolves_to_its_first_ipv4_address_or_an_ipv6_one(
    monkeypatch: pytest.MonkeyPatch, found: list[str], resolved: str
) -> None:
    """As InetAddress.getByName of Java."""

    def getaddrinfo(*_: object, **__: object) -> list[tuple[Any, ...]]:
        kinds = ((socket.AF_INET6 if ":" in host else socket.AF_INET, host) for host in found)
        return [(family, socket.SOCK_STREAM, 0, "", (host, 0)) for family, host in kinds]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert resolved == GeventRuntime().resolve("name")


def test_a_failed_completion_does_not_delay_others() -> None:
    """One signal announces several results, and each is delivered."""
    loop = Loop()
    pool = NativePool(Unhalted(), loop, 1)
    ended: list[Any] = []

    def fail(_result: object, _error: BaseException | None) -> None:
        raise RuntimeError("a bug in the end of a job")

    pool.submit(fail, len, ("ab",))
    pool.submit(lambda result, error: ended.append((result, error)), len, ("abc",))
    for _ in range(2):
        assert loop.signals.acquire(timeout=DEADLINE)
    assert loop.callback is not None
    loop.callback()
    assert [(3, None)] == ended


def test_a_killed_greenlet_ends_when_its_native_call_has() -> None:
    """The caller that stops a task may then write the file that its thread was writing."""
    began, go_on = threading.Event(), threading.Event()
    ended: list[str] = []

    def work() -> None:
        began.set()
        assert go_on.wait(DEADLINE)
        ended.append("the call")

    def scenario() -> list[str]:
        runtime = GeventRuntime(native_threads=1)
        task: Any = runtime.spawn(runtime.run_native, work, name="works")
        while not began.is_set():
            gevent.sleep(0.001)
        task.kill(block=False)
        gevent.sleep(0.01)
        assert not task.dead
        go_on.set()
        task.join(DEADLINE)
        ended.append("the greenlet")
        gevent.get_hub().destroy(destroy_loop=True)
        return ended

    with ThreadPoolExecutor(1) as thread:  # with a hub of its own
        assert ["the call", "the greenlet"] == thread.submit(scenario).result(DEADLINE)


def test_lanes_take_turns() -> None:
    """A job waits for one of each other lane, however many that has, and for none of those that
    run in the other threads."""
    submitted: list[Any] = []
    pool: Any = SimpleNamespace(submit=lambda *job: submitted.append(job))
    turns = NativeTurns(pool, 1)
    ended: list[str] = []
    for lane, name in (("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1")):
        turns.submit(lane, lambda result, _: ended.append(result), str, (name,))
    while submitted:
        done, call, args = submitted.pop(0)
        assert not submitted, "one thread has one job"
        done(call(*args), None)
    assert ["a1", "a2", "b1", "c1", "a3"] == ended


def test_an_append_does_not_wait_for_readers() -> None:
    """Conversions of one wrapper for 64 connections made each compressed produce wait 11.7 s."""
    stop = threading.Event()

    def scenario() -> int:
        runtime = GeventRuntime(native_threads=2)
        ended: list[object] = []
        for _ in range(64):
            runtime.run_in_turn_later(
                "reader", lambda *result: ended.append(result), stop.wait, DEADLINE
            )
        try:
            return runtime.run_native(len, "appended")
        finally:
            stop.set()
            while len(ended) < 64:
                gevent.sleep(0.001)
            gevent.get_hub().destroy(destroy_loop=True)

    with ThreadPoolExecutor(1) as thread:  # with a hub of its own
        assert 8 == thread.submit(scenario).result(DEADLINE)
