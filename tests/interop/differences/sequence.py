"""A sequence of requests, and at which levels it is run.

@sequence("a name", since=Level.V0_9_0)
def _(talk: Talk) -> None:
    talk.ask(frame)

ask("a name", frame)                         # a sequence of one request
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from kafka08.levels import NEWEST, Level
from tests.interop.differences.talk import Talk

Script = Callable[[Talk], object]


class Sequence(NamedTuple):
    """`departs`: the levels at which ours differs on purpose, as docs/compatibility.md says."""

    name: str
    script: Script
    levels: tuple[Level, ...]
    departs: tuple[Level, ...]


SEQUENCES: Final[dict[str, Sequence]] = {}


def sequence(
    name: str,
    *,
    since: Level = Level.V0_8_2,
    until: Level = NEWEST,
    departs: tuple[Level, ...] = (),
) -> Callable[[Script], Script]:
    """Declares a sequence for the levels from `since` to `until`."""

    def declare(script: Script) -> Script:
        assert name not in SEQUENCES, name
        levels = tuple(level for level in Level if since <= level <= until)
        SEQUENCES[name] = Sequence(name, script, levels, departs)
        return script

    return declare


def ask(
    name: str,
    frame: bytes,
    *,
    since: Level = Level.V0_8_2,
    until: Level = NEWEST,
    departs: tuple[Level, ...] = (),
    is_silent: bool = False,
) -> None:
    """Declares a sequence of one request."""
    declare = sequence(name, since=since, until=until, departs=departs)
    declare(lambda talk: talk.ask(frame, is_silent=is_silent))
