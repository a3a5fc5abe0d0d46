"""A cluster that stays: the directory it lives in, and who runs it there.

At most one process runs a cluster in a directory: it holds a lock on the file `lock`, which ends
with it however it ends, and says in `cluster.json` where the cluster answers. Who cannot get the
lock reads the file instead. For `kafka08 up`, `status` and `down`.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.errors import KafkaError

STOP_SECONDS = 90.0
CLAIM_SECONDS = 0.5
"""Whoever asks whether a cluster runs holds the lock for a moment; its owner holds it for good."""
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class StandingCluster:
    """What runs in a directory. `zookeeper` and `bootstrap` are "" while it is starting."""

    pid: int
    directory: str
    zookeeper: str = ""
    bootstrap: str = ""

    @property
    def is_ready(self) -> bool:
        return bool(self.bootstrap)


class ClusterDirectory:
    """One directory, seen by the process that runs a cluster there or by another."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.log = self.path / "up.log"
        self._lock_file: IO[str] | None = None
        self._state = self.path / "cluster.json"

    def claim(self) -> bool:
        """Take the directory for this process, until it ends or `release`. False: it is taken."""
        self.path.mkdir(parents=True, exist_ok=True)
        lock_file = (self.path / "lock").open("a")
        deadline = time.monotonic() + CLAIM_SECONDS
        while not _lock(lock_file):
            if time.monotonic() > deadline:
                lock_file.close()
                return False
            time.sleep(_POLL_SECONDS)
        self._lock_file = lock_file
        self._write(StandingCluster(os.getpid(), str(self.path)))
        return True

    def announce(self, cluster: EmbeddedCluster) -> StandingCluster:
        """Say to all who ask where the cluster answers. The directory must be ours."""
        assert self._lock_file is not None, "only the owner of a directory speaks for it"
        standing = StandingCluster(
            os.getpid(), str(self.path), cluster.zookeeper.connect_string, cluster.bootstrap
        )
        self._write(standing)
        return standing

    def release(self) -> None:
        """The cluster has ended. Harmless twice."""
        if self._lock_file is not None:
            self._state.unlink(missing_ok=True)
            self._lock_file.close()
            self._lock_file = None

    def running(self) -> StandingCluster | None:
        """The cluster that runs or starts here; None if there is none."""
        try:
            with (self.path / "lock").open("a") as lock_file:
                if _lock(lock_file):
                    return None
            return StandingCluster(**json.loads(self._state.read_text()))
        except FileNotFoundError:
            return None

    def last_error(self) -> str | None:
        """The last line of `log` that tells an error; None without one, as after a clean stop."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return None
        return next((line for line in reversed(lines) if line.startswith("Error")), None)

    def stop(self, timeout: float = STOP_SECONDS) -> StandingCluster | None:
        """Stop what runs here and wait until it has ended; None if nothing did. KafkaError if it
        still runs after `timeout` seconds."""
        found = self.running()
        if found is None:
            return None
        os.kill(found.pid, signal.SIGTERM)
        deadline = time.monotonic() + timeout
        while self.running() is not None:
            if time.monotonic() > deadline:
                raise KafkaError(
                    f"process {found.pid} did not stop in {timeout:.0f} s; see {self.log}"
                )
            time.sleep(_POLL_SECONDS)
        return found

    def _write(self, standing: StandingCluster) -> None:
        # Readers see the old text or the new one, never a part.
        part = self._state.with_suffix(".part")
        part.write_text(json.dumps(asdict(standing)) + "\n")
        part.replace(self._state)


def default_directory() -> Path:
    """Where a cluster lives that was given no directory: below the user's state directory."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "kafka08" / "cluster"


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
