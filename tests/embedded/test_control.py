"""How commands ask the process that a cluster belongs to."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kafka08.embedded.control import ControlServer, ask
from kafka08.errors import ConfigError, KafkaError

TURN_S = 0.02


def execute(verb: str, parameters: Mapping[str, Any]) -> str:
    if verb == "format":
        raise ConfigError("there is no verb 'format'")
    broker = parameters["broker"]
    if broker == 7:
        raise KafkaError("there is no broker 7")
    if broker == 8:
        raise OSError("no space left")
    return f"{verb} {broker}"


@contextmanager
def serving(directory: Path) -> Iterator[None]:
    ended = threading.Event()
    with ControlServer(directory) as server:

        def run() -> None:
            while not ended.is_set():
                server.serve(execute, TURN_S)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def test_a_response_is_a_result_or_an_error(tmp_path: Path) -> None:
    """The client gets the result of its request, or the error that it caused, an error of the disk
    included."""
    with serving(tmp_path):
        assert ask(tmp_path, "kill", broker=1) == "kill 1"
        for broker, reason in ((7, "there is no broker 7"), (8, "no space left")):
            with pytest.raises(KafkaError, match=reason):
                ask(tmp_path, "restart", broker=broker)
        assert ask(tmp_path, "stop", broker=2) == "stop 2"


def test_the_directory_may_have_a_long_name(tmp_path: Path) -> None:
    """The path may be longer than the address of a Unix socket can be."""
    directory = tmp_path / ("d" * 200)
    directory.mkdir()
    with serving(directory):
        assert ask(directory, "kill", broker=1) == "kill 1"
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"\n", b"[]\n", b"\xff\n", b"x" * 5000),
        *(b'{"verb": "format", "parameters": {}}\n', b'{"verb": "kill", "parameters": 1}\n'),
        *(b'{"verb": 1, "parameters": {}}\n', b"[" * 5000),
    ],
)
def test_invalid_bytes_change_nothing(tmp_path: Path, line: bytes) -> None:
    """Invalid bytes get an error, and the next request is served."""
    with serving(tmp_path):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / "control"))
            client.sendall(line)
            client.shutdown(socket.SHUT_WR)
            assert b"error" in client.recv(1000)
        assert ask(tmp_path, "kill", broker=1) == "kill 1"


def test_a_refused_accept_does_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A process without a free descriptor accepts nothing, and goes on."""

    def refuse(_: socket.socket) -> NoReturn:
        raise OSError(errno.EMFILE, "Too many open files")

    with ControlServer(tmp_path) as server:
        with monkeypatch.context() as patched:
            patched.setattr(socket.socket, "accept", refuse)
            server.serve(execute, 0.0)
        assert "was not accepted: [Errno 24] Too many open files" in caplog.text
        asking = threading.Thread(target=server.serve, args=(execute, 5.0))
        asking.start()
        assert ask(tmp_path, "kill", broker=1) == "kill 1"
        asking.join()


def test_a_leftover_socket_is_replaced(tmp_path: Path) -> None:
    """A socket file without a listener does not stop the next owner from listening there."""
    killed = ControlServer(tmp_path)
    killed._listener.close()
    with pytest.raises(KafkaError, match="is stopping"):
        ask(tmp_path, "kill", broker=1)
    with serving(tmp_path):
        assert ask(tmp_path, "kill", broker=1) == "kill 1"


def test_a_cluster_that_stops_says_so(tmp_path: Path) -> None:
    """A process that stops its cluster has closed the socket, and still holds the directory."""
    with serving(tmp_path):
        pass
    with pytest.raises(KafkaError, match=r"is stopping, .* start it again when it has ended"):
        ask(tmp_path, "restart", broker=1)
