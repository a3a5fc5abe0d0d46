"""Poller: the work that a KafkaConsumer does in the user's thread.

Other threads send heartbeats, fetch, commit and look up positions. When one of them has something
for the user's thread, that thread returns to `_maintain`, which in this order

    1. raises WokenUp after a wakeup
    2. runs the callbacks of commits
    3. raises errors of the group
    4. gives up revoked partitions, after an automatic commit and on_revoked; all of them, or, if
       the assignors are cooperative, none yet
    5. takes assigned partitions, and calls on_assigned; gives up those that it kept and is not
       assigned any more, and rejoins for the members that wait for them
    6. sends an automatic commit if it is due
    7. looks up unknown positions
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import Final, TypeAlias, TypeVar

from kafka08.client.cluster import ClusterClient
from kafka08.client.retry import RetryPolicy
from kafka08.consumer.fetching.brokers import BootstrapBrokers
from kafka08.consumer.fetching.fetch_metrics import FetchMetrics
from kafka08.consumer.fetching.fetch_settings import (
    LARGEST,
    NO_RESET,
    SMALLEST,
    FetchSettings,
    Nearest,
)
from kafka08.consumer.fetching.fetcher import response_bytes_max
from kafka08.consumer.fetching.fetcher_manager import FetcherManager
from kafka08.consumer.fetching.owned_partition import OwnedPartition
from kafka08.consumer.group.assignor_bytes import is_cooperative
from kafka08.consumer.group.assignors import Assignor
from kafka08.consumer.group.committer import CommitCallback, Offsets
from kafka08.consumer.group.deserializers import Deserializer
from kafka08.consumer.group.group_member import GroupMember
from kafka08.consumer.group.interceptors import Interceptors
from kafka08.consumer.group.kafka_consumer_config import EARLIEST, LATEST, KafkaConsumerConfig
from kafka08.consumer.group.membership import NO_GENERATION, Membership, Timeouts
from kafka08.consumer.group.partitions import Partitions, Start
from kafka08.consumer.group.pending_commits import PendingCommits, log_failure, offsets_of
from kafka08.consumer.group.polled_stream import PolledStream
from kafka08.consumer.group.position_searches import PositionSearches
from kafka08.consumer.group.start_finder import StartFinder, no_offset
from kafka08.consumer.group.subscription import Chosen, Pattern, Subscription, Topics
from kafka08.errors import (
    Closed,
    FencedInstanceId,
    FetchFailed,
    KafkaError,
    NoBrokersAvailable,
    RequestTimeout,
    WokenUp,
)
from kafka08.network.connection import Connection
from kafka08.runtime import Buffers, ClientRuntime
from kafka08.structs import Broker, ConsumerGroupMetadata, TopicPartition

logger = logging.getLogger(__name__)

T = TypeVar("T")
RebalanceCallback: TypeAlias = Callable[[list[TopicPartition]], object]
"""Called with partitions, in the thread that polls. It may use the consumer, but must not poll."""

LASTING_S: Final = 30.0
"""A poll without messages raises a failure that has lasted so long."""
REBALANCE_COMMIT_S: Final = 10.0
"""How long a rebalance waits for the automatic commit before it."""
COMMIT_SLACK_S: Final = 0.1
"""How much longer than its timeout a commit is waited for: its own error says more."""
ASK_TIMEOUT_MS: Final = 30_000
"""Timeout of requests whose response waits neither for messages nor for other members."""
RESETS: Final = {EARLIEST: Start.EARLIEST, LATEST: Start.LATEST}
FETCH_RESETS: Final = {EARLIEST: SMALLEST, LATEST: LARGEST}
JOIN_S: Final = 1.0


class Poller:
    """See the module.

    cluster       client of the cluster, for requests other than fetches
    partitions    the assigned partitions and their positions
    subscription  what to read; None: nothing
    """

    def __init__(
        self,
        config: KafkaConsumerConfig,
        *,
        deserializers: tuple[Deserializer | None, Deserializer | None],
        assignors: list[Assignor],
        interceptors: Interceptors,
        runtime: ClientRuntime,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._interceptors = interceptors
        self._backoff_s = config.retry_backoff_ms / 1000
        self._ask_timeout_ms = min(config.request_timeout_ms, ASK_TIMEOUT_MS)
        self._security = config.security
        """Made once: its connections share a token, and the files that they have read."""
        self.cluster = ClusterClient(
            config.bootstrap,
            client_id=config.client_id,
            timeout_ms=self._ask_timeout_ms,
            retry_policy=RetryPolicy(backoff_ms=min(config.retry_backoff_ms, self._ask_timeout_ms)),
            buffers=Buffers(send=config.send_buffer_bytes),
            negotiates=True,
            security=self._security,
            knows_epochs=True,
            runtime=runtime,
        )
        self.stream = PolledStream(
            runtime=runtime,
            fetch_bytes=config.max_partition_fetch_bytes,
            key_deserializer=deserializers[0],
            value_deserializer=deserializers[1],
            on_room=self._notify_fetchers,
        )
        settings = fetch_settings(config)
        self._response_bytes_max = response_bytes_max(settings)
        self._fetchers = FetcherManager(
            config.group_id or "kafka08-consumer",
            settings,
            BootstrapBrokers(self.cluster),
            runtime,
            self._connect_to,
        )
        self.partitions = Partitions(
            self.stream, self._fetchers, max(1, config.max_partition_fetch_bytes)
        )
        self.subscription: Subscription | None = None
        self._on_assigned: RebalanceCallback | None = None
        self._on_revoked: RebalanceCallback | None = None
        self._on_lost: RebalanceCallback | None = None
        self._member = GroupMember(
            Membership(
                config.group_id,
                member_timeouts(config),
                instance_id=config.group_instance_id or None,
                keeps=all(map(is_cooperative, assignors)),
            ),
            self.cluster,
            assignors,
            wanted=self._wanted,
            progress=lambda: self.stream.progress,
            on_change=self.stream.call,
            timeout_ms=min(self._ask_timeout_ms, config.session_timeout_ms),
            rebalance_timeout_ms=max(config.max_poll_interval_ms, config.session_timeout_ms),
            metadata_max_age_ms=config.metadata_max_age_ms,
            runtime=runtime,
        )
        self._commits = PendingCommits(
            self.cluster,
            config,
            interceptors,
            generation=lambda: self._member.generation,
            is_accepted=self._may_commit,
            on_refused=self._member.refused_commit,
            on_change=self.stream.call,
            timeout_ms=self._ask_timeout_ms,
            runtime=runtime,
        )
        finder = StartFinder(
            self.cluster,
            config.group_id,
            RESETS.get(config.auto_offset_reset),
            isolation=config.isolation,
            on_found=self.stream.call,
            backoff_s=self._backoff_s,
            runtime=runtime,
        )
        self._searches = PositionSearches(
            finder, self.partitions, self._commits.partitions, runtime
        )
        self._began_at = inf
        """When a call first asked the brokers for something."""
        self._woken = False
        self._is_polling = False
        self.is_closed = False

    # ------------------------------------------------------------------------------ subscriptions

    def subscribe(
        self,
        wanted: Topics | Pattern,
        on_assigned: RebalanceCallback | None,
        on_revoked: RebalanceCallback | None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._on_lost = on_lost or on_revoked
        if wanted != self.subscription:
            former, self.subscription = self.subscription, wanted
            try:
                self._member.subscribe()
            except BaseException:  # no thread is left, say: another call must try again
                self.subscription = former
                raise
        self._commits.begin_interval()

    def assign(self, chosen: Chosen) -> None:
        if self._commits.is_automatic:
            self._commits.submit_automatic(self._finish(None))
        self.subscription = chosen
        self.partitions.replace(chosen.partitions)
        self._commits.begin_interval()

    def unsubscribe(self) -> None:
        if isinstance(self.subscription, Topics | Pattern):
            self._member.unsubscribe()
        self.subscription = None
        self.partitions.replace(())

    # ------------------------------------------------------------------------------------ polling

    def next(self, take: Callable[[float], T | None], timeout_s: float) -> T | None:
        """The first result of the stream's `take(give_up_at)` that is not None; None after
        `timeout_s`. Finishes the messages that it returned before."""
        if self.subscription is None:
            raise RuntimeError(
                "the consumer has no subscription: call subscribe or assign before it is polled"
            )
        if self._is_polling:
            raise RuntimeError("a callback of a rebalance or a commit must not poll")
        now = self._runtime.monotonic()
        give_up_at = now + timeout_s
        self._began_at = min(self._began_at, now)
        self.stream.finish()
        is_member = not isinstance(self.subscription, Chosen)
        self._is_polling = True
        try:
            if is_member:  # a signal handler may raise behind the call, too
                self._member.polling()
            while True:
                self._maintain()
                taken = take(give_up_at)
                if taken is not None:
                    return taken
                self._check_open()
                if self._runtime.monotonic() >= give_up_at:
                    failure = self.failure(LASTING_S)
                    if failure is not None:
                        raise failure.with_traceback(None)
                    return None
        finally:
            self._is_polling = False
            if is_member:
                self._member.polled()

    def wait_until(self, done: Callable[[], bool], give_up_at: float, what: str) -> None:
        """Wait until `done()`; RequestTimeout after `give_up_at`, WokenUp after `wakeup`."""
        self._began_at = min(self._began_at, self._runtime.monotonic())
        in_time = self.stream.wait_until(
            lambda: done() or self._woken or self.is_closed, give_up_at
        )
        if done():
            return
        self._check_open()
        self.raise_woken()
        assert not in_time
        cause = self.failure(0.0)
        why = "" if cause is None else f": {cause}"
        raise RequestTimeout(f"{what} took longer than the timeout{why}") from cause

    def find(self, tp: TopicPartition, give_up_at: float) -> int:
        """The position of `tp`; looks it up if it is unknown. NoOffsetForPartition is about `tp`:
        that of others is left to `poll`."""
        without: set[TopicPartition] = set()
        while (position := self.partitions.position(tp)) is None:
            self.raise_woken()
            without.update(self._searches.take())
            if tp in without:
                raise no_offset([tp])
            self._searches.begin(without)
            position = self.partitions.position(tp)
            if position is not None:
                break
            self.wait_until(lambda: self._searches.has_news(tp), give_up_at, f"the search for {tp}")
        return position

    def reset(self, partitions: Collection[TopicPartition], start: Start) -> None:
        """Find new positions when they are needed."""
        self.partitions.reset(partitions, start)
        self._searches.forget(partitions)

    def wake_up(self) -> None:
        """Make the call that waits, or the next that waits, raise WokenUp. For any thread."""
        self._woken = True
        self.stream.call()

    # ------------------------------------------------------------------------------------ commits

    def commit(self, offsets: Offsets | None, timeout_s: float) -> None:
        """Commit these offsets, or all positions, and wait for the result. After `wakeup`, WokenUp
        comes before anything is sent."""
        self.raise_woken()
        self._commit(offsets, timeout_s)

    def _commit(self, offsets: Offsets | None, timeout_s: float) -> None:
        offsets = self._finish(offsets)
        self._commits.run_callbacks()
        if not offsets:
            return
        give_up_at = self._runtime.monotonic() + timeout_s
        commit = self._commits.submit(offsets, give_up_at=give_up_at)
        slack_s = min(self._backoff_s, COMMIT_SLACK_S)
        self.wait_until(lambda: commit.is_done, give_up_at + slack_s, "the commit")
        self._commits.run_callbacks()
        if commit.error is not None:
            raise commit.error

    def commit_async(self, offsets: Offsets | None, callback: CommitCallback | None) -> None:
        self._commits.submit(self._finish(offsets), callback or log_failure)

    def committing(self) -> set[TopicPartition]:
        """The partitions of commits that have not ended."""
        return self._commits.partitions()

    def _finish(self, offsets: Offsets | None) -> Offsets:
        """The offsets to commit, all positions if None; the messages before them are finished."""
        if offsets is None:
            self.stream.finish()
            return self.positions()
        self.stream.finish_before({tp: one.offset for tp, one in offsets.items()})
        return self.partitions.with_epochs(offsets)

    def positions(self) -> Offsets:
        """The known positions, behind the messages that were returned."""
        return self._to_commit(self.partitions.positions())

    def _to_commit(self, positions: Mapping[TopicPartition, int]) -> Offsets:
        return self.partitions.with_epochs(offsets_of(positions))

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The member for whose partitions offsets are committed; none after `assign`."""
        if isinstance(self.subscription, Chosen):
            return ConsumerGroupMetadata(self._config.group_id)
        last = self._member.last_generation
        return ConsumerGroupMetadata(
            self._config.group_id, last.id, last.member_id, last.instance_id
        )

    # --------------------------------------------------------------------------------------- end

    def close(self, timeout_s: float) -> None:
        """Commit finished messages, leave the group and end all threads, within `timeout_s`."""
        if self.is_closed:
            return
        give_up_at = self._runtime.monotonic() + timeout_s
        try:
            self._commit_finally(give_up_at)
        finally:
            self.is_closed = True
            self._member.stop()
            self._commits.stop()
            self._fetchers.stop()
            self._searches.close()
            self.stream.close()
            if self._member.has_left:
                self.cluster.close()  # or it would keep looking for a coordinator
            self._member.join(max(0.0, give_up_at - self._runtime.monotonic()))
            self.cluster.close()
            self._commits.join(JOIN_S)
            self._fetchers.join(JOIN_S)
            try:
                self._commits.end_all()
            finally:
                self._interceptors.close()

    def _commit_finally(self, give_up_at: float) -> None:
        if self._may_commit() and self._commits.is_automatic:
            offsets = self._to_commit(self.partitions.finished())
            self._commits.submit(offsets, log_failure, give_up_at=give_up_at)
        self.stream.wait_until(lambda: not self._commits.are_in_flight, give_up_at)
        self._commits.run_callbacks()

    # ----------------------------------------------------------------------------------- its parts

    def _maintain(self) -> None:
        # First: a call that comes during the work below sends the reader back here.
        self.stream.is_called = False
        self._check_open()
        self.raise_woken()  # 1
        self._commits.run_callbacks()  # 2
        if not isinstance(self.subscription, Chosen):
            self._member.notice_metadata()
            fault = self._member.take_fault()
            if fault is not None:
                if isinstance(fault, FencedInstanceId) and self._member.must_give_up:
                    self._give_up()  # it will not join again
                raise fault.with_traceback(None)  # 3
            if self._member.must_give_up:
                self._give_up()  # 4
            assignment = self._member.take_assignment()
            if assignment is not None:
                self._take_up(assignment.partitions)  # 5
        self._commits.commit_if_due(lambda: self._to_commit(self.partitions.positions()))  # 6
        self._find_positions()  # 7

    def _give_up(self) -> None:
        kept: list[TopicPartition] = []
        if self._member.keeps and not self._member.lost:
            kept = [tp for tp in self.partitions if self._is_wanted(tp.topic)]
        try:
            self._revoke(kept)
        finally:
            if self._member.must_give_up:
                self._member.give_up(kept)

    def _is_wanted(self, topic: str) -> bool:
        """Whether it is in the subscription, which may be another one than that of the member."""
        wanted = self._wanted()
        return topic in wanted.names if isinstance(wanted, Topics) else wanted is not None

    def _revoke(self, kept: Collection[TopicPartition]) -> None:
        """Give up all partitions but these."""
        lost = self._member.lost
        given_up = [tp for tp in self.partitions if tp not in kept]
        if not given_up and kept:
            return
        call = self._on_lost if lost else self._on_revoked
        try:
            try:
                if given_up and self._commits.is_automatic and not lost:
                    self._commit_before_rebalance()
            finally:  # also if the callback of an earlier commit has raised
                if given_up and call is not None:
                    call(given_up)
        finally:
            self.partitions.replace(kept)

    def _commit_before_rebalance(self) -> None:
        try:
            self._commit(None, min(REBALANCE_COMMIT_S, self._config.session_timeout_ms / 1000))
        except WokenUp:
            self._woken = True  # for the next call that waits: the rebalance continues
        except KafkaError as error:
            logger.warning("[group %s] Commit before a rebalance: %s", self._config.group_id, error)

    def _take_up(self, partitions: list[TopicPartition]) -> None:
        had = list(self.partitions)
        kept = [tp for tp in had if tp in partitions]
        try:
            if len(kept) < len(had):
                self._revoke(kept)
        finally:
            self.partitions.replace(partitions)
            if len(kept) < len(had):
                self._member.rejoin()
        self._commits.begin_interval()
        if self._on_assigned is not None:
            self._on_assigned([tp for tp in partitions if tp not in kept])

    def _find_positions(self) -> None:
        without = self._searches.take()
        if without:
            raise no_offset(without)
        self._searches.begin()

    def failure(self, lasting_s: float) -> KafkaError | None:
        """Why there are no messages: a failure that is retried and has lasted for `lasting_s`."""
        now = self._runtime.monotonic()
        if not isinstance(self.subscription, Chosen):
            failure = self._member.failure(lasting_s)
            if failure is not None:
                return failure
        failure = self._searches.failure(lasting_s)
        if failure is not None:
            return failure
        for owned in self.partitions.owned:
            if owned.outage.lasting(lasting_s, now) is not None:
                return fetch_failed(owned, now)
        if not self.cluster.is_reached and now - self._began_at >= lasting_s:
            # Connections that are not even refused: each attempt to open one takes long.
            return NoBrokersAvailable(
                f"no broker responded for {now - self._began_at:.0f} s: none of "
                f"{self._config.bootstrap_servers}. The consumer keeps trying; check "
                "bootstrap.servers, and that the brokers are running"
            )
        return None

    def _may_commit(self) -> bool:
        """Whether the group accepts a commit of this member, as far as is known here."""
        if isinstance(self.subscription, Topics | Pattern):
            return self._member.generation.id != NO_GENERATION
        return True

    @property
    def fetch_metrics(self) -> FetchMetrics:
        return self._fetchers.metrics

    def _notify_fetchers(self) -> None:
        """The stream has room: fetchers may continue."""
        self._fetchers.notify()

    def _wanted(self) -> Topics | Pattern | None:
        """The current subscription, for the member's thread."""
        subscription = self.subscription
        return None if isinstance(subscription, Chosen) else subscription

    def _connect_to(self, broker: Broker) -> Connection:
        return Connection(
            broker.host,
            broker.port,
            client_id=self._config.client_id,
            timeout_ms=min(
                self._config.request_timeout_ms, ASK_TIMEOUT_MS + self._config.fetch_max_wait_ms
            ),
            connect_timeout_ms=10_000,
            buffers=Buffers(self._config.receive_buffer_bytes, self._config.send_buffer_bytes),
            max_response_bytes=self._response_bytes_max,
            negotiates=True,
            security=self._security,
            runtime=self._runtime,
        )

    def _check_open(self) -> None:
        if self.is_closed:
            raise Closed("the consumer is closed")

    def raise_woken(self) -> None:
        """Raise WokenUp if `wakeup` was called and no call has raised it yet. A call that may wait
        begins with this: its request may be done before it would have waited."""
        if self._woken:
            self._woken = False
            raise WokenUp("wakeup was called")


def fetch_failed(owned: OwnedPartition, now: float) -> FetchFailed:
    """The error for a partition that cannot be fetched."""
    error = FetchFailed(
        f"{owned.topic_partition} could not be fetched for {now - owned.outage.since:.0f} s: "
        f"{owned.outage.error}. The consumer keeps trying; check that the topic exists and its "
        "brokers are running"
    )
    error.__cause__ = owned.outage.error
    return error


def fetch_settings(config: KafkaConsumerConfig) -> FetchSettings:
    """The settings of its fetchers."""
    return FetchSettings(
        auto_offset_reset=FETCH_RESETS.get(config.auto_offset_reset, NO_RESET),
        fetch_message_max_bytes=config.max_partition_fetch_bytes,
        fetch_min_bytes=config.fetch_min_bytes,
        fetch_wait_max_ms=config.fetch_max_wait_ms,
        fetch_max_bytes=config.fetch_max_bytes,
        isolation=config.isolation,
        nearest=Nearest(config.client_rack, config.metadata_max_age_ms)
        if config.client_rack
        else None,
        refresh_leader_backoff_ms=config.retry_backoff_ms,
    )


def member_timeouts(config: KafkaConsumerConfig) -> Timeouts:
    """The times of its membership, in seconds."""
    return Timeouts(
        session=config.session_timeout_ms / 1000,
        heartbeat=config.heartbeat_interval_ms / 1000,
        poll=config.max_poll_interval_ms / 1000,
        backoff=config.retry_backoff_ms / 1000,
    )
