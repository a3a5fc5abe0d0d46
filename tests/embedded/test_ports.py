"""kafka08.embedded.ports: where servers of an embedded cluster may listen."""

from __future__ import annotations

import socket

import pytest

from kafka08.embedded.ports import free_ports, is_free, listen_fault
from kafka08.errors import ConfigError


def test_free_ports_are_different_and_free() -> None:
    """As many as were asked for, and a server can listen on each."""
    ports = free_ports(5)
    assert 5 == len(set(ports))
    assert all(is_free("127.0.0.1", port) for port in ports)


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_a_host_that_is_not_ours_is_an_error(host: str) -> None:
    """No port of it will ever be free, so the search does not begin."""
    with pytest.raises(ConfigError, match=host):
        free_ports(1, host)


def test_a_taken_port_says_why() -> None:
    """In the operating system's words; None once it is free."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert "address already in use" == listen_fault("127.0.0.1", port)
    assert listen_fault("127.0.0.1", port) is None
