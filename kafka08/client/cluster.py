"""ClusterClient: metadata of a cluster, the leaders of partitions, and connections to them.

    cluster = ClusterClient(parse_bootstrap("host1:9092,host2:9092"), client_id="me")
    cluster.leader(TopicPartition("pages", 0))
    cluster.ask_leaders({tp: EARLIEST_OFFSET for tp in partitions}, ask)

Metadata is fetched at first use and again after an error that shows that it is out of date; it does
not expire. Sources: kafka.client.ClientUtils, kafka.producer.BrokerPartitionInfo 0.8.2.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from math import inf
from typing import Final, TypeAlias, TypeVar, cast

from kafka08 import waiting
from kafka08.client.metadata import ClusterMetadata, PartitionInfo
from kafka08.client.pool import ConnectionPool
from kafka08.client.requests import coordinator_of, metadata_version
from kafka08.client.retry import (
    PASSING,
    RetryPolicy,
    is_retriable,
    is_retriable_at_coordinator,
    needs_metadata,
    retry,
)
from kafka08.client.run_concurrently import run_concurrently
from kafka08.clock import Clock
from kafka08.errors import (
    ApiError,
    AuthenticationFailed,
    ClientError,
    Closed,
    ConsumerCoordinatorNotAvailable,
    InvalidTopic,
    KafkaError,
    NoApiVersions,
    NoBrokersAvailable,
    NoBrokerSaysVersions,
    NotCoordinatorForConsumer,
    ProtocolError,
    RequestTimedOut,
    RequestTimeout,
    SilentBroker,
)
from kafka08.lifecycle import ProcessBound
from kafka08.listing import counted
from kafka08.network.connection import DEFAULT_TIMEOUT_MS, Connection
from kafka08.network.session import PLAINTEXT, Security
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from kafka08.protocol.offset_fetch import probe
from kafka08.protocol.types import Request, Response
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.runtime import Buffers, Runtime
from kafka08.runtime.threads import THREADS
from kafka08.runtime.transport import Address
from kafka08.structs import Broker, TopicPartition, host_port
from kafka08.waiting import giving_up_at

logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")
Versions: TypeAlias = tuple[int, int] | Callable[[VersionRanges], int]
"""See ClusterClient.ask_any."""

LOST_COORDINATOR: Final = (
    ConsumerCoordinatorNotAvailable,
    NotCoordinatorForConsumer,
    RequestTimedOut,
)
"""The errors of a broker that is no longer the group's coordinator, or might not be: one whose
replicas do not follow may have a successor that it does not know."""
COORDINATOR_TRIES: Final = 100
"""About 10 s with the usual backoff: the first request creates the offsets topic, which takes a
broker one to three seconds."""
PROBE_S: Final = 2.0
"""A broker that is not given up must respond to a small request in this time."""
SILENT_S: Final = 30.0
"""How long tools that only look ask nothing of one that did not."""
WARN_S: Final = 10.0
"""Between two warnings with the same text."""


class ClusterClient(ProcessBound):
    """Metadata, leaders, coordinators and pooled connections of one cluster. Thread-safe.

    bootstrap           addresses of at least one broker; after the first metadata also the brokers
                        in it are asked
    timeout_ms          longest wait for a response
    connect_timeout_ms  longest wait for a connection
    retry_policy        for `ask_leaders` and `at_leader`. They take its time, and twice that of
                        both timeouts
    negotiates          whether connections ask brokers for their API versions
    accepts_0_8         with `negotiates`: also brokers of 0.8, which do not know them
    security            of all connections
    creates_topics      metadata is requested by the names of topics, and brokers with
                        auto.create.topics.enable create those that do not exist: for producers
                        alone. Else the metadata of all topics is requested, so that no reader and
                        no tool brings a deleted topic back
    knows_epochs        with `negotiates`: whether metadata have the epochs of leaders, where the
                        broker that responds knows them
    silent_s            a broker that did not respond in time is asked nothing for this long: each
                        request to it fails at once
    is_reached          whether any broker has ever responded
    """

    def __init__(
        self,
        bootstrap: Sequence[tuple[str, int]],
        *,
        client_id: str = "",
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        connect_timeout_ms: int = 10_000,
        retry_policy: RetryPolicy = RetryPolicy(),
        buffers: Buffers = Buffers(),
        negotiates: bool = False,
        accepts_0_8: bool = False,
        security: Security = PLAINTEXT,
        creates_topics: bool = False,
        knows_epochs: bool = False,
        silent_s: float = 0.0,
        runtime: Runtime = THREADS,
    ) -> None:
        assert bootstrap, "give at least one broker"
        self._bootstrap = list(bootstrap)
        self._retry_policy = retry_policy
        self._one_try_s = (timeout_ms + connect_timeout_ms) / 1000
        self._creates_topics = creates_topics
        self._metadata_version = metadata_version if knows_epochs else None
        self._runtime = runtime
        self._lock = runtime.rlock()
        """Re-entrant for signal handlers, like the pool's."""
        self._metadata = ClusterMetadata()
        self._coordinators: dict[str, Broker] = {}
        self._failed: set[Address] = set()
        """Brokers whose last request or connection failed. Where any broker will do, they are asked
        last: one that vanished silently takes 10 s, the session of a group member."""
        self.silent_s = silent_s
        self._silent: dict[Address, tuple[float, str]] = {}
        """Broker → (until when it is asked nothing, why)."""
        self.is_reached = False
        self._warned: dict[str, float] = {}
        """Text of a warning → when it was logged."""
        self._pool = ConnectionPool(
            lambda host, port: Connection(
                host,
                port,
                client_id=client_id,
                timeout_ms=timeout_ms,
                connect_timeout_ms=connect_timeout_ms,
                buffers=buffers,
                negotiates=negotiates,
                accepts_0_8=accepts_0_8,
                security=security,
                runtime=runtime,
            ),
            runtime,
        )

    @property
    def clock(self) -> Clock:
        """The clock of its timeouts and retries."""
        return self._runtime

    @property
    def metadata(self) -> ClusterMetadata:
        """The current metadata: a snapshot, which a later call may replace."""
        return self._metadata

    def refresh(self, topics: Iterable[str] = ()) -> ClusterMetadata:
        """Fetch metadata from a broker: of all topics; of `topics`, unless empty, for a client that
        `creates_topics`. A topic's error is raised when the topic is used. Raises
        NoBrokersAvailable."""
        # 0.8: a request by name creates a topic; one of all topics does not.
        wanted = sorted(set(topics)) if self._creates_topics else []
        response = self.ask_any(MetadataRequest(wanted)) if wanted else self._all_topics()
        assert isinstance(response, MetadataResponse)
        if len(wanted) > 1 and all(t.error_code == InvalidTopic.code for t in response.topics):
            # 0.8: one illegal name fails the whole response.
            for topic in wanted:
                self.refresh([topic])
            return self._metadata
        with self._lock:
            self._metadata = self._metadata.updated(response, all_topics=not wanted)
            return self._metadata

    def forget_others(self, topics: Collection[str]) -> None:
        """Forget all topics but these until they are requested again."""
        with self._lock:
            self._metadata = self._metadata.limited_to(topics)

    def known(self, topics: Iterable[str]) -> ClusterMetadata:
        """Metadata that includes `topics`; sends a request only for those never requested."""
        missing = [topic for topic in topics if not self._metadata.knows(topic)]
        return self.refresh(missing) if missing else self._metadata

    def brokers(self) -> list[Broker]:
        """The live brokers by id; empty while a new cluster has no topic."""
        metadata = self._metadata if self._metadata.brokers else self.refresh()
        return [metadata.brokers[broker_id] for broker_id in sorted(metadata.brokers)]

    def partitions(self, topic: str) -> tuple[PartitionInfo, ...]:
        """All partitions of `topic` by number. Raises UnknownTopicOrPartition, InvalidTopic,
        LeaderNotAvailable (it was just created), NoBrokersAvailable."""
        return self.known([topic]).partitions(topic)

    def leader(self, tp: TopicPartition) -> Broker:
        """The leader of `tp` by current metadata; same errors as `partitions`. `refresh` first if
        the previous result is no longer the leader."""
        return self.known([tp.topic]).leader(tp)

    def coordinator(
        self,
        group: str,
        *,
        passes: Callable[[KafkaError], bool] = is_retriable,
        tries: int = COORDINATOR_TRIES,
        give_up_at: float = inf,
    ) -> Broker:
        """The group's coordinator; cached until `forget_coordinator`.

        Waits for the offsets topic, which the very first call creates; then raises
        ConsumerCoordinatorNotAvailable. Retries only after an error that `passes`, and not after
        `give_up_at` (monotonic seconds).
        """
        known = self._coordinators.get(group)
        if known is not None:
            return known
        policy = RetryPolicy(tries, self._retry_policy.backoff_ms)
        give_up_at = min(give_up_at, self._runtime.monotonic() + policy.longest_s)
        with self.trying_until(give_up_at):
            found = retry(
                lambda: self.find_coordinator(group),
                policy,
                self._runtime,
                what=f"looking for the coordinator of group {group}",
                passes=passes,
                give_up_at=give_up_at,
            )
        with self._lock:
            self._coordinators[group] = found
        return found

    def find_coordinator(self, group: str) -> Broker:
        """The group's coordinator by the word of any broker, now. Raises what `coordinator` retries
        too."""
        return coordinator_of(group, self.ask_any(ConsumerMetadataRequest(group)))

    def forget_coordinator(self, group: str) -> None:
        """Look it up again next time: it returned error 7, 15 or 16, or could not be reached."""
        with self._lock:
            self._coordinators.pop(group, None)

    def ask_coordinator(
        self,
        group: str,
        ask: Callable[[Connection], R],
        *,
        policy: RetryPolicy | None = None,
        passes: Callable[[KafkaError], bool] = is_retriable_at_coordinator,
        search_tries: int = COORDINATOR_TRIES,
        give_up_at: float | None = None,
    ) -> R:
        """`ask(connection to the group's coordinator)`. If `ask` raises an error that `passes`, it
        is called again, at a coordinator that is looked up again where needed. `search_tries`: of
        each of these searches. Nothing is tried again after `give_up_at` (monotonic seconds); by
        default as `policy` says."""
        policy = policy or self._retry_policy
        if give_up_at is None:
            give_up_at = self._runtime.monotonic() + policy.longest_s

        def attempt() -> R:
            broker = self.coordinator(group, tries=search_tries, give_up_at=give_up_at)
            try:
                with self._noting(broker), self.connection(broker) as connection:
                    return ask(connection)
            except (*PASSING, SilentBroker, ProtocolError, *LOST_COORDINATOR):
                # Another broker may be the coordinator by now.
                self.forget_coordinator(group)
                raise

        with self.trying_until(give_up_at):
            return retry(
                attempt,
                policy,
                self._runtime,
                what=f"asking the coordinator of group {group}",
                passes=passes,
                give_up_at=give_up_at,
            )

    def trying_until(self, last_try_at: float) -> AbstractContextManager[None]:
        """For a block whose tries begin until then (monotonic seconds): it waits for brokers no
        longer than the last of them may take."""
        return giving_up_at(last_try_at + self._one_try_s)

    def connection(self, broker: Broker) -> AbstractContextManager[Connection]:
        """A pooled connection to `broker` for a `with` block, which has it for itself.
        Raises ConnectionFailed, Closed; SilentBroker."""
        return self._connection((broker.host, broker.port))

    def _connection(self, address: Address) -> AbstractContextManager[Connection]:
        lent = self._pool.connection(*address)
        return self._noting_silence(address, lent) if self.silent_s else lent

    @contextmanager
    def _noting_silence(
        self, address: Address, lent: AbstractContextManager[Connection]
    ) -> Iterator[Connection]:
        until, why = self._silent.get(address, (-inf, ""))
        if self._runtime.monotonic() < until:
            raise SilentBroker(why)
        try:
            with lent as connection:
                yield connection
        except KafkaError as error:
            if is_timeout(error):
                self._note_silent(address, "{}:{} did not respond in time".format(*address))
            raise

    def _note_silent(self, address: Address, why: str) -> None:
        self._silent[address] = self._runtime.monotonic() + self.silent_s, why

    def find_silent(self, timeout_s: float) -> dict[Address, str]:
        """Ask all known brokers at the same time for a small response. One that does not give it in
        time is silent from then on, whatever hangs: the broker, its network, or its name. Returns
        why each broker without a response has none."""
        known = {(broker.host, broker.port) for broker in self._metadata.brokers.values()}
        wanted = sorted(known.union(self._bootstrap))
        deadline = self._runtime.monotonic() + timeout_s
        errors: dict[Address, str | None] = {}

        def ask(address: Address) -> None:
            try:
                with giving_up_at(deadline), self._connection(address) as connection:
                    connection.send(probe())
                errors[address] = None
            except KafkaError as error:
                if not is_timeout(error):
                    errors[address] = str(error)

        tasks = [
            self._runtime.spawn(partial(ask, address), name="kafka08-probe") for address in wanted
        ]
        for task in tasks:
            task.join(max(0.0, deadline + 0.5 - self._runtime.monotonic()))
        found = dict(errors)
        for host, port in set(wanted) - found.keys():
            found[host, port] = why = f"{host_port(host, port)} did not respond in {timeout_s:g} s"
            self._note_silent((host, port), why)
        return {address: why for address, why in sorted(found.items()) if why is not None}

    def send(self, broker: Broker, request: Request, versions: Versions | None = None) -> Response:
        """The response of `broker`; one attempt. `versions` as for `ask_any`."""
        with self.connection(broker) as connection:
            return send_at_version(connection, request, versions)

    def ask_any(self, request: Request, versions: Versions | None = None) -> Response:
        """The response of any broker: all known ones are tried once, in random order, those that
        failed last time behind the others.

        versions   the lowest and highest version that the caller can use, for a client that
                   `negotiates`: the highest that the broker serves is sent. Or a function that
                   chooses by those that it serves. UnsupportedVersion

        NoBrokersAvailable has the error of each of them; AuthenticationFailed, if one refused it.
        """
        return next(self._responses(request, versions))

    def _responses(self, request: Request, versions: Versions | None = None) -> Iterator[Response]:
        """The responses of known brokers, as for `ask_any`; NoBrokersAvailable if none responds."""
        addresses = {(broker.host, broker.port) for broker in self._metadata.brokers.values()}
        candidates = sorted(addresses.union(self._bootstrap))
        self._runtime.random.shuffle(candidates)
        # A stable sort: both parts stay shuffled.
        candidates.sort(key=self._failed.__contains__)
        failures: list[str] = []
        kind: type[KafkaError] = NoBrokerSaysVersions
        responded = 0
        for host, port in candidates:
            if failures and self._runtime.monotonic() >= waiting.give_up_at():
                left = len(candidates) - responded - len(failures)
                failures.append(f"no time was left to ask {counted(left, 'more broker')}")
                break
            try:
                with self._connection((host, port)) as connection:
                    response = send_at_version(connection, request, versions)
            except Closed:
                raise
            except (ClientError, ProtocolError) as error:
                # `close` has aborted the connection: that is no failure of the broker.
                if self._pool.is_closed:
                    raise Closed("the client is closed") from error
                self._failed.add((host, port))
                where = host_port(host, port)
                if not isinstance(error, SilentBroker):  # that was said already
                    self._warn(f"{type(request).__name__} to {where} failed: {error}")
                failures.append(str(error) if where in str(error) else f"{where}: {error}")
                if isinstance(error, AuthenticationFailed):
                    kind = AuthenticationFailed
                elif kind is NoBrokerSaysVersions and not isinstance(error, NoApiVersions):
                    kind = NoBrokersAvailable
            else:
                self._failed.discard((host, port))
                self.is_reached = True
                responded += 1
                yield response
        if not responded:
            none = kind("no broker responded: " + "; ".join(failures))
            if isinstance(none, NoBrokersAvailable):
                none.addresses = tuple(candidates)
            raise none

    def _warn(self, text: str) -> None:
        """Log it; at debug level if that was done within WARN_S. Callers try again and again
        while brokers are down or of another age."""
        now = self._runtime.monotonic()
        with self._lock:
            warned = {t: at for t, at in self._warned.items() if now - at < WARN_S}
            self._warned = {text: now, **warned}
        logger.log(logging.DEBUG if text in warned else logging.WARNING, "%s", text)

    def at_leader(self, tp: TopicPartition, ask: Callable[[Connection], R]) -> R:
        """`ask(connection to the leader of tp)`. If `ask` raises an error that may pass, it is
        called again with new metadata, as often as the retry policy allows."""

        def ask_one(connection: Connection, _: object) -> dict[TopicPartition, R | ApiError]:
            return {tp: ask(connection)}

        return self.ask_leaders({tp: None}, ask_one)[tp]

    def ask_leaders(
        self,
        wanted: Mapping[TopicPartition, T],
        ask: Callable[
            [Connection, Mapping[TopicPartition, T]], Mapping[TopicPartition, R | ApiError]
        ],
        *,
        passes: Callable[[KafkaError], bool] = is_retriable,
    ) -> dict[TopicPartition, R]:
        """Call `ask` once per leader and round, with the part of `wanted` that it leads; of several
        leaders side by side, in tasks of their own.

        `ask` returns each partition's result or error, or raises one for all of them. Partitions
        whose error `passes` are asked for again, after the backoff and with new metadata. After the
        last attempt, or an error that does not pass, the first partition's error is raised.
        """
        found = self._ask_in_rounds(wanted, ask, passes, is_whole=True)
        return cast(dict[TopicPartition, R], found)

    def ask_each_leader(
        self,
        wanted: Mapping[TopicPartition, T],
        ask: Callable[
            [Connection, Mapping[TopicPartition, T]], Mapping[TopicPartition, R | ApiError]
        ],
        *,
        passes: Callable[[KafkaError], bool] = is_retriable,
    ) -> dict[TopicPartition, R | KafkaError]:
        """The same with each partition's own result, or its last error: one leader that does not
        respond affects no other. Raises nothing."""
        return self._ask_in_rounds(wanted, ask, passes, is_whole=False)

    def _ask_in_rounds(
        self,
        wanted: Mapping[TopicPartition, T],
        ask: Callable[
            [Connection, Mapping[TopicPartition, T]], Mapping[TopicPartition, R | ApiError]
        ],
        passes: Callable[[KafkaError], bool],
        *,
        is_whole: bool,
    ) -> dict[TopicPartition, R | KafkaError]:
        """`is_whole`: the first error that does not pass ends the rounds."""
        found: dict[TopicPartition, R | KafkaError] = {}
        open_: dict[TopicPartition, T] = dict(wanted)

        def ask_leader(
            broker: Broker, of_broker: Mapping[TopicPartition, T]
        ) -> Mapping[TopicPartition, R | KafkaError]:
            try:
                with self._noting(broker), self.connection(broker) as connection:
                    return ask(connection, of_broker)
            except KafkaError as error:
                return dict.fromkeys(of_broker, error)

        def round_() -> None:
            split, failures = self.by_leader(open_)
            found.update(failures)
            asks = [partial(ask_leader, broker, part) for broker, part in split.items()]
            for outcomes in self.run_concurrently(asks):
                found.update(outcomes)
            failed = {tp: e for tp in open_ if isinstance(e := found[tp], KafkaError)}
            again = failed if is_whole else {tp: e for tp, e in failed.items() if passes(e)}
            for tp in open_.keys() - again.keys():
                del open_[tp]
            if again:
                raise _worst(again.values(), passes)

        # A leader that does not respond may have a successor, which is tried after it.
        give_up_at = self._runtime.monotonic() + self._one_try_s + self._retry_policy.longest_s
        try:
            with self.trying_until(give_up_at):
                retry(
                    round_,
                    self._retry_policy,
                    self._runtime,
                    what=f"asking the leaders of {len(wanted)} partitions",
                    passes=passes,
                    before_next=lambda error: self._refresh_after(error, open_),
                    give_up_at=give_up_at,
                )
        except KafkaError as error:
            if is_whole:
                raise
            # Each has its own error, unless no broker responded at all.
            found = {tp: found.get(tp, error) for tp in wanted}
        return {tp: found[tp] for tp in wanted}

    def by_leader(
        self, wanted: Mapping[TopicPartition, T]
    ) -> tuple[dict[Broker, dict[TopicPartition, T]], dict[TopicPartition, KafkaError]]:
        """(leader → its part of `wanted`, partition without one → why), by current metadata.
        Raises NoBrokersAvailable."""
        metadata = self.known({tp.topic for tp in wanted})
        split: dict[Broker, dict[TopicPartition, T]] = {}
        failures: dict[TopicPartition, KafkaError] = {}
        for tp, item in wanted.items():
            try:
                split.setdefault(metadata.leader(tp), {})[tp] = item
            except ApiError as error:
                failures[tp] = error
        return split, failures

    def run_concurrently(self, calls: Iterable[Callable[[], R]]) -> list[R]:
        """`run_concurrently` of calls that ask a broker each."""
        return run_concurrently(calls, self._runtime, "kafka08-broker-call")

    @contextmanager
    def _noting(self, broker: Broker) -> Iterator[None]:
        """Note whether the block fails to reach the broker."""
        try:
            yield
        except PASSING:
            self._failed.add((broker.host, broker.port))
            raise
        self._failed.discard((broker.host, broker.port))

    def close_idle(self) -> None:
        """Close the connections that nobody uses now; later requests open new ones."""
        self._pool.close_idle()

    def close(self) -> None:
        """Close every connection; threads that wait on one get ConnectionFailed or Closed."""
        self._pool.close()

    def _all_topics(self) -> Response:
        """Metadata of all topics from a broker that has received the cluster's metadata.

        # 0.8: a broker that has just started lists no brokers and no topics until the controller
        # has sent it both. So does a cluster that never had a topic, whose controller sends
        # nothing: an empty response is accepted unless topics are known.
        """
        for response in self._responses(MetadataRequest(None), self._metadata_version):
            assert isinstance(response, MetadataResponse)
            if response.brokers:
                return response
        if any(map(self._metadata.knows, self._metadata.topics)):
            raise NoBrokersAvailable(
                "the brokers that responded have just started and list no brokers and no topics; "
                "try again"
            )
        return response

    def _refresh_after(self, error: KafkaError, open_: Iterable[TopicPartition]) -> None:
        if needs_metadata(error):
            self.refresh({tp.topic for tp in open_})


def send_at_version(
    connection: Connection, request: Request, versions: Versions | None
) -> Response:
    """The response to a request in the highest of these versions that the broker serves, or in the
    one that they choose; None: in its own."""
    if callable(versions):
        request.version = versions(connection.versions)
    elif versions is not None:
        request.version = connection.versions.highest(type(request), *versions)
    return connection.send(request)


def is_timeout(error: KafkaError) -> bool:
    """Whether a broker did not accept a connection, or respond, in time."""
    return isinstance(error, RequestTimeout) or isinstance(error.__cause__, TimeoutError)


def _worst(errors: Iterable[KafkaError], passes: Callable[[KafkaError], bool]) -> KafkaError:
    """The error that decides the round: the first that does not pass, else the first that calls for
    new metadata, else the first."""
    ordered = list(errors)
    return min(
        ordered,
        key=lambda e: (passes(e), not needs_metadata(e), ordered.index(e)),
    )
