"""The model of ZooKeeper with its sessions in one thread: a `World` in which messages take no time.

While a caller waits and no message is due, time jumps to the next timer, heartbeat or session
expiry. So a wait for an event that never comes takes no real time. `connect` is an adapter for
`ZkClient`, whose clock must be the world itself.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kafka08.zk.model.messages import ConnectRequest, FromServer
from kafka08.zk.model.server import Close, Instant, Output, Server
from kafka08.zk.model.session import LinkOwner, ModelSession, ToServer
from kafka08.zk.zookeeper import SessionSettings

START_WALL_MS: Final = 1_400_000_000_000


class InProcessWorld:
    """Also a `Clock`. Not for several threads.

    is_reachable   False: a connection is refused; `cut` and `heal` end and begin it
    """

    def __init__(self, server: Server | None = None) -> None:
        self.server = server or Server()
        self.is_reachable = True
        self._now_ms = 0.0
        self._timers: list[_Timer] = []
        self._numbers = itertools.count()
        self._connections = itertools.count(1)
        self._links: dict[int, InProcessLink] = {}

    def connect(self, settings: SessionSettings) -> ModelSession:
        """The adapter."""
        return ModelSession(settings, self)

    def monotonic(self) -> float:
        return self._now_ms / 1000

    def time_ms(self) -> int:
        return START_WALL_MS + int(self._now_ms)

    def sleep(self, seconds: float) -> None:
        self.event().wait(seconds)

    def event(self) -> InProcessEvent:
        return InProcessEvent(self)

    def call_later(self, seconds: float, call: Callable[[], object]) -> _Timer:
        timer = _Timer(self._now_ms + seconds * 1000, next(self._numbers), call)
        heapq.heappush(self._timers, timer)
        return timer

    def open(self, hosts: str, owner: LinkOwner) -> InProcessLink:
        link = InProcessLink(self, next(self._connections), owner)
        if self.is_reachable:
            self._links[link.number] = link
            self.call_later(0, lambda: owner.on_open(link))
        else:
            self.call_later(0, lambda: owner.on_closed(link))
        return link

    def why_unreachable(self, hosts: str) -> str:
        return f"{hosts}: connection refused"

    def cut(self) -> None:
        """Break all connections and refuse new ones; sessions expire after their timeouts."""
        self.is_reachable = False
        for link in list(self._links.values()):
            self.break_link(link)

    def heal(self) -> None:
        self.is_reachable = True

    def restart_server(self) -> None:
        """The server keeps znodes and sessions; clients connect again."""
        for link in list(self._links.values()):
            self.break_link(link)
        self.server.restart(self._instant())

    def break_link(self, link: InProcessLink) -> None:
        """The connection is lost, with the messages in flight."""
        self._links.pop(link.number, None)
        self.server.disconnect(link.number)
        self.call_later(0, lambda: link.owner.on_closed(link))

    def link_of(self, session: ModelSession) -> InProcessLink:
        """The session's connection, for faults. KeyError if it has none."""
        for link in self._links.values():
            if link.owner is session:
                return link
        raise KeyError(session)

    def run_until(self, is_done: Callable[[], bool], seconds: float) -> bool:
        """Process messages and timers until `is_done()`, for at most so many seconds. Returns
        whether it is done. Includes what is due at the end of that time."""
        deadline = self._now_ms + seconds * 1000
        while True:
            self._run_due()
            if is_done():
                return True
            coming = self._next_ms()
            if coming is None or coming > deadline:
                self._now_ms = max(self._now_ms, deadline)
                return is_done()
            self._now_ms = max(self._now_ms, coming)

    def take(self, link: InProcessLink, message: ToServer) -> None:
        """A message of a client arrives at the server."""
        if link.number not in self._links or link.is_silent:
            return
        if isinstance(message, ConnectRequest):
            outputs = self.server.connect(link.number, message, self._instant())
        else:
            outputs = self.server.receive(link.number, *message, self._instant())
        if link.loses_next_reply and not isinstance(message, ConnectRequest):
            self.break_link(link)
        self._deliver(outputs)

    def forget(self, link: InProcessLink) -> None:
        if self._links.pop(link.number, None) is not None:
            self.server.disconnect(link.number)

    def _run_due(self) -> None:
        while True:
            if (self.server.next_deadline_ms() or self._now_ms + 1) <= self._now_ms:
                self._deliver(self.server.expire(self._instant()))
            elif self._timers and self._timers[0].at_ms <= self._now_ms:
                heapq.heappop(self._timers).run()
            else:
                return

    def _next_ms(self) -> float | None:
        times = [self._timers[0].at_ms] if self._timers else []
        deadline = self.server.next_deadline_ms()
        return min([*times, *([] if deadline is None else [float(deadline)])], default=None)

    def _instant(self) -> Instant:
        return Instant(int(self._now_ms), self.time_ms())

    def _deliver(self, outputs: list[Output]) -> None:
        for output in outputs:
            link = self._links.get(output.connection)
            if link is None or link.is_silent:
                continue
            if isinstance(output, Close):
                self._links.pop(link.number)
                self.call_later(0, _closing(link))
            else:
                self.call_later(0, _delivery(link, output.message))


class InProcessLink:
    """loses_next_reply   the server applies the next request, and the connection breaks before its
                       reply
    is_silent          half-open: no message arrives any more, and neither end notices
    """

    def __init__(self, world: InProcessWorld, number: int, owner: LinkOwner) -> None:
        self.number = number
        self.owner = owner
        self.loses_next_reply = False
        self.is_silent = False
        self._world = world

    def send(self, message: ToServer) -> None:
        self._world.call_later(0, lambda: self._world.take(self, message))

    def close(self) -> None:
        self._world.forget(self)


class InProcessEvent:
    def __init__(self, world: InProcessWorld) -> None:
        self._world = world
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        return self._world.run_until(self.is_set, float("inf") if timeout is None else timeout)


@dataclass(order=True)
class _Timer:
    at_ms: float
    number: int
    call: Callable[[], object] = field(compare=False)
    is_cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        self.is_cancelled = True

    def run(self) -> None:
        if not self.is_cancelled:
            self.call()


def _delivery(link: InProcessLink, message: FromServer) -> Callable[[], None]:
    return lambda: link.owner.on_message(link, message)


def _closing(link: InProcessLink) -> Callable[[], None]:
    return lambda: link.owner.on_closed(link)
