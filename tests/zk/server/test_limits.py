from __future__ import annotations

import pytest

from kafka08.zk.server.limits import is_loopback


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *[(host, True) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")],
        *[(host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.org", "")],
    ],
)
def test_loopback_addresses_are_recognised(host: str, expected: bool) -> None:
    """A name that begins like one may be that of any machine."""
    assert expected == is_loopback(host)
