"""Brokers and clients as simulated processes on hosts of their own, with what can befall them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final

from kafka08.broker.config import BrokerConfig
from kafka08.broker.server import KafkaServer
from kafka08.errors import KafkaError
from kafka08.log.names import LOCK_FILE
from kafka08.simulation.process import Process
from kafka08.simulation.runtime import SimBrokerRuntime, SimClientRuntime, World

BROKER_PORT: Final = 9092
LEFTOVER_SECONDS: Final = 5.0
"""How long after its end a process may still have something open."""


class Hosts:
    """Makes processes and ends them.

    seed       what each process draws from, with its name
    uncaught   a sentence for each exception that nobody caught
    """

    def __init__(self, seed: int, world: World, skew: Callable[[], tuple[int, float]]) -> None:
        self.world = world
        self.seed = seed
        self.processes: list[Process] = []
        """All that ever lived."""
        self.uncaught: list[str] = []
        self._skew = skew

    def process(self, name: str, host: str) -> Process:
        wall_offset_ms, monotonic_offset = self._skew()

        def on_uncaught(task: str, error: BaseException) -> None:
            self.uncaught.append(f"{name}: {type(error).__name__} left '{task}': {error}")

        process = Process(
            self.world.network.scheduler,
            name,
            host,
            on_uncaught,
            wall_offset_ms=wall_offset_ms,
            monotonic_offset=monotonic_offset,
        )
        process.on_death = lambda: self.disconnect(process, silently=False)
        self.processes.append(process)
        self.world.network.switch_on(host)
        return process

    def client(self, name: str, host: str | None = None) -> SimClientRuntime:
        """The Runtime of a new client process, on a host of its name unless another is given."""
        process = self.process(name, host or name)
        return SimClientRuntime(self.world, process, self.random_of(name))

    def random_of(self, name: str) -> Random:
        return Random(f"{self.seed}/{name}")

    def kill(self, process: Process, *, silently: bool) -> None:
        """As SIGKILL does; silently: as if its host's plug was drawn."""
        if silently:
            self.world.network.switch_off(process.host)
            process.on_death = lambda: self.disconnect(process, silently=True)
        process.die()

    def disconnect(self, process: Process, *, silently: bool) -> None:
        """End what a process has open on the network."""
        network = self.world.network
        for listener in [one for one in network.listeners.values() if one.process is process]:
            listener.vanish(silently=silently)
        for stream in [one for one in network.streams if one.process is process]:
            stream.vanish(silently=silently)
        for link in [one for one in self.world.zookeeper.links.values() if one.process is process]:
            link.vanish(silently=silently)

    def leftovers(self, process: Process) -> list[str]:
        """What a process that has done its work still has."""
        world = self.world
        return [
            *(f"task {task.name}" for task in process.tasks),
            *(
                f"connection to {one.peer_address[0]}"
                for one in world.network.streams
                if one.process is process
            ),
            *(
                f"listener {one.port}"
                for one in world.network.listeners.values()
                if one.process is process
            ),
            *(
                "ZooKeeper session"
                for one in world.zookeeper.links.values()
                if one.process is process
            ),
        ]

    def bury(self) -> None:
        """After the run: let nothing of it stay in memory."""
        for process in self.processes:
            process.bury()


class SimBroker:
    """One broker id: its log directory, and the process that runs it, if one does.

    directory   each process has a copy of the last one's log directory below it, so that what is
                left of a dead process cannot touch the files of the next
    """

    def __init__(
        self, hosts: Hosts, broker_id: int, directory: Path, properties: Mapping[str, str]
    ) -> None:
        self.hosts = hosts
        self.id = broker_id
        self.host = f"broker-{broker_id}"
        self.process: Process | None = None
        self.server: KafkaServer | None = None
        self.starts = 0
        self._directory = directory
        self._properties = properties

    @property
    def is_running(self) -> bool:
        return self.process is not None and not self.process.is_dead

    @property
    def trace(self) -> Callable[[str], None]:
        scheduler = self.hosts.world.network.scheduler
        return lambda text: scheduler.trace.event(scheduler.now, text)

    def start(self) -> None:
        """Begin to start; a process that cannot dies."""
        self.starts += 1
        name = f"{self.host}.{self.starts}"
        process = self.process = self.hosts.process(name, self.host)
        runtime = SimBrokerRuntime(
            self.hosts.world,
            process,
            self.hosts.random_of(name),
            lambda status: self.trace(f"{name} halts with status {status}"),
        )
        config = BrokerConfig(
            {
                **self._properties,
                "broker.id": str(self.id),
                "host.name": self.host,
                "port": str(BROKER_PORT),
                "log.dirs": str(self._next_directory()),
            }
        )
        server = self.server = KafkaServer(config, runtime)

        def run() -> None:
            try:
                server.startup()
            except (KafkaError, OSError) as error:
                self.trace(f"{name} cannot start: {error}")
                process.die()
            server.await_shutdown()

        process.spawn(run, (), "main")

    def shutdown(self, seconds: float) -> list[str]:
        """Stop it cleanly, from another process's task: what is wrong with it then, such as what it
        has left over. Its process is dead afterwards."""
        process, server = self.process, self.server
        assert process is not None
        assert server is not None
        task = process.spawn(server.shutdown, (), "shutdown")
        scheduler = process.scheduler
        caller = scheduler.current
        assert caller is not None
        end = scheduler.now + seconds
        while not task.is_ended and not process.is_dead and scheduler.now < end:
            caller.process.sleep(0.05)
        if not task.is_ended:
            process.die()
            return [f"it did not stop in {seconds:g} s"]
        caller.process.sleep(LEFTOVER_SECONDS)
        leftovers = self.hosts.leftovers(process)
        process.die()
        return leftovers

    @property
    def directory(self) -> Path:
        """The log directory of the newest process."""
        return self._directory / str(self.starts)

    def _next_directory(self) -> Path:
        following = self._directory / str(self.starts)
        last = self._directory / str(self.starts - 1)
        if last.exists():
            shutil.copytree(last, following, ignore=shutil.ignore_patterns(LOCK_FILE))
        else:
            following.mkdir(parents=True)
        return following
