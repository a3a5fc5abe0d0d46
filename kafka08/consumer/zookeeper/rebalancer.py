"""The thread that claims and releases partitions until a member owns what it is assigned.

Watches, session events and shutdown only post events here. The thread takes all posted events,
reads the group again if something changed, and applies the difference:

    read → assign → stop, commit and release → claim → fetch committed offsets → start fetching

Before that it executes the orders of a migration of the group's offsets (member_storage.py),
because in this thread nothing is claimed or released meanwhile.

A topic that was deleted and made again while the member has known it is read from its start: the
partitions that the member owns, or claims when it notices, get offset 0 as their committed one.

A change during a rebalance is posted like any other and causes one more round, so none is missed.
An attempt that fails (a partition is not released yet, a connection was lost) is repeated after
rebalance.backoff.ms, or as soon as a change or a release is seen, for ever.

Differences from 0.8.2.2, invisible to 0.8.2.2 members of the group: partitions that stay with the
same stream are not interrupted; an attempt claims all partitions or none; offsets are fetched after
the claim, when no other member can commit any more, not before; a topic that was made again goes on
at its former offsets there, or at auto.offset.reset. Source:
kafka.consumer.ZookeeperConsumerConnector.ZKRebalancerListener 0.8.2.2.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final

from kafka08.consumer.fetching.owned_partition import OwnedPartition
from kafka08.consumer.subscription import Subscription
from kafka08.consumer.zookeeper.assignment import GroupView, assign, changes
from kafka08.consumer.zookeeper.assignors import Assignment
from kafka08.consumer.zookeeper.config import ConsumerConfig
from kafka08.consumer.zookeeper.member_storage import MemberStorage
from kafka08.consumer.zookeeper.offset_store import Offsets
from kafka08.consumer.zookeeper.ownership import Ownership
from kafka08.consumer.zookeeper.registry import GroupRegistry, RegistrationGone
from kafka08.consumer.zookeeper.session import SessionGate
from kafka08.consumer.zookeeper.status import ConsumerStatus
from kafka08.errors import KafkaError
from kafka08.listing import some_of
from kafka08.runtime import ClientRuntime, Task
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)

GATHER_S: Final = 0.02
"""The delay after a change: members rarely come or go alone."""


OnChange = Callable[[list[TopicPartition]], object]
"""A callback of the user's, with the partitions that it is about."""


class RebalanceEvent(enum.Enum):
    CHANGE = "the session, or the group, topics or brokers, may have changed"
    RELEASE = "a partition that blocked a claim may be free"
    STOP = "the connector shuts down"


class Rebalancer:
    """One named daemon thread.

    make_partitions  (partition → thread id, offsets) → the partitions for the streams
    fetch            starts to fetch partitions
    on_stall         called when the member stalls, so that streams raise that
    on_revoked       called when partitions are no longer delivered and may still be committed;
                     after the loss of a session they may not. What it raises is logged
    others_here      returns the ids of other members that this process has
    on_assigned      called when partitions were claimed, before they are fetched; likewise
    """

    def __init__(
        self,
        consumer_id: str,
        config: ConsumerConfig,
        subscription: Subscription,
        *,
        registry: GroupRegistry,
        ownership: Ownership,
        store: MemberStorage,
        gate: SessionGate,
        status: ConsumerStatus,
        runtime: ClientRuntime,
        make_partitions: Callable[[Assignment, Offsets], list[OwnedPartition]],
        fetch: Callable[[Collection[OwnedPartition]], None],
        on_stall: Callable[[], None],
        others_here: Callable[[], Collection[str]] = tuple,
        on_revoked: OnChange = lambda _: None,
        on_assigned: OnChange = lambda _: None,
    ) -> None:
        self._consumer_id = consumer_id
        self._config = config
        self._subscription = subscription
        self._registry = registry
        self._ownership = ownership
        self._store = store
        self._gate = gate
        self._status = status
        self._runtime = runtime
        self._make_partitions = make_partitions
        self._fetch = fetch
        self._on_stall = on_stall
        self._others_here = others_here
        self._on_revoked = on_revoked
        self._on_assigned = on_assigned
        self._condition = runtime.condition()
        self._events: set[RebalanceEvent] = set()
        self._view: GroupView | None = None
        self._session_id: int | None = None
        """The session of the member's registration and of the partitions that it owns."""
        self._created: dict[str, int] = {}
        """topic → the transaction that made it, as of the last rebalance with it. Also of deleted
        topics: what is committed for one that is made again is of the former one."""
        self._first = runtime.event()
        self._task: Task | None = None

    def start(self) -> None:
        self.post(RebalanceEvent.CHANGE)
        self._task = self._runtime.spawn(self._run, name=f"{self._consumer_id}_watcher_executor")

    def post(self, event: RebalanceEvent) -> None:
        """Pass an event to the thread. Never waits."""
        with self._condition:
            self._events.add(event)
            self._condition.notify_all()

    @property
    def is_interrupted(self) -> bool:
        """Whether an event is waiting for the thread."""
        return bool(self._events)

    def wait_for_first(self) -> None:
        """Wait until the first rebalance has ended, stalled, or was stopped."""
        self._first.wait(self._timeout_s + self._config.zookeeper_session_timeout_ms / 1000)

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end after STOP; False on timeout."""
        if self._task is None:
            return True
        self._task.join(timeout_s)
        return not self._task.is_alive()

    @property
    def _timeout_s(self) -> float:
        return self._config.rebalance_max_retries * self._config.rebalance_backoff_ms / 1000

    @property
    def _idle_s(self) -> float | None:
        """How long to wait for an event: for ever, unless an order is still unconfirmed."""
        return self._config.rebalance_backoff_ms / 1000 if self._store.is_behind else None

    def _run(self) -> None:
        logger.info("[%s] starting watcher executor thread", self._consumer_id)
        try:
            while self._take_up(self._next_events(self._idle_s)):
                self._settle()
        finally:
            self._first.set()
            logger.info("[%s] stopping watcher executor thread", self._consumer_id)

    def _next_events(self, timeout_s: float | None) -> set[RebalanceEvent]:
        """The events posted within a short delay; empty on timeout."""
        with self._condition:
            if self._condition.wait_for(lambda: self._events, timeout_s):
                self._condition.wait_for(lambda: RebalanceEvent.STOP in self._events, GATHER_S)
            events, self._events = self._events, set()
            return events

    def _take_up(self, events: set[RebalanceEvent]) -> bool:
        """Invalidate what the events make stale; False if it is time to stop."""
        if RebalanceEvent.CHANGE in events:
            self._view = None
        return RebalanceEvent.STOP not in events

    def _settle(self) -> None:
        """Repeat attempts until one succeeds."""
        give_up_at = self._runtime.monotonic() + self._timeout_s
        self._status.rebalancing()
        attempt = 0
        while True:
            logger.info("[%s] begin rebalancing consumer try #%d", self._consumer_id, attempt)
            failure = self._failure_of_attempt()
            if failure is None:
                break
            logger.info("[%s] try #%d failed: %s", self._consumer_id, attempt, failure)
            if self._runtime.monotonic() >= give_up_at and self._status.stalled(failure):
                logger.warning("[%s] %s", self._consumer_id, self._status.stall_cause)
                self._first.set()
                self._on_stall()
            if not self._take_up(self._next_events(self._config.rebalance_backoff_ms / 1000)):
                # It was taken up here, and `_run` must see it.
                self.post(RebalanceEvent.STOP)
                return
            attempt += 1
        self._status.settled()
        self._first.set()
        logger.info("[%s] end rebalancing consumer try #%d", self._consumer_id, attempt)

    def _failure_of_attempt(self) -> Exception | None:
        """Make one attempt; its error, or None."""
        try:
            self._attempt()
        except KafkaError as error:
            return error
        except Exception as error:
            # The root of a thread: a member that stopped here would own its partitions for ever.
            logger.exception("[%s] a rebalance failed because of a bug", self._consumer_id)
            return error
        return None

    def _attempt(self) -> None:
        if self._session_id is None or self._session_id != self._registry.session_id:
            self._begin_session()
        elif self._store.is_behind:
            self._ownership.between_commits(self._store.follow)
        self._registry.tidy()
        if self._view is None:
            self._view = self._read()
        if self._view is None:
            # No failure: the watch posts a change when the first broker comes.
            logger.warning("[%s] no brokers found when trying to rebalance.", self._consumer_id)
            return
        strategy = self._config.partition_assignment_strategy
        wanted = assign(self._view, self._consumer_id, strategy)
        created = self._view.created
        anew = {
            topic for topic in created if self._created.get(topic) not in {None, created[topic]}
        }
        todo = changes(self._ownership.assignment, wanted, anew)
        if todo.release:
            deleted = {tp for tp in todo.release if tp.topic in anew or tp.topic not in created}
            for going, commits in (
                (deleted, False),
                (todo.release - deleted, self._config.auto_commit_enable),
            ):
                if going:
                    told = partial(self._tell, self._on_revoked, going)
                    self._ownership.give_up(going, commit=commits, on_revoked=told)
            # Only now: once the znode is gone another member reads on from what was committed.
            self._registry.release(todo.release)
            self._store.forget(todo.release)
        if todo.claim:
            self._claim(todo.claim, anew)
        # Last: after a failed attempt, the next one must still start these topics over.
        self._created |= created
        logger.info("[%s] owns %d partitions", self._consumer_id, len(wanted))
        if not wanted:
            self._warn_of_others_here(self._view)

    def _warn_of_others_here(self, view: GroupView) -> None:
        """A notebook's cell that runs again leaves the member of its last run, which then has all
        partitions, and nobody reads them."""
        others = sorted(set(self._others_here()) & view.members.keys())
        if others and any(view.partitions.values()):
            logger.warning(
                "[%s] owns no partition: %s of this same process is in the group. Shut down what "
                "is left over of an earlier run",
                self._consumer_id,
                some_of(others),
            )

    def _begin_session(self) -> None:
        """Register, and own nothing: partitions of an earlier session are lost already.

        The session id is read from the znode afterwards: the session may be replaced once more
        while the registration waits for a connection."""
        lost = list(self._ownership.assignment)
        self._ownership.drop()
        if lost:
            self._tell(self._on_revoked, lost)
        self._view = None
        self._registry.begin_session()
        self._session_id = self._registry.register(self._subscription, self._runtime.time_ms())
        self._gate.admit_session(self._session_id)
        self._store.begin_session()

    def _read(self) -> GroupView | None:
        """Read the group. If the member's registration was removed, register again first."""
        try:
            return self._registry.view(self._subscription)
        except RegistrationGone as error:
            if self._session_id != self._registry.session_id:
                raise  # it expired with its session; the next attempt begins a new one
            logger.warning("[%s] %s; registering again", self._consumer_id, error)
            self._registry.register(self._subscription, self._runtime.time_ms())
            return self._registry.view(self._subscription)

    def _claim(self, wanted: Assignment, anew: Collection[str]) -> None:
        self._registry.claim(wanted)
        try:
            if over := [tp for tp in wanted if tp.topic in anew]:
                logger.info("[%s] made again, read from offset 0: %s", self._consumer_id, over)
                self._ownership.start_over(over)
            offsets = self._ownership.fetch_committed(list(wanted))
        except KafkaError:
            self._registry.release(list(wanted))
            raise
        partitions = self._make_partitions(wanted, offsets)
        self._ownership.take(partitions)
        self._tell(self._on_assigned, wanted)
        self._fetch(partitions)

    def _tell(self, callback: OnChange, partitions: Iterable[TopicPartition]) -> None:
        """Call a callback of the user's: what it raises must not end the rebalance."""
        try:
            callback(sorted(partitions))
        except Exception:
            logger.exception("[%s] the callback of a rebalance failed", self._consumer_id)
