"""The directory in which other commands find a cluster: its process, its addresses, its brokers.

At most one process runs a cluster in a directory. It holds an exclusive lock on the file `lock`,
which the system releases when the process ends, and writes `cluster.json`. Other processes briefly
take a shared lock: if they get it, no cluster runs and `cluster.json` is stale. Files of another
user are not believed. For `kafka08 up`, `status` and `down`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Final

from kafka08.embedded.broker_state import BrokerState
from kafka08.embedded.directories import make_directory
from kafka08.embedded.identity import ProcessIdentity
from kafka08.embedded.own_files import check_owner, lock_holders, open_own
from kafka08.errors import ConfigError, KafkaError

STOP_S = 90.0
CLAIM_S = 10.0
STATE_S = 5.0
_POLL_S = 0.05
_ADDRESSES: Final = re.compile(r"[\w.:,%\[\]/-]*", re.ASCII)
"""Addresses of servers, for a shell line: `status --env` is evaluated."""


@dataclass(frozen=True)
class ClusterState:
    """The cluster in a directory. `zookeeper` and `bootstrap` are "" while it starts.

    pid, started   the process that runs the cluster (identity.py)
    brokers        the state of each, by id; empty while it starts
    control        the address of the control server for other programs; "" without one
    """

    pid: int
    started: str
    directory: str
    zookeeper: str = ""
    bootstrap: str = ""
    brokers: tuple[BrokerState, ...] = ()
    control: str = ""

    @property
    def is_ready(self) -> bool:
        return bool(self.bootstrap)

    @property
    def owner(self) -> ProcessIdentity:
        return ProcessIdentity(self.pid, self.started)

    @classmethod
    def from_json(cls, text: str) -> ClusterState:
        """ValueError, KeyError or TypeError for text that `ClusterDirectory` cannot have
        written."""
        fields = json.loads(text)
        fields["brokers"] = tuple(BrokerState(**broker) for broker in fields["brokers"])
        for name in ("zookeeper", "bootstrap", "control"):
            if not _ADDRESSES.fullmatch(fields[name]):
                raise ValueError(f"{name} {fields[name]!r} is not an address")
        return cls(**fields)


class ClusterDirectory:
    """One directory, used by the process that runs a cluster there or by another."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.log = self.path / "up.log"
        self._lock = self.path / "lock"
        self._lock_file: IO[str] | None = None
        self._state = self.path / "cluster.json"

    def claim(self) -> bool:
        """Claim the directory for this process, until it ends or calls `release`. False if another
        process has claimed it. Removes the state of a process that was killed."""
        make_directory(self.path)
        check_owner(self.path)
        lock_file = open_own(self._lock, os.O_WRONLY | os.O_CREAT)
        deadline = time.monotonic() + CLAIM_S
        try:
            while True:
                if not _try_lock(lock_file, fcntl.LOCK_SH):
                    lock_file.close()
                    return False
                # No process can claim it while we hold the shared lock. Readers must not find the
                # old state together with the new owner's lock.
                self._state.unlink(missing_ok=True)
                if _try_lock(lock_file, fcntl.LOCK_EX):
                    break
                # Another process reads at this moment. The failed attempt released the shared lock.
                if time.monotonic() > deadline:
                    raise KafkaError(
                        f"cannot lock {self._lock}: other processes read it all the time. Try again"
                    )
                time.sleep(_POLL_S)
        except BaseException:
            lock_file.close()
            raise
        self._lock_file = lock_file
        self.announce()
        return True

    def announce(
        self,
        zookeeper: str = "",
        bootstrap: str = "",
        brokers: tuple[BrokerState, ...] = (),
        control: str = "",
    ) -> ClusterState:
        """Publish the addresses and the brokers' states to other processes. Claim the directory
        first."""
        assert self._lock_file is not None, "only the owner of a directory writes its state"
        owner = ProcessIdentity.of_this_process()
        state = ClusterState(*owner, str(self.path), zookeeper, bootstrap, brokers, control)
        self._write(state)
        return state

    def _write(self, state: ClusterState) -> None:
        # Readers see the old text or the new one, never a part.
        part = self._state.with_suffix(".part")
        with open_own(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
            file.write(json.dumps(asdict(state)) + "\n")
        part.replace(self._state)

    def release(self) -> None:
        """The cluster has ended. A second call does nothing."""
        if self._lock_file is not None:
            self._state.unlink(missing_ok=True)
            self._lock_file.close()
            self._lock_file = None

    def running(self) -> ClusterState | None:
        """The cluster that runs or starts here; None if there is none. KafkaError for an unreadable
        `cluster.json`, and for a directory or file of another user."""
        check_owner(self.path)
        deadline = time.monotonic() + STATE_S
        while self._is_taken():
            try:
                with open_own(self._state) as state:
                    return ClusterState.from_json(state.read())
            except FileNotFoundError:
                # Between claim and first state, or between the removal of the state and the end.
                if time.monotonic() > deadline:
                    raise KafkaError(
                        f"{self._state} is missing, but a process holds {self._lock}"
                    ) from None
                time.sleep(_POLL_S / 10)
            except (ValueError, KeyError, TypeError) as error:
                raise KafkaError(
                    f"{self._state} cannot be read ({error!r}): another version of kafka08 runs "
                    f"the cluster. Stop it with that version, or with SIGTERM to the process that "
                    f"holds {self._lock}{self._owner_claimed()}"
                ) from error
        return None

    def _owner_claimed(self) -> str:
        """The process named in a state of another version, for the end of a sentence."""
        try:
            pid = json.loads(self._state.read_text())["pid"]
        except (OSError, ValueError, KeyError, TypeError):
            return ""
        return f": {pid}" if isinstance(pid, int) else ""

    def open_log(self) -> IO[str]:
        """`log`, emptied, for the output of the process that runs the cluster. Another `up` on the
        directory may write to it as well."""
        check_owner(self.path)
        return open_own(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)

    def last_error(self) -> str | None:
        """The last line of `log` with an error and, after it, the last line of the file, which
        names the cause in an excerpt. None without an error, as after a clean stop."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return None
        errors = [number for number, line in enumerate(lines) if line.startswith("Error")]
        if not errors:
            return None
        excerpt = lines[errors[-1] + 1 :]
        return "\n".join([lines[errors[-1]].rstrip(":"), *excerpt[-1:]])

    def broker_count(self) -> int:
        """The number of brokers that have data here; 0 if no cluster has run here."""
        return sum(1 for path in self.path.glob("broker-*") if path.name[7:].isdecimal())

    def stop(self, timeout: float = STOP_S) -> ClusterState | None:
        """Stop the cluster here and wait for its end; None if there is none. KafkaError if it still
        runs after `timeout` seconds, or belongs to another machine or user."""
        found = self.running()
        if found is None:
            return None
        holders = lock_holders(self._lock)
        is_holder = holders is None or found.pid in holders
        sent = is_holder and found.owner.send(signal.SIGTERM)
        deadline = time.monotonic() + timeout
        while (taken := self._is_taken()) or found.owner.is_alive:
            if taken and not sent:
                raise KafkaError(
                    f"a process holds {self._lock}, but {self._state} names process {found.pid}, "
                    "which is another one. Stop the cluster where it was started: in a container?"
                )
            if time.monotonic() > deadline:
                raise KafkaError(
                    f"process {found.pid} did not stop in {timeout:.0f} s; see {self.log}"
                )
            time.sleep(_POLL_S)
        return found

    def _is_taken(self) -> bool:
        """Whether a process runs a cluster here. Any number of processes may call it at once."""
        try:
            with open_own(self._lock) as lock_file:
                return not _try_lock(lock_file, fcntl.LOCK_SH)
        except FileNotFoundError:
            return False


def default_directory() -> Path:
    """The directory of a detached cluster without --data-dir, below the user's state directory.
    ConfigError if the user has none."""
    return _state_home() / "cluster"


def remember_foreground(path: Path) -> None:
    """Note the directory of a cluster that runs in the foreground, for commands without --data-dir.
    Does nothing if the user's state directory cannot be written."""
    with suppress(OSError, ConfigError):
        note = _foreground_note()
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"{path}\n")


def forget_foreground(path: Path) -> None:
    """Remove the note of that cluster: its directory's name is free for others now."""
    with suppress(OSError, ConfigError):
        note = _foreground_note()
        if note.read_text().rstrip("\n") == str(path):
            note.unlink()


def find_directory() -> ClusterDirectory:
    """The directory for a command without --data-dir: the default one, or that of the cluster
    started last in the foreground if only that one has a running cluster."""
    default = ClusterDirectory(default_directory())
    # A cluster that was killed leaves its note, and someone else may have made the directory again.
    with suppress(OSError, KafkaError):
        foreground = ClusterDirectory(Path(_foreground_note().read_text().rstrip("\n")))
        if default.running() is None and foreground.running() is not None:
            return foreground
    return default


def _foreground_note() -> Path:
    return _state_home() / "foreground"


def _state_home() -> Path:
    try:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError as error:  # no HOME, and no entry for the user
        raise ConfigError("this user has no home directory: give --data-dir") from error
    return Path(state) / "kafka08"


def _try_lock(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
