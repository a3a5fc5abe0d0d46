"""A hook for programs to show that they wait for ZooKeeper (kafka08.cli shows a spinner)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Announce = Callable[[str], AbstractContextManager[object]]

_announce: Announce = lambda _: nullcontext()  # noqa: E731 - replaced as a whole


def announce_with(announce: Announce) -> None:
    """From now on every wait for a connection runs inside `announce(hosts)`."""
    global _announce
    _announce = announce


def waiting_for(hosts: str) -> AbstractContextManager[object]:
    """Around a wait for a connection to ZooKeeper at `hosts`."""
    return _announce(hosts)
