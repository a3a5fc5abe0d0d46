"""Rules for a cluster without faults, which has recovered.

1. It goes on while one broker is away: leaders are elected, the broker leaves the ISRs in time,
   producers and readers go on, and the group processes what was written meanwhile.
2. Nothing changes while nothing disturbs it: no leader, no ISR, no controller, no assignment of the
   group, for longer than any session lasts.
3. A broker that was killed and starts at once hears of the states of all partitions soon after it
   has registered, though no controller may have seen it away.
4. A broker that is stopped cleanly leads nothing that another one in sync could lead when its
   session ends: it does not leave this to the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from kafka08.broker.process.server import ISR_CHECKS
from kafka08.levels import Level
from kafka08.profile import SAFE
from kafka08.simulation.cluster import SimBroker
from kafka08.simulation.group_history import GroupHistory
from kafka08.simulation.history import History
from kafka08.simulation.plan import Plan
from kafka08.simulation.recovery_conditions import assignment_of, without_leader
from kafka08.simulation.workload import TOPIC, Reader
from kafka08.simulation.zookeeper import SimZooKeeper
from kafka08.simulation.zookeeper_group_history import GROUP
from kafka08.structs import NO_LEADER, OFFSETS_TOPIC, LeaderAndIsr, TopicPartition
from kafka08.zk import paths

SLACK_S: Final = 4.0
"""More than an election takes without faults."""
ISR_S: Final = 2.0
"""More than a change of an ISR takes without faults."""
WRITE_S: Final = 30.0
"""More than producers and readers need to find new leaders."""
GROUP_S: Final = 90.0
"""More than the longest work of all members, and the rebalance after it."""
STATES_S: Final = 8.0
"""More than a controller needs, and less than a broker that hears nothing waits before it registers
anew."""
CALM_S: Final = 9.0
"""Longer than the sessions of brokers and members."""
Await = Callable[[Callable[[], str], float], None]


def await_changing(await_none: Await, problem: Callable[[], str], seconds: float) -> None:
    """As `await_none`, but the limit begins anew whenever the sentence changes: a reader may have
    much to read, and a new leader counts the silence of its followers from its election on."""
    while before := problem():
        await_none(partial(_unchanged, problem, before), seconds)


def _unchanged(problem: Callable[[], str], before: str) -> str:
    return before if problem() == before else ""


class CalmChecks:
    """await_none   waits until a sentence about what is missing is ""; the second argument is the
    limit in seconds
    """

    def __init__(
        self,
        plan: Plan,
        zookeeper: SimZooKeeper,
        brokers: Sequence[SimBroker],
        history: History,
        readers: Sequence[Reader],
        group: GroupHistory,
        await_none: Await,
    ) -> None:
        self._plan = plan
        self._zookeeper = zookeeper
        self._brokers = brokers
        self._history = history
        self._readers = readers
        self._group = group
        self._await_none = await_none
        self._await_changing = partial(await_changing, await_none)

    # While one broker is away

    def check_without(self, away: SimBroker, before: Mapping[TopicPartition, LeaderAndIsr]) -> None:
        """Rule 1, of a broker that has just been killed or suspended. `before`: the states then."""
        remaining = [
            tp
            for tp, state in before.items()
            if away.id in state.isr
            and any(self._is_registered(other) for other in state.isr if other != away.id)
            # One that is away can no longer be asked, and the controller knows that it led.
            and (state.leader == away.id or self._knows(state.leader, tp))
        ]
        session = int(self._plan.broker_properties["zookeeper.session.timeout.ms"]) / 1000
        lag = int(self._plan.broker_properties["replica.lag.time.max.ms"]) / 1000
        # A follower that falls silent just after a check may leave as late as with the one after.
        lag += lag / ISR_CHECKS[Level.named(self._plan.level)]
        self._await_changing(
            lambda: self._followed(away, remaining), min(lag + ISR_S, session + SLACK_S)
        )
        self._await_none(lambda: self._led(away, remaining), session + SLACK_S)
        self._check_progress(away)

    def _knows(self, leader: int, tp: TopicPartition) -> bool:
        """Whether a leader knows that it is: one that has just started may hear of it late."""
        [broker] = [one for one in self._brokers if one.id == leader]
        partition = broker.partition(tp)
        return partition is not None and partition.is_leader

    def _is_registered(self, broker_id: int) -> bool:
        """Whether a broker is registered by its present session. The end of a former one, whose
        znode it waits for, takes it out of the ISR."""
        [broker] = [one for one in self._brokers if one.id == broker_id]
        znode = self._zookeeper.server.find(paths.broker(broker_id))
        return znode is not None and znode.ephemeral_owner == broker.session_id()

    def _followed(self, away: SimBroker, partitions: Sequence[TopicPartition]) -> str:
        for tp in partitions:
            state = self._zookeeper.leader_and_isr(tp)
            if state is not None and state.leader != away.id and away.id in state.isr:
                return f"broker {away.id}, which is away, to leave the ISR of {tp}: {state}"
        return ""

    def _led(self, away: SimBroker, partitions: Sequence[TopicPartition]) -> str:
        for tp in partitions:
            state = self._zookeeper.leader_and_isr(tp)
            if state is None or state.leader in {away.id, NO_LEADER} or away.id in state.isr:
                return f"{tp} to be led by another than broker {away.id}, which is away: {state}"
        return ""

    def _check_progress(self, away: SimBroker) -> None:
        writable = [
            reader
            for number, reader in enumerate(self._readers)
            if self._is_writable(TopicPartition(TOPIC, number), away)
        ]
        # Messages for a partition without a leader take the whole buffer of some producers.
        if len(writable) < len(self._readers):
            return
        first = len(self._history.acknowledgements)
        due: dict[TopicPartition, int] = {}

        def unwritten() -> str:
            for event in self._history.acknowledgements[first:]:
                due.setdefault(event.tp, event.offset)
            late = [reader.tp for reader in writable if reader.tp not in due]
            return f"{late[0]} to be written without broker {away.id}" if late else ""

        def unread() -> str:
            late = [reader for reader in writable if reader.position <= due[reader.tp]]
            return (
                f"the reader of {late[0].tp} to go on without broker {away.id}: it is at "
                f"{late[0].position}, {due[late[0].tp]} was written"
                if late
                else ""
            )

        def unprocessed() -> str:
            late = [r.tp for r in writable if self._group.missing(r.tp, {due[r.tp]})]
            return (
                f"the group to process {late[0]} offset {due[late[0]]} without broker {away.id}: "
                f"it has processed what is before {self._group.unfinished(late[0])}"
                if late
                else ""
            )

        self._await_none(unwritten, WRITE_S)
        self._await_changing(unread, WRITE_S)
        if self._plan.members and self._can_commit(away):
            self._await_changing(unprocessed, GROUP_S)

    def _is_writable(self, tp: TopicPartition, away: SimBroker) -> bool:
        """Whether its leader accepts messages with acks=all, also once the broker that is away has
        left the ISR: a leader that has just started may need longer for that."""
        state = self._zookeeper.leader_and_isr(tp)
        if state is None or not self._is_running(state.leader):
            return False
        replicas = assignment_of(self._zookeeper, tp.topic)[tp.partition]
        least = 2 if self._plan.profile == SAFE and len(replicas) > 1 else 1
        return len({*state.isr} - {away.id}) >= least

    def _is_running(self, broker_id: int) -> bool:
        return any(
            broker.id == broker_id
            and broker.process is not None
            and not broker.process.is_dead
            and not broker.process.is_stopped
            for broker in self._brokers
        )

    def _can_commit(self, away: SimBroker) -> bool:
        """Whether the coordinator of the group can store offsets, if they are in Kafka at all."""
        managers = [m for broker in self._brokers if (m := broker.offset_manager()) is not None]
        if not self._zookeeper.server.find(paths.topic(OFFSETS_TOPIC)) or not managers:
            return not self._plan.coordinated and self._plan.offsets_storage == "zookeeper"
        tp = TopicPartition(OFFSETS_TOPIC, managers[0].partition_for(GROUP))
        return self._is_writable(tp, away)

    def check_restarted(self, broker: SimBroker) -> None:
        """Check rule 3 after it was killed. A controller that compares ids alone may miss it."""

        def unregistered() -> str:
            return "" if self._is_registered(broker.id) else f"{broker.host} to register again"

        def unaware() -> str:
            return without_leader(self._zookeeper, [broker], [one.tp for one in self._readers])

        self._await_none(unregistered, WRITE_S)
        self._await_none(unaware, GROUP_S if self._plan.ids_only else STATES_S)

    # While nothing happens

    def state(self) -> dict[str, object]:
        """Everything that rule 2 is about."""
        epoch = self._zookeeper.server.find(paths.CONTROLLER_EPOCH)
        return {
            **{str(tp): state for tp, state in self.states().items()},
            "the controller epoch": None if epoch is None else epoch.data,
            "the number of the group's assignments": self._group.assignments,
        }

    def still_led(self, stopped: SimBroker, before: Mapping[TopicPartition, LeaderAndIsr]) -> str:
        """Rule 4: a sentence about a partition that a broker leads after its clean stop, or ""."""
        for tp, state in before.items():
            now = self._zookeeper.leader_and_isr(tp)
            if (
                now is not None
                and stopped.id == now.leader == state.leader
                and any(self._is_running(one) for one in state.isr if one != stopped.id)
            ):
                return (
                    f"{stopped.host} is stopped cleanly, and leads {tp} at the end of its session: "
                    f"{now}"
                )
        return ""

    def states(self) -> dict[TopicPartition, LeaderAndIsr]:
        """The states of the partitions of clients and of the offsets topic."""
        found = {}
        for topic in (TOPIC, OFFSETS_TOPIC):
            if self._zookeeper.server.find(paths.topic(topic)) is None:
                continue
            for number in assignment_of(self._zookeeper, topic):
                tp = TopicPartition(topic, number)
                if (state := self._zookeeper.leader_and_isr(tp)) is not None:
                    found[tp] = state
        return found
