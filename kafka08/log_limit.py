"""Limits the log lines that a peer can cause.

A peer that sends a million bad requests must not fill a disk. Log calls for lines that a peer
causes pass the peer as `extra=caused_by(peer)`. For each place in the code and peer, the first few
of these lines in an interval are written, and one more at its end that counts the others. Other
lines pass."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

LINES_MAX: Final = 5
"""The number of lines written per place and peer in an interval."""
KEYS_MAX: Final = 200
"""The number of distinct places and peers in an interval; further peers of a place share a
limit."""
CHARACTERS_MAX: Final = 2000
"""The longest such line: a peer chooses the names in it."""


def caused_by(peer: str) -> dict[str, str]:
    """`extra` for a log call. `peer` is a host without its port, which changes with each
    connection; "" if it is unknown, for all such peers together."""
    return {"peer": peer}


@dataclass
class Repeated:
    """The lines of one place and peer in this interval. It keeps only the text of a written one: a
    record would keep the whole request alive."""

    logger: str
    level: int
    text: str = ""
    written: int = 0
    left_out: int = 0


class LineLimit(logging.Filter):
    """A filter for the handler that writes. Call `end_interval` every `interval_s` seconds."""

    def __init__(self, interval_s: float) -> None:
        super().__init__()
        self.interval_s = interval_s
        self._repeated: dict[tuple[str, int, str], Repeated] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write it."""
        peer = getattr(record, "peer", None)
        if peer is None:
            return True
        repeated = self._entry(record, peer)
        if repeated.written >= LINES_MAX:
            repeated.left_out += 1
            return False
        repeated.written += 1
        repeated.text = cut_short(record.getMessage())
        record.msg, record.args = repeated.text, ()
        return True

    def end_interval(self) -> None:
        """Log the number of dropped lines, and reset the counts."""
        repeated, self._repeated = self._repeated, {}
        for one in repeated.values():
            if one.left_out:
                logging.getLogger(one.logger).log(
                    one.level,
                    "%d more lines like this one in %g s: %s",
                    one.left_out,
                    self.interval_s,
                    one.text,
                )

    def _entry(self, record: logging.LogRecord, peer: str) -> Repeated:
        key = (record.pathname, record.lineno, peer)
        if key not in self._repeated and len(self._repeated) >= KEYS_MAX:
            key = (record.pathname, record.lineno, "")
        return self._repeated.setdefault(key, Repeated(record.name, record.levelno))


def cut_short(text: str) -> str:
    """Its first CHARACTERS_MAX characters, with the total number."""
    if len(text) <= CHARACTERS_MAX:
        return text
    return f"{text[:CHARACTERS_MAX]}... ({len(text)} characters)"
