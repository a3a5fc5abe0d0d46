"""Injector: the state that the faults of a run share, processes that end and are started again,
repairs after a while, and faults at a later write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from kafka08.simulation.cluster import Hosts, SimBroker
from kafka08.simulation.members import SimMember
from kafka08.simulation.mirror_load import SimMirror
from kafka08.simulation.plan import Plan
from kafka08.simulation.process import Process
from kafka08.simulation.runtime import SimClientRuntime, World
from kafka08.simulation.tools import Tools
from kafka08.simulation.transaction_load import SimTransactional
from kafka08.simulation.twins import Twins
from kafka08.simulation.zookeeper import HOST as ZOOKEEPER_HOST
from kafka08.simulation.zookeeper import AtNextWrite, SimLink, WriteFault
from kafka08.zk import nodes, paths

Place = SimBroker | SimMember | SimMirror | SimTransactional
"""A process is killed there, and started again."""


class Injector:
    """The state of the faults, and what they have in common.

    random_of  the random numbers of a fault, by its name
    director   the process whose timers repair faults
    members    consumers, programs with transactions, mirrors and their target, which may be killed
    say        called with a sentence for every fault and repair
    """

    def __init__(
        self,
        plan: Plan,
        random_of: Callable[[str], Random],
        world: World,
        hosts: Hosts,
        brokers: Sequence[SimBroker],
        members: Sequence[Place],
        director: SimClientRuntime,
        say: Callable[[str], object],
    ) -> None:
        self.count = 0
        self.twins = Twins(hosts)
        self._plan = plan
        self._random_of = random_of
        self._random = random_of("fault")
        """The random numbers of the current fault."""
        self._seconds = 0.0
        """Its duration."""
        self._world = world
        self._hosts = hosts
        self._brokers = brokers
        self._members = members
        self._director = director
        self._say = say
        self._is_over = False
        self._tools = Tools(hosts, [broker.id for broker in brokers], say)
        self._stopping: dict[SimBroker, None] = {}
        """Brokers that are being stopped cleanly."""
        self._expected: dict[Place, None] = {}
        """Brokers and members with a scheduled start."""
        self._suspended: dict[Process, None] = {}

    @property
    def running_tools(self) -> Sequence[str]:
        """The processes of administration tools that have not ended."""
        return self._tools.running

    def keep_running(self) -> bool:
        """Start all brokers and members that are down. Returns whether all were running."""
        down = [one for one in self._places() if not one.is_running and one not in self._stopping]
        for place in down:
            self._start(place)
        return not down and not self._stopping

    def _sleep_until(self, at: float) -> None:
        self._director.sleep(at - self._director.monotonic())

    def _start_what_ended(self) -> None:
        """Schedule a start of brokers that halted, as after a disk error."""
        for broker in self._brokers:
            if not broker.is_running and broker not in self._expected:
                self._start_later(broker)

    def _later(self, call: Callable[[], object], seconds: float | None = None) -> None:
        """Make a call after the fault's duration, unless all faults were repaired before. `seconds`
        is the duration of a fault that began earlier, as `_begin` says."""

        def repair() -> None:
            if not self._is_over:
                call()

        self._director.process.call_later(self._seconds if seconds is None else seconds, repair)

    def _begin(
        self,
        process: Process,
        what: str,
        happens: Callable[[float], object],
        at_write: Sequence[AtNextWrite],
    ) -> None:
        """Let a fault of a process happen now, or at its next write to ZooKeeper in one of these
        ways: in the middle of what it does there in several steps. `happens` gets the fault's
        duration."""
        seconds = self._seconds
        link = next((one for one in self._links() if one.process is process), None)
        if link is None or self._random.random() < 0.5:
            self._note(what)
            happens(seconds)
            return
        when = self._random.choice(at_write)
        self._note(f"{what} at its next write to ZooKeeper, {when.value}", 0.0)

        def happens_late() -> None:
            self._mark(what, seconds)
            happens(seconds)

        link.fault = WriteFault(when, happens_late)

    def _note(self, text: str, seconds: float | None = None) -> None:
        """`seconds`: the duration of the fault, if it is not the planned one."""
        self.count += 1
        self._mark(text, self._seconds if seconds is None else seconds)

    def _mark(self, text: str, seconds: float) -> None:
        """Say what fails, and show it on the timeline."""
        self._say(text)
        scheduler = self._world.network.scheduler
        if scheduler.trace.timeline is not None:
            scheduler.trace.timeline.fault(scheduler.now, seconds, text)

    def _end(self, place: Place, seconds: float, *, silently: bool) -> None:
        """Kill its process if it is running, and start one after `seconds`."""
        if place.is_running and place not in self._stopping:
            assert place.process is not None
            self._hosts.kill(place.process, silently=silently)
            self._start_later(place, seconds)

    def _start_later(self, place: Place, seconds: float | None = None) -> None:
        self._expected[place] = None
        self._later(lambda: self._start(place), seconds)

    def _start(self, place: Place) -> None:
        self._expected.pop(place, None)
        if not place.is_running and place not in self._stopping:
            place.start()
            assert place.process is not None
            self._say(f"{place.process.name} starts")

    def _stop_process(self, process: Process, seconds: float) -> None:
        if not (process.is_dead or process.is_stopped):
            process.stop()
            self._suspended[process] = None
            self._later(lambda: self._resume(process), seconds)

    def _resume(self, process: Process) -> None:
        if process in self._suspended:
            del self._suspended[process]
            if not process.is_dead:
                self._say(f"{process.name} resumes")
                process.resume()

    def _places(self) -> list[Place]:
        return [*self._brokers, *self._members]

    def _draw_process(self) -> Process | None:
        """A running process: the controller, a broker, a member or another client, one as likely
        as the other, though there are more clients."""
        running = [
            one
            for one in self._hosts.processes
            if not (one.is_dead or one.is_stopped or one is self._director.process)
        ]
        brokers = {one.host for one in self._brokers}
        members = {one.host for one in self._members}
        roles = [
            [one for one in running if one.host == self._controller_host()],
            [one for one in running if one.host in brokers],
            [one for one in running if one.host in members],
            [one for one in running if one.host not in brokers | members],
        ]
        found = [role for role in roles if role]
        return self._random.choice(self._random.choice(found)) if found else None

    def _controller_host(self) -> str | None:
        """The host of the controller; None if there is none."""
        controller = self.controller()
        return None if controller is None else controller.host

    def controller(self) -> SimBroker | None:
        """The broker that is the controller; None if there is none."""
        znode = self._world.zookeeper.server.find(paths.CONTROLLER)
        if znode is None or znode.data is None:
            return None
        broker_id = nodes.decode_controller(znode.data.decode()).broker_id
        return next((one for one in self._brokers if one.id == broker_id), None)

    def _host_names(self) -> list[str]:
        alive = (one.host for one in self._hosts.processes if not one.is_dead)
        names = dict.fromkeys([ZOOKEEPER_HOST, *(one.host for one in self._brokers), *alive])
        del names[self._director.process.host]
        return list(names)

    def _links(self) -> list[SimLink]:
        """All connections to ZooKeeper but the director's."""
        return [
            one
            for one in self._world.zookeeper.links.values()
            if one.process is not self._director.process
        ]

    def _link(self, broker: SimBroker) -> SimLink | None:
        """The connection of a broker to ZooKeeper, if it has one."""
        return next((one for one in self._links() if one.process is broker.process), None)
