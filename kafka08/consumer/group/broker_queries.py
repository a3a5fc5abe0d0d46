"""BrokerQueries: requests to brokers on behalf of the user, in calls that a wakeup interrupts.

Each request runs in a task of its own. If the user's thread stops waiting for it, the task
continues until the response or the timeout, and the result is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple, TypeVar, cast

from kafka08.client import log_offsets
from kafka08.client.metadata import PartitionInfo
from kafka08.client.retry import RetryPolicy, is_retriable, retry
from kafka08.consumer.group.committer import fetch_committed
from kafka08.consumer.group.poller import Poller
from kafka08.errors import KafkaError, LeaderNotAvailable, UnknownTopicOrPartition
from kafka08.runtime import ClientRuntime
from kafka08.structs import OffsetAndMetadata, TopicPartition
from kafka08.waiting import giving_up_at

logger = logging.getLogger(__name__)

T = TypeVar("T")
RETRIES: Final = RetryPolicy(tries=36_000, backoff_ms=100)
"""An hour: the timeout of the query ends them."""


class OffsetAndTimestamp(NamedTuple):
    """A message found by time: its offset and timestamp in ms."""

    offset: int
    timestamp_ms: int


def passes_with_failover(error: KafkaError) -> bool:
    """Whether the same query may succeed at the next leader. A partition that is unknown after the
    client's own tries does not exist."""
    return is_retriable(error) and not isinstance(error, UnknownTopicOrPartition)


class BrokerQueries:
    """See the module. All methods raise WokenUp, and RequestTimeout after `timeout_s`. Until then
    they retry while a partition or the group's coordinator moves to another broker; then they raise
    the last error."""

    def __init__(self, poller: Poller, group: str, isolation: int, runtime: ClientRuntime) -> None:
        self._poller = poller
        self._cluster = poller.cluster
        self._group = group
        self._isolation = isolation
        self._runtime = runtime

    def committed(
        self, partitions: Collection[TopicPartition], timeout_s: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """With those of commits that have not ended yet."""
        give_up_at = self._runtime.monotonic() + timeout_s
        # The query could overtake them.
        self._poller.wait_until(
            lambda: self._poller.committing().isdisjoint(partitions), give_up_at, "a commit"
        )
        return self._ask(
            lambda: fetch_committed(
                self._cluster, self._group, list(partitions), RETRIES, give_up_at=give_up_at
            ),
            give_up_at - self._runtime.monotonic(),
        )

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], timeout_s: float
    ) -> dict[TopicPartition, int]:
        return self._retry(lambda: log_offsets.log_starts(self._cluster, partitions), timeout_s)

    def end_offsets(
        self, partitions: Collection[TopicPartition], timeout_s: float
    ) -> dict[TopicPartition, int]:
        return self._retry(
            lambda: log_offsets.log_ends(self._cluster, partitions, self._isolation), timeout_s
        )

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout_s: float
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        found = self._retry(lambda: log_offsets.messages_at(self._cluster, times), timeout_s)
        return {tp: one and OffsetAndTimestamp(*one) for tp, one in found.items()}

    def topics(self, timeout_s: float) -> dict[str, tuple[PartitionInfo, ...]]:
        metadata = self._ask(self._cluster.refresh, timeout_s)
        return {
            topic: info.partitions
            for topic, info in sorted(metadata.topics.items())
            if info.error is None
        }

    def partitions(self, topic: str, timeout_s: float) -> tuple[PartitionInfo, ...]:
        return self._retry(
            lambda: self._cluster.refresh([topic]).partitions(topic),
            timeout_s,
            passes=lambda error: isinstance(error, LeaderNotAvailable),
        )

    def _retry(
        self,
        query: Callable[[], T],
        timeout_s: float,
        passes: Callable[[KafkaError], bool] = passes_with_failover,
    ) -> T:
        """Its result, by as many tries as the timeout allows."""
        give_up_at = self._runtime.monotonic() + timeout_s
        return self._ask(
            lambda: retry(
                query,
                RETRIES,
                self._runtime,
                what="asking the brokers",
                passes=passes,
                give_up_at=give_up_at,
            ),
            timeout_s,
        )

    def _ask(self, query: Callable[[], T], timeout_s: float) -> T:
        self._poller.raise_woken()
        give_up_at = self._runtime.monotonic() + timeout_s
        outcome: list[tuple[T | None, KafkaError | None]] = []

        def run() -> None:
            try:
                with giving_up_at(give_up_at):
                    outcome.append((query(), None))
            except KafkaError as error:
                outcome.append((None, error))
            except Exception as error:
                # The root of a task: the caller waits for its end.
                logger.exception("Uncaught error in a request to the brokers")
                outcome.append(
                    (None, KafkaError(f"uncaught error in a request to the brokers: {error!r}"))
                )
            self._poller.stream.wake()

        self._runtime.spawn(run, name="kafka08-query")
        self._poller.wait_until(lambda: bool(outcome), give_up_at, "a request to the brokers")
        result, error = outcome[0]
        if error is not None:
            raise error
        return cast(T, result)
