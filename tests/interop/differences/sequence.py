"""A sequence of requests, and at which levels it is run.

@sequence("a name", since=Level.V0_9_0)
def _(talk: Talk) -> None:
    talk.ask(frame)

ask("a name", frame)                         # a sequence of one request

@cluster_sequence("a name")                  # with two brokers
def _(talks: Talks) -> None:
    talks[2].ask(frame)
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, Generic, NamedTuple, TypeVar

from kafka08.levels import Level
from tests.interop.differences.talk import Talk, Talks

T = TypeVar("T", Talk, Talks)
LAST: Final = max(Level)


class Stage(IntEnum):
    """What has happened to both clusters before a sequence. There is no way back."""

    BOTH_LEAD = 0
    """Brokers 1 and 2 lead the partitions that they are preferred for; 1 is the controller."""
    TWO_STOPS = 1
    """The controller may have been asked for a controlled shutdown of broker 2."""
    ONE_LEADS = 2
    """Broker 2 was killed, and its session has expired."""
    ODD_CONTROLLER = 3
    """Requests as of the present controller may have been sent by hand."""


class Sequence(NamedTuple, Generic[T]):
    """`departs`: the levels at which ours differs on purpose, as docs/compatibility.md says."""

    name: str
    script: Callable[[T], object]
    levels: tuple[Level, ...]
    departs: tuple[Level, ...]
    stage: Stage = Stage.BOTH_LEAD


SEQUENCES: Final[dict[str, Sequence[Talk]]] = {}
CLUSTER_SEQUENCES: Final[dict[str, Sequence[Talks]]] = {}


def departs(sequence: Sequence[Any], level: Level) -> bool:
    """Whether ours differs on purpose; what does at 0.10.2 does at 0.11.0, too."""
    return min(level, Level.V0_10_2) in sequence.departs


def levels_between(since: Level, until: Level) -> tuple[Level, ...]:
    return tuple(level for level in Level if since <= level <= until)


def sequence(
    name: str,
    *,
    since: Level = Level.V0_8_2,
    until: Level = LAST,
    departs: tuple[Level, ...] = (),
) -> Callable[[Callable[[Talk], object]], Callable[[Talk], object]]:
    """Declares a sequence with one broker, for the levels from `since` to `until`."""

    def declare(script: Callable[[Talk], object]) -> Callable[[Talk], object]:
        assert name not in SEQUENCES, name
        SEQUENCES[name] = Sequence(name, script, levels_between(since, until), departs)
        return script

    return declare


def ask(
    name: str,
    frame: bytes,
    *,
    since: Level = Level.V0_8_2,
    until: Level = LAST,
    departs: tuple[Level, ...] = (),
    is_silent: bool = False,
) -> None:
    """Declares a sequence of one request."""
    declare = sequence(name, since=since, until=until, departs=departs)
    declare(lambda talk: talk.ask(frame, is_silent=is_silent))


def cluster_sequence(
    name: str,
    *,
    since: Level = Level.V0_8_2,
    until: Level = LAST,
    departs: tuple[Level, ...] = (),
    stage: Stage = Stage.BOTH_LEAD,
) -> Callable[[Callable[[Talks], object]], Callable[[Talks], object]]:
    """Declares a sequence with two brokers."""

    def declare(script: Callable[[Talks], object]) -> Callable[[Talks], object]:
        assert name not in CLUSTER_SEQUENCES, name
        levels = levels_between(since, until)
        CLUSTER_SEQUENCES[name] = Sequence(name, script, levels, departs, stage)
        return script

    return declare
