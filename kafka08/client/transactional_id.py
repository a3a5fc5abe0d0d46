"""The requests about one transactional id, to the broker that coordinates it.

Each is repeated until its caller gives up: a coordinator that gets one again gives the same answer,
also to the end of a transaction that has ended so. None needs the producer of the transaction: who
knows its id and epoch can end it.

Source: org.apache.kafka.clients.producer.internals.TransactionManager 0.11.0.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import coordinator_of
from kafka08.client.retry import PASSING, RetryPolicy, is_retriable, retry
from kafka08.errors import (
    ConsumerCoordinatorNotAvailable,
    NotCoordinatorForConsumer,
    OperationNotAttempted,
    check,
)
from kafka08.protocol.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka08.protocol.add_partitions_to_txn import AddPartitionsToTxnRequest, TxnTopic
from kafka08.protocol.consumer_metadata import TRANSACTION, ConsumerMetadataRequest
from kafka08.protocol.end_txn import EndTxnRequest
from kafka08.protocol.grouping import by_partition, by_topic
from kafka08.protocol.init_producer_id import InitProducerIdRequest
from kafka08.protocol.types import Request
from kafka08.runtime import Runtime
from kafka08.structs import Broker, TopicPartition

TRIES: Final = RetryPolicy(tries=36_000, backoff_ms=20)
"""The time that a call may take ends them."""
MOVED: Final = (*PASSING, ConsumerCoordinatorNotAvailable, NotCoordinatorForConsumer)


class TransactionalId:
    """One of them. A caller at a time.

    `identity` is the id and the epoch of the producer, as `init` returned them. `give_up_at`:
    monotonic seconds, after which nothing is sent again; the last error is raised.
    """

    def __init__(self, name: str, cluster: ClusterClient, runtime: Runtime) -> None:
        self.name = name
        self._cluster = cluster
        self._runtime = runtime
        self._coordinator: Broker | None = None

    def init(self, timeout_ms: int, give_up_at: float) -> tuple[int, int]:
        """A new identity. It fences any former producer, whose open transaction is aborted."""
        response = self._ask(InitProducerIdRequest(self.name, timeout_ms), _code_of_all, give_up_at)
        return response.producer_id, response.producer_epoch

    def add_partitions(
        self, identity: tuple[int, int], partitions: Iterable[TopicPartition], give_up_at: float
    ) -> None:
        """These get batches of the transaction, which begins with its first partition."""
        topics = [
            TxnTopic(topic, [number for number, _ in items])
            for topic, items in by_topic(dict.fromkeys(partitions)).items()
        ]
        request = AddPartitionsToTxnRequest(self.name, *identity, topics)
        self._ask(request, codes_of_partitions, give_up_at)

    def add_offsets(self, identity: tuple[int, int], group: str, give_up_at: float) -> None:
        """The transaction commits offsets of this group."""
        self._ask(AddOffsetsToTxnRequest(self.name, *identity, group), _code_of_all, give_up_at)

    def end(self, identity: tuple[int, int], give_up_at: float, *, commits: bool) -> None:
        """Commit or abort the transaction. InvalidTxnState if it has ended in the other way."""
        self._ask(EndTxnRequest(self.name, *identity, commits), _code_of_all, give_up_at)

    def _ask(
        self, request: Request, codes: Callable[[Any], Iterable[int]], give_up_at: float
    ) -> Any:
        """The coordinator's response without an error."""

        def attempt() -> Any:
            broker = self._find_coordinator()
            try:
                response = self._cluster.send(broker, request)
                for code in codes(response):
                    check(code, f"{type(request).__name__} of {self.name} at {broker}")
            except MOVED:
                self._coordinator = None
                raise
            return response

        return retry(
            attempt,
            TRIES,
            self._runtime,
            what=f"transactional.id {self.name}",
            passes=is_retriable,
            give_up_at=give_up_at,
        )

    def _find_coordinator(self) -> Broker:
        if self._coordinator is None:
            request = ConsumerMetadataRequest(self.name, TRANSACTION, version=1)
            self._coordinator = coordinator_of(self.name, self._cluster.ask_any(request, (1, 1)))
        return self._coordinator


def _code_of_all(response: Any) -> list[int]:
    return [response.error_code]


def codes_of_partitions(response: Any) -> list[int]:
    """Those of partitions, the telling ones first: the others say "not attempted"."""
    codes = {tp: one.error_code for tp, one in by_partition(response.topics).items()}
    return sorted(codes.values(), key=lambda code: code == OperationNotAttempted.code)
