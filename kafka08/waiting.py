"""Waits for peers: a hook with which a program can show them (kafka08.cli shows a spinner), and a
deadline for all those of a piece of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from math import inf

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


_give_up_at: ContextVar[float] = ContextVar("give_up_at", default=inf)


@contextmanager
def giving_up_at(deadline: float) -> Iterator[None]:
    """Within the block no wait of a client for a broker, and no retry, goes on after `deadline`
    (monotonic seconds of the client's clock), also in calls side by side. Of nested blocks the
    earliest deadline counts.

    A limit in tries bounds no time: each try may take a socket's timeout at each of many brokers.
    Do not yield inside the block in a generator: the deadline would be its caller's, too.
    """
    token = _give_up_at.set(min(deadline, _give_up_at.get()))
    try:
        yield
    finally:
        _give_up_at.reset(token)


def give_up_at() -> float:
    """The deadline of the block that runs; infinity outside of one."""
    return _give_up_at.get()
