"""The network between hosts: delays, cuts in one or both directions, and hosts that are off.

Bytes sent in one direction of a connection arrive in order, after random delays. A cut delays them
until it ends, as TCP does. Nothing is lost otherwise: only a reset breaks a connection. A host may
also refuse the connections of another one.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from kafka08.runtime.transport import Address
from kafka08.simulation.frames import api_key_of
from kafka08.simulation.process import Process
from kafka08.simulation.scheduler import Scheduler
from kafka08.simulation.streams import SimListener, SimStream
from kafka08.simulation.timeline import Message

FIRST_PORT: Final = 32_768
DIAL_AGAIN_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""The pauses between SYNs without a response, as on Linux."""


@dataclass(frozen=True)
class NetworkSettings:
    """delay_seconds      the usual delay in one direction
    slow_share         the share of messages that take up to `slow_seconds` instead
    piece_share        the share of sends and of messages that are split in two
    buffer_bytes       the capacity of one direction of a connection
    """

    delay_seconds: float = 0.0002
    slow_share: float = 0.0
    slow_seconds: float = 0.0
    piece_share: float = 0.0
    buffer_bytes: int = 256 * 1024


@dataclass(eq=False)
class LateRequests:
    """Requests that do not arrive while this is in `Network.late`, nor does what their connections
    carry after them.

    sources    the hosts that send them
    api_key    their API; not 0, for which responses may be taken
    at_first   called with its source when the first one is due
    """

    sources: Collection[str]
    api_key: int
    at_first: Callable[[str], object] | None

    def concern(self, source: str, item: Any) -> bool:
        """Whether this item of that host is one."""
        if (
            source not in self.sources
            or not isinstance(item, bytes)
            or api_key_of(item) != self.api_key
        ):
            return False
        at_first, self.at_first = self.at_first, None
        if at_first is not None:
            at_first(source)
        return True


class Network:
    """All hosts, their connections and their listeners."""

    def __init__(self, scheduler: Scheduler, random: Random, settings: NetworkSettings) -> None:
        self.scheduler = scheduler
        self.random = random
        self.settings = settings
        self.listeners: dict[Address, SimListener] = {}
        self.streams: dict[SimStream, None] = {}
        """The open ones, in the order in which they were made."""
        self.unheard: dict[SimStream, None] = {}
        """Streams of a host that was off when bytes for them arrived. TCP sends them again until it
        is on, and here the host responds as soon as that is so."""
        self._off: set[str] = set()
        self.cuts: dict[tuple[str, str], None] = {}
        """(source, target) of the directions that are cut."""
        self.refused: dict[tuple[str, str], None] = {}
        """(source, target) whose new connections are refused."""
        self.late: list[LateRequests] = []
        self.without_descriptors: dict[str, None] = {}
        """Hosts whose processes can make and accept no connection."""
        self._held: list[Pipe] = []
        self._next_port = FIRST_PORT

    def delay(self) -> float:
        """The delay of the next message, in seconds."""
        settings, drawn = self.settings, self.random.random()
        if settings.slow_share:
            if drawn < settings.slow_share:
                return self.random.random() * settings.slow_seconds
            drawn = self.random.random()
        return settings.delay_seconds * (0.5 + drawn)

    def piece(self, size: int) -> int:
        """The number of these bytes, at least one, that are sent together."""
        draw = self.random.random
        if size > 1 and draw() < self.settings.piece_share:
            return 1 + int(draw() * (size - 1))
        return size

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self.cuts

    def cut(self, source: str, target: str) -> None:
        """Hold back all bytes in that direction."""
        self.cuts[source, target] = None

    def heal(self) -> None:
        """End all cuts, delays and refusals; the bytes that were held back arrive."""
        self.cuts.clear()
        self.refused.clear()
        self.late.clear()
        self.let_through()

    def refuse(self, source: str, target: str) -> None:
        """Refuse new connections in that direction, and break those that there are."""
        self.refused[source, target] = None
        for stream in [one for one in self.streams if one.is_connected]:
            if (stream.address[0], stream.peer_address[0]) == (source, target):
                stream.reset()

    def mend(self, source: str, target: str) -> None:
        """End the cut of one direction."""
        self.cuts.pop((source, target), None)
        self.let_through()

    def let_through(self) -> None:
        held, self._held = self._held, []
        for pipe in held:
            pipe.try_again()

    def holds_back(self, pipe: Pipe, item: Any) -> bool:
        """Whether an item that is due must wait for the end of a cut or a delay."""
        return (pipe.source, pipe.target) in self.cuts or any(
            late.concern(pipe.source, item) for late in self.late
        )

    def hold(self, pipe: Pipe) -> None:
        self._held.append(pipe)

    def switch_off(self, host: str) -> None:
        """As a power failure: the host does not respond any more."""
        self._off.add(host)

    def switch_on(self, host: str) -> None:
        self._off.discard(host)
        for stream in [one for one in self.unheard if one.address[0] == host]:
            del self.unheard[stream]
            stream.respond_with_reset()

    def is_off(self, host: str) -> bool:
        return host in self._off

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def listen(self, process: Process, port: int) -> SimListener:
        address = (process.host, port or self.free_port())
        if address in self.listeners:
            raise OSError(98, "Address already in use")
        listener = self.listeners[address] = SimListener(self, process, address)
        return listener

    def dial(self, process: Process, address: Address) -> SimStream:
        """Start to connect. The stream is writable once it is connected, or has failed."""
        self.take_descriptor(process.host)
        stream = SimStream(self, process, (process.host, self.free_port()), address)
        self._dial(stream, 0)
        return stream

    def take_descriptor(self, host: str) -> None:
        """Raise the error of a process that has no descriptor for another connection."""
        if host in self.without_descriptors:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def _dial(self, stream: SimStream, tries: int) -> None:
        self.scheduler.call_later(self.delay(), self._arrive, stream, tries)

    def dial_again(self, stream: SimStream) -> None:
        """Its host lost power before this end was connected."""
        self.scheduler.call_later(DIAL_AGAIN_S[0], self._dial, stream, 1)

    def _arrive(self, stream: SimStream, tries: int) -> None:
        """A SYN arrives at its host, or is lost."""
        if stream.is_closed:
            return
        source, target = stream.address[0], stream.peer_address[0]
        if self.is_cut(source, target) or self.is_cut(target, source) or self.is_off(target):
            if tries < len(DIAL_AGAIN_S):
                wait = DIAL_AGAIN_S[tries]
                self.scheduler.call_later(wait, self._dial, stream, tries + 1)
            else:
                stream.fail(TimeoutError(110, "Connection timed out"))
            return
        listener = self.listeners.get(stream.peer_address)
        if listener is None or (source, target) in self.refused:
            refused = ConnectionRefusedError(111, "Connection refused")
            self.scheduler.call_later(self.delay(), stream.fail, refused)
            return
        peer = SimStream(self, listener.process, stream.peer_address, stream.address)
        peer.settimeout(0)
        stream.join(peer)
        listener.arrive(peer)


class Pipe:
    """One direction of a connection: items arrive at the other end in order.

    name   the name of an item on the timeline; "" if it is not shown
    """

    __slots__ = (
        "_arrive",
        "_arrives_at",
        "_drops_undelivered",
        "_held",
        "_name",
        "_network",
        "is_broken",
        "source",
        "target",
    )

    def __init__(
        self,
        network: Network,
        source: str,
        target: str,
        arrive: Callable[[Any], object],
        name: Callable[[Any], str],
    ) -> None:
        self.source = source
        self.target = target
        self.is_broken = False
        """All items in it, and all later ones, are lost."""
        self._network = network
        self._arrive = arrive
        self._name = name
        self._arrives_at = 0.0
        self._drops_undelivered = False
        self._held: list[Any] = []

    def put(self, item: Any) -> None:
        network = self._network
        scheduler = network.scheduler
        self._arrives_at = at = max(scheduler.now + network.delay(), self._arrives_at)
        scheduler.call_at(at, self._out, item)
        timeline = scheduler.trace.timeline
        if timeline is not None and (name := self._name(item)):
            timeline.messages.append(Message(scheduler.now, self.source, at, self.target, name))

    def drop_undelivered(self) -> None:
        """Deliver nothing more that a cut holds back: its sender does not send it again."""
        self._drops_undelivered = True
        self._held.clear()

    def try_again(self) -> None:
        """Deliver the items that were held back, unless the cut remains."""
        held, self._held = self._held, []
        for item in held:
            self._out(item)

    def _out(self, item: Any) -> None:
        if self.is_broken:
            return
        network = self._network
        if self._held:
            self._held.append(item)
        elif (network.cuts or network.late) and network.holds_back(self, item):
            if not self._drops_undelivered:
                self._held.append(item)
                network.hold(self)
        else:
            self._arrive(item)
