"""The network between hosts: delays, cuts in one or both directions, and hosts that are off.

What is sent in one direction of a connection arrives in order, after a delay that is drawn. A cut
holds it back, as TCP does, until the cut is healed. Nothing else is lost: a connection breaks only
by a reset.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

from kafka08.runtime.transport import Address
from kafka08.simulation.process import Process
from kafka08.simulation.scheduler import Scheduler
from kafka08.simulation.streams import SimListener, SimStream
from kafka08.simulation.timeline import Message

if TYPE_CHECKING:
    pass

FIRST_PORT: Final = 32_768
DIAL_AGAIN_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""When a connection that gets no answer is tried again, as Linux does."""


@dataclass(frozen=True)
class NetworkSettings:
    """delay_seconds      the usual delay in one direction
    slow_share         how often a message takes up to `slow_seconds` instead
    piece_share        how often a send or a message is cut in two
    buffer_bytes       what a direction of a connection holds before it is full
    """

    delay_seconds: float = 0.0002
    slow_share: float = 0.0
    slow_seconds: float = 0.0
    piece_share: float = 0.0
    buffer_bytes: int = 256 * 1024


class Network:
    """All hosts, and what is between them."""

    def __init__(self, scheduler: Scheduler, random: Random, settings: NetworkSettings) -> None:
        self.scheduler = scheduler
        self.random = random
        self.settings = settings
        self.listeners: dict[Address, SimListener] = {}
        self.streams: dict[SimStream, None] = {}
        """Those that are open, in the order in which they were made."""
        self._off: set[str] = set()
        self._cuts: dict[tuple[str, str], None] = {}
        self._held: list[Pipe] = []
        self._next_port = FIRST_PORT

    def delay(self) -> float:
        """How long the next message takes."""
        settings, draw = self.settings, self.random.random
        if settings.slow_share and draw() < settings.slow_share:
            return draw() * settings.slow_seconds
        return settings.delay_seconds * (0.5 + draw())

    def piece(self, size: int) -> int:
        """How many of so many bytes go at once: at least one."""
        draw = self.random.random
        if size > 1 and self.settings.piece_share and draw() < self.settings.piece_share:
            return 1 + int(draw() * (size - 1))
        return size

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cuts

    def cut(self, source: str, target: str) -> None:
        """Let nothing through in that direction."""
        self._cuts[source, target] = None

    def heal(self) -> None:
        """End all cuts; what was held back arrives."""
        self._cuts.clear()
        self.let_through()

    def mend(self, source: str, target: str) -> None:
        """End the cut of one direction."""
        self._cuts.pop((source, target), None)
        self.let_through()

    def let_through(self) -> None:
        held, self._held = self._held, []
        for pipe in held:
            pipe.try_again()

    def hold(self, pipe: Pipe) -> None:
        self._held.append(pipe)

    def switch_off(self, host: str) -> None:
        """As if its plug was drawn: what is sent to it meets silence."""
        self._off.add(host)

    def switch_on(self, host: str) -> None:
        self._off.discard(host)

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
        """A stream that is being connected: writable once it is, or once that has failed."""
        stream = SimStream(self, process, (process.host, self.free_port()), address)
        self._dial(stream, 0)
        return stream

    def _dial(self, stream: SimStream, tries: int) -> None:
        self.scheduler.call_later(self.delay(), self._arrive, stream, tries)

    def _arrive(self, stream: SimStream, tries: int) -> None:
        """A connection request reaches its host, or nobody."""
        if stream.is_closed:
            return
        source, target = stream.address[0], stream.peer_address[0]
        if self.is_cut(source, target) or self.is_cut(target, source) or self.is_off(target):
            if tries < len(DIAL_AGAIN_SECONDS):
                wait = DIAL_AGAIN_SECONDS[tries]
                self.scheduler.call_later(wait, self._dial, stream, tries + 1)
            else:
                stream.fail(TimeoutError(110, "Connection timed out"))
            return
        listener = self.listeners.get(stream.peer_address)
        if listener is None:
            refused = ConnectionRefusedError(111, "Connection refused")
            self.scheduler.call_later(self.delay(), stream.fail, refused)
            return
        peer = SimStream(self, listener.process, stream.peer_address, stream.address)
        peer.settimeout(0)
        stream.join(peer)
        listener.arrive(peer)


class Pipe:
    """One direction of a connection: what is put in arrives at the other end, in order.

    name   what an item is called for people; "" for what they need not see
    """

    __slots__ = (
        "_arrive",
        "_arrives_at",
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
        name: Callable[[Any], str] = lambda _: "",
    ) -> None:
        self.source = source
        self.target = target
        self.is_broken = False
        """Whatever is in it, or will be put in, is lost."""
        self._network = network
        self._arrive = arrive
        self._name = name
        self._arrives_at = 0.0
        self._held: list[Any] = []

    def put(self, item: Any) -> None:
        scheduler = self._network.scheduler
        self._arrives_at = max(self._arrives_at, scheduler.now + self._network.delay())
        scheduler.call_at(self._arrives_at, self._out, item)
        timeline = scheduler.trace.timeline
        if timeline is not None and (name := self._name(item)):
            sent = (scheduler.now, self.source, self._arrives_at, self.target, name)
            timeline.messages.append(Message(*sent))

    def try_again(self) -> None:
        """What was held back goes on, unless the cut is still there."""
        held, self._held = self._held, []
        for item in held:
            self._out(item)

    def _out(self, item: Any) -> None:
        if self.is_broken:
            return
        if self._held:
            self._held.append(item)
        elif self._network.is_cut(self.source, self.target):
            self._held.append(item)
            self._network.hold(self)
        else:
            self._arrive(item)
