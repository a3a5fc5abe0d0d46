"""Coordinators: the committed offsets of many groups, from the coordinators of all of them.

A request is about one group, and a broker answers the requests of a connection in order. So those
to one coordinator are written ahead of the responses: a thousand groups cost about as much waiting
as one. Coordinators are asked side by side. A group whose coordinator moves, loads or is just being
found is asked about again with the others that are left, until `timeout_s` is over; its last error
is then its result.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias, TypeVar

from kafka08.client.cluster import ClusterClient
from kafka08.client.committed import committed_in_kafka, offsets_found, refused_commits
from kafka08.client.requests import (
    commit_request,
    commit_version,
    committed_request,
    coordinator_of,
)
from kafka08.client.retry import is_retriable
from kafka08.clock import Clock
from kafka08.errors import (
    ClientError,
    Closed,
    ConsumerCoordinatorNotAvailable,
    KafkaError,
    ProtocolError,
    UnsupportedVersion,
)
from kafka08.network.connection import Connection
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest
from kafka08.protocol.offset_fetch import OffsetFetchRequest
from kafka08.protocol.types import Request, Response
from kafka08.protocol.version_ranges import VersionRanges
from kafka08.structs import Broker, OffsetAndMetadata, TopicPartition

logger = logging.getLogger(__name__)

R = TypeVar("R")
Offsets: TypeAlias = dict[TopicPartition, int]
Check: TypeAlias = Callable[[], None]
Find: TypeAlias = Callable[[Sequence[str]], Mapping[str, Broker | KafkaError]]
"""Groups → the coordinator of each, or why it is unknown. Called again for those whose coordinator
did not respond, which may have moved."""

TIMEOUT_S: Final = 15.0
"""The very first request creates the offsets topic, and a coordinator may have to load."""
BACKOFF_S: Final = 0.2
IN_FLIGHT_MAX: Final = 50
"""Requests ahead of the responses."""
PARTITIONS_IN_FLIGHT: Final = 4000
"""Partitions in the requests in flight, at most 90 KB: the sockets take them all, so neither side
ever waits for the other to read."""
ALL_PARTITIONS: Final = 2
"""The version of OffsetFetch that can ask for all partitions of a group (0.10.2)."""


class Question(NamedTuple):
    """A request about one group, and the number of partitions that it names."""

    request: Request
    partitions: int


Ask: TypeAlias = Callable[[str, VersionRanges], Question]
"""(group, API versions of its coordinator) → what to ask."""


class Coordinators:
    """Sends its requests through `cluster`, which the caller closes. Thread-safe if `find` is.

    timeout_s       how long groups are asked about again
    find            None: the brokers are asked, which creates a missing offsets topic, and their
                    responses are remembered
    requests_sent   to coordinators
    """

    def __init__(
        self,
        cluster: ClusterClient,
        clock: Clock,
        *,
        timeout_s: float = TIMEOUT_S,
        find: Find | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._timeout_s = timeout_s
        self._find = find or self._look_up
        self._known: dict[str, Broker] = {}
        self.requests_sent = 0

    def fetch(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> dict[str, Offsets | KafkaError]:
        """group → what is committed of the partitions named, NO_OFFSET where nothing is. They must
        exist: a broker that has just started calls them unknown, and is asked again. Coordinators
        of 0.10.2 are asked for all that a group has committed, which is less to send and to look
        up: a thousand groups of a thousand partitions are a million."""

        return self._fetch(wanted, self._timeout_s)

    def fetch_once(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> dict[str, Offsets | KafkaError]:
        """group → what is committed of the partitions named, as `fetch` has it, in one try: a
        coordinator that moves or loads is an error."""
        return self._fetch(wanted, 0.0)

    def _fetch(
        self, wanted: Mapping[str, Collection[TopicPartition]], timeout_s: float
    ) -> dict[str, Offsets | KafkaError]:
        def ask(group: str, versions: VersionRanges) -> Question:
            if versions.highest(OffsetFetchRequest, 1, ALL_PARTITIONS) == ALL_PARTITIONS:
                return Question(OffsetFetchRequest(group, None, version=ALL_PARTITIONS), 1)
            partitions = sorted(wanted[group])
            return Question(committed_request(group, partitions, "kafka"), len(partitions))

        def result(group: str, response: Response) -> Offsets:
            return committed_in_kafka(response, group, wanted[group], known=True)

        nothing: dict[str, Offsets | KafkaError] = {g: {} for g, of in wanted.items() if not of}
        asked = [group for group, of in wanted.items() if of]
        return nothing | self._ask(asked, ask, result, timeout_s=timeout_s)

    def fetch_found(
        self, groups: Iterable[str], partitions: Collection[TopicPartition]
    ) -> dict[str, Offsets | KafkaError]:
        """group → what it committed of `partitions`, without those of which it committed nothing
        and those that its coordinator does not know. Coordinators of 0.10.2 are asked for all that
        a group has committed, which is less to send."""
        named = frozenset(partitions)
        topics = committed_request("", sorted(named), "kafka").topics

        def ask(group: str, versions: VersionRanges) -> Question:
            version = versions.highest(OffsetFetchRequest, 1, ALL_PARTITIONS)
            if version == ALL_PARTITIONS:
                return Question(OffsetFetchRequest(group, None, version=version), 1)
            return Question(OffsetFetchRequest(group, topics, version=version), len(named))

        def result(group: str, response: Response) -> Offsets:
            return offsets_found(response, group, named)

        return self._ask(list(groups), ask, result)

    def commit(
        self,
        wanted: Mapping[str, Mapping[TopicPartition, int]],
        check: Check,
    ) -> dict[str, Offsets | KafkaError]:
        """group → the offsets that were committed: all that are wanted, or the first refusal.
        `check` is called before each request, by several threads, and raises if it must not be
        sent any more."""

        def ask(group: str, versions: VersionRanges) -> Question:
            offsets = {tp: OffsetAndMetadata(o) for tp, o in sorted(wanted[group].items())}
            request = commit_request(group, offsets, "kafka")
            request.version = commit_version(versions)
            return Question(request, len(offsets))

        def result(group: str, response: Response) -> Offsets:
            for refusal in refused_commits(response, group).values():
                raise refusal
            return dict(wanted[group])

        return self._ask(list(wanted), ask, result, check)

    def _ask(
        self,
        groups: Sequence[str],
        ask: Ask,
        result: Callable[[str, Response], R],
        check: Check = lambda: None,
        *,
        timeout_s: float | None = None,
    ) -> dict[str, R | KafkaError]:
        """The result of each group, or the error that it met."""
        results: dict[str, R | KafkaError] = {}
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        give_up_at = self._clock.monotonic() + timeout_s
        left = list(groups)
        while left:
            with self._cluster.trying_until(give_up_at):
                coordinators = self._find(left)
            results.update(self._round(coordinators, ask, result, check))
            left = [group for group in left if _may_pass(results[group])]
            if left:
                if self._clock.monotonic() >= give_up_at:
                    break
                logger.info("%d groups are asked for again: %s", len(left), results[left[0]])
                self._clock.sleep(BACKOFF_S)
        return results

    def _round(
        self,
        coordinators: Mapping[str, Broker | KafkaError],
        ask: Ask,
        result: Callable[[str, Response], R],
        check: Check,
    ) -> dict[str, R | KafkaError]:
        """One try. `coordinators`: group → its coordinator, or why it was not found."""
        results: dict[str, R | KafkaError] = {}
        by_broker: dict[Broker, list[str]] = {}
        for group, found in coordinators.items():
            if isinstance(found, KafkaError):
                results[group] = found
            else:
                by_broker.setdefault(found, []).append(group)
        responses = self._cluster.run_concurrently(
            partial(self._responses_of, broker, names, ask, check)
            for broker, names in by_broker.items()
        )
        for names, answered in zip(by_broker.values(), responses, strict=True):
            self.requests_sent += len(names)
            for group, response in zip(names, answered, strict=True):
                results[group] = outcome = _result_of(group, response, result)
                if isinstance(outcome, KafkaError):
                    self._known.pop(group, None)
        return results

    def _look_up(self, groups: Sequence[str]) -> dict[str, Broker | KafkaError]:
        """group → its coordinator, known or asked for; why it was not found."""
        found: dict[str, Broker | KafkaError] = {g: b for g in groups if (b := self._known.get(g))}
        unknown = [group for group in groups if group not in found]
        if not unknown:
            return found
        for group, response in zip(unknown, self._responses_of_any(unknown), strict=True):
            found[group] = coordinator = _result_of(group, response, coordinator_of)
            if isinstance(coordinator, Broker):
                self._known[group] = coordinator
        return found

    def _responses_of_any(self, groups: Sequence[str]) -> list[Response | KafkaError]:
        """ConsumerMetadata of each group from the first broker that responds; where there was none,
        why."""
        try:
            for broker in self._cluster.brokers():
                responses = self._responses_of(broker, groups, _who_coordinates)
                if not isinstance(responses[0], ClientError | ProtocolError):
                    return responses
            # None is known yet, or those that were are gone: one request to an address that was
            # given; the others wait for the next round.
            first = self._cluster.ask_any(ConsumerMetadataRequest(groups[0]))
            self._cluster.refresh()
        except (ClientError, ProtocolError) as error:
            return [error] * len(groups)
        later = ConsumerCoordinatorNotAvailable("no broker is known yet that could be asked")
        return [first, *[later] * (len(groups) - 1)]

    def _responses_of(
        self, broker: Broker, groups: Sequence[str], ask: Ask, check: Check = lambda: None
    ) -> list[Response | KafkaError]:
        """The responses of a broker, in order; where there was none, why."""
        responses: list[Response | KafkaError] = []
        try:
            with self._cluster.connection(broker) as connection:
                responses.extend(_pipeline(connection, groups, ask, check))
        except Closed:
            raise
        except (ClientError, ProtocolError, UnsupportedVersion) as error:
            responses += [error] * (len(groups) - len(responses))
        return responses


def _pipeline(
    connection: Connection, groups: Iterable[str], ask: Ask, check: Check
) -> Iterator[Response]:
    """The responses in order; IN_FLIGHT_MAX and PARTITIONS_IN_FLIGHT limit the requests ahead of
    them."""
    ahead: deque[int] = deque()
    for group in groups:
        request, partitions = ask(group, connection.versions)
        while ahead and (
            len(ahead) >= IN_FLIGHT_MAX or sum(ahead) + partitions > PARTITIONS_IN_FLIGHT
        ):
            yield connection.read_response()
            ahead.popleft()
        check()
        connection.write(request)
        ahead.append(partitions)
    for _ in ahead:
        yield connection.read_response()


def _who_coordinates(group: str, _: VersionRanges) -> Question:
    return Question(ConsumerMetadataRequest(group), 1)


def _result_of(
    group: str, response: Response | KafkaError, result: Callable[[str, Response], R]
) -> R | KafkaError:
    if isinstance(response, KafkaError):
        return response
    try:
        return result(group, response)
    except KafkaError as error:
        return error


def _may_pass(result: object) -> bool:
    return isinstance(result, ProtocolError) or (
        isinstance(result, KafkaError) and is_retriable(result)
    )
