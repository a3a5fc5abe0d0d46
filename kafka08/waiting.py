"""A hook with which a program can show what it is waiting for (kafka08.cli shows a spinner)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Announce = Callable[[object], AbstractContextManager[object]]

_NOTHING: AbstractContextManager[object] = nullcontext()
_announce_nothing: Announce = lambda _: _NOTHING  # noqa: E731 - a hook, as those that replace it
_announce = _announce_nothing


def announce_with(announce: Announce | None) -> None:
    """Run every wait for a peer inside `announce(peer)` from now on, in any thread; `str(peer)` is
    for people. None: show no wait any more."""
    global _announce
    _announce = announce or _announce_nothing


def is_announced() -> bool:
    """Whether waits are shown, for those who wait so often that a context manager counts."""
    return _announce is not _announce_nothing


def waiting_for(who: object) -> AbstractContextManager[object]:
    """For a wait for `who`: a broker's connection, a ZooKeeper session."""
    return _announce(who)
