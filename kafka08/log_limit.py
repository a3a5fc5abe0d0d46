"""A bound on the log lines that a peer can cause.

A peer that sends a million bad requests must not fill a disk. A line that a peer causes says which
one, by `extra=caused_by(peer)`. Of such lines, by the place in the code and the peer, the first few
of each interval are written, and one more at its end that counts the others. Other lines pass.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

LINES_MAX: Final = 5
"""Lines of one place about one peer that are written in an interval."""
KEYS_MAX: Final = 200
"""Places and peers that are told apart in an interval; the others of a place share its limit."""
CHARACTERS_MAX: Final = 2000
"""Of one such line: a peer chooses the names in it."""


def caused_by(peer: str) -> dict[str, str]:
    """For `extra` of a log call. `peer` is a host without its port, which changes with each
    connection; "" where it is not known, for all together."""
    return {"peer": peer}


@dataclass
class Repeated:
    """Lines of one place about one peer in this interval. The text is that of one that was written:
    a record would keep the whole request alive."""

    logger: str
    level: int
    text: str = ""
    written: int = 0
    left_out: int = 0


class LineLimit(logging.Filter):
    """For the handler that writes. Somebody calls `end_interval` every `interval_s` seconds."""

    def __init__(self, interval_s: float) -> None:
        super().__init__()
        self.interval_s = interval_s
        self._repeated: dict[tuple[str, int, str], Repeated] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is written."""
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
        """Say how many lines were left out, and begin to count anew."""
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
    """At most CHARACTERS_MAX of it, and how many there were."""
    if len(text) <= CHARACTERS_MAX:
        return text
    return f"{text[:CHARACTERS_MAX]}... ({len(text)} characters)"
