"""Connections of the simulated network: what real sockets do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka08.simulation.network import Network
from kafka08.simulation.process import Process
from kafka08.simulation.scheduler import Scheduler
from kafka08.simulation.streams import SimStream
from tests.simulation.conftest import STEPS, NewProcess

ADDRESS = ("server", 9092)


class Pair:
    """A client's and a server's end, once `connect` was called in a task."""

    def __init__(self, network: Network, client: Process, server: Process) -> None:
        self.network, self.client, self.server = network, client, server
        self.listener = network.listen(server, ADDRESS[1])

    def connect(self) -> tuple[SimStream, SimStream]:
        ours = self.network.dial(self.client, ADDRESS)
        ours.await_connection(5.0)
        ours.settimeout(5.0)
        theirs, _ = self.listener.accept()
        theirs.settimeout(5.0)
        return ours, theirs


@pytest.fixture
def pair(network: Network, new_process: NewProcess) -> Pair:
    return Pair(network, new_process("client"), new_process("server"))


@pytest.fixture
def run(scheduler: Scheduler, pair: Pair) -> Callable[[Callable[[], object]], None]:
    """Run one task of the client to its end."""

    def run_it(call: Callable[[], object]) -> None:
        task = pair.client.spawn(call, (), "test")
        scheduler.run(STEPS)
        assert task.is_ended

    return run_it


Run = Callable[[Callable[[], object]], None]


def received(stream: SimStream, size: int) -> bytes:
    """Up to `size` bytes that come next."""
    buffer = bytearray(size)
    return bytes(buffer[: stream.recv_into(buffer)])


def test_bytes_arrive_in_order(pair: Pair, run: Run) -> None:
    """Bytes arrive in order however they are cut, and a full buffer accepts no more until some are
    read."""

    def talk() -> None:
        ours, theirs = pair.connect()
        assert 10 == ours.send(b"0123456789ab"), "the buffer's size"
        ours.settimeout(0)
        with pytest.raises(BlockingIOError):
            ours.send(b"x")
        assert b"0123" == received(theirs, 4)
        ours.settimeout(1.0)
        ours.sendall(b"ab")
        pair.client.sleep(1.0)
        assert b"456789ab" == received(theirs, 100)

    run(talk)


def test_a_reader_is_not_woken_by_its_peers_reads(pair: Pair, run: Run) -> None:
    """A task that waits for bytes is not woken when its peer reads: half of all steps of a run
    would be such wake-ups."""

    def talk() -> None:
        ours, theirs = pair.connect()
        ours.send(b"request")
        reader = pair.client.spawn(received, (ours, 9), "reader")
        pair.client.sleep(1.0)
        before = ours.process.scheduler.steps
        received(theirs, 9)
        pair.client.sleep(1.0)
        assert before + 1 == ours.process.scheduler.steps, "this task's own step alone"
        theirs.send(b"response")
        reader.join()

    run(talk)


def test_a_closed_end_is_an_end_or_a_reset(pair: Pair, run: Run) -> None:
    """The peer of a closed end reads all that was sent and then the end of the stream, or a reset
    if the closed end had not read everything."""

    def talk() -> None:
        ours, theirs = pair.connect()
        ours.send(b"bye")
        ours.close()
        assert b"bye" == received(theirs, 9)
        assert b"" == received(theirs, 9)
        ours, theirs = pair.connect()
        theirs.send(b"unread")
        pair.client.sleep(1.0)
        ours.close()
        with pytest.raises(ConnectionResetError):
            received(theirs, 9)

    run(talk)


def test_connecting_without_a_listener(pair: Pair, run: Run) -> None:
    """A host without a listener refuses a connection at once; a host that is off sends nothing."""

    def talk() -> None:
        with pytest.raises(ConnectionRefusedError):
            pair.network.dial(pair.client, ("server", 1)).await_connection(5.0)
        pair.network.switch_off("server")
        begin = pair.client.monotonic()
        with pytest.raises(TimeoutError):
            pair.network.dial(pair.client, ADDRESS).await_connection(5.0)
        assert pair.client.monotonic() - begin >= 5.0

    run(talk)


def test_a_cut_delays_bytes_and_loses_none(pair: Pair, run: Run) -> None:
    """Bytes that were sent during a cut arrive after it, in order, as with TCP."""

    def talk() -> None:
        ours, theirs = pair.connect()
        pair.network.cut("client", "server")
        ours.send(b"a")
        ours.send(b"b")
        theirs.settimeout(3.0)
        with pytest.raises(TimeoutError):
            received(theirs, 9)
        pair.network.mend("client", "server")
        assert b"ab" == received(theirs, 9)

    run(talk)


def test_a_half_open_connection_says_nothing(pair: Pair, run: Run) -> None:
    """A half-open connection delivers neither bytes nor an end."""

    def talk() -> None:
        ours, theirs = pair.connect()
        ours.go_dark()
        ours.send(b"x")
        ours.close()
        with pytest.raises(TimeoutError):
            received(theirs, 9)

    run(talk)


@pytest.mark.parametrize("sent", ["while it is off", "once it is on"])
def test_a_restarted_host_resets_its_former_connections(pair: Pair, run: Run, sent: str) -> None:
    """A host that lost power says nothing. What its peers have sent meanwhile, or send later,
    reaches it once it is on again; it does not know the connection, and resets it."""

    def talk() -> None:
        ours, theirs = pair.connect()
        pair.network.switch_off("server")
        theirs.vanish(silently=True)
        if sent == "while it is off":
            ours.send(b"x")
        ours.settimeout(3.0)
        with pytest.raises(TimeoutError):
            received(ours, 9)
        pair.network.switch_on("server")
        if sent == "once it is on":
            with pytest.raises(TimeoutError):
                received(ours, 9)
            ours.send(b"x")
        with pytest.raises(ConnectionResetError):
            received(ours, 9)

    run(talk)


def test_a_host_that_lost_power_while_one_connects(pair: Pair, run: Run) -> None:
    """The response to the SYN is lost with the host's power. It is sent again, and reaches the
    process that listens then."""

    def talk() -> None:
        ours = pair.network.dial(pair.client, ADDRESS)
        while not pair.listener.is_readable:
            pair.client.sleep(1e-5)
        theirs, _ = pair.listener.accept()
        pair.network.switch_off("server")
        theirs.vanish(silently=True)
        pair.client.sleep(0.5)
        assert not ours.is_connected
        pair.network.switch_on("server")
        ours.await_connection(5.0)
        again, _ = pair.listener.accept()
        ours.send(b"x")
        again.settimeout(5.0)
        assert received(again, 9) == b"x"

    run(talk)


def test_a_reset_ends_both_sides(pair: Pair, run: Run) -> None:
    """After a reset the next read or write of either end raises it."""

    def talk() -> None:
        ours, theirs = pair.connect()
        ours.reset()
        for end in (ours, theirs):
            with pytest.raises(ConnectionResetError):
                received(end, 1)
            with pytest.raises(ConnectionResetError):
                end.send(b"x")

    run(talk)


def test_a_host_refuses_another(pair: Pair, run: Run) -> None:
    """What there is breaks at both ends, and a new connection is refused, until that ends."""

    def talk() -> None:
        ours, theirs = pair.connect()
        pair.network.refuse("client", "server")
        for end in (ours, theirs):
            with pytest.raises(ConnectionResetError):
                end.sendall(b"x")
        with pytest.raises(ConnectionRefusedError):
            pair.connect()
        pair.network.heal()
        ours, theirs = pair.connect()
        ours.sendall(b"ab")
        assert b"ab" == received(theirs, 2)

    run(talk)
