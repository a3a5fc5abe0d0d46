"""The state of a broker, as data for other processes: `kafka08 status` prints it."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Condition = Literal["running", "stopped", "killed", "died"]
"""`stopped` and `killed` mean: by us. A broker that ended otherwise `died`."""


@dataclass(frozen=True)
class BrokerState:
    """One broker.

    address    host:port for clients
    pid        its process; None unless it runs
    exit_code  of its process, as from `subprocess`; None while it runs
    since      when this state began, seconds since the epoch
    log        its log file
    """

    id: int
    address: str
    condition: Condition
    pid: int | None
    exit_code: int | None
    since: float
    log: str

    def __str__(self) -> str:
        """A whole sentence."""
        time = datetime.fromtimestamp(self.since).strftime("%Y-%m-%d %H:%M:%S")
        match self.condition:
            case "running":
                return f"Broker {self.id} runs at {self.address} as process {self.pid}."
            case "died":
                cause = _cause(self.exit_code)
                return f"Broker {self.id} died at {time} ({cause}); its log is {self.log}."
            case _:
                return f"Broker {self.id} was {self.condition} at {time}."


def _cause(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return signal.Signals(-exit_code).name
    except ValueError:  # a signal without a name
        return f"signal {-exit_code}"
