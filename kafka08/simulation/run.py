"""One run: a cluster with clients, a phase with faults, and a phase in which all must recover."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from kafka08.admin.client import AdminClient
from kafka08.errors import KafkaError
from kafka08.profile import SAFE
from kafka08.simulation.calm_checks import CALM_S, CalmChecks
from kafka08.simulation.cluster import BROKER_PORT, LEFTOVER_S, Hosts, SimBroker
from kafka08.simulation.controller_check import ControllerCheck
from kafka08.simulation.expiring_offsets import ExpiringOffsets
from kafka08.simulation.faults import Faults
from kafka08.simulation.final_group import FinalGroup
from kafka08.simulation.final_logs import differing_logs, log_ends
from kafka08.simulation.group_history import GroupHistory
from kafka08.simulation.kept_topic import PROPERTIES, KeptLoad
from kafka08.simulation.late_topic import LateTopic
from kafka08.simulation.log_checks import LogChecks
from kafka08.simulation.members import SimMember
from kafka08.simulation.mirror_load import GROUP as MIRROR_GROUP
from kafka08.simulation.mirror_load import TARGET_HOST, MirrorLoad
from kafka08.simulation.move_checks import MoveChecks
from kafka08.simulation.network import Network
from kafka08.simulation.parked_checks import ParkedChecks
from kafka08.simulation.plan import (
    KILLED,
    RECORDS_LEVEL,
    RESTARTED,
    SUSPENDED,
    Fault,
    Plan,
    draw_plan,
)
from kafka08.simulation.process import Process
from kafka08.simulation.recovery_conditions import out_of_sync, unregistered, without_leader
from kafka08.simulation.runtime import SimClientRuntime, World
from kafka08.simulation.scheduler import Scheduler
from kafka08.simulation.timeline import Timeline
from kafka08.simulation.topic_checks import unsettled
from kafka08.simulation.trace import Trace, folded
from kafka08.simulation.transaction_load import TransactionLoad, properties_of
from kafka08.simulation.watched_logs import watched_logs
from kafka08.simulation.workload import REFUSED_BYTES, TOPIC, Reader, Target, read_partition
from kafka08.simulation.writers import Observed, async_producer, new_producer, old_producer
from kafka08.simulation.zookeeper import ADDRESS, SimZooKeeper
from kafka08.simulation.zookeeper_checks import ZooKeeperChecks
from kafka08.simulation.zookeeper_group_history import GROUP, ZooKeeperGroupHistory
from kafka08.structs import LeaderAndIsr, TopicPartition
from kafka08.zk import paths
from kafka08.zk.model.server import Server

STEPS_MAX: Final = 20_000_000
START_S: Final = 60.0
RECOVERY_S: Final = 180.0
STOP_S: Final = 120.0
PAUSE_S: Final = 1.5
"""Shorter than any session, and longer than a broker needs to start."""
END_S: Final = 10_000.0
"""More than all waits of a run together."""
LATE_S: Final = 600.0
"""The longest time in which a broker appends what waits in its buffers, a sync for each message."""


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    verdict             a sentence about the violation; None if no rule was broken
    is_early            whether a violation ended the run, not a time limit or a check at the end
    digest              the hash of all events
    simulated_seconds, real_seconds   its duration in simulated and in real time
    story               the last lines about its faults and its processes
    """

    seed: int
    verdict: str | None
    digest: str
    simulated_seconds: float
    real_seconds: float
    steps: int
    faults: int
    acknowledged: int
    read: int
    is_early: bool
    story: list[str]


class Violation(Exception):
    """A rule was broken; the text is the verdict."""


def simulate(
    seed: int,
    *,
    profile: str = SAFE,
    plan: Plan | None = None,
    on_line: Callable[[str], object] | None = None,
    timeline: Timeline | None = None,
    until: float | None = None,
) -> Outcome:
    """Make one run.

    plan       None: the plan of the seed
    on_line    called with each line about its faults and processes
    timeline   records its events
    until      the second at which it ends early
    """
    # The times of garbage collections must not influence a run, and they take a fifth of its time.
    was_enabled = gc.isenabled()
    gc.disable()
    gc.freeze()  # The collection after the run need not look at what was there before.
    try:
        return _outcome(seed, plan or draw_plan(seed, profile), Trace(on_line, timeline), until)
    finally:
        if was_enabled:
            gc.enable()
        gc.collect()
        gc.collect()  # what the finally blocks of collected greenlets have left
        gc.unfreeze()


def _outcome(seed: int, plan: Plan, trace: Trace, until: float | None) -> Outcome:
    """The outcome of a run. Nothing refers to the run after this returns: it is one large cycle."""
    started = time.perf_counter()
    run = Run(seed, plan, trace)
    if until is not None:
        run.scheduler.call_at(until, run.end)
    with watched_logs(run.on_caught):
        verdict = run.go()
    return Outcome(
        seed,
        verdict,
        trace.digest,
        run.scheduler.now,
        time.perf_counter() - started,
        run.scheduler.steps,
        run.faults.count,
        len(run.observed.history.acknowledgements) + len(run.observed.stored),
        len(run.observed.history.reads),
        bool(run.broken or run.hosts.uncaught),
        folded(trace.lines),
    )


class Run:
    """One run, and its director: the process that starts clients, injects faults and checks the
    end."""

    def __init__(self, seed: int, plan: Plan, trace: Trace) -> None:
        self.plan = plan
        # The salt changes all random numbers but those of the plan.
        name = f"{seed}/{plan.salt}" if plan.salt else str(seed)
        self.random = Random(f"{name}/director")
        self.trace = trace
        self.scheduler = Scheduler(Random(f"{name}/scheduler"), self.trace, disorder=plan.disorder)
        if plan.windows is not None:
            self.scheduler.disorder_within(plan.windows)
        network = Network(self.scheduler, Random(f"{name}/network"), plan.network)
        self.zookeeper = SimZooKeeper(network, Server())
        self.network = network
        world = World(network, self.zookeeper, plan.native_seconds)
        self.hosts = Hosts(name, world, self._skew)
        properties = {**properties_of(plan), **(PROPERTIES if plan.cleanup else {})}
        self.brokers = [
            SimBroker(
                self.hosts,
                number,
                properties,
                loses_writes=plan.loses_writes,
                ids_only=plan.ids_only,
            )
            for number in range(1, plan.brokers + 1)
        ]
        self.target = Target(
            [(broker.host, BROKER_PORT) for broker in self.brokers],
            ADDRESS,
            [TopicPartition(TOPIC, number) for number in range(plan.partitions)],
        )
        self.observed = Observed(ordered=plan.in_flight == 1 or plan.retries == 0)
        self.readers: list[Reader] = []
        self.kept = KeptLoad(plan, self.hosts, self.target, self.observed, self.brokers)
        self.expiring = ExpiringOffsets(
            plan, self.hosts, self.target, self.zookeeper, self.brokers, self.observed
        )
        self.transactions = TransactionLoad(
            plan, self.hosts, self.target, self.observed, self.brokers
        )
        self.broken: list[str] = []
        """A sentence for each violation."""
        is_safe = plan.profile == SAFE
        zookeeper_checks = self.zookeeper_checks = ZooKeeperChecks(
            self.zookeeper, self._on_violation, self.say, is_safe=is_safe
        )
        self.mirrors = MirrorLoad(
            plan, self.hosts, self.target, self.zookeeper, self.brokers, self._on_violation
        )
        zookeeper_checks.on_offset[MIRROR_GROUP] = self.mirrors.stored
        ControllerCheck(
            self.scheduler,
            self.zookeeper,
            self.brokers,
            self.target.partitions,
            self._on_violation,
        )
        self.group: GroupHistory
        if plan.coordinated:
            self.group = GroupHistory(self._on_violation, is_safe=is_safe)
        else:
            self.group = ZooKeeperGroupHistory(
                self.zookeeper,
                self.brokers,
                self._on_violation,
                is_safe=is_safe,
                is_exact=plan.offsets_storage == "zookeeper"
                and all(fault.kind is not Fault.MIGRATE for fault in plan.faults),
            )
            zookeeper_checks.on_offset[GROUP] = self.group.stored
        log_checks = LogChecks(
            self.scheduler,
            self.zookeeper,
            self.brokers,
            GROUP,
            self.group,
            self._on_violation,
            replication_factor=plan.replication_factor,
            is_safe=is_safe,
        )
        self.observed.on_stored = log_checks.check_stored
        ParkedChecks(self.scheduler, self.brokers, self._on_violation)
        zookeeper_checks.on_moves = MoveChecks(
            self.scheduler, self.zookeeper, self.brokers, self._on_violation
        ).check
        zookeeper_checks.on_state = log_checks.check_isrs
        zookeeper_checks.on_deleted = log_checks.forget
        self.members = [
            SimMember(
                self.hosts, number, self.target, self.group, plan.offsets_storage, late=plan.late
            )
            for number in range(plan.members)
        ]
        self.calm_checks = CalmChecks(
            plan,
            self.zookeeper,
            self.brokers,
            self.observed.history,
            self.readers,
            self.group,
            lambda text, seconds: self._await(text, seconds, lambda: not text()),
        )
        self.director: SimClientRuntime = self.hosts.client("director")
        self.final_group = FinalGroup(
            plan, self.target, self.group, self.director, self._final, self._await_none
        )
        self.late = LateTopic(plan, self.target, self.group, self.director)
        self.verdict: str | None = None
        self._is_recovering = False
        """Whether processes that end are started again at once."""
        self.faults = Faults(
            plan,
            self.hosts.random_of,
            world,
            self.hosts,
            self.brokers,
            [*self.members, *self.mirrors.places, *self.transactions.places],
            self.director,
            self.say,
        )
        zookeeper_checks.on_registered = self.faults.twins.registered

    def go(self) -> str | None:
        """Make the run. Returns the verdict."""
        # Checks and heartbeats go on for ever, also if the director never wakes up.
        late = f"the run has not ended after {END_S:g} s"
        self.scheduler.call_at(END_S, self._on_violation, late)
        self.director.process.spawn(self._direct, (), "director")
        try:
            if not self.scheduler.run(STEPS_MAX) and self.verdict is None:
                self.verdict = "the run came to a standstill"
        finally:
            self.hosts.discard()
        if self.verdict is None:
            self.verdict = next(iter([*self.broken, *self.hosts.uncaught]), None)
        return self.verdict

    def end(self) -> None:
        self.scheduler.is_over = True

    def say(self, text: str) -> None:
        self.trace.event(self.scheduler.now, text)

    def _direct(self) -> None:
        try:
            self._set_up()
            self.faults.run(self.plan.faults_seconds)
            self._recover()
            self._check()
            self._stop()
        except Violation as violation:
            self.verdict = str(violation)
            self.say(f"violation: {violation}")
        finally:
            self.scheduler.is_over = True

    def _set_up(self) -> None:
        self.say(f"plan: {self.plan}")
        self._await(
            lambda: f"brokers to register: {unregistered(self.zookeeper, self.brokers)}",
            START_S,
            self._start_all,
        )
        if self.plan.members_first:
            self._start_members()
        with AdminClient(ADDRESS, runtime=self.director) as admin:
            overrides = {"max.message.bytes": REFUSED_BYTES} if self.plan.refuses else {}
            counts = self.plan.partitions, self.plan.replication_factor
            admin.create_topic(TOPIC, *counts, overrides)
            admin.await_leaders(TOPIC, timeout_ms=int(START_S * 1000))
            self.kept.create_topic(admin)
            self.transactions.create_topics(admin, int(START_S * 1000))
        self._await("the target of mirrors", START_S, self.mirrors.is_set_up)
        self.mirrors.create_topic(self.director)
        self.say("topic made")
        self._start_clients()

    def _start_clients(self) -> None:
        plan, pause = self.plan, self.plan.pause_seconds
        new = partial(
            new_producer,
            retries=plan.retries,
            in_flight=plan.in_flight,
            pause=pause,
            stores_once=plan.level == RECORDS_LEVEL,
        )
        old = partial(old_producer, pause=pause, refuses=plan.refuses)
        asynchronous = partial(async_producer, pause=pause, refuses=plan.refuses)
        self._start_producers("new-producer", plan.new_producers, new)
        self._start_producers("old-producer", plan.old_producers, old)
        self._start_producers("async-producer", plan.async_producers, asynchronous)
        for tp in self.target.partitions:
            runtime = self.hosts.client(f"reader-{tp.partition}")
            reader = Reader(runtime, self.target, self.observed.history, tp)
            self.readers.append(reader)
            runtime.spawn(reader.run, name="main")
        self.kept.start()
        self.mirrors.start()
        self.expiring.start()
        self.transactions.start()
        if not self.plan.members_first:
            self._start_members()

    def _start_members(self) -> None:
        for member in self.members:
            member.start()

    def _start_producers(self, kind: str, count: int, write: Callable[..., None]) -> None:
        """Start so many programs that `write`, each on a host of its own."""
        for number in range(count):
            runtime = self.hosts.client(f"{kind}-{number}")
            self.observed.writers += 1
            runtime.spawn(partial(write, runtime, self.target, self.observed), name="main")

    def _on_violation(self, text: str) -> None:
        self.say(f"violation: {text}")
        self.broken.append(text)
        self.scheduler.is_over = True

    def on_caught(self, where: str, error: BaseException) -> None:
        """A module has logged an exception that it did not expect."""
        process = self.scheduler.running
        who = "a native thread" if process is None else process.name
        self._on_violation(f"{who}: {type(error).__name__} in {where}: {error}")

    def _recover(self) -> None:
        """Repair all faults, and wait until the cluster has recovered."""
        self.say("all faults are repaired")
        if self.trace.timeline is not None:
            self.trace.timeline.repaired_at = self.scheduler.now
        self._is_recovering = True
        self.observed.is_ending = not self.plan.away
        self.faults.repair()
        self._await_replicas()
        if self.plan.away:
            # A tool may have leaders elected, who count the silence of followers from then on.
            self._await("tools to end", RECOVERY_S, lambda: not self.faults.running_tools)
            self._await_replicas()
            self._go_on_without_one()
            self.observed.is_ending = True
            self._await_replicas()
        self._await("producers to end", RECOVERY_S, lambda: not self.observed.writers)
        self._await("the committer to end", RECOVERY_S, lambda: self.expiring.has_ended)
        self._await("transactions to end", RECOVERY_S, lambda: self.transactions.writers_have_ended)
        self._await("tools to end", RECOVERY_S, lambda: not self.faults.running_tools)
        self._await_none(
            "topics to be whole or gone", partial(unsettled, self.zookeeper, self.brokers)
        )

    def _await_replicas(self) -> None:
        """Wait until all brokers run, and all replicas of the clients' topic are in sync."""
        brokers, zookeeper = self.brokers, self.zookeeper
        self._await_none("brokers to run and register", partial(unregistered, zookeeper, brokers))
        self._await_none("partitions to be moved", self._unmoved)
        self._await_none("replicas to be in sync", partial(out_of_sync, zookeeper, TOPIC))
        self._await_none(
            "brokers to know the leaders",
            partial(without_leader, zookeeper, brokers, self.target.partitions),
        )

    def _unmoved(self) -> str:
        znode = self.zookeeper.server.find(paths.REASSIGN_PARTITIONS)
        return "" if znode is None or znode.data is None else znode.data.decode()

    def _go_on_without_one(self) -> None:
        """One broker is away for a while: the others must go on."""
        random = self.hosts.random_of("away")
        before = self.calm_checks.states()
        away = random.choice(self.brokers)
        process = away.process
        assert process is not None
        self.say(f"{process.name} is {self.plan.away}; the others must go on")
        if self.plan.away == RESTARTED:
            self._pause_controller(away)
            self.hosts.kill(process, silently=False)
            self.calm_checks.check_restarted(away)
            return
        self._is_recovering = False  # it must not be started at once
        if self.plan.away == KILLED:
            self.hosts.kill(process, silently=False)
        else:
            process.stop()
        self.calm_checks.check_without(away, before)
        self.say(f"{process.name} comes back")
        if self.plan.away == SUSPENDED:
            process.resume()
        self._is_recovering = True

    def _pause_controller(self, away: SimBroker) -> None:
        """Stop the controller for a moment, as for garbage collection: it finds that broker there
        as before. Not if it is itself the one."""
        controller = self.faults.controller()
        process = None if controller is None else controller.process
        if process is not None and controller is not away:
            process.stop()
            self.director.process.call_later(PAUSE_S, process.resume)

    def _await_calm(self) -> None:
        """Wait until nothing has changed for a while."""
        self.mirrors.keep_calm()
        for member in self.members:
            member.keep_calm()
        before, since = self.calm_checks.state(), self.scheduler.now
        changed: list[str] = []

        def is_calm() -> bool:
            nonlocal before, since, changed
            now = self.calm_checks.state()
            if now != before:
                changed = [name for name in now if now[name] != before.get(name)]
                before, since = now, self.scheduler.now
            return self.scheduler.now - since > CALM_S

        self._await(
            lambda: f"the cluster to stay as it is: last changed {', '.join(changed)}",
            RECOVERY_S,
            is_calm,
        )

    def _check(self) -> None:
        final = self._final_all()
        if self.plan.profile == SAFE and (problems := self._problems(final)):
            raise Violation(problems[0])
        for reader, tp in zip(self.readers, self.target.partitions, strict=True):
            self._await(
                f"the reader of {tp} to reach its end",
                RECOVERY_S,
                lambda: reader.position > max(final[tp], default=-1),  # noqa: B023 - used at once
            )
        self._await_none("retention to delete", self.kept.undeleted)
        self._await_none("its reader", partial(self.kept.unread, self.director))
        if self.plan.profile == SAFE and (problem := self.kept.problem()):
            raise Violation(problem)
        self._await_none("offsets to expire alone", self.expiring.problem)
        if problem := self.transactions.problem(self.director, self._await_none):
            raise Violation(problem)
        self._await_none("mirrors to copy and commit everything", self.mirrors.uncopied)
        if self.plan.profile == SAFE and (problem := self.mirrors.problem()):
            raise Violation(problem)
        if self.members:
            self.final_group.check(final)
        self._await_calm()
        if self.late.is_planned:
            self._check_late()

    def _check_late(self) -> None:
        """A topic appears that the group has subscribed to, and nothing else happens."""
        for member in self.members:
            member.widen()
        self.late.make()
        self.say("the late topic is made")
        self._await_none("the group to process a topic made late", self.late.unprocessed)

    def _final_all(self) -> dict[TopicPartition, dict[int, bytes]]:
        """The final messages of every partition, at one time: a late request of a producer that
        gave up or wants no response may extend one while another is read."""
        final: dict[TopicPartition, dict[int, bytes]] = {}
        expected: dict[TopicPartition, int] = {}
        last_offset = self.observed.history.last_offset
        while extended := [
            tp
            for tp in self.target.partitions
            if tp not in final or last_offset(tp) > max([expected[tp], *final[tp]])
        ]:
            for tp in extended:
                expected[tp] = last_offset(tp)
                final[tp] = self._final(tp)
        return final

    def _problems(self, final: dict[TopicPartition, dict[int, bytes]]) -> list[str]:
        """The violations of the history, under the safe profile."""
        values = {value for messages in final.values() for value in messages.values()}
        return [
            *self.observed.history.problems(final),
            *self.observed.lost(values),
        ]

    def _final(self, tp: TopicPartition) -> dict[int, bytes]:
        """offset → value, under the safe profile once the HW has passed what was acknowledged or
        read."""
        last = self.observed.history.last_offset(tp) if self.plan.profile == SAFE else -1
        end = self.scheduler.now + RECOVERY_S
        while True:
            try:
                found = read_partition(self.director, self.target, tp)
                if max(found, default=-1) >= last or self.scheduler.now > end:
                    return found
            except KafkaError as error:
                if self.scheduler.now > end:
                    raise Violation(f"{tp} cannot be read in the end: {error}") from None
            self.director.sleep(1.0)

    def _stop(self) -> None:
        self._is_recovering = False
        self.kept.end()
        self.mirrors.end()
        self.transactions.end()
        for reader in self.readers:
            reader.is_ending = True
        for member in self.members:
            member.end()
        self._await(
            "members to end", RECOVERY_S, lambda: all(one.has_ended for one in self.members)
        )
        self._await(
            "readers to end",
            RECOVERY_S,
            lambda: self.kept.has_ended and all(one.has_ended for one in self.readers),
        )
        loads = (self.mirrors, self.transactions)
        self._await("loads to end", RECOVERY_S, lambda: all(one.has_ended for one in loads))
        if self.plan.mirrors:
            self._check_leftovers(TARGET_HOST, self.mirrors.target.shutdown(STOP_S))
        if self.observed.leftovers:
            raise Violation(self.observed.leftovers[0])
        self._await_late_requests()
        for process in self.hosts.processes:
            is_broker = process.name.startswith("broker-")
            if not (is_broker or process.is_dead or process is self.director.process):
                self._check_leftovers(process.name, self.hosts.leftovers(process))
        for broker in self.brokers:
            self.zookeeper_checks.on_closed = partial(
                self._check_led, broker, self.calm_checks.states()
            )
            self._check_leftovers(broker.host, broker.shutdown(STOP_S))
        self._check_rules()
        if problem := differing_logs(
            self.zookeeper, self.brokers, self.target.partitions, is_safe=self.plan.profile == SAFE
        ):
            raise Violation(problem)

    def _check_led(
        self, stopped: SimBroker, before: Mapping[TopicPartition, LeaderAndIsr], process: Process
    ) -> None:
        """A process has closed its session: nobody has noticed yet."""
        if process is stopped.process and (led := self.calm_checks.still_led(stopped, before)):
            self._on_violation(led)

    def _await_late_requests(self) -> None:
        """Wait until no log has grown for a while: requests with acks 0 may wait in the buffers of
        a broker when their client has ended. A broker that stops first would lack them."""
        latest = self.scheduler.now + LATE_S
        before: dict[tuple[int, TopicPartition], int] | None = None
        while (ends := log_ends(self.brokers, self.target.partitions)) != before:
            if self.scheduler.now > latest:
                raise Violation(f"logs grew for {LATE_S:g} s after the last client had ended")
            before = ends
            self.director.sleep(LEFTOVER_S)

    def _check_leftovers(self, name: str, leftovers: list[str]) -> None:
        if leftovers:
            raise Violation(f"{name} has stopped, but: {', '.join(leftovers)}")

    # Conditions

    def _await(
        self, what: str | Callable[[], str], seconds: float, is_done: Callable[[], bool]
    ) -> None:
        end = self.scheduler.now + seconds
        while (self._is_recovering and not self.faults.keep_running()) or not is_done():
            self._check_rules()
            if self.scheduler.now > end:
                awaited = what if isinstance(what, str) else what()
                raise Violation(f"waited {seconds:g} s in vain for {awaited}")
            self.director.sleep(0.1)

    def _await_none(self, what: str, problem: Callable[[], str]) -> None:
        """Wait until there is no problem any more. The last one is in the verdict."""
        self._await(lambda: f"{what}: {problem()}", RECOVERY_S, lambda: not problem())

    def _check_rules(self) -> None:
        if self.broken or self.hosts.uncaught:
            raise Violation((self.broken or self.hosts.uncaught)[0])

    def _start_all(self) -> bool:
        """Whether all brokers are registered. Starts those that do not run: on a slow network one
        may give up connecting to ZooKeeper."""
        for broker in self.brokers:
            if not broker.is_running:
                broker.start()
        return not unregistered(self.zookeeper, self.brokers)

    def _skew(self) -> tuple[int, float]:
        draw = self.random.random
        return int((draw() - 0.5) * 2 * self.plan.skew_ms), draw() * 1000
