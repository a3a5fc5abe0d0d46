"""ClusterPlace: where a cluster is found."""

from __future__ import annotations

from typing import NamedTuple

from kafka08.client import PLAINTEXT, Security


class ClusterPlace(NamedTuple):
    """zookeeper   connect string; None: brokers alone are asked, as where there is no ZooKeeper
    bootstrap   host:port,.. of brokers of the same cluster; None: those registered in ZooKeeper
    security    of the connections to brokers
    """

    zookeeper: str | None
    bootstrap: str | None = None
    security: Security = PLAINTEXT

    def __str__(self) -> str:
        return self.zookeeper or self.bootstrap or ""

    @property
    def option(self) -> str:
        """The option of a command that names it."""
        if self.zookeeper is not None:
            return f"--zookeeper {self.zookeeper}"
        return f"--bootstrap {self.bootstrap}"

    @property
    def zookeeper_option(self) -> str:
        """The option of a command that needs ZooKeeper, with a placeholder where it is unknown."""
        return f"--zookeeper {self.zookeeper or 'HOST:PORT'}"
