"""A run as a page: a lane for each host, arrows for messages, bands for faults.

`Timeline` records the events of a run; `page` returns one self-contained HTML file.
"""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any, Final, NamedTuple

MESSAGES_MAX: Final = 20_000
"""The limit of recorded messages; the last ones of the run are kept."""
TEMPLATE: Final = Path(__file__).with_name("timeline.html")
DATA: Final = "/*DATA*/null"


class Message(NamedTuple):
    """Sent at `sent`, due at `arrives`, in seconds. A cut may delay it further."""

    sent: float
    source: str
    arrives: float
    target: str
    what: str


class Timeline:
    """Times are seconds since the run began."""

    def __init__(self) -> None:
        self.lanes: dict[str, list[list[Any]]] = {}
        """Host → [name, from, to] of its processes; to: None if the process outlived the run."""
        self.messages: deque[Message] = deque(maxlen=MESSAGES_MAX)
        self.faults: list[tuple[float, float, str]] = []
        """(from, to, text)."""
        self.notes: list[tuple[float, str]] = []
        self.repaired_at: float | None = None

    def begins(self, now: float, host: str, process: str) -> None:
        self.lanes.setdefault(host, []).append([process, now, None])

    def ends(self, now: float, host: str, process: str) -> None:
        for entry in self.lanes.get(host, ()):
            if entry[0] == process and entry[2] is None:
                entry[2] = now

    def fault(self, now: float, seconds: float, text: str) -> None:
        self.faults.append((now, now + seconds, text))

    def note(self, now: float, text: str) -> None:
        self.notes.append((now, text))

    def page(self, title: str, verdict: str | None, end: float) -> str:
        """The HTML."""
        data = {
            "title": title,
            "verdict": verdict,
            "end": end,
            "repaired": self.repaired_at,
            "lanes": [{"host": host, "processes": found} for host, found in self.lanes.items()],
            "messages": list(self.messages),
            "faults": self.faults,
            "notes": self.notes,
        }
        # "</" would end the script.
        text = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
        return TEMPLATE.read_text().replace(DATA, text)
