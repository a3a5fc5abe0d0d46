"""Simulated ZooKeeper: the model's server, and sessions with it over the simulated network."""

from __future__ import annotations

import enum
import zlib
from collections.abc import Callable
from typing import Final, NamedTuple

from kafka08.runtime.cooperative import GreenEvent
from kafka08.simulation.network import Network, Pipe
from kafka08.simulation.process import START_WALL_MS, Process
from kafka08.simulation.scheduler import Timer
from kafka08.structs import LeaderAndIsr, TopicPartition
from kafka08.zk import nodes, paths
from kafka08.zk.model.messages import ConnectRequest, FromServer, Request, WriteRequest
from kafka08.zk.model.server import Close, Instant, Output, Server
from kafka08.zk.model.session import LinkOwner, ModelSession, ToServer
from kafka08.zk.zookeeper import SessionSettings

HOST: Final = "zookeeper"
ADDRESS: Final = "zookeeper:2181"


class AtNextWrite(enum.Enum):
    """The moment of a fault at the next write of a connection."""

    BEFORE = "before the server processes it"
    AFTER = "after the server has processed it"


class WriteFault(NamedTuple):
    """A fault of a connection, or of its process, at its next write, or at a later one: `skips` are
    left out, and so are those that it does not concern. If it happens before the write and ends the
    connection, the write is lost."""

    when: AtNextWrite
    happens: Callable[[], object]
    skips: int = 0
    concerns: Callable[[WriteRequest], bool] = lambda _: True


class SimZooKeeper:
    """One logical ZooKeeper on a host of its own.

    on_done   called after each message was processed, with the process that sent it
    """

    def __init__(self, network: Network, server: Server) -> None:
        self.network = network
        self.server = server
        self.is_up = True
        self.links: dict[int, SimLink] = {}
        """The server's connections, by number."""
        self.on_done: Callable[[Process, ToServer], object] = lambda *_: None
        self._next_number = 1
        self._states: dict[TopicPartition, tuple[bytes, LeaderAndIsr]] = {}
        """Partition states by the data of their znodes."""
        self._expires_ms: int | None = None
        """When the next session expires, as far as a call for that is scheduled."""

    def session(self, process: Process, settings: SessionSettings) -> ModelSession:
        return ModelSession(settings, ProcessWorld(self, process))

    def open(self, process: Process, owner: LinkOwner) -> SimLink:
        link = SimLink(self, process, self._next_number, owner)
        self._next_number += 1
        self.network.scheduler.call_later(self.network.delay(), self._arrive, link)
        return link

    def stop(self) -> None:
        """Stop the server: connections break, and new ones are refused."""
        self.is_up = False
        for link in list(self.links.values()):
            self.break_link(link, loses_requests=True)

    def start(self) -> None:
        """Start the server with its znodes and sessions."""
        self.is_up = True
        self.server.restart(self._now())
        self._await_expiry()

    def leader_and_isr(self, tp: TopicPartition) -> LeaderAndIsr | None:
        """The state of a partition; None if it has none."""
        znode = self.server.find(paths.partition_state(tp.topic, tp.partition))
        if znode is None or znode.data is None:
            return None
        known = self._states.get(tp)
        if known is None or known[0] is not znode.data or known[1].zk_version != znode.version:
            state = nodes.decode_leader_and_isr(znode.data.decode(), znode.version)
            known = self._states[tp] = (znode.data, state)
        return known[1]

    def elect(self, draw: Callable[[int], int]) -> None:
        """The ensemble loses its leader, and does not respond until `start`. Of the requests in
        flight on each connection, the first `draw(count)` are applied, and their replies are
        lost."""
        self.is_up = False
        for link in list(self.links.values()):
            for message in link.requests[: draw(len(link.requests))]:
                self.take(link, message)
            self.break_link(link, loses_requests=True)

    def expire_session(self, link: SimLink) -> None:
        """Expire the session of a connection at once."""
        self._deliver(self.server.end_session(link.number, self._now()))
        self._await_expiry()

    def break_link(self, link: SimLink, *, loses_requests: bool) -> None:
        """Break a connection and lose the replies in flight. The requests in flight are processed
        first, or lost."""
        if not loses_requests:
            for message in list(link.requests):
                self.take(link, message)
        link.break_off()
        self._lose(link)
        link.process.call_soon(link.owner.on_closed, link)

    def take(self, link: SimLink, message: ToServer) -> None:
        """Process a message of a client."""
        if link.requests and link.requests[0] is message:
            link.requests.pop(0)
        if link.number not in self.links:
            return
        if isinstance(message, ConnectRequest):
            outputs = self.server.connect(link.number, message, self._now())
        elif (
            link.fault is not None
            and isinstance(message[1], WriteRequest)
            and link.fault.concerns(message[1])
        ):
            outputs = self._with_fault(link, link.fault, message)
        else:
            outputs = self.server.receive(link.number, *message, self._now())
        self.on_done(link.process, message)
        self._deliver(outputs)
        self._await_expiry()

    def _with_fault(
        self, link: SimLink, fault: WriteFault, message: tuple[int, Request]
    ) -> list[Output]:
        if fault.skips:
            link.fault = fault._replace(skips=fault.skips - 1)
            return self.server.receive(link.number, *message, self._now())
        link.fault = None
        if fault.when is AtNextWrite.BEFORE:
            fault.happens()
            if link.is_closed:
                return []
        outputs = self.server.receive(link.number, *message, self._now())
        if fault.when is AtNextWrite.AFTER:
            fault.happens()
        return outputs

    def lose(self, link: SimLink) -> None:
        """The client has closed the connection."""
        self._lose(link)

    def _lose(self, link: SimLink) -> None:
        if self.links.pop(link.number, None) is not None:
            self.server.disconnect(link.number)

    def _arrive(self, link: SimLink) -> None:
        """A SYN arrives."""
        network, host = self.network, link.process.host
        if link.is_closed or link.process.is_dead:
            return
        if network.is_cut(host, HOST) or network.is_cut(HOST, host):
            return  # the session has its own timeout for that
        if self.is_up:
            self.links[link.number] = link
            link.down.put(None)
        else:
            network.scheduler.call_later(
                network.delay(), link.process.call_soon, link.owner.on_closed, link
            )

    def _deliver(self, outputs: list[Output]) -> None:
        for output in outputs:
            link = self.links.get(output.connection)
            if link is None:
                continue
            if isinstance(output, Close):
                self.links.pop(link.number)
            link.down.put(output if isinstance(output, Close) else output.message)

    def _await_expiry(self) -> None:
        deadline_ms = self.server.next_deadline_ms() if self.is_up else None
        if deadline_ms != self._expires_ms:
            self._expires_ms = deadline_ms
            if deadline_ms is not None:
                self.network.scheduler.call_at(deadline_ms / 1000, self._expire, deadline_ms)

    def _expire(self, deadline_ms: int) -> None:
        if deadline_ms != self._expires_ms or not self.is_up:
            return  # It was postponed. A server that is down expires no session.
        self._expires_ms = None
        self._deliver(self.server.expire(self._now()))
        self._await_expiry()

    def _now(self) -> Instant:
        # Rounded, so that a timer at a deadline is not early.
        elapsed_ms = round(self.network.scheduler.now * 1000)
        return Instant(elapsed_ms, START_WALL_MS + elapsed_ms)


class SimLink:
    """A client's connection to ZooKeeper."""

    def __init__(
        self, zookeeper: SimZooKeeper, process: Process, number: int, owner: LinkOwner
    ) -> None:
        self.process = process
        self.number = number
        self.owner = owner
        self.is_closed = False
        self.fault: WriteFault | None = None
        """A fault at its next write."""
        self.requests: list[ToServer] = []
        """The requests in flight."""
        self._zookeeper = zookeeper
        self.up = Pipe(zookeeper.network, process.host, HOST, self._take, name_of_message)
        self.down = Pipe(zookeeper.network, HOST, process.host, self._hand_over, name_of_message)

    def send(self, message: ToServer) -> None:
        self.requests.append(message)
        self.up.put(message)

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.up.put(None)

    def break_off(self) -> None:
        self.is_closed = self.up.is_broken = self.down.is_broken = True

    def vanish(self, *, silently: bool) -> None:
        """Its process died. Silently: its host lost power, so the server does not notice."""
        if silently:
            self.up.is_broken = self.is_closed = True
        else:
            self.close()

    def _take(self, message: ToServer | None) -> None:
        if message is None:
            self._zookeeper.lose(self)
        else:
            self._zookeeper.take(self, message)

    def _hand_over(self, message: FromServer | Close | None) -> None:
        network = self._zookeeper.network
        text = type(message).__name__
        network.scheduler.trace.message(
            network.scheduler.now, HOST, self.process.name, zlib.crc32(text.encode())
        )
        if self.is_closed:
            return
        if message is None:
            self.process.call_soon(self.owner.on_open, self)
        elif isinstance(message, Close):
            self.process.call_soon(self.owner.on_closed, self)
        else:
            self.process.call_soon(self.owner.on_message, self, message)


def name_of_message(message: object) -> str:
    """The type of a request; for others that it is a reply or an event."""
    if isinstance(message, tuple) and len(message) == 2:
        message = message[1]
    return type(message).__name__.removesuffix("Request") if message is not None else "connection"


class ProcessWorld:
    """The `World` of the sessions of one process."""

    def __init__(self, zookeeper: SimZooKeeper, process: Process) -> None:
        self._zookeeper = zookeeper
        self._process = process

    def monotonic(self) -> float:
        return self._process.monotonic()

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        return self._process.call_later(seconds, call)

    def event(self) -> GreenEvent:
        return GreenEvent(self._process)

    def open(self, hosts: str, owner: LinkOwner) -> SimLink:
        return self._zookeeper.open(self._process, owner)

    def why_unreachable(self, hosts: str) -> str:
        return f"{hosts}: does not respond"
