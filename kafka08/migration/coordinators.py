"""The offsets topic, for many groups at once.

A broker answers the requests of a connection in order, so those to one coordinator are written
ahead of the answers: a thousand groups cost about as much waiting as one. A group whose coordinator
moves, loads or is just being found is asked again with the others that are left, until `patience_s`
is over; what it met last is then its result.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from kafka08.client import ClusterClient
from kafka08.client.committed import committed_in_kafka, refused_commits
from kafka08.client.requests import commit_request, committed_request, coordinator_of
from kafka08.client.retry import is_retriable
from kafka08.clock import Clock
from kafka08.consumer.offset_store import Offsets
from kafka08.errors import (
    ClientError,
    Closed,
    ConsumerCoordinatorNotAvailable,
    KafkaError,
    ProtocolError,
)
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest
from kafka08.protocol.types import Request, Response
from kafka08.structs import Broker, OffsetAndMetadata, TopicPartition

logger = logging.getLogger(__name__)

R = TypeVar("R")
Check: TypeAlias = Callable[[], None]

PATIENCE_S: Final = 15.0
"""The first question of all makes the offsets topic, and a coordinator may have to load."""
BACKOFF_S: Final = 0.2
WINDOW: Final = 32
"""Requests ahead of the answers. What they take lies in the buffers of two sockets meanwhile, so
large ones (WIDE partitions) go alone."""
WIDE: Final = 100


class Coordinators:
    """Asks coordinators, which it remembers by group. Thread-safe."""

    def __init__(
        self, cluster: ClusterClient, clock: Clock, *, patience_s: float = PATIENCE_S
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._patience_s = patience_s
        self._known: dict[str, Broker] = {}

    def fetch(
        self, wanted: Mapping[str, Collection[TopicPartition]]
    ) -> dict[str, Offsets | KafkaError]:
        """group → what is committed of the partitions named, NO_OFFSET where nothing is. They must
        exist: a broker that has just started calls them unknown, and is asked again."""

        def result(group: str, response: Response) -> Offsets:
            return committed_in_kafka(response, group, wanted[group], known=True)

        asked = {
            group: committed_request(group, sorted(partitions), "kafka")
            for group, partitions in wanted.items()
            if partitions
        }
        nothing: dict[str, Offsets | KafkaError] = {g: {} for g, of in wanted.items() if not of}
        return nothing | self._ask(asked, {g: len(wanted[g]) for g in asked}, result)

    def commit(
        self,
        wanted: Mapping[str, Mapping[TopicPartition, int]],
        check: Check = lambda: None,
    ) -> dict[str, Offsets | KafkaError]:
        """group → the offsets that were committed: all that are wanted, or the first refusal.
        `check` is called before each request, and raises if it must not be sent any more."""

        def result(group: str, response: Response) -> Offsets:
            for refusal in refused_commits(response, group).values():
                raise refusal
            return dict(wanted[group])

        asked = {
            group: commit_request(
                group, {tp: OffsetAndMetadata(o) for tp, o in sorted(offsets.items())}, "kafka"
            )
            for group, offsets in wanted.items()
        }
        return self._ask(asked, {g: len(wanted[g]) for g in asked}, result, check)

    def _ask(
        self,
        requests: Mapping[str, Request],
        sizes: Mapping[str, int],
        result: Callable[[str, Response], R],
        check: Check = lambda: None,
    ) -> dict[str, R | KafkaError]:
        """The result of each group, or the error that it met. `sizes`: partitions of a request."""
        results: dict[str, R | KafkaError] = {}
        give_up_at = self._clock.monotonic() + self._patience_s
        left = list(requests)
        while left:
            results.update(self._round({g: requests[g] for g in left}, sizes, result, check))
            left = [g for g in left if _may_pass(results[g])]
            if left:
                if self._clock.monotonic() >= give_up_at:
                    break
                logger.info("%d groups are asked for again: %s", len(left), results[left[0]])
                self._clock.sleep(BACKOFF_S)
        return results

    def _round(
        self,
        requests: Mapping[str, Request],
        sizes: Mapping[str, int],
        result: Callable[[str, Response], R],
        check: Check,
    ) -> dict[str, R | KafkaError]:
        """One try."""
        results: dict[str, R | KafkaError] = {}
        by_broker: dict[Broker, list[str]] = {}
        for group, found in self._find(list(requests)).items():
            if isinstance(found, KafkaError):
                results[group] = found
            else:
                by_broker.setdefault(found, []).append(group)
        for broker, groups in by_broker.items():
            answers = self._pipeline(
                broker, [requests[g] for g in groups], [sizes[g] for g in groups], check
            )
            for group, answer in zip(groups, answers, strict=True):
                results[group] = answered = _result_of(group, answer, result)
                if isinstance(answered, KafkaError):
                    self._known.pop(group, None)
        return results

    def _find(self, groups: Sequence[str]) -> dict[str, Broker | KafkaError]:
        """group → its coordinator, known or asked for; why it was not found."""
        found: dict[str, Broker | KafkaError] = {g: b for g in groups if (b := self._known.get(g))}
        unknown = [group for group in groups if group not in found]
        if not unknown:
            return found
        questions = [ConsumerMetadataRequest(group) for group in unknown]
        for group, answer in zip(unknown, self._of_any(questions), strict=True):
            found[group] = coordinator = _result_of(group, answer, coordinator_of)
            if isinstance(coordinator, Broker):
                self._known[group] = coordinator
        return found

    def _of_any(self, requests: Sequence[Request]) -> list[Response | KafkaError]:
        """The answers of the first broker that gives one; where there was none, why."""
        try:
            for broker in self._cluster.brokers():
                answers = self._pipeline(broker, requests, [1] * len(requests))
                if not isinstance(answers[0], ClientError | ProtocolError):
                    return answers
            # None is known yet, or those that were are gone: one question to an address that was
            # given; the others wait for the next round.
            first = self._cluster.ask_any(requests[0])
            self._cluster.refresh()
        except (ClientError, ProtocolError) as error:
            return [error] * len(requests)
        later = ConsumerCoordinatorNotAvailable("no broker is known yet that could be asked")
        return [first, *[later] * (len(requests) - 1)]

    def _pipeline(
        self,
        broker: Broker,
        requests: Sequence[Request],
        sizes: Sequence[int],
        check: Check = lambda: None,
    ) -> list[Response | KafkaError]:
        """The answers of a broker, in order; where there was none, why."""
        answers: list[Response | KafkaError] = []
        try:
            with self._cluster.connection(broker) as connection:
                ahead: deque[int] = deque()
                for request, size in zip(requests, sizes, strict=True):
                    while ahead and (len(ahead) >= WINDOW or max(size, *ahead, 0) > WIDE):
                        answers.append(connection.read_response())
                        ahead.popleft()
                    check()
                    connection.write(request)
                    ahead.append(size)
                answers.extend(connection.read_response() for _ in ahead)
        except Closed:
            raise
        except (ClientError, ProtocolError) as error:
            answers += [error] * (len(requests) - len(answers))
        return answers


def _result_of(
    group: str, answer: Response | KafkaError, result: Callable[[str, Response], R]
) -> R | KafkaError:
    if isinstance(answer, KafkaError):
        return answer
    try:
        return result(group, answer)
    except KafkaError as error:
        return error


def _may_pass(result: object) -> bool:
    return isinstance(result, ProtocolError) or (
        isinstance(result, KafkaError) and is_retriable(result)
    )
