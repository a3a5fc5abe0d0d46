"""Lists of broker addresses as users write them: `host:port,host:port`."""

from __future__ import annotations

from kafka08.config import check_host, parse_port
from kafka08.errors import ConfigError
from kafka08.structs import split_host_port


def parse_bootstrap(text: str, key: str = "bootstrap") -> list[tuple[str, int]]:
    """The (host, port) pairs of a comma list, without repetitions, in its order.

    An IPv6 address is in brackets: `[::1]:9092`. Blanks around a part are ignored. ConfigError
    with `key` and the part for an empty list, a missing port or one outside 1 to 65535.
    """
    addresses: dict[tuple[str, int], None] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        addresses[_parse_address(part, key)] = None
    if not addresses:
        raise ConfigError(f"{key}: {text!r} has no broker; the form is host:port,host:port")
    return list(addresses)


def _parse_address(part: str, key: str) -> tuple[str, int]:
    protocol, named, address = part.partition("://")
    if named:
        raise ConfigError(
            f"{key}: {part!r}: leave out {protocol}://, as in {address}; connections are PLAINTEXT"
        )
    if len(part.replace(";", " ").split()) > 1:
        raise ConfigError(
            f"{key}: {part!r}: separate addresses by commas, as in host:port,host:port"
        )
    host, port = split_host_port(part)
    if port is not None and ":" in port:
        raise ConfigError(f"{key}: {part!r}: put an IPv6 address in brackets, as [::1]:9092")
    if port is None or not host:
        raise ConfigError(f"{key}: {part!r} is not of the form host:port")
    check_host(host, key)
    return host, parse_port(port, f"{key}: {part!r}")
