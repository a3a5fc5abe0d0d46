"""A pytest plugin with which kazoo's own tests run on our ZooKeeper server instead of Apache's.

kazoo's harness starts a `ZookeeperCluster` of Java processes; this puts a cluster of one server of
ours in its place. `pytest -p tests.zk.server.kazoo_harness --pyargs kazoo.tests`
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper
from kafka08.embedded.ports import free_ports


class OneServer:
    """As kazoo.testing.common.ManagedZooKeeper."""

    def __init__(self) -> None:
        self._server: EmbeddedZooKeeper | None = None
        self.running = False
        self.client_port, self.secure_client_port = free_ports(2)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.client_port}"

    @property
    def secure_address(self) -> str:
        return f"127.0.0.1:{self.secure_client_port}"

    def run(self) -> None:
        if self._server is None:
            self._server = EmbeddedZooKeeper(port=self.client_port)
            self._server.start()
        elif not self.running:
            self._server.restart()
        self.running = True

    def stop(self) -> None:
        if self._server is not None and self.running:
            self._server.process.stop()
        self.running = False

    def destroy(self) -> None:
        if self._server is not None:
            self._server.stop()
        self._server = None
        self.running = False

    def get_logs(self, num_lines: int = 100) -> list[str]:
        return [] if self._server is None else [self._server.process.log_excerpt(num_lines)]


class OneServerCluster:
    """As kazoo.testing.common.ZookeeperCluster."""

    def __init__(self, **_: Any) -> None:
        self._servers = [OneServer()]

    def __getitem__(self, index: int) -> OneServer:
        return self._servers[index]

    def __iter__(self) -> Iterator[OneServer]:
        return iter(self._servers)

    def start(self) -> None:
        for server in self:
            server.run()

    def stop(self) -> None:
        for server in self:
            server.stop()

    def terminate(self) -> None:
        for server in self:
            server.destroy()

    def reset(self) -> None:
        self.terminate()
        self.start()

    def get_logs(self) -> list[str]:
        return [line for server in self for line in server.get_logs()]


def count_objects(kind: str) -> int:
    """As objgraph.count, which kazoo's tests of its cache use."""
    return sum(type(found).__name__ == kind for found in gc.get_objects())


# In place of the module, which imports libraries for certificates that kazoo does not bring.
common: Any = ModuleType("kazoo.testing.common")
common.ZookeeperCluster = OneServerCluster
sys.modules["kazoo.testing.common"] = common
objgraph: Any = ModuleType("objgraph")
objgraph.count = count_objects
sys.modules.setdefault("objgraph", objgraph)
os.environ.setdefault("ZOOKEEPER_VERSION", "3.9.5")
