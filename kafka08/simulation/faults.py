"""The faults of a run, one after the other, each with a repair after its duration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Final

from kafka08.protocol import leader_and_isr, stop_replica, update_metadata
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.injector import Injector
from kafka08.simulation.members import SimMember
from kafka08.simulation.network import LateRequests
from kafka08.simulation.plan import Fault
from kafka08.simulation.strangers import leave_file
from kafka08.simulation.zookeeper import HOST as ZOOKEEPER_HOST
from kafka08.simulation.zookeeper import AtNextWrite, SimLink, WriteFault
from kafka08.simulation.zookeeper_checks import writes_state

CLOCK_STEP_MS: Final = 60_000
STOP_S: Final = 60.0
FINAL_NATIVE_S: Final = 0.05
AT_FIRST_S: Final = 1.0
"""The longest time from the first late request until its sender ends."""
WRITES_MAX: Final = 3
"""The number of a controller's writes in which a move of partitions is interrupted."""
SESSION_S: Final = 8.0
"""Longer than the session timeout of a broker or a member."""
STATES_SKIPPED: Final = (0, 0, 1)
"""A leader's first state after a follower has stopped is the ISR without it, the second often the
one with it again."""
DOMINO_S: Final = 12.0
"""The longest time between the first and the last broker that falls: the rest has other ISRs by
then."""
REFUSED_S: Final = 8.0
"""The longest refusal of connections, beside the fault's own duration."""
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
CONTROLLER_APIS: Final = (leader_and_isr.API, stop_replica.API, update_metadata.API)


class Faults(Injector):
    """Injects the faults of a plan, and repairs them."""

    def run(self, seconds: float) -> None:
        """Inject faults for so long."""
        begin = self._director.monotonic()
        for fault in self._plan.faults:
            self._sleep_until(begin + fault.at)
            self._random = self._random_of(f"fault-{fault.number}")
            self._seconds = fault.seconds
            self._call_of(fault.kind)()
            self._start_what_ended()
        self._sleep_until(begin + seconds)

    def _call_of(self, kind: Fault) -> Callable[[], object]:
        """The call that injects a fault of this kind."""
        calls: dict[Fault, Callable[[], object]] = {
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
            Fault.REFUSE: self._refuse,
            Fault.DOMINO: self._fall_in_turn,
            Fault.SLEEP: self._let_member_sleep,
            Fault.ROLL: self._lose_power_at_roll,
        }
        return calls[kind]

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

    def _lose_power_at_roll(self) -> None:
        """A broker loses power soon after it has begun a segment: the one before may be on disk in
        part."""
        running = [one for one in self._brokers if one.is_running and one not in self._stopping]
        if not running:
            return
        broker, seconds = self._random.choice(running), self._seconds
        process = broker.process
        assert process is not None
        pause = self._random.random() * self._world.native_seconds
        self._note(f"{process.name} loses power when it begins a segment", 0.0)

        def lose_power() -> None:
            if broker.process is process and not self._is_over:
                self._mark(f"{process.name} loses power", seconds)
                self._end(broker, seconds, silently=True)

        broker.disk.on_roll = lambda: self._director.process.call_later(pause, lose_power)

    def _end_session(self, broker: SimBroker, _seconds: float) -> None:
        """Its ZooKeeper session expires at once."""
        if (link := self._link(broker)) is not None:
            self._world.zookeeper.expire_session(link)

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
        controller = self.controller()
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

        skips = self._random.choice(STATES_SKIPPED)
        return WriteFault(when, say_and_happen, skips, concerns=writes_state)

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

    def _let_member_sleep(self) -> None:
        """As a laptop: others own its partitions when it wakes up."""
        awake = [
            one.process
            for one in self._members
            if isinstance(one, SimMember) and one.process is not None and one.is_running
        ]
        if awake:
            process, seconds = self._random.choice(awake), SESSION_S + self._seconds
            self._note(f"{process.name} sleeps", seconds)
            self._stop_process(process, seconds)

    def _fall_in_turn(self) -> None:
        """Brokers lose power one after the other. Each starts once the last one has fallen, after a
        time of its own: one that fell early may come before one that has all messages."""
        falls = {broker: self._random.random() * DOMINO_S for broker in self._brokers}
        self._note("brokers lose power one after the other", max(falls.values()))
        for broker, at in falls.items():
            away = max(falls.values()) - at + self._random.random() * self._seconds
            self._later(partial(self._end, broker, away, silently=True), at)

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

    def _refuse(self) -> None:
        """A broker refuses the connections of another host, one time in two of the controller: what
        that has to say to it must wait. A tool may give it something to say."""
        target = self._random.choice(self._brokers).host
        source = self._random.choice(self._host_names())
        controller = self._controller_host()
        if controller is not None and self._random.random() < 0.5:
            source = controller
        seconds = self._seconds + self._random.random() * REFUSED_S
        if source in {target, ZOOKEEPER_HOST}:
            return
        self._note(f"refused: {source} > {target}", seconds)
        network = self._world.network
        network.refuse(source, target)

        def accept() -> None:
            self._say(f"accepted: {source} > {target}")
            network.refused.pop((source, target), None)

        self._later(accept, seconds)
        if self._random.random() < 0.5:
            tools = self._tools
            starts = (tools.move_partitions, tools.elect_preferred, tools.change_topic)
            self._use_tool(self._random.choice(starts))

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

    def _use_tool(self, start: Callable[[Random], str | None]) -> None:
        what = start(self._random)
        if what is not None:
            self._note(what)

    def _step_clock(self) -> None:
        process = self._random.choice([one for one in self._hosts.processes if not one.is_dead])
        step_ms = self._random.randint(-CLOCK_STEP_MS, CLOCK_STEP_MS)
        self._note(f"{process.name}'s wall clock steps by {step_ms} ms")
        process.wall_offset_ms += step_ms
