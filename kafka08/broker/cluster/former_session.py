"""FormerSession: closes the ZooKeeper session that a killed broker left behind.

The znodes of a killed broker stay until its session times out, and it can register again only after
that. So a broker writes id and password of its session to a file in its first log directory. At its
next start it takes that session over and closes it; the other brokers and the controller see the
same as after the timeout, only sooner.

A file may be a copy, and its session that of a broker that runs elsewhere. So the start proves that
the process which wrote it is gone:

1. It holds the lock that the file names: not one that a copy of the directory has.
2. The session owns /brokers/ids/<id>, under the address at which the start itself listens by now.

Without the file, or without that proof, the start waits as 0.8.2.2 does.

    <log.dirs, the first>/.zookeeper-session     JSON, readable by its owner alone
    {"version": 2, "zookeeper": "h1:2181,h2:2181/chroot", "session_id": 72058…, "password": "9f…",
     "lock": "41b6…:2049:131"}

0.8.2.2 does not know this file and ignores it.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, Final

from kafka08.errors import FileRefused, StorageError
from kafka08.log.files import exists, remove, rename, storage_errors
from kafka08.runtime import BrokerRuntime, Disk, OpenMode
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.structs import Broker
from kafka08.zk import paths
from kafka08.zk.client import ZkClient
from kafka08.zk.store import ClusterStore
from kafka08.zk.zookeeper import ConnectionState, SessionSettings

logger = logging.getLogger(__name__)

FILE_NAME: Final = ".zookeeper-session"
VERSION: Final = 2
FILE_BYTES_MAX: Final = 16 << 10
"""A connect string and some numbers; a longer file is not a session file."""
PASSWORD_BYTES: Final = 16
TIMEOUT_S: Final = 2.0
"""How long taking over the former session may take: its timeout would end it, too."""


class FormerSession:
    """The session file of one broker. Only the holder of `directory`'s lock, which has this
    `identity`, may call its methods."""

    def __init__(self, directory: Path, identity: str, disk: Disk = SYSTEM_DISK) -> None:
        self._identity = identity
        self._disk = disk
        self._path = directory / FILE_NAME
        self._temporary = directory / f"{FILE_NAME}.tmp"

    def keep(self, zk: ZkClient) -> None:
        """Write the current session of `zk` to the file, if it has one. A failure is logged: a
        broker on a full disk must register all the same."""
        session_id, password = zk.session_id, zk.session_password
        if session_id is None:
            return
        content = {
            "version": VERSION,
            "zookeeper": zk.connect,
            "session_id": session_id,
            "password": password.hex(),
            "lock": self._identity,
        }
        try:
            with storage_errors("write", self._temporary):
                # Not synced: after a power failure the session expires before this is read.
                self._disk.remove(self._temporary)
                file = self._disk.open(self._temporary, OpenMode.PRIVATE)
                file.pwrite(json.dumps(content).encode(), 0)
            rename(self._disk, self._temporary, self._path)
        except (StorageError, FileRefused) as error:
            logger.warning(
                "%s. If this broker is killed, its next start waits until the ZooKeeper session "
                "0x%x has expired",
                error,
                session_id,
            )

    def forget(self) -> None:
        """Remove the file: this process closes its session; StorageError."""
        remove(self._disk, self._path)

    def end(self, runtime: BrokerRuntime, store: ClusterStore, address: Broker) -> None:
        """Close the session in the file if it is that of a process that had this directory and this
        address, at which the caller listens, before. Switches, for at most TIMEOUT_S; logs
        failures."""
        zk = store.zk
        found = self._read(zk.connect)
        if found is None or not _is_registered(store, address, found[0]):
            return
        session_id, _ = found
        settings = SessionSettings(zk.hosts, "", zk.session_timeout_ms, runtime, found)
        successor = runtime.zookeeper(settings)
        settled = successor.event()

        def on_state(state: ConnectionState) -> None:
            # CONNECTED: we have it. LOST: it had expired before, and its znodes are gone as well.
            if state is not ConnectionState.SUSPENDED:
                settled.set()

        successor.add_state_listener(on_state)
        successor.start()
        try:
            if not settled.wait(TIMEOUT_S):
                logger.warning(
                    "Cannot close the former ZooKeeper session 0x%x within %g s; its znodes stay "
                    "until it times out",
                    session_id,
                    TIMEOUT_S,
                )
            else:
                logger.info("Closed the former ZooKeeper session 0x%x of this broker", session_id)
        finally:
            successor.close()

    def _read(self, connect: str) -> tuple[int, bytes] | None:
        """Id and password in the file; None without a file, or if it is that of another directory
        or ensemble."""
        if not exists(self._disk, self._path):
            return None
        with storage_errors("read", self._path):
            data = self._disk.open(self._path, OpenMode.READ).pread(FILE_BYTES_MAX + 1, 0)
        try:
            return self._parse(data, connect)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            logger.warning("%s is not a session file and is ignored: %s", self._path, error)
            return None

    def _parse(self, data: bytes, connect: str) -> tuple[int, bytes] | None:
        """ValueError, TypeError, KeyError for an invalid file; None for a session of another
        directory or ensemble."""
        if len(data) > FILE_BYTES_MAX:
            raise ValueError(f"it is longer than {FILE_BYTES_MAX} bytes")
        content: dict[str, Any] = json.loads(data)
        if content["version"] != VERSION:
            raise ValueError(f"its version is {content['version']!r}, not {VERSION}")
        session_id, password = content["session_id"], bytes.fromhex(content["password"])
        if type(session_id) is not int or not -(2**63) <= session_id < 2**63:
            raise ValueError(f"{session_id!r} is not a session id")
        if len(password) != PASSWORD_BYTES:
            raise ValueError(f"its password has {len(password)} bytes, not {PASSWORD_BYTES}")
        if content["lock"] != self._identity:
            logger.warning(
                "%s was written in another directory, or before this machine started again: the "
                "ZooKeeper session 0x%x, which may be that of a running broker, is left alone. If "
                "this directory is a copy, give this broker another broker.id, or stop the other "
                "broker for good",
                self._path,
                session_id,
            )
            return None
        return (session_id, password) if content["zookeeper"] == connect else None


def _is_registered(store: ClusterStore, address: Broker, session_id: int) -> bool:
    """Whether the broker's id is registered by that session, at that address."""
    found = store.registrations([address.id]).get(address.id)
    if found is None or (found.host, found.port) != (address.host, address.port):
        return False
    stat = store.zk.stat(paths.broker(address.id))
    return stat is not None and stat.ephemeral_owner == session_id
