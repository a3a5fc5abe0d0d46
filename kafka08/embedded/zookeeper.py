"""Apache's ZooKeeper server as a child process, ready in well under a second.

It runs `org.apache.zookeeper.server.ZooKeeperServerMain` from the jars that java.py finds: one
server, not an ensemble, for a cluster on one machine whose data is to last.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from kafka08.embedded.guard import Guard
from kafka08.embedded.java import find_java, zookeeper_classpath
from kafka08.embedded.process import ManagedProcess
from kafka08.embedded.zookeeper_process import (
    DATA,
    JOURNAL,
    MAX_SESSION_MS,
    NAME,
    TICK_MS,
    ZooKeeperProcess,
)
from kafka08.errors import ConfigError

_JVM_FLAGS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Xmx256m",
    "-Dzookeeper.jmx.log4j.disable=true",
    "-Dzookeeper.admin.enableServer=false",
    "-Dzookeeper.preAllocSize=256",
    "-Dslf4j.internal.verbosity=ERROR",  # no word about the logger that is left out on purpose
)


class ZooKeeperServer(ZooKeeperProcess):
    """As ZooKeeperProcess; ConfigError for a path that is not UTF-8.

    durable   fsync every write (None: only in a given directory). Without it, a crash of the
              machine LOSES data; a crash of the process does not
    """

    poll_seconds: ClassVar = 0.02
    keeps: ClassVar = DATA

    def __init__(
        self,
        data_dir: Path | str | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        *,
        preferred_port: int = 0,
        durable: bool | None = None,
        guard: Guard | None = None,
    ) -> None:
        super().__init__(data_dir, port, host, preferred_port=preferred_port, guard=guard)
        self._durable = not self._temporary if durable is None else durable

    def _make_process(self, attempt: int, log: Path, guard: Guard) -> ManagedProcess:
        # The first attempt logs nothing and is fast; a later one logs why it fails.
        classpath = zookeeper_classpath(logging=attempt > 0)
        command = [
            str(find_java()),
            *_JVM_FLAGS,
            f"-Dzookeeper.forceSync={'yes' if self._durable else 'no'}",
            "-cp",
            ":".join(map(str, classpath)),
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            str(self._config),
        ]
        # In UTF-8 Java decodes paths.
        environ = {**os.environ, "LC_ALL": "C.UTF-8"}
        return ManagedProcess(NAME, command, log=log, guard=guard, environ=environ)

    def _config_text(self) -> str:
        return super()._config_text() + (
            f"tickTime={TICK_MS}\n"
            f"maxSessionTimeout={MAX_SESSION_MS}\n"
            "maxClientCnxns=0\n"
            "4lw.commands.whitelist=ruok,srvr,conf,stat,mntr,cons,dump,wchs\n"
        )

    @property
    def _served_directory(self) -> Path:
        return self._directory / DATA

    def _check_directory(self) -> None:
        if (self._directory / JOURNAL).exists():
            raise ConfigError(
                f"{self._directory} has the data of an embedded ZooKeeper, which Apache's cannot "
                'read. Use the embedded one (EmbeddedCluster: zookeeper="embedded"; `kafka08 '
                "up`: --zookeeper embedded), or another directory"
            )
        try:
            str(self._directory).encode()
        except UnicodeEncodeError as error:
            raise ConfigError(
                f"the path of the directory {str(self._directory)!r} is not UTF-8, which ZooKeeper "
                "needs. Use another directory"
            ) from error
