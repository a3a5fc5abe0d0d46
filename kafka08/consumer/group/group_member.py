"""GroupMember: the thread that keeps a KafkaConsumer in its group.

It finds the coordinator, sends the requests that the Membership says are due, and passes it the
responses. So heartbeats continue while the user's thread works. Partitions are revoked and assigned
only when the user's thread polls. Source: AbstractCoordinator and its HeartbeatThread,
ConsumerCoordinator (org.apache.kafka.clients.consumer.internals) 0.10.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, TypeVar

from kafka08.client.cluster import LOST_COORDINATOR, ClusterClient
from kafka08.client.metadata import ClusterMetadata
from kafka08.client.retry import RetryPolicy, is_retriable
from kafka08.consumer.fetching.outage import deserves_warning
from kafka08.consumer.group.assignor_bytes import (
    decode_assignment,
    decode_subscription,
    encode_assignments,
    encode_subscription,
)
from kafka08.consumer.group.assignors import Assignor, KeepsAssignment, MemberAssignment
from kafka08.consumer.group.membership import (
    NO_GENERATION,
    Action,
    Assign,
    Beat,
    Generation,
    Join,
    Leave,
    Membership,
    Phase,
    Sync,
    Wait,
)
from kafka08.consumer.group.subscription import Pattern, Topics
from kafka08.consumer.group.watched_topics import MISSING_CHECK_S, WatchedTopics
from kafka08.errors import (
    Closed,
    ConsumerRebalanceFailed,
    KafkaError,
    NotCoordinatorForConsumer,
    ProtocolError,
    RequestTimeout,
    UnsupportedVersion,
)
from kafka08.listing import some_of
from kafka08.network.connection import Connection
from kafka08.protocol.heartbeat import HeartbeatResponse
from kafka08.protocol.join_group import (
    INSTANCE_VERSION,
    MEMBER_ID_VERSION,
    JoinGroupMember,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
)
from kafka08.protocol.sync_group import SyncGroupResponse
from kafka08.protocol.types import Request, Response
from kafka08.runtime import WAIT_S_MAX, ClientRuntime, Task
from kafka08.structs import Broker, TopicPartition

logger = logging.getLogger(__name__)

T = TypeVar("T")

ONCE: Final = RetryPolicy(tries=1)
JOIN_MARGIN_MS: Final = 5000
"""Added to the longest rebalance: how long to wait for the response to a JoinGroup."""
BUG_PAUSE_S: Final = 1.0
REFRESH_MIN_S: Final = 0.1
"""Minimum time between two metadata requests, if metadata.max.age.ms is less."""


class GroupMember:
    """See the module. Any thread may call any method; only `join` blocks.

    wanted     returns the current subscription
    progress   returns another value whenever the user's thread has asked for another message
    on_change  called in the thread of this object when the user's thread has something to do
    """

    def __init__(
        self,
        membership: Membership,
        cluster: ClusterClient,
        assignors: Sequence[Assignor],
        *,
        wanted: Callable[[], Topics | Pattern | None],
        progress: Callable[[], object],
        on_change: Callable[[], None],
        timeout_ms: int,
        rebalance_timeout_ms: int,
        metadata_max_age_ms: int,
        runtime: ClientRuntime,
    ) -> None:
        self._membership = membership
        self._cluster = cluster
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._wanted = wanted
        self._progress = progress
        self._on_change = on_change
        self._timeout_ms = timeout_ms
        self._join_timeout_ms = rebalance_timeout_ms + JOIN_MARGIN_MS
        self._max_age_s = min(max(metadata_max_age_ms / 1000, REFRESH_MIN_S), WAIT_S_MAX)
        self._runtime = runtime
        self._condition = runtime.condition()
        self._connection: Connection | None = None
        """The connection of the request in flight."""
        self._seen: object = None
        self._watched = WatchedTopics()
        self._owned: tuple[list[TopicPartition], int] = ([], NO_GENERATION)
        """What the user's thread keeps while the member joins, and since which generation."""
        self._missing: set[str] = set()
        """The topics that were logged as missing."""
        self._noticed: ClusterMetadata | None = None
        """The metadata that `notice_metadata` saw last."""
        self._is_logged = False
        self._task: Task | None = None
        self._is_watching = False
        """The thread that watches the metadata was started."""
        self._is_leaving = False
        """A LeaveGroup is in flight."""
        self._is_superseded = False
        """`unsubscribe` was called during the action in progress."""
        self._stopping = False
        self._stopped = runtime.event()

    # --------------------------------------------------------------------------- the user's thread

    def subscribe(self) -> None:
        """Join the group, or rejoin it with another subscription."""
        with self._condition:
            self._membership.subscribe(self._runtime.monotonic())
            if not self._is_watching:
                name = f"kafka08-metadata-{self._membership.group}"
                self._runtime.spawn(self._watch_metadata, name=name)
                self._is_watching = True
            if self._task is None:
                name = f"kafka08-heartbeat-{self._membership.group}"
                self._task = self._runtime.spawn(self._run, name=name)
            self._condition.notify_all()

    def unsubscribe(self) -> None:
        """Leave the group soon."""
        with self._condition:
            self._membership.unsubscribe()
            self._owned = ([], NO_GENERATION)
            self._is_superseded = True
            self._condition.notify_all()
            # A LeaveGroup that is in flight must arrive.
            connection = None if self._is_leaving else self._connection
        if connection is not None:
            connection.abort()

    def give_up(self, kept: list[TopicPartition]) -> None:
        """The user's thread has given up all partitions of the previous assignment but these."""
        with self._condition:
            self._owned = (kept, self._membership.generation.id)
            self._membership.give_up()
            self._condition.notify_all()

    def polling(self) -> None:
        with self._condition:
            self._membership.polling(self._runtime.monotonic())

    def polled(self) -> None:
        with self._condition:
            self._membership.polled(self._runtime.monotonic())

    def rejoin(self) -> None:
        """The user's thread has given up partitions that others wait for."""
        with self._condition:
            self._membership.rejoin()
            self._condition.notify_all()

    @property
    def keeps(self) -> bool:
        """Whether partitions are kept during a rebalance."""
        return self._membership.keeps

    @property
    def must_give_up(self) -> bool:
        return self._membership.must_give_up

    @property
    def lost(self) -> bool:
        """Whether other members may already own the partitions of this one."""
        return self._membership.lost

    @property
    def generation(self) -> Generation:
        return self._membership.generation

    @property
    def last_generation(self) -> Generation:
        return self._membership.last_generation

    def take_fault(self) -> KafkaError | None:
        """Why the group refused the member; None if it did not. Each refusal is returned once, and
        then the member tries to join again."""
        if self._membership.fault is None:
            return None
        with self._condition:
            fault = self._membership.retry()
            self._condition.notify_all()
            return fault

    def failure(self, seconds: float) -> KafkaError | None:
        """A retriable failure that has lasted for at least `seconds`."""
        with self._condition:
            return self._membership.outage.lasting(seconds, self._runtime.monotonic())

    def take_assignment(self) -> MemberAssignment | None:
        """The assignment of this member, once for each generation. Raises ProtocolError if the
        group's leader sent malformed bytes, ConsumerRebalanceFailed if the assignor fails. After
        either the member rejoins, since it reads none of the partitions that it was assigned."""
        with self._condition:
            new = self._membership.take_assignment()
        if new is None:
            return None
        try:
            found = decode_assignment(new.data)
            assignor: object = self._assignors.get(new.protocol)
            if isinstance(assignor, KeepsAssignment):
                self._call(new.protocol, partial(assignor.on_assignment, found))
        except KafkaError:
            with self._condition:
                self._membership.rejoin()
            raise
        return found

    def refused_commit(self, code: int, generation: Generation) -> None:
        """The coordinator refused a commit of `generation` with an error about the membership."""
        with self._condition:
            self._membership.refused_commit(code, generation)
            self._condition.notify_all()
        self._on_change()

    def metadata_changed(self) -> None:
        """The watcher has new metadata: rejoin if that calls for another assignment."""
        metadata, now = self._cluster.metadata, self._runtime.monotonic()
        topics = self._topics(metadata)
        with self._condition:
            if not self._watched.have_changed(topics, metadata, now):
                return
            self._membership.rejoin()
        self._on_change()

    def notice_metadata(self) -> None:
        """If another part has got metadata in which a topic has shrunk, a fetch of one that is gone
        for instance, let the watcher ask soon. Cheap otherwise, for it is called at each poll."""
        metadata = self._cluster.metadata
        if metadata is self._noticed:
            return
        self._noticed = metadata
        with self._condition:
            if self._watched.note_shrinking(metadata, self._runtime.monotonic()):
                self._condition.notify_all()

    def stop(self) -> None:
        """Leave the group and end the threads. Does not wait for that."""
        self._stopping = True
        self._stopped.set()
        self.unsubscribe()

    @property
    def has_left(self) -> bool:
        """Whether no LeaveGroup is due or in flight."""
        with self._condition:
            return not (self._membership.must_leave or self._is_leaving)

    def join(self, timeout_s: float) -> bool:
        """Wait until the thread has ended; False if it still runs."""
        if self._task is None:
            return True
        self._task.join(min(timeout_s, WAIT_S_MAX))
        return not self._task.is_alive()

    # --------------------------------------------------------------------------------- its thread

    def _run(self) -> None:
        while True:
            try:
                with self._condition:
                    before = self._state
                    action = self._due()
                    self._is_leaving = isinstance(action, Leave)
                    self._is_superseded = False
                    if isinstance(action, Wait):
                        if self._stopping:
                            return
                        timeout = min(action.until - self._runtime.monotonic(), WAIT_S_MAX)
                        self._condition.wait(timeout)
                        continue
                if before != self._state:  # no poll for max.poll.interval.ms
                    self._on_change()
                if self._do(action):
                    self._on_change()
            except Exception:
                # The root of a thread: without it the member would drop out of the group.
                logger.exception("[group %s] Uncaught error in heartbeats", self._membership.group)
                self._runtime.sleep(BUG_PAUSE_S)

    def _watch_metadata(self) -> None:
        """Refresh the metadata periodically, and check whether the topics have changed."""
        while self._await_refresh():
            try:
                wanted = self._wanted()
                if isinstance(wanted, Pattern):
                    self._cluster.refresh()
                elif wanted is not None:
                    self._cluster.refresh(wanted.names | self._watched.counts.keys())
                self.metadata_changed()
            except KafkaError as error:
                logger.info("[group %s] Cannot refresh metadata: %s", self._membership.group, error)
            except Exception:
                # The root of a thread: without it new topics and partitions would not be noticed.
                logger.exception("[group %s] Uncaught error in metadata", self._membership.group)

    def _await_refresh(self) -> bool:
        """Wait for metadata.max.age.ms; less at the leader while a subscribed topic is missing, or
        seems to be gone. It may be created at any time. False when the member stops."""
        with self._condition:
            hurries = self._condition.wait_for(
                lambda: self._stopping or self._watched.misses_some(), self._max_age_s
            )
        pause_s = min(self._max_age_s, MISSING_CHECK_S) if hurries else 0.0
        return not self._stopped.wait(pause_s)

    def _topics(self, metadata: ClusterMetadata) -> list[str]:
        """The subscribed topics; for a pattern, those known topics that match."""
        wanted = self._wanted()
        if isinstance(wanted, Pattern):
            return sorted(wanted.of(filter(metadata.knows, metadata.topics)))
        return [] if wanted is None else sorted(wanted.names)

    @property
    def _state(self) -> tuple[Phase, KafkaError | None]:
        """When it changes, the user's thread has something to do."""
        return self._membership.phase, self._membership.fault

    def _due(self) -> Action:
        now = self._runtime.monotonic()
        progress = self._progress()
        if progress != self._seen:
            self._seen = progress
            self._membership.progressed(now)
        return self._membership.due(now)

    def _do(self, action: Action) -> bool:
        """Carry out `action`. Returns whether the user's thread has something to do now."""
        membership = self._membership
        before = self._state
        try:
            match action:
                case Leave(request):
                    self._leave(request)
                case Join():
                    self._join()
                case Assign(protocol, members):
                    self._assign(protocol, members)
                case Sync(request):
                    synced = self._ask(request, self._timeout_ms)
                    assert isinstance(synced, SyncGroupResponse)
                    with self._condition:
                        membership.synced(synced, self._runtime.monotonic())
                case Beat(request):
                    heard = self._ask(request, self._timeout_ms)
                    assert isinstance(heard, HeartbeatResponse)
                    with self._condition:
                        membership.heard(heard, request.generation, self._runtime.monotonic())
        except KafkaError as error:
            self._failed(error)
        self._forget_lost_coordinator()
        self._log_outage()
        return before != self._state

    def _leave(self, request: Request) -> None:
        """Send LeaveGroup once. If it fails, the session timeout removes the member."""
        try:
            self._ask(request, self._timeout_ms)
        except KafkaError as error:
            logger.info("[group %s] LeaveGroup failed: %s", self._membership.group, error)

    def _join(self) -> None:
        wanted = self._wanted()
        is_pattern = isinstance(wanted, Pattern)
        topics = self._topics(self._cluster.refresh() if is_pattern else self._cluster.metadata)
        protocols = []
        owned, since = self._owned
        for assignor in self._assignors.values():
            encode = partial(encode_subscription, assignor, topics, owned, since)
            metadata = self._call(assignor.name, encode)
            protocols.append(JoinGroupProtocol(assignor.name, metadata))
        with self._condition:
            if self._wanted() != wanted:
                return  # another subscription while an assignor or a broker took its time
            request = self._membership.join_request(protocols)
            self._watched.begin(topics)

        def ask(connection: Connection) -> Response:
            request.version = join_version(connection, request)
            coordinator = self._cluster.coordinator(self._membership.group, tries=1)
            connection.write(request)
            return self._await_rebalance(connection, coordinator)

        response = self._ask_by(ask)
        assert isinstance(response, JoinGroupResponse)
        with self._condition:
            self._membership.joined(response, self._runtime.monotonic())

    def _await_rebalance(self, connection: Connection, coordinator: Broker) -> Response:
        """The response to a JoinGroup, which waits for the other members. If another broker is the
        coordinator meanwhile, NotCoordinatorForConsumer: this one may have vanished silently."""
        give_up_at = self._runtime.monotonic() + self._join_timeout_ms / 1000
        while connection.awaits_response(self._timeout_ms / 1000):
            if self._runtime.monotonic() >= give_up_at:
                raise RequestTimeout(
                    f"{connection} did not respond to a JoinGroup within {self._join_timeout_ms} ms"
                )
            if self._is_replaced(coordinator):
                raise NotCoordinatorForConsumer(f"{connection} coordinates the group no more")
        return connection.read_response(timeout_ms=self._timeout_ms)

    def _is_replaced(self, coordinator: Broker) -> bool:
        """Whether a broker names another coordinator."""
        try:
            return self._cluster.find_coordinator(self._membership.group).id != coordinator.id
        except KafkaError:
            return False  # nobody knows

    def _assign(self, protocol: str, members: Sequence[JoinGroupMember]) -> None:
        assignor = self._assignors[protocol]
        subscriptions = {one.member_id: decode_subscription(one.metadata) for one in members}
        topics = {topic for one in subscriptions.values() for topic in one.topics}
        cluster = self._cluster.refresh(topics) if topics else self._cluster.metadata
        shares = self._call(protocol, partial(encode_assignments, assignor, cluster, subscriptions))
        counts = {
            topic: len(cluster.topics[topic].partitions) if topic in cluster.topics else 0
            for topic in topics
        }
        self._log_missing([topic for topic, count in counts.items() if not count])
        with self._condition:
            self._watched.count(counts)
            self._membership.assigned(shares)
            self._condition.notify_all()

    def _log_missing(self, topics: Collection[str]) -> None:
        """Log each missing topic once."""
        news = sorted(set(topics) - self._missing)
        self._missing = set(topics)
        if news:
            group, names = self._membership.group, some_of(news)
            logger.warning("[group %s] No partitions of %s yet; retrying", group, names)

    def _call(self, name: str, call: Callable[[], T]) -> T:
        """Call a method of an assignor, which may be the user's. Raises ConsumerRebalanceFailed."""
        try:
            return call()
        except Exception as error:
            logger.exception("[group %s] assignor %s failed", self._membership.group, name)
            raise ConsumerRebalanceFailed(
                f"group {self._membership.group}: assignor {name} raised {error!r}"
            ) from error

    def _ask(self, request: Request, timeout_ms: int) -> Response:
        return self._ask_by(lambda connection: connection.send(request, timeout_ms=timeout_ms))

    def _ask_by(self, ask: Callable[[Connection], Response]) -> Response:
        """Send a request to the coordinator, once; `unsubscribe` aborts it, also while the
        coordinator is looked for: a JoinGroup would bring the member back."""

        def tracked(connection: Connection) -> Response:
            with self._condition:
                if self._is_superseded and not self._is_leaving:
                    raise Closed("the member has left the group")
                self._connection = connection
            try:
                return ask(connection)
            finally:
                self._connection = None

        return self._cluster.ask_coordinator(
            self._membership.group, tracked, policy=ONCE, search_tries=1
        )

    def _failed(self, error: KafkaError) -> None:
        with self._condition:
            if self._is_superseded:
                return  # `unsubscribe` aborted it
            if is_retriable(error) or isinstance(error, ProtocolError | Closed):
                self._membership.failed(error, self._runtime.monotonic())
            else:
                self._membership.refused(error)

    def _forget_lost_coordinator(self) -> None:
        """Look the coordinator up again after errors 7, 15 and 16. One that loads (14) stays."""
        if isinstance(self._membership.outage.error, LOST_COORDINATOR):
            self._cluster.forget_coordinator(self._membership.group)

    def _log_outage(self) -> None:
        """Log each outage once, and its end."""
        group, outage = self._membership.group, self._membership.outage
        if outage.error is None:
            if self._is_logged:
                logger.info("[group %s] The coordinator responds again", group)
            self._is_logged = False
        elif not self._is_logged:
            self._is_logged = deserves_warning(outage, self._runtime.monotonic())
            if self._is_logged:
                logger.warning("[group %s] %s; retrying", group, outage.error)


def join_version(connection: Connection, request: JoinGroupRequest) -> int:
    """The version for this broker. UnsupportedVersion."""
    if request.instance_id is None:
        return connection.versions.highest(JoinGroupRequest, 0, MEMBER_ID_VERSION)
    try:
        return connection.versions.highest(JoinGroupRequest, INSTANCE_VERSION, INSTANCE_VERSION)
    except UnsupportedVersion as error:
        raise UnsupportedVersion(f"group.instance.id needs brokers from 2.3 on: {error}") from None
