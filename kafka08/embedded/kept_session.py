"""KeptSession: a ZooKeeper session that stays open between its uses."""

from __future__ import annotations

import threading

from kafka08.embedded.zookeeper_process import ZooKeeperProcess
from kafka08.lifecycle import Closeable
from kafka08.zk.client import ZkClient
from kafka08.zk.session import SessionState

CONNECT_MS = 10_000


class KeptSession(Closeable):
    """A session of `server`. To open and close one for each topic that a test creates would take as
    long as all else."""

    def __init__(self, server: ZooKeeperProcess) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._zk: ZkClient | None = None

    def client(self) -> ZkClient:
        """The session; another one if it is not connected, since its client may wait a second until
        it tries again. From any thread. ZooKeeperError, at once if the server has ended."""
        with self._lock:
            zk = self._zk
            if zk is None or not self._is_usable(zk):
                self._end()
                self._server.check_alive()
                zk = ZkClient(self._server.connect_string, connection_timeout_ms=CONNECT_MS)
                zk.start()
                self._zk = zk
            return zk

    def close(self) -> None:
        """End it; the next use opens one again."""
        with self._lock:
            self._end()

    def _is_usable(self, zk: ZkClient) -> bool:
        return zk.state is SessionState.CONNECTED and zk.connect == self._server.connect_string

    def _end(self) -> None:
        zk, self._zk = self._zk, None
        if zk is not None:
            zk.close()
