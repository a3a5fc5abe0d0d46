"""TransactionCoordinator: the transactional ids whose partition of `__transaction_state` this
broker leads.

Every request is checked in this order first:

    42       there is no transactional id
    50       InitProducerId with a timeout out of bounds
    15       the broker is starting or stopping
    16       another broker leads the id's partition
    14       the partition is being loaded

Then `TransactionalIds` decides, and this class executes its actions: it appends records with acks
-1, responds, and passes markers to a MarkerSender. The ReplicaManager reports the start and end of
a leadership. A new leader loads its log from the start, and completes what the former one decided.

0.11.0.3 takes what it has read of a log that it cannot read for all of it, and begins again with
the rest of the ids; here they stay at 14 until the log can be read. Source:
kafka.coordinator.transaction.TransactionCoordinator, TransactionStateManager 0.11.0.2.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Final, Protocol

from kafka08.broker.appends.appender import Appender
from kafka08.broker.replication.committed_log import committed_parts
from kafka08.broker.replication.replica_manager import ReplicaManager
from kafka08.broker.settings.config import BrokerConfig
from kafka08.broker.transactions.transaction import Change, Transaction
from kafka08.broker.transactions.transactional_ids import (
    Actions,
    Append,
    Outcome,
    Reply,
    Respond,
    SendMarkers,
    TransactionalIds,
    refuse_init,
)
from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailable,
    InvalidRequest,
    KafkaError,
    NotCoordinatorForConsumer,
    OffsetsLoadInProgress,
    ProtocolError,
    StorageError,
    UnknownError,
)
from kafka08.hashing import transaction_partition
from kafka08.kernel import CorruptMessage
from kafka08.protocol.transaction_records import TransactionRecord, TransactionState
from kafka08.protocol.types import Buffer
from kafka08.runtime import BrokerRuntime, Greenlet
from kafka08.structs import TRANSACTIONS_TOPIC, TopicPartition

logger = logging.getLogger(__name__)

NOT_AVAILABLE: Final = Outcome(ConsumerCoordinatorNotAvailable.code)
NOT_COORDINATOR: Final = Outcome(NotCoordinatorForConsumer.code)
LOADING: Final = Outcome(OffsetsLoadInProgress.code)
LOAD_RETRY_S: Final = 30.0
"""The pause before a partition whose log cannot be read is loaded again."""


class Markers(Protocol):
    """Writes markers to the leaders of partitions."""

    def send(self, sent: SendMarkers, done: Callable[[TopicPartition, int], object]) -> None:
        """After its delay, send the marker; `done` is called once for each partition with the code
        of the answer, maybe before this returns. Never switches."""


class LedPartition:
    """A partition of `__transaction_state` between the start and the end of a leadership.

    ids    None while it is being loaded
    load   the greenlet that loads it
    """

    def __init__(self, number: int) -> None:
        self.topic_partition = TopicPartition(TRANSACTIONS_TOPIC, number)
        self.ids: TransactionalIds | None = None
        self.load: Greenlet | None = None


class TransactionCoordinator:
    """The transactional ids of one broker. Each request gets its outcome through `reply`, maybe
    before the method returns. Only loads and the checks of time switch.

    new_id               a producer id that nobody has; switches, ZooKeeperError
    may_have_successor   whether another broker may lead a partition that this one leads
    partition_count      of `__transaction_state`; 0: it will be created with
                         transaction.state.log.num.partitions
    """

    def __init__(
        self,
        runtime: BrokerRuntime,
        config: BrokerConfig,
        replica_manager: ReplicaManager,
        appender: Appender,
        markers: Markers,
        new_id: Callable[[], int],
        may_have_successor: Callable[[TopicPartition], bool],
        partition_count: int = 0,
    ) -> None:
        self._runtime = runtime
        self._config = config
        self._replica_manager = replica_manager
        self._appender = appender
        self._markers = markers
        self._new_id = new_id
        self._may_have_successor = may_have_successor
        self._partition_count = partition_count or config.transaction_state_log_num_partitions
        self._led: dict[int, LedPartition] = {}
        self._is_active = False
        self._tasks: list[Greenlet] = []

    def startup(self) -> None:
        """Listen for leadership changes. Before the controller's first request."""
        config, every = self._config, self._runtime.every
        self._replica_manager.listen(TRANSACTIONS_TOPIC, self)
        self._is_active = True
        self._tasks = [
            every(
                config.transaction_abort_timed_out_transaction_cleanup_interval_ms / 1000,
                self.abort_timed_out,
                name="transaction-abort",
            ),
            every(
                config.transaction_remove_expired_transaction_cleanup_interval_ms / 1000,
                self.expire,
                name="transactionalId-expiration",
            ),
        ]

    def shutdown(self) -> None:
        """Answer 15 from now on, and end all loads. Safe if startup never ran."""
        self._is_active = False
        for task in self._tasks:
            task.kill(block=False)
        for number in list(self._led):
            self.on_follower(number)

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that stores a transactional id."""
        return transaction_partition(transactional_id, self._partition_count)

    # Requests

    def init(self, transactional_id: str, timeout_ms: int, reply: Reply) -> None:
        """InitProducerId. Switches if a new producer id is needed; ZooKeeperError then."""
        if code := refuse_init(
            transactional_id, timeout_ms, self._config.transaction_max_timeout_ms
        ):
            reply(Outcome(code))
            return
        led = self._led_for(transactional_id)
        new_id = None
        if isinstance(led, LedPartition):
            assert led.ids is not None
            if led.ids.needs_producer_id(transactional_id):
                new_id = self._new_id()
        self._ask(
            transactional_id,
            reply,
            lambda ids, now_ms: ids.init(transactional_id, timeout_ms, now_ms, reply, new_id),
        )

    def add(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        reply: Reply,
    ) -> None:
        """AddPartitionsToTxn and AddOffsetsToTxn, for partitions that exist."""
        self._change(
            transactional_id,
            reply,
            lambda found, now_ms: found.add(producer_id, epoch, partitions, now_ms),
        )

    def end(
        self, transactional_id: str, producer_id: int, epoch: int, commits: bool, reply: Reply
    ) -> None:
        """EndTxn."""
        self._change(
            transactional_id,
            reply,
            lambda found, now_ms: found.end(producer_id, epoch, commits, now_ms),
        )

    def record_of(self, transactional_id: str) -> tuple[int, TransactionRecord | None]:
        """The code if its state is not known here, else the acknowledged state; None: no such
        id."""
        led = self._led_for(transactional_id)
        if isinstance(led, Outcome):
            return led.code, None
        assert led.ids is not None
        return NO_ERROR, led.ids.record_of(transactional_id)

    def count_states(self) -> Counter[TransactionState]:
        """The number of ids in each state, of the partitions that are loaded."""
        found = Counter(dict.fromkeys(TransactionState, 0))
        for led in self._led.values():
            if led.ids is not None:
                found.update(led.ids.states())
        return found

    def _change(
        self,
        transactional_id: str,
        reply: Reply,
        change: Callable[[Transaction, int], int | Change],
    ) -> None:
        self._ask(
            transactional_id,
            reply,
            lambda ids, now_ms: ids.change(
                transactional_id, reply, lambda found: change(found, now_ms)
            ),
        )

    def _ask(
        self,
        transactional_id: str,
        reply: Reply,
        ask: Callable[[TransactionalIds, int], Actions],
    ) -> None:
        if not transactional_id:
            reply(Outcome(InvalidRequest.code))
            return
        led = self._led_for(transactional_id)
        if isinstance(led, Outcome):
            reply(led)
            return
        assert led.ids is not None
        actions = ask(led.ids, self._runtime.time_ms())
        if self._answers_alone(actions) and self._may_have_successor(led.topic_partition):
            # Nothing is appended, which a successor would prevent: it may know another answer.
            reply(NOT_COORDINATOR)
        else:
            self._perform(led, actions)

    @staticmethod
    def _answers_alone(actions: Actions) -> bool:
        return all(isinstance(one, Respond) and one.outcome.code == NO_ERROR for one in actions)

    def _led_for(self, transactional_id: str) -> LedPartition | Outcome:
        """The loaded partition of an id, or the refusal."""
        if not self._is_active:
            return NOT_AVAILABLE
        led = self._led.get(self.partition_for(transactional_id))
        found = None if led is None else self._replica_manager.find(led.topic_partition)
        if led is None or found is None or not found.is_leader:
            return NOT_COORDINATOR
        return LOADING if led.ids is None else led

    # Actions

    def _perform(self, led: LedPartition, actions: Actions) -> None:
        """Execute actions; those that a coordinator alone may do only while it is one."""
        self._respond(actions)
        if not self._is_current(led):
            return
        for action in actions:
            match action:
                case Append():
                    self._append(led, action)
                case SendMarkers():
                    self._markers.send(action, partial(self._marked, led, action))

    @staticmethod
    def _respond(actions: Actions) -> None:
        for action in actions:
            if isinstance(action, Respond):
                action.reply(action.outcome)

    def _append(self, led: LedPartition, append: Append) -> None:
        if append.delay_ms:
            self._runtime.call_later(append.delay_ms / 1000, self._append_now, led, append)
        else:
            self._append_now(led, append)

    def _append_now(self, led: LedPartition, append: Append) -> None:
        ids = led.ids
        if ids is None or not self._is_current(led):
            return

        def ended(code: int) -> None:
            self._perform(led, ids.appended(append, code, self._runtime.time_ms()))

        try:
            record = append.key, append.value
        except ProtocolError as error:
            logger.warning("transactional id %.100r: %s", append.transactional_id, error)
            ended(UnknownError.code)
            return
        self._appender.append_internal(
            led.topic_partition,
            [record],
            codec=0,
            required_acks=-1,
            timeout_ms=append.wait_ms,
            done=lambda result: ended(result.error_code),
        )

    def _marked(
        self, led: LedPartition, sent: SendMarkers, partition: TopicPartition, code: int
    ) -> None:
        if led.ids is not None and self._is_current(led):
            actions = led.ids.marker_result(sent, partition, code, self._runtime.time_ms())
            if actions:  # All but the last of a transaction have none.
                self._perform(led, actions)

    # Called by ReplicaManager at leadership changes

    def on_leadership(self, partition: int) -> None:
        """Load the log of this partition; in a later epoch of the same leader it is loaded
        already."""
        led = self._led.get(partition)
        if led is None:
            led = self._led[partition] = LedPartition(partition)
            self._start_load(led)
        elif led.ids is not None:
            led.ids.coordinator_epoch = self._epoch_of(led)

    def on_follower(self, partition: int) -> None:
        """Another broker coordinates these transactions now: drop them. What waits for an append
        is answered when that ends."""
        led = self._led.pop(partition, None)
        if led is not None and led.load is not None:
            led.load.kill(block=False)

    def _epoch_of(self, led: LedPartition) -> int:
        return self._replica_manager.partition(led.topic_partition).leader_epoch

    # Loads

    def _is_current(self, led: LedPartition) -> bool:
        return self._led.get(led.topic_partition.partition) is led

    def _start_load(self, led: LedPartition) -> None:
        if self._is_active and self._is_current(led):
            name = f"{led.topic_partition} transactions load"
            led.load = self._runtime.spawn(self._load, led, name=name)

    def _load(self, led: LedPartition) -> None:
        started = self._runtime.monotonic()
        logger.info("Loading transaction metadata from %s", led.topic_partition)
        try:
            ids = self._read(led)
            if not self._is_current(led):
                return
            led.load, led.ids = None, ids
            ids.coordinator_epoch = self._epoch_of(led)
            self._perform(led, ids.resume(self._runtime.time_ms()))
        except StorageError:
            raise
        except Exception as error:
            led.ids = None
            expected = isinstance(error, KafkaError | CorruptMessage)
            logger.error(
                "Error in loading transactions from %s: %s. Their producers wait until it can be "
                "read; check it with `kafka08 log check`. Trying again in %d s",
                led.topic_partition,
                error,
                LOAD_RETRY_S,
                exc_info=None if expected else error,
            )
            self._runtime.call_later(LOAD_RETRY_S, self._start_load, led)
            return
        logger.info(
            "Finished loading %d transactional ids from %s in %d milliseconds",
            len(ids),
            led.topic_partition,
            (self._runtime.monotonic() - started) * 1000,
        )

    def _read(self, led: LedPartition) -> TransactionalIds:
        """The ids of the log; some, once the leadership has ended. Switches."""
        found = self._replica_manager.partition(led.topic_partition)
        log = found.leader_log()

        def records() -> Iterator[tuple[Buffer, Buffer | None]]:
            parts = committed_parts(
                found,
                log,
                self._runtime,
                self._config.transaction_state_log_load_buffer_size,
                lambda: self._is_current(led),
            )
            for part in parts:
                for message in part.messages:
                    yield message.key or b"", message.value

        return TransactionalIds.loaded(0, records())

    # Time

    def abort_timed_out(self) -> None:
        """Abort the transactions that are open for longer than their producers allow."""
        for led, ids in self._loaded():
            self._perform(led, ids.abort_timed_out(self._runtime.time_ms()))

    def expire(self) -> None:
        """Forget the ids without a transaction that nobody has used for
        transactional.id.expiration.ms."""
        for led, ids in self._loaded():
            actions = ids.expire(
                self._runtime.time_ms(),
                self._config.transactional_id_expiration_ms,
                self._config.request_timeout_ms,
            )
            self._perform(led, actions)

    def _loaded(self) -> Iterator[tuple[LedPartition, TransactionalIds]]:
        """The loaded partitions; others run between two. Switches."""
        for led in list(self._led.values()):
            if led.ids is not None and self._is_current(led):
                yield led, led.ids
                self._runtime.sleep(0)
