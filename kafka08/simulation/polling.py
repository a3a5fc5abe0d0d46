"""Waiting for many streams at once: pollers of clients, and the io watches of event loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kafka08.runtime.transport import Readiness
from kafka08.simulation.process import Process
from kafka08.simulation.streams import SimListener, SimStream, wake_all
from kafka08.simulation.task import Ticket


class Watcher(Protocol):
    """Notified when a stream or listener may have become ready."""

    def notify(self, source: SimStream | SimListener, /) -> None: ...


class SimPoller:
    """A `kafka08.runtime.Poller`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._wanted: dict[SimStream | SimListener, tuple[object, bool, bool]] = {}
        self._waiters: list[Ticket] = []
        self._is_woken = False

    def watch(self, stream: Any, key: object, *, read: bool, write: bool) -> None:
        if read or write:
            self._wanted[stream] = (key, read, write)
            stream.watchers[self] = write
        else:
            self.forget(stream)

    def forget(self, stream: Any) -> None:
        self._wanted.pop(stream, None)
        stream.watchers.pop(self, None)

    def poll(self, timeout: float | None) -> list[Readiness]:
        end = None if timeout is None else self._process.monotonic() + timeout
        while not (ready := self._ready()) and not self._is_woken:
            left = None if end is None else end - self._process.monotonic()
            if left is not None and left <= 0:
                break
            self._process.wait(self._waiters, left)
        self._is_woken = False
        return ready

    def wake_up(self) -> None:
        self._is_woken = True
        wake_all(self._waiters)

    def notify(self, source: SimStream | SimListener, /) -> None:
        if self._waiters:
            _, read, write = self._wanted[source]
            if (read and source.is_readable) or (write and source.is_writable):
                wake_all(self._waiters)

    def close(self) -> None:
        for stream in list(self._wanted):
            self.forget(stream)

    def _ready(self) -> list[Readiness]:
        ready = []
        for stream, (key, read, write) in self._wanted.items():
            readable, writable = read and stream.is_readable, write and stream.is_writable
            if readable or writable:
                ready.append(Readiness(key, readable, writable))
        return ready


class SimIoWatch:
    """A `kafka08.runtime.IoWatch`: calls as long as the stream is ready."""

    def __init__(self, stream: SimStream | SimListener, *, for_writing: bool) -> None:
        self.active = False
        self._stream = stream
        self._for_writing = for_writing
        self._call: Callable[[], object] | None = None
        self._is_due = False

    def start(self, call: Callable[[], object], /) -> None:
        self._call = call
        self.active = True
        self._stream.watchers[self] = self._for_writing
        self.notify(self._stream)

    def stop(self) -> None:
        self.active = False
        self._stream.watchers.pop(self, None)

    def close(self) -> None:
        self.stop()
        self._call = None

    def notify(self, _source: SimStream | SimListener, /) -> None:
        if self.active and not self._is_due and self._is_ready():
            self._is_due = True
            self._stream.process.call_soon(self._make_call)

    def _is_ready(self) -> bool:
        return self._stream.is_writable if self._for_writing else self._stream.is_readable

    def _make_call(self) -> None:
        self._is_due = False
        if self.active and self._call is not None and self._is_ready():
            self._call()
            self.notify(self._stream)
