"""A run of docker-compose.yml under a project name and on ports of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import docker

from kafka08.embedded.ports import free_ports
from tests.waiting import until

ROOT = Path(__file__).parent.parent.parent
BROKERS = ("kafka1", "kafka2", "kafka3")
ALL_BROKERS = (*BROKERS, "kafka4", "kafka5")
COMMAND_S = 300
HEALTHY_S = 120


def compose_command() -> list[str]:
    """`docker compose` where there is the plugin, else docker-compose."""
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    if plugin.returncode == 0:
        return ["docker", "compose"]
    return [shutil.which("docker-compose") or "docker-compose"]


class ComposeProject:
    """ZooKeeper and the brokers as containers. What a user would type goes through `compose`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.engine = docker.from_env()
        zookeeper_port, *ports = free_ports(1 + len(ALL_BROKERS))
        self.ports = dict(zip(ALL_BROKERS, ports, strict=True))
        self.zookeeper = f"127.0.0.1:{zookeeper_port}"
        self.command = compose_command()
        self.environ = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COMPOSE_PROJECT_NAME": name,
            "COMPOSE_FILE": str(ROOT / "docker-compose.yml"),
            "ZOOKEEPER_PORT": str(zookeeper_port),
            **{f"{broker.upper()}_PORT": str(port) for broker, port in self.ports.items()},
            "KAFKA08_ZOOKEEPER": self.zookeeper,
            "KAFKA08_BOOTSTRAP": self.bootstrap,
        }

    @property
    def bootstrap(self) -> str:
        """How clients on this machine and in containers alike find the first three brokers."""
        return ",".join(f"{broker}.localhost:{self.ports[broker]}" for broker in BROKERS)

    def compose(self, *arguments: str) -> str:
        """Run docker-compose; its stdout."""
        return self._run([*self.command, *arguments])

    def up(self) -> None:
        self.compose("up", "-d")
        self.await_healthy()

    def down(self, *, volumes: bool) -> None:
        arguments = ["--timeout=30", "--remove-orphans", *(["--volumes"] * volumes)]
        self.compose("--profile", "five", "down", *arguments)

    def kafka08(self, *arguments: str, text: str = "") -> str:
        """Run a kafka08 command on this machine; its stdout."""
        return self._run([sys.executable, "-m", "kafka08.cli", *arguments], text)

    @contextmanager
    def background(self, output: Path, *arguments: str) -> Iterator[Path]:
        """A kafka08 command on this machine that runs for the time of the block; `output`, where
        its stdout goes."""
        command = [sys.executable, "-m", "kafka08.cli", *arguments]
        with output.open("w") as to, subprocess.Popen(command, env=self.environ, stdout=to) as it:
            try:
                yield output
            finally:
                it.terminate()

    def tools(self, *arguments: str) -> Any:
        """A container of the tools service that runs a kafka08 command, started and detached."""
        return self.engine.containers.run(
            f"kafka08:{image_tag()}",
            list(arguments),
            network=f"{self.name}_default",
            environment={
                "KAFKA08_ZOOKEEPER": "zookeeper:2181",
                "KAFKA08_BOOTSTRAP": self.bootstrap,
            },
            labels={"kafka08.test": self.name},
            detach=True,
        )

    def remove_tools(self) -> None:
        for container in self.engine.containers.list(
            all=True, filters={"label": f"kafka08.test={self.name}"}
        ):
            container.remove(force=True, v=True)

    def container(self, service: str) -> Any:
        """The container of a service, as it is now."""
        [found] = self.engine.containers.list(
            all=True,
            filters={
                "label": [
                    f"com.docker.compose.project={self.name}",
                    f"com.docker.compose.service={service}",
                ]
            },
        )
        return found

    def await_logged(self, service: str, text: str, since: datetime) -> None:
        def has_logged() -> bool:
            logged: bytes = self.container(service).logs(since=since)
            return text.encode() in logged

        until(has_logged, f"{service} says: {text}", seconds=60)

    def health(self, service: str) -> str:
        state: dict[str, Any] = self.container(service).attrs["State"]
        health: str = state.get("Health", {}).get("Status", "none")
        return health if state["Running"] else "not running"

    def await_healthy(self, *services: str) -> None:
        for service in services or BROKERS:
            self._await_healthy(service)

    def _await_healthy(self, service: str) -> None:
        until(
            lambda: self.health(service) == "healthy",
            f"{service} is healthy",
            seconds=HEALTHY_S,
        )

    def in_sync(self, topic: str) -> list[list[int]]:
        """The ISR of each partition, by `topic describe`."""
        [described] = json.loads(self.kafka08("topic", "describe", topic, "--json"))
        return [sorted(partition["isr"]) for partition in described["partitions"]]

    def _run(self, command: list[str], text: str = "") -> str:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=self.environ,
            input=text,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout


def image_tag() -> str:
    """The tag of our image: the version of the package."""
    from kafka08 import __version__

    return __version__
