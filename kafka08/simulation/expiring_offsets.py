"""Offsets of other groups, some of which expire while a run lasts: a client commits them to Kafka
with times of its own, as version 1 of OffsetCommit allows.

Rules, for what was acknowledged:

1. One that expires in an hour is there in the end (safe profile).
2. One whose time is over is gone, soon after its coordinator's clock says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka08.broker.groups.offset_cache import LoadState
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import KafkaError
from kafka08.profile import SAFE
from kafka08.simulation.cluster import Hosts, SimBroker
from kafka08.simulation.runtime import SimClientRuntime
from kafka08.simulation.workload import POLL_S, TIMEOUT_MS, Target
from kafka08.simulation.writers import Observed
from kafka08.structs import OFFSETS_TOPIC, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka08.simulation.plan import Plan
    from kafka08.simulation.zookeeper import SimZooKeeper

RETENTION_MS: Final = 24 * 60 * 60_000
"""The brokers' default."""
CHECK_MS: Final = 2000
"""How often brokers look for expired offsets."""
SLACK_MS: Final = 5000
"""More than an expiry takes, whose tombstones have to be appended."""
SHORT_MS: Final = 3000
LONG_MS: Final = 60 * 60_000
"""More than the clocks of a run differ, after all their steps."""
GROUPS: Final = 10
PAUSE_S: Final = 1.5


class Committed(NamedTuple):
    """An offset that was acknowledged, and the wall time at which it expires."""

    offset: int
    expires_ms: int
    is_short: bool


class ExpiringOffsets:
    """The client of a run that commits them, if its plan says so. Else nothing."""

    def __init__(
        self,
        plan: Plan,
        hosts: Hosts,
        target: Target,
        zookeeper: SimZooKeeper,
        brokers: Sequence[SimBroker],
        observed: Observed,
    ) -> None:
        self._hosts = hosts
        self._target = target
        self._zookeeper = zookeeper
        self._brokers = brokers
        self._observed = observed
        self._is_safe = plan.profile == SAFE
        self._committed: dict[str, Committed] = {}
        self._spent: set[str] = set()
        """Groups with a commit that failed: it may have been stored, or be stored later."""
        self._tp = target.partitions[0]
        self.is_there = plan.expiring
        self.has_ended = not plan.expiring

    def start(self) -> None:
        if self.is_there:
            runtime = self._hosts.client("committer")
            runtime.spawn(self._run, runtime, name="main")

    def _run(self, runtime: SimClientRuntime) -> None:
        random, number = runtime.random, 0
        while not self._observed.is_ending and len(self._spent) < GROUPS:
            number += 1
            group = f"brief-{random.randrange(GROUPS)}"
            if group not in self._spent:
                host, port = random.choice(self._target.bootstrap)
                self._commit(runtime, (host, port), group, number)
            runtime.sleep(random.random() * 2 * PAUSE_S)
        self.has_ended = True

    def _commit(
        self, runtime: SimClientRuntime, address: tuple[str, int], group: str, offset: int
    ) -> None:
        is_short = runtime.random.random() < 0.5
        expires_ms = runtime.time_ms() + (SHORT_MS if is_short else LONG_MS)
        value = OffsetAndMetadata(offset, "", expires_ms - RETENTION_MS)
        # A commit that is under way replaces the one before, whether or not it succeeds.
        self._committed.pop(group, None)
        try:
            with SimpleConsumer(*address, TIMEOUT_MS, runtime=runtime) as consumer:
                consumer.commit_offsets(group, {self._tp: value}, "kafka")
        except KafkaError:
            self._spent.add(group)
            runtime.sleep(POLL_S)
        else:
            self._committed[group] = Committed(offset, expires_ms, is_short)

    # For checks

    def problem(self) -> str:
        """A sentence about an offset that is there too long, or too short; ""."""
        for group, committed in self._committed.items():
            found = self._found(group)
            if found is None:
                continue
            offset, now_ms = found
            if committed.is_short and now_ms < committed.expires_ms + CHECK_MS + SLACK_MS:
                continue
            # A log that has lost this commit may have an earlier one, which stays.
            least = 0 if self._is_safe else committed.offset
            if committed.is_short and offset >= least:
                return f"group {group} still has offset {offset}, which expired: {committed}"
            if not committed.is_short and self._is_safe and offset != committed.offset:
                return f"group {group} has offset {offset}, not the one acknowledged: {committed}"
        return ""

    def _found(self, group: str) -> tuple[int, int] | None:
        """The offset that the group's coordinator has, and its wall time; None without one."""
        for broker in self._brokers:
            manager = broker.offset_manager()
            if manager is None or broker.process is None:
                continue
            number = manager.partition_for(group)
            state = self._zookeeper.leader_and_isr(TopicPartition(OFFSETS_TOPIC, number))
            is_coordinator = state is not None and state.leader == broker.id
            if is_coordinator and manager.state(number) is LoadState.LOADED:
                return manager.fetch(group, [self._tp])[self._tp].offset, broker.process.time_ms()
        return None
