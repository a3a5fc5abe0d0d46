"""The transaction of a task attempt: the task writes in it and leaves it open for the driver."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from kafka08 import kernel
from kafka08.client.cluster import ClusterClient
from kafka08.client.transactional_id import TransactionalId
from kafka08.clock import Clock
from kafka08.config import INT_MAX
from kafka08.errors import KafkaError
from kafka08.format.v2 import stamp
from kafka08.runtime.threads import THREADS
from kafka08.spark.transaction_options import OpenTransaction
from kafka08.structs import TopicPartition

logger = logging.getLogger(__name__)

ABORT_S: Final = 5.0


class TaskTransaction:
    """Begins with the first partition that it enters.

    A partition has one batch at a time in flight. It is sent again until it is acknowledged, with
    the sequence that it had: the leader stores it once.
    """

    def __init__(
        self, transactional_id: str, timeout_ms: int, cluster: ClusterClient, tries_s: float
    ) -> None:
        self.transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._coordinator = TransactionalId(transactional_id, cluster, THREADS)
        self._clock: Clock = cluster.clock
        self._tries_s = tries_s
        self._identity: tuple[int, int] | None = None
        self._sequences: dict[TopicPartition, int] = {}

    @property
    def opened(self) -> OpenTransaction | None:
        """The transaction, for the driver to end; None: nothing was written."""
        if self._identity is None:
            return None
        return OpenTransaction(self.transactional_id, *self._identity)

    def enter(self, partitions: Iterable[TopicPartition]) -> None:
        """These get batches. Asks the coordinator about those that are new."""
        new = [tp for tp in partitions if tp not in self._sequences]
        if not new:
            return
        give_up_at = self._clock.monotonic() + self._tries_s
        if self._identity is None:
            self._identity = self._coordinator.init(self._timeout_ms, give_up_at)
        self._coordinator.add_partitions(self._identity, new, give_up_at)
        self._sequences.update(dict.fromkeys(new, 0))

    def stamp(self, tp: TopicPartition, batch: bytearray) -> None:
        """Write producer and sequence into the next batch of a partition."""
        assert self._identity is not None, "enter comes first"
        stamp(
            batch,
            *self._identity,
            self._sequences[tp],
            is_transactional=True,
            checksum=kernel.crc32c,
        )

    def advance(self, tp: TopicPartition, count: int) -> None:
        """The leader has stored the next batch, of `count` messages."""
        self._sequences[tp] = (self._sequences[tp] + count) & INT_MAX

    def abort(self) -> None:
        """The attempt has failed: fence it, which aborts the transaction, and keeps a batch that is
        still on its way out of the log. If this fails too, the transaction ends by its timeout."""
        if self._identity is None:
            return
        try:
            self._coordinator.init(self._timeout_ms, self._clock.monotonic() + ABORT_S)
        except KafkaError as error:
            logger.warning("transactional.id %s is not aborted: %s", self.transactional_id, error)
