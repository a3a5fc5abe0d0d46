"""Faults that a test commands: each is one JSON line behind the word `ctrl` on the server's port.

    {"do": "sessions"}                        → {"sessions": [{"id": …, "timeout_ms": …}, …]}
    {"do": "expire", "session": 12}           → {}   end the session now, with its znodes
    {"do": "disconnect", "session": 12}       → {}   close its connection
    {"do": "delay", "session": 12, "ms": 50}  → {}   send its replies and events later; 0: as usual
    {"do": "lose", "session": 12, "count": 1} → {}   apply the next requests, and close the
                                                     connection instead of each reply

"session": null means all sessions, now and later. Heartbeats are not counted by "lose".
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

Verb: TypeAlias = Literal["sessions", "expire", "disconnect", "delay", "lose"]
COMMAND_BYTES_MAX: Final = 4096
DELAY_MS_MAX: Final = 600_000


class BadCommand(Exception):
    """Is none of the commands above; the message says why."""


@dataclass(frozen=True, slots=True)
class Command:
    """session: None for all. value: milliseconds or a count."""

    verb: Verb
    session: int | None = None
    value: int = 0


def read_command(line: bytes) -> Command:
    """Raises BadCommand."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadCommand(f"not JSON: {error}") from error
    if not isinstance(given, dict) or given.get("do") not in get_args(Verb):
        raise BadCommand(f'"do" must be one of {", ".join(get_args(Verb))}')
    verb: Verb = given["do"]
    session = given.get("session")
    if session is not None and type(session) is not int:
        raise BadCommand('"session" must be the number of a session, or null for all')
    value = {"delay": "ms", "lose": "count"}.get(verb)
    return Command(verb, session, 0 if value is None else _number(given, value))


def _number(given: dict[str, Any], key: str) -> int:
    value = given.get(key)
    if type(value) is not int or not 0 <= value <= DELAY_MS_MAX:
        raise BadCommand(f'"{key}" must be a number from 0 to {DELAY_MS_MAX}')
    return value


@dataclass(slots=True)
class Faults:
    """The faults that are commanded now. Session None stands for all."""

    _delays_ms: dict[int | None, int] = field(default_factory=dict)
    _losses: dict[int | None, int] = field(default_factory=dict)

    def set_delay(self, session: int | None, delay_ms: int) -> None:
        if session is None:
            self._delays_ms.clear()
        self._delays_ms[session] = delay_ms

    def set_losses(self, session: int | None, count: int) -> None:
        self._losses[session] = count

    def delay_ms(self, session: int) -> int:
        return self._delays_ms.get(session, self._delays_ms.get(None, 0))

    def take_loss(self, session: int) -> bool:
        """Whether the reply to be sent now is lost."""
        for key in (session, None):
            if self._losses.get(key, 0) > 0:
                self._losses[key] -= 1
                return True
        return False
