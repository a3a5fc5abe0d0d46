"""The faults of a run, one after the other, each with a repair after its duration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Final

from kafka08.protocol import leader_and_isr, stop_replica, update_metadata
from kafka08.simulation.cluster import Hosts, SimBroker
from kafka08.simulation.members import SimMember
from kafka08.simulation.mirror_load import SimMirror
from kafka08.simulation.network import LateRequests
from kafka08.simulation.plan import Fault, Plan
from kafka08.simulation.process import Process
from kafka08.simulation.runtime import SimClientRuntime, World
from kafka08.simulation.strangers import leave_file
from kafka08.simulation.tools import Tools
from kafka08.simulation.transaction_load import SimTransactional
from kafka08.simulation.twins import Twins
from kafka08.simulation.zookeeper import HOST as ZOOKEEPER_HOST
from kafka08.simulation.zookeeper import AtNextWrite, SimLink, WriteFault
from kafka08.simulation.zookeeper_checks import writes_state
from kafka08.zk import nodes, paths

CLOCK_STEP_MS: Final = 60_000
STOP_S: Final = 60.0
FINAL_NATIVE_S: Final = 0.05
AT_FIRST_S: Final = 1.0
"""The longest time from the first late request until its sender ends."""
WRITES_MAX: Final = 3
"""The number of a controller's writes in which a move of partitions is interrupted."""
SESSION_S: Final = 8.0
"""Longer than a broker's session timeout."""
BEHIND_S: Final = (3.0, 6.0, 10.0)
"""How long a follower stops: longer than the shorter lag that a plan may allow."""
PROPERTIES: Final = (
    {"message.max.bytes": "3000", "replica.fetch.max.bytes": "3000"},
    {"log.segment.bytes": "500"},
    {"log.index.size.max.bytes": "64"},
    {"log.index.interval.bytes": "0"},
    {"num.replica.fetchers": "2"},
    {"offset.metadata.max.bytes": "0"},
    {"offsets.load.buffer.size": "100"},
    {"queued.max.requests": "1"},
)
"""Settings of a broker, most of them lower than usual."""
Place = SimBroker | SimMember | SimMirror | SimTransactional
"""A process is killed there, and started again."""
CONTROLLER_APIS: Final = (leader_and_isr.API, stop_replica.API, update_metadata.API)


class Faults:
    """Injects the faults of a plan, and repairs them.

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
        self._make: dict[Fault, Callable[[], object]] = {
            Fault.KILL: self._kill,
            Fault.RESTART: self._restart,
            Fault.SUSPEND: self._suspend,
            Fault.CUT: self._cut,
            Fault.RESET: self._reset,
            Fault.SESSION: self._break_session,
            Fault.ZOOKEEPER: self._stop_zookeeper,
            Fault.CLOCK: self._step_clock,
            Fault.MOVE: partial(self._use_tool, self._tools.move_partitions),
            Fault.ELECT: partial(self._use_tool, self._tools.elect_preferred),
            Fault.MIGRATE: partial(self._use_tool, self._tools.migrate),
            Fault.TOPIC: partial(self._use_tool, self._tools.change_topic),
            Fault.EXPIRE: self._expire_session,
            Fault.ENSEMBLE: self._elect_in_ensemble,
            Fault.HALF_OPEN: self._half_open,
            Fault.DISK_FULL: self._fill_disk,
            Fault.DISK_ERROR: self._break_disk,
            Fault.DISK_SLOW: self._slow_disk,
            Fault.LATE: self._delay_requests,
            Fault.INTERRUPT: self._interrupt,
            Fault.ISR: self._spoil_isr_changes,
            Fault.OUTAGE: self._cut_off_zookeeper,
            Fault.BLACKOUT: self._black_out,
            Fault.CONFIGURE: self._configure,
            Fault.STRAY: self._leave_file,
            Fault.STRANGER: partial(self._use_tool, self._tools.leave_znode),
            Fault.DESCRIPTORS: self._use_up_descriptors,
            Fault.TWIN: self._start_twin,
        }

    def run(self, seconds: float) -> None:
        """Inject faults for so long."""
        begin = self._director.monotonic()
        for fault in self._plan.faults:
            self._sleep_until(begin + fault.at)
            self._random = self._random_of(f"fault-{fault.number}")
            self._seconds = fault.seconds
            self._make[fault.kind]()
            self._start_what_ended()
        self._sleep_until(begin + seconds)

    def _sleep_until(self, at: float) -> None:
        self._director.sleep(at - self._director.monotonic())

    def _start_what_ended(self) -> None:
        """Schedule a start of brokers that halted, as after a disk error."""
        for broker in self._brokers:
            if not broker.is_running and broker not in self._expected:
                self._start_later(broker)

    def repair(self) -> None:
        """Repair all faults. Those that wait for a write go first: the healed network brings the
        writes that it held back at once."""
        self._is_over = True
        for link in self._world.zookeeper.links.values():
            link.fault = None
        network = self._world.network
        network.heal()
        network.without_descriptors.clear()
        network.settings = self._plan.final_network
        # A fetch whose partitions are converted one after the other would outlast its timeout.
        self._world.native_seconds = min(self._world.native_seconds, FINAL_NATIVE_S)
        if not self._world.zookeeper.is_up:
            self._world.zookeeper.start()
        for broker in self._brokers:
            broker.disk.repair()
        for process in list(self._suspended):
            self._resume(process)

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

    def _places(self) -> list[Place]:
        return [*self._brokers, *self._members]

    def _kill(self) -> None:
        running = [one for one in self._places() if one.is_running and one not in self._stopping]
        if not running:
            return
        place = self._random.choice(running)
        silently = self._random.random() < self._plan.silent_share
        process = place.process
        assert process is not None

        def kill(seconds: float) -> None:
            if place.process is process:
                self._end(place, seconds, silently=silently)

        what = "loses power" if silently else "is killed"
        self._begin(process, f"{process.name} {what}", kill, [*AtNextWrite])

    def _end(self, place: Place, seconds: float, *, silently: bool) -> None:
        """Kill its process if it is running, and start one after `seconds`."""
        if place.is_running and place not in self._stopping:
            assert place.process is not None
            self._hosts.kill(place.process, silently=silently)
            self._start_later(place, seconds)

    def _end_session(self, broker: SimBroker, _seconds: float) -> None:
        """Its ZooKeeper session expires at once."""
        if (link := self._link(broker)) is not None:
            self._world.zookeeper.expire_session(link)

    def _start_later(self, place: Place, seconds: float | None = None) -> None:
        self._expected[place] = None
        self._later(lambda: self._start(place), seconds)

    def _start(self, place: Place) -> None:
        self._expected.pop(place, None)
        if not place.is_running and place not in self._stopping:
            place.start()
            assert place.process is not None
            self._say(f"{place.process.name} starts")

    def _restart(self) -> None:
        running = [one for one in self._brokers if one.is_running and one not in self._stopping]
        if not running:
            return
        broker = self._random.choice(running)
        assert broker.process is not None
        self._note(f"{broker.process.name} is stopped cleanly")
        self._stopping[broker] = None
        name = broker.process.name

        def stop() -> None:
            problems = broker.shutdown(STOP_S)
            self._say(f"{name} has stopped" + (f", but: {', '.join(problems)}" if problems else ""))
            del self._stopping[broker]
            self._start_later(broker)

        self._director.spawn(stop, name="restart")

    def _suspend(self) -> None:
        process = self._draw_process()
        if process is None:
            return

        suspend = partial(self._stop_process, process)
        self._begin(process, f"{process.name} is suspended", suspend, [AtNextWrite.AFTER])

    def _stop_process(self, process: Process, seconds: float) -> None:
        if not (process.is_dead or process.is_stopped):
            process.stop()
            self._suspended[process] = None
            self._later(lambda: self._resume(process), seconds)

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
        controller = self._controller()
        return None if controller is None else controller.host

    def _controller(self) -> SimBroker | None:
        znode = self._world.zookeeper.server.find(paths.CONTROLLER)
        if znode is None or znode.data is None:
            return None
        broker_id = nodes.decode_controller(znode.data.decode()).broker_id
        return next((one for one in self._brokers if one.id == broker_id), None)

    def _resume(self, process: Process) -> None:
        if process in self._suspended:
            del self._suspended[process]
            if not process.is_dead:
                self._say(f"{process.name} resumes")
                process.resume()

    def _cut(self) -> None:
        """Between two hosts or around one host, in one direction or both. Around a host it may
        begin with a write to ZooKeeper: what the host then sends to the others arrives when the
        cut ends, as the requests of a former controller do."""
        hosts = self._host_names()
        servers = [ZOOKEEPER_HOST, *(broker.host for broker in self._brokers)]
        if (controller := self._controller_host()) is not None:
            servers.append(controller)
        one = self._random.choice(servers if self._random.random() < 0.5 else hosts)
        others = [name for name in (hosts if one in servers else servers) if name != one]
        end = "all others" if one in servers else "all servers"
        if self._random.random() < 0.5:
            others = [self._random.choice(others)]
            [end] = others
        ways = [(one, other) for other in others]
        back = [(other, one) for other in others]
        ways, named = self._random.choice(
            [
                (ways, f"{one} > {end}"),
                (back, f"{end} > {one}"),
                (ways + back, f"{one} <> {end}"),
            ]
        )
        what = f"cut: {named}"

        def cut(seconds: float) -> None:
            for source, target in ways:
                self._world.network.cut(source, target)
            self._later(lambda: self._mend(ways, named), seconds)

        process = next((p for p in self._hosts.processes if p.host == one and not p.is_dead), None)
        if process is None or len(others) == 1:
            self._note(what)
            cut(self._seconds)
        else:
            self._begin(process, what, cut, [AtNextWrite.AFTER])

    def _mend(self, ways: Sequence[tuple[str, str]], named: str) -> None:
        self._say(f"end of cut: {named}")
        for source, target in ways:
            self._world.network.mend(source, target)

    def _host_names(self) -> list[str]:
        alive = (one.host for one in self._hosts.processes if not one.is_dead)
        names = dict.fromkeys([ZOOKEEPER_HOST, *(one.host for one in self._brokers), *alive])
        del names[self._director.process.host]
        return list(names)

    def _reset(self) -> None:
        streams = [one for one in self._world.network.streams if one.is_connected]
        if streams:
            stream = self._random.choice(streams)
            self._note(f"reset: {stream.process.name} - {stream.peer_address[0]}")
            stream.reset()

    def _delay_requests(self) -> None:
        """Requests of one kind from the controller, or from whichever broker is the controller. At
        the first one its sender may be killed, lose power and the request, or lose its session: the
        request is then one of a former controller, or of none that goes on with it."""
        sources = [broker.host for broker in self._brokers]
        controller = self._controller_host()
        if controller is not None and self._random.random() < 0.5:
            sources = [controller]
        api = self._random.choice(CONTROLLER_APIS)
        kill, lose_power = partial(self._end, silently=False), partial(self._end, silently=True)
        end = self._random.choice([None, kill, lose_power, self._end_session])
        pause, seconds = self._random.random() * AT_FIRST_S, self._seconds

        def at_first(source: str) -> None:
            self._mark(f"{api.name} of {source} is late", 0.0)
            [sender] = [broker for broker in self._brokers if broker.host == source]
            if end is not None:
                self._later(lambda: end(sender, seconds), pause)

        network = self._world.network
        late = LateRequests(sources, api.key, at_first)
        network.late.append(late)
        self._note(f"late: {api.name} of {', '.join(sources)}")

        def arrive() -> None:
            self._say(f"late: {api.name} of {', '.join(sources)} arrive")
            network.late.remove(late)
            network.let_through()

        self._later(arrive)

    def _interrupt(self) -> None:
        """Partitions are moved, and the controller is killed after one of its next writes. It
        starts again soon, or once its session has ended and the next one has gone on."""
        controller = self._controller()
        link = None if controller is None else self._link(controller)
        if controller is None or link is None:
            return
        writes = self._random.randint(1, WRITES_MAX)
        seconds = self._random.choice([self._seconds, max(self._seconds, SESSION_S)])
        self._note(f"{link.process.name} is killed after {writes} writes to ZooKeeper")
        kill = partial(self._end, controller, seconds, silently=False)
        link.fault = WriteFault(AtNextWrite.AFTER, kill, skips=writes - 1)
        self._use_tool(self._tools.move_partitions)

    def _spoil_isr_changes(self) -> None:
        """A broker is suspended until it has left the ISRs of its partitions. The next state of a
        partition that each other broker writes, a new ISR or an election, is lost, or its reply is,
        or the broker is killed or suspended after it."""
        running = [one for one in self._brokers if self._link(one) is not None]
        if len(running) < 2:
            return
        follower = self._random.choice(running)
        assert follower.process is not None
        seconds = self._random.choice(BEHIND_S)
        self._note(f"{follower.process.name} is suspended; ISRs are changed with faults", seconds)
        for leader in running:
            link = self._link(leader)
            if leader is not follower and link is not None:
                link.fault = self._at_next_state(leader, link)
        self._stop_process(follower.process, seconds)

    def _at_next_state(self, broker: SimBroker, link: SimLink) -> WriteFault:
        seconds = self._seconds
        name = link.process.name
        lose = partial(self._world.zookeeper.break_link, link, loses_requests=True)
        when, what, happens = self._random.choice(
            [
                (AtNextWrite.BEFORE, "loses its connection to ZooKeeper and a state", lose),
                (AtNextWrite.AFTER, "loses the reply of a write of a state", lose),
                (
                    AtNextWrite.AFTER,
                    "is suspended after a write of a state",
                    partial(self._stop_process, link.process, seconds),
                ),
                (
                    AtNextWrite.AFTER,
                    "is killed after a write of a state",
                    partial(self._end, broker, seconds, silently=False),
                ),
            ]
        )

        def say_and_happen() -> None:
            self._mark(f"{name} {what}", seconds)
            happens()

        return WriteFault(when, say_and_happen, concerns=writes_state)

    def _break_session(self) -> None:
        links = self._links()
        if links:
            link = self._random.choice(links)
            loses = self._random.random() < 0.5
            at_write = self._random.random() < 0.5
            what = f"{link.process.name} loses its connection to ZooKeeper"
            if at_write:
                when = AtNextWrite.BEFORE if loses else AtNextWrite.AFTER
                self._note(f"{what} at its next write, {when.value}", 0.0)
                break_it = partial(self._world.zookeeper.break_link, link, loses_requests=True)
                link.fault = WriteFault(when, break_it)
            else:
                self._note(what + ("" if loses else ", after its requests were processed"))
                self._world.zookeeper.break_link(link, loses_requests=loses)

    def _stop_zookeeper(self) -> None:
        zookeeper = self._world.zookeeper
        if zookeeper.is_up:
            self._note("ZooKeeper stops")
            zookeeper.stop()
            self._later(self._start_zookeeper)

    def _start_zookeeper(self) -> None:
        if not self._world.zookeeper.is_up:
            self._say("ZooKeeper starts")
            self._world.zookeeper.start()

    def _cut_off_zookeeper(self) -> None:
        """ZooKeeper stops for longer than a session lasts, and no session expires; or one broker or
        all are cut off from it, in one direction or both, and their sessions expire."""
        seconds = SESSION_S + self._seconds
        if self._random.random() < 0.5:
            if self._world.zookeeper.is_up:
                self._note(f"ZooKeeper stops for {seconds:.0f} s", seconds)
                self._world.zookeeper.stop()
                self._later(self._start_zookeeper, seconds)
            return
        hosts = [broker.host for broker in self._brokers]
        if self._random.random() < 0.5:
            hosts = [self._random.choice(hosts)]
        ways = [(host, ZOOKEEPER_HOST) for host in hosts]
        if self._random.random() < 0.5:
            ways += [(ZOOKEEPER_HOST, host) for host in hosts]
        named = f"{', '.join(hosts)} {'<>' if len(ways) > len(hosts) else '>'} {ZOOKEEPER_HOST}"
        self._note(f"cut for {seconds:.0f} s: {named}", seconds)
        for source, target in ways:
            self._world.network.cut(source, target)
        self._later(lambda: self._mend(ways, named), seconds)

    def _black_out(self) -> None:
        """All brokers lose power at once, perhaps with the members and ZooKeeper. Each starts after
        a time of its own."""
        everything = self._random.random() < 0.5
        self._note(f"{'everything' if everything else 'all brokers'} without power")
        if everything and self._world.zookeeper.is_up:
            self._world.zookeeper.stop()
            self._later(self._start_zookeeper, self._random.random() * self._seconds)
        for place in self._places() if everything else self._brokers:
            self._end(place, self._random.random() * self._seconds, silently=True)

    def _elect_in_ensemble(self) -> None:
        zookeeper = self._world.zookeeper
        if zookeeper.is_up:
            self._note("the ZooKeeper ensemble loses its leader")
            zookeeper.elect(lambda count: self._random.randint(0, count))
            self._later(self._start_zookeeper)

    def _expire_session(self) -> None:
        # A member relies on its session's timeout, so an earlier end would break rules.
        members = {member.host for member in self._members}
        links = [link for link in self._links() if link.process.host not in members]
        if links:
            link = self._random.choice(links)
            self._note(f"the ZooKeeper session of {link.process.name} expires")
            self._world.zookeeper.expire_session(link)

    def _half_open(self) -> None:
        streams = [one for one in self._world.network.streams if one.is_connected]
        if streams:
            stream = self._random.choice(streams)
            self._note(f"half-open: {stream.process.name} - {stream.peer_address[0]}")
            stream.go_dark()

    def _fill_disk(self) -> None:
        broker = self._random.choice(self._brokers)
        self._note(f"the disk of {broker.host} is full")
        broker.disk.is_full = True
        self._later(broker.disk.repair)

    def _break_disk(self) -> None:
        broker = self._random.choice(self._brokers)
        self._note(f"the disk of {broker.host} fails")
        broker.disk.fails = True
        self._later(broker.disk.repair)

    def _slow_disk(self) -> None:
        broker = self._random.choice(self._brokers)
        broker.disk.slow_seconds = self._random.choice([0.005, 0.05, 0.5])
        self._note(f"the disk of {broker.host} takes up to {broker.disk.slow_seconds:g} s")
        self._later(broker.disk.repair)

    def _configure(self) -> None:
        """A limit of a topic or of one broker is changed, for good: what is stored already may
        exceed it. The broker is killed or stopped, and starts with it."""
        if self._random.random() < 0.5:
            self._use_tool(self._tools.configure_topic)
            return
        broker = self._random.choice(self._brokers)
        properties = self._random.choice(PROPERTIES)
        broker.properties = {**broker.properties, **properties}
        self._note(f"{broker.host} will start with {properties}")
        self._end(broker, self._seconds, silently=False)

    def _start_twin(self) -> None:
        """A second process of a registered broker's id. It must refuse to start, and leave the
        first one alone."""
        running = [one for one in self._brokers if self._link(one) is not None]
        if not running:
            return
        self._note(self.twins.start(self._random.choice(running), self._random))

    def _leave_file(self) -> None:
        broker = self._random.choice(self._brokers)
        self._note(f"a stranger leaves {leave_file(broker, self._random)} on {broker.host}", 0.0)

    def _use_up_descriptors(self) -> None:
        broker = self._random.choice(self._brokers)
        without = self._world.network.without_descriptors
        self._note(f"{broker.host} has no more descriptors")
        broker.disk.lacks_descriptors = True
        without[broker.host] = None

        def release() -> None:
            broker.disk.lacks_descriptors = False
            without.pop(broker.host, None)

        self._later(release)

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

    def _use_tool(self, start: Callable[[Random], str | None]) -> None:
        what = start(self._random)
        if what is not None:
            self._note(what)

    def _step_clock(self) -> None:
        process = self._random.choice([one for one in self._hosts.processes if not one.is_dead])
        step_ms = self._random.randint(-CLOCK_STEP_MS, CLOCK_STEP_MS)
        self._note(f"{process.name}'s wall clock steps by {step_ms} ms")
        process.wall_offset_ms += step_ms
