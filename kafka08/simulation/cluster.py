"""Brokers and clients as simulated processes on hosts of their own: start, kill, stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

from kafka08.broker.cluster.metadata_cache import MetadataCache
from kafka08.broker.controller.controller import Controller
from kafka08.broker.controller.term import Term
from kafka08.broker.groups.offset_manager import OffsetManager
from kafka08.broker.process.server import KafkaServer
from kafka08.broker.purgatory.purgatory import DelayedOperation
from kafka08.broker.replica.partition import Partition
from kafka08.broker.settings.config import BrokerConfig
from kafka08.errors import KafkaError
from kafka08.log.cleaner_plan import SLOT_BYTES, CleanerConfig
from kafka08.log.names import partition_directory
from kafka08.protocol.leader_and_isr import PartitionStateInfo
from kafka08.simulation.disk import SimDisk
from kafka08.simulation.process import START_WALL_MS, Process
from kafka08.simulation.runtime import SimBrokerRuntime, SimClientRuntime, World
from kafka08.structs import TopicPartition
from kafka08.zk.nodes import BrokerRegistration

BROKER_PORT: Final = 9092
LOG_DIRECTORY: Final = Path("/logs")
MAP_BYTES: Final = 12 * SLOT_BYTES
BUSY_S: Final = 1.0
"""The longest time for which a controller with the JVM's habits is busy with something else."""
LEFTOVER_S: Final = 5.0
"""The time after which a process that has ended its work must have closed everything."""


class IdsOnlyTerm(Term):
    """A controller with a habit of the JVM's: it compares the ids in /brokers/ids when its event
    greenlet is free. A broker that has registered again meanwhile is the same to it."""

    def brokers_changed(self) -> None:
        self._runtime.sleep(self._runtime.random.random() * BUSY_S)
        super().brokers_changed()

    def _read_registrations(self) -> dict[int, BrokerRegistration]:
        found = super()._read_registrations()
        return {number: self._registrations.get(number, found[number]) for number in found}


class IdsOnlyController(Controller):
    term_type = IdsOnlyTerm


class IdsOnlyServer(KafkaServer):
    controller_type = IdsOnlyController


class SmallMapsConfig(BrokerConfig):
    """Its cleaners have smaller maps than a broker allows: a segment of a run has few keys."""

    def cleaner_config(self) -> CleanerConfig:
        return replace(super().cleaner_config(), map_bytes=MAP_BYTES)


def host_of(broker_id: int) -> str:
    return f"broker-{broker_id}"


class Hosts:
    """Starts processes and ends them.

    seed       with a process's name, the seed of its random numbers
    uncaught   a sentence for each exception that left a task
    """

    def __init__(self, seed: str, world: World, skew: Callable[[], tuple[int, float]]) -> None:
        self.world = world
        self.seed = seed
        self.processes: list[Process] = []
        """All processes of the run, the dead ones included."""
        self.uncaught: list[str] = []
        self._skew = skew

    def process(self, name: str, host: str) -> Process:
        wall_offset_ms, monotonic_offset = self._skew()

        def on_uncaught(task: str, error: BaseException) -> None:
            self.uncaught.append(f"{name}: {type(error).__name__} left '{task}': {error}")
            self.world.network.scheduler.is_over = True

        process = Process(
            self.world.network.scheduler,
            name,
            host,
            on_uncaught,
            wall_offset_ms=wall_offset_ms,
            monotonic_offset=monotonic_offset,
        )
        process.on_death.append(lambda silently: self.disconnect(process, silently=silently))
        self.processes.append(process)
        self._show(process)
        self.world.network.switch_on(host)
        return process

    def _show(self, process: Process) -> None:
        """Show its lifetime on the timeline, if there is one."""
        scheduler = process.scheduler
        timeline = scheduler.trace.timeline
        if timeline is not None:
            timeline.begins(scheduler.now, process.host, process.name)
            process.on_death.append(
                lambda _: timeline.ends(scheduler.now, process.host, process.name)
            )

    def client(self, name: str, host: str | None = None) -> SimClientRuntime:
        """The Runtime of a new client process, on a host of its name unless another is given."""
        process = self.process(name, host or name)
        return SimClientRuntime(self.world, process, self.random_of(name))

    def random_of(self, name: str) -> Random:
        return Random(f"{self.seed}/{name}")

    def kill(self, process: Process, *, silently: bool) -> None:
        """As SIGKILL; silently: as a power failure of its host."""
        if silently:
            self.world.network.switch_off(process.host)
        process.die(silently=silently)

    def disconnect(self, process: Process, *, silently: bool) -> None:
        """Close a process's connections and listeners."""
        network = self.world.network
        for listener in [one for one in network.listeners.values() if one.process is process]:
            listener.vanish(silently=silently)
        for stream in [one for one in network.streams if one.process is process]:
            stream.vanish(silently=silently)
        for link in [one for one in self.world.zookeeper.links.values() if one.process is process]:
            link.vanish(silently=silently)

    def leftovers(self, process: Process) -> list[str]:
        """The resources that a process still holds after its work."""
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

    def discard(self) -> None:
        """Free all memory of the run."""
        for process in self.processes:
            process.discard()


class SimBroker:
    """One broker id: its disk, and its process, if it is running.

    loses_writes   whether a power failure loses unsynced writes
    host           "": the one of this id
    ids_only       whether its controller compares ids alone
    """

    def __init__(
        self,
        hosts: Hosts,
        broker_id: int,
        properties: Mapping[str, str],
        *,
        loses_writes: bool,
        host: str = "",
        ids_only: bool = False,
    ) -> None:
        self.hosts = hosts
        self.id = broker_id
        self.host = host or host_of(broker_id)
        self.process: Process | None = None
        self.server: KafkaServer | None = None
        self.starts = 0
        self.last_error = ""
        """Why a process could not start, or halted, the last time that one did."""
        self.is_stopping = False
        """Whether its process is being stopped cleanly, or was."""
        self._ends: dict[TopicPartition, int] = {}
        """The log end offsets when the last process ended."""
        self.disk = SimDisk(self, hosts.random_of(f"disk-{host or broker_id}"))
        self.disk.make_directories(LOG_DIRECTORY)
        self.disk.sync_everything()
        self.properties = properties
        """Of the next start."""
        self._loses_writes = loses_writes
        self._server_type = IdsOnlyServer if ids_only else KafkaServer

    @property
    def is_running(self) -> bool:
        return self.process is not None and not self.process.is_dead

    @property
    def trace(self) -> Callable[[str], None]:
        scheduler = self.hosts.world.network.scheduler
        return lambda text: scheduler.trace.event(scheduler.now, text)

    def start(self) -> None:
        """Start a process, which dies if the broker cannot start."""
        self.starts += 1
        self.is_stopping = False
        name = f"{self.host}.{self.starts}"
        process = self.process = self.hosts.process(name, self.host)
        process.on_death.append(self._end_of_process)

        def halted(status: int) -> None:
            self.last_error = f"{name} halts with status {status}"
            self.trace(self.last_error)

        runtime = SimBrokerRuntime(
            self.hosts.world,
            process,
            self.hosts.random_of(name),
            self.disk,
            halted,
        )
        config = SmallMapsConfig(
            {
                **self.properties,
                "broker.id": str(self.id),
                "host.name": self.host,
                "port": str(BROKER_PORT),
                "log.dirs": str(LOG_DIRECTORY),
            }
        )
        server = self.server = self._server_type(config, runtime)

        def run() -> None:
            try:
                server.startup()
            except (KafkaError, OSError) as error:
                self.last_error = f"{name} cannot start: {error}"
                self.trace(self.last_error)
                process.die()
            server.await_shutdown()

        process.spawn(run, (), "main")

    def shutdown(self, seconds: float) -> list[str]:
        """Stop it cleanly, from a task of another process. Returns problems, such as leftovers. Its
        process is dead afterwards."""
        process, server = self.process, self.server
        assert process is not None
        assert server is not None
        self.is_stopping = True
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
        caller.process.sleep(LEFTOVER_S)
        # A broker that was still starting ends itself once it has stopped.
        leftovers = [] if process.is_dead else self.hosts.leftovers(process)
        process.die()
        return leftovers

    # For checks

    def partitions(self) -> list[Partition]:
        """The partitions of the running process; [] before it has loaded its logs."""
        return list(self._part("_replica_manager") or ())

    def partition(self, tp: TopicPartition) -> Partition | None:
        manager = self._part("_replica_manager")
        return None if manager is None else manager.find(tp)

    def session_id(self) -> int | None:
        """The id of its present ZooKeeper session; None without one."""
        client = self._part("_zk")
        return None if client is None else client.session_id

    def log_end(self, tp: TopicPartition) -> int:
        """The log end offset of a partition, also while the broker is down or starts; 0 without a
        log."""
        partition = self.partition(tp)
        if partition is not None and partition.log is not None:
            return partition.log.log_end_offset
        return self._ends.get(tp, 0)

    def parked(self) -> Iterator[tuple[DelayedOperation, int]]:
        """The Fetch and Produce requests that wait, and when each is due, in ms of the process's
        monotonic clock."""
        manager = self._part("_replica_manager")
        if manager is not None:
            waiting = manager.purgatories
            for purgatory in (waiting.fetches, waiting.follower_fetches, waiting.produces):
                for queue in purgatory._queues.values():
                    yield from queue.due.items()

    def known_state(self, tp: TopicPartition) -> PartitionStateInfo | None:
        """The state of a partition as its metadata has it; None if it has none."""
        cache = self.metadata_cache()
        return None if cache is None else cache.partition_state(tp)

    def metadata_cache(self) -> MetadataCache | None:
        manager = self._part("_replica_manager")
        found: MetadataCache | None = None if manager is None else manager._metadata_cache
        return found

    def controller_epoch(self) -> int:
        """The newest controller epoch that the running process knows; 0 before it knows one."""
        manager = self._part("_replica_manager")
        epoch: int = 0 if manager is None else manager.controller_epoch
        return epoch

    def offset_manager(self) -> OffsetManager | None:
        found: OffsetManager | None = self._part("_offset_manager")
        return found

    def _part(self, name: str) -> Any:
        """A part of the running server; None before it exists."""
        return getattr(self.server, name, None) if self.is_running else None

    # The clock of its files

    def time_ms(self) -> int:
        return START_WALL_MS if self.process is None else self.process.time_ms()

    def _end_of_process(self, silently: bool) -> None:
        manager = getattr(self.server, "_replica_manager", None)
        ends = {
            partition.topic_partition: partition.log.log_end_offset
            for partition in manager or ()
            if partition.log is not None
        }
        # A process that died early has not loaded all its logs.
        self._ends = {
            tp: end
            for tp, end in {**self._ends, **ends}.items()
            if self.disk.exists(LOG_DIRECTORY / partition_directory(tp))
        }
        if silently and self._loses_writes:
            self.disk.power_fails()
        else:
            self.disk.kill()
