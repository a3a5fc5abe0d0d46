"""Addresses as text: `host:port`."""

from __future__ import annotations

import pytest

from kafka08.structs import host_port, split_host_port


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("h:1", "h", "1"),
        ("[::1]:9092", "::1", "9092"),
        ("h", "h", None),
        ("[::1]", "::1", None),
        ("h:", "h", ""),
        (":1", "", "1"),
        ("::1:9092", "", ":1:9092"),
        ("fe80::1", "fe80", ":1"),
        ("[::1", "", None),
        ("[::1]9092", "", None),
        ("", "", None),
    ],
)
def test_an_address_is_split(text: str, host: str, port: str | None) -> None:
    """Into what is before its port, without the brackets of IPv6, and the port. An IPv6 address
    without brackets has no host, or a colon in its port."""
    assert (host, port) == split_host_port(text)


@pytest.mark.parametrize("address", [("h", 1), ("::1", 9092)])
def test_an_address_is_split_as_it_was_made(address: tuple[str, int]) -> None:
    """host_port and split_host_port are each other's inverse."""
    host, port = split_host_port(host_port(*address))
    assert address == (host, int(port or 0))
