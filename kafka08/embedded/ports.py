"""Free TCP ports for servers that cannot choose one themselves."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from pathlib import Path

from kafka08.config import PORT_MAX, load_properties
from kafka08.errors import ConfigError
from kafka08.runtime.listen_errors import listen_error_text

_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST, _HIGHEST = 10_000, 60_000


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """`count` different ports that are free now.

    They are random ports below the range of outgoing connections, so that a client's connection or
    another test run hardly takes one before its server binds. The server may still fail to bind;
    then start it again with another port. ConfigError if no server can listen on `host`.
    """
    if (fault := listen_fault(host, 0)) is not None:
        raise ConfigError(f"host {host!r}: cannot listen there: {fault}")
    low, high = _listening_range()
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(low, high)
        if port not in found and is_free(host, port):
            found.append(port)
    return found


def is_free(host: str, port: int) -> bool:
    """Whether a server can listen there now."""
    return listen_fault(host, port) is None


def listen_fault(host: str, port: int) -> str | None:
    """Why no server can listen there now, and what to do; None if one can."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return listen_error_text(error)
    return None


def check_ports(ports: Iterable[int]) -> None:
    """ConfigError for what is neither a port nor 0."""
    for port in ports:
        if type(port) is not int or not 0 <= port <= PORT_MAX:
            raise ConfigError(f"ports: {port!r} is not a number from 0 to {PORT_MAX}")


def written_port(properties: Path, key: str) -> int | None:
    """The port in a file that an earlier server was started with. None without one, and in what a
    full disk, or a kill at the wrong moment, has left of the file."""
    if not properties.exists():
        return None
    text = load_properties(properties).get(key, "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(PORT_MAX))
    return int(text) if is_number and 1 <= int(text) <= PORT_MAX else None


def kept_port(properties: Path, key: str, preferred: Iterable[int], host: str) -> int | None:
    """The port of an earlier server (`written_port`), else a preferred one; the first that is free.
    None if none is."""
    candidates = [written_port(properties, key), *preferred]
    return next((port for port in candidates if port and is_free(host, port)), None)


def _listening_range() -> tuple[int, int]:
    try:
        first_outgoing = int(_RANGE_FILE.read_text().split()[0])
    except (OSError, ValueError):
        return _LOWEST, _HIGHEST
    return _LOWEST, max(first_outgoing, _LOWEST + 1000)
