"""A standalone Spark on 127.0.0.1: a master and two workers of one core each, as processes."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark

from kafka08.embedded.guard import Guard
from kafka08.embedded.java import find_java
from kafka08.embedded.ports import free_ports
from kafka08.embedded.process import ManagedProcess
from kafka08.embedded.spark_java import make_java_home
from kafka08.lifecycle import Startable
from tests.waiting import until

WORKERS = ("first", "second")
DRIVER = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Settings of a driver on this machine."""


class StandaloneSpark(Startable):
    """`url` is the master's. An executor runs in `work`/NAME/APPLICATION/NUMBER, one on each
    worker."""

    def __init__(self, directory: Path) -> None:
        [port] = free_ports(1)
        self.url = f"spark://127.0.0.1:{port}"
        self.work = directory / "work"
        self._log = directory / "spark.log"
        self._guard = Guard()
        environ = {
            **os.environ,
            "JAVA_HOME": str(make_java_home(directory / "java", find_java(), self._log)),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")

        def daemon(name: str, *arguments: str) -> ManagedProcess:
            command = [spark_class, *arguments, "--host", "127.0.0.1", "--webui-port", "0"]
            out = directory / f"{name}.out"
            return ManagedProcess(name, command, log=out, guard=self._guard, environ=environ)

        package = "org.apache.spark.deploy"
        master = daemon("master", f"{package}.master.Master", "--port", str(port))
        self._processes = [master] + [
            daemon(
                name,
                f"{package}.worker.Worker",
                *(self.url, "--cores", "1", "--memory", "1g"),
                *("--work-dir", str(self.work / name)),
            )
            for name in WORKERS
        ]

    def start(self) -> None:
        """Returns when the master knows both workers. (A worker that is first asks again.)"""
        for process in self._processes:
            process.start()
        until(
            lambda: self._said().count("Successfully registered with master") == len(WORKERS),
            "both workers are registered",
            explain=self._said,
        )

    def stop(self) -> None:
        for process in self._processes:
            process.begin_stop()
        for process in self._processes:
            process.finish_stop()
        self._guard.close()

    @property
    def pids(self) -> list[int]:
        """Of the running daemons; an executor is a child of its worker."""
        return [process.pid for process in self._processes if process.pid is not None]

    def executors(self) -> list[set[str]]:
        """Of each application so far, oldest first: the workers that ran an executor of it."""
        found: dict[str, set[str]] = {}
        for path in self.work.glob("*/app-*/*"):
            found.setdefault(path.parent.name, set()).add(path.parent.parent.name)
        return [found[name] for name in sorted(found)]

    def _said(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""
