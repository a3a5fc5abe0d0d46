"""The sockets of our ZooKeeper server."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest

from kafka08.zk.model.server import Server
from kafka08.zk.server.driver import Driver
from kafka08.zk.server.wire_server import WireServer
from kafka08.zk.server.words import Settings

TICK_MS = 10


class Listener(socket.socket):
    """The system has no descriptor left for the first connection."""

    refusals = 1

    def accept(self) -> Any:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))
        return super().accept()


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener


def test_a_refused_accept_is_repeated_without_other_connections(listener: Listener) -> None:
    """Other processes may have taken the system's last descriptor: it must not wait for the end of
    a connection of its own, since it may have none."""
    settings = Settings("127.0.0.1", 2181, "", TICK_MS, 60_000)
    driver = Driver(listener, WireServer(Server(tick_ms=TICK_MS), settings), None)
    try:
        with socket.create_connection(listener.getsockname()) as client:
            client.sendall(b"ruok")
            client.setblocking(False)
            answer, give_up_at = b"", monotonic() + 10
            while not answer and monotonic() < give_up_at:
                driver.run_once()
                try:
                    answer = client.recv(4)
                except BlockingIOError:
                    continue
            assert b"imok" == answer
    finally:
        driver.close()
