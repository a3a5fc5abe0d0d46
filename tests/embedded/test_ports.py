"""kafka08.embedded.ports: where servers of an embedded cluster may listen."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kafka08.embedded.ports import free_ports, is_free, listen_fault, written_port
from kafka08.errors import ConfigError


def test_free_ports_are_different_and_free() -> None:
    """free_ports returns as many different ports as requested, and a server can listen on each."""
    ports = free_ports(5)
    assert 5 == len(set(ports))
    assert all(is_free("127.0.0.1", port) for port in ports)


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_a_host_that_is_not_ours_is_an_error(host: str) -> None:
    """A host of another machine is an error before the search begins."""
    with pytest.raises(ConfigError, match=host):
        free_ports(1, host)


def test_a_taken_port_says_why() -> None:
    """The result is the operating system's reason with what to do, or None for a free port."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        fault = "address already in use: stop the program there, or use another port"
        assert fault == listen_fault("127.0.0.1", port)
    assert listen_fault("127.0.0.1", port) is None
    foreign = listen_fault("192.0.2.1", port)
    assert foreign is not None
    assert foreign.endswith("use an address of this machine, such as 127.0.0.1")


@pytest.mark.parametrize(
    ("written", "port"),
    [
        ("broker.id=0\nadvertised.port=9092\n", 9092),
        ("", None),
        ("broker.id=0\nadvertised.po", None),
        ("advertised.port=", None),
        ("advertised.port=909219093", None),
    ],
)
def test_a_part_of_a_file_names_no_port(tmp_path: Path, written: str, port: int | None) -> None:
    """A full disk leaves a part of the file that a start writes, or nothing of it. The next start
    takes another port and writes it again."""
    file = tmp_path / "server.properties"
    assert written_port(file, "advertised.port") is None
    file.write_text(written)
    assert written_port(file, "advertised.port") == port
