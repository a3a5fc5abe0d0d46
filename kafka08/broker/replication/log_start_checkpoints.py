"""LogStartCheckpoints: writes where a broker's logs start, beside its event loop."""

from __future__ import annotations

from functools import partial

from kafka08.log.manager import LogManager
from kafka08.runtime import BrokerRuntime


class LogStartCheckpoints:
    """Writes the `log-start-offset-checkpoint` files of one broker."""

    def __init__(self, runtime: BrokerRuntime, log_manager: LogManager) -> None:
        self._runtime = runtime
        self._log_manager = log_manager
        self._lock = runtime.rlock()

    def write(self) -> None:
        """Write the files that lack a change so far; they are on disk on return. Switches.
        FileRefused, when the others are written."""
        # One at a time, each with the starts of its own time: an earlier one must not come last.
        with self._lock:
            starts = self._log_manager.log_starts
            outdated = starts.outdated(self._log_manager.logs.values())
            if outdated:
                self._runtime.run_native(partial(starts.write, outdated))
