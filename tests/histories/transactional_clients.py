"""KafkaProducer and KafkaConsumer, and those of librdkafka, behind one interface."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, NoReturn, Protocol

import confluent_kafka

from kafka08.consumer import KafkaConsumer, KafkaConsumerConfig
from kafka08.errors import KafkaError, ProducerFenced
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.structs import TopicPartition

CALL_S: Final = 10.0
"""Of one call; it is repeated until PATIENCE_S are over."""
PATIENCE_S: Final = 40.0


class MustAbort(Exception):
    """The transaction can only be aborted."""


class MustEnd(Exception):
    """This producer can do nothing any more. If it was to commit, nobody knows the outcome."""


class Message(NamedTuple):
    tp: TopicPartition
    offset: int
    value: bytes


class Sender(Protocol):
    """A transactional producer. Every call raises MustAbort or MustEnd."""

    def init(self) -> None: ...

    def begin(self) -> None: ...

    def send(self, tp: TopicPartition, value: bytes) -> None: ...

    def flush(self) -> None:
        """Wait until all is stored, or has failed."""

    def send_offsets(self, offsets: Mapping[TopicPartition, int], group: str) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...


class Receiver(Protocol):
    """A consumer with given partitions, at their beginning."""

    def seek(self, tp: TopicPartition, offset: int) -> None: ...

    def poll(self, seconds: float) -> list[Message]: ...

    def committed(self) -> dict[TopicPartition, int]:
        """The offsets of its group; KafkaError if they cannot be had now."""

    def close(self) -> None: ...


class OurSender:
    def __init__(self, bootstrap: str, name: str, timeout_ms: int) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=name,
            transaction_timeout_ms=timeout_ms,
            request_timeout_ms=3000,
            linger_ms=2,
        )

    def init(self) -> None:
        _as_ours(self._producer.init_transactions)

    def begin(self) -> None:
        _as_ours(self._producer.begin_transaction)

    def send(self, tp: TopicPartition, value: bytes) -> None:
        record = ProducerRecord(tp.topic, value, partition=tp.partition)
        _as_ours(lambda: self._producer.send(record))

    def flush(self) -> None:
        _as_ours(lambda: self._producer.flush(PATIENCE_S))

    def send_offsets(self, offsets: Mapping[TopicPartition, int], group: str) -> None:
        _as_ours(lambda: self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        _as_ours(lambda: self._producer.commit_transaction(PATIENCE_S))

    def abort(self) -> None:
        _as_ours(lambda: self._producer.abort_transaction(PATIENCE_S))

    def close(self) -> None:
        self._producer.close(CALL_S)


def _as_ours(call: Callable[[], object]) -> None:
    try:
        call()
    except ProducerFenced as error:
        raise MustEnd(str(error)) from error
    except TimeoutError as error:
        raise MustEnd(str(error)) from error
    except KafkaError as error:
        raise MustAbort(repr(error)) from error


class OurReceiver:
    def __init__(
        self, bootstrap: str, partitions: Iterable[TopicPartition], isolation: str, group: str
    ) -> None:
        self._partitions = list(partitions)
        self._consumer = KafkaConsumer(
            KafkaConsumerConfig(
                bootstrap_servers=bootstrap,
                group_id=group,
                isolation_level=isolation,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                request_timeout_ms=11_000,  # a session's timeout and a second
            )
        )
        self._consumer.assign(self._partitions)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._consumer.seek(tp, offset)

    def poll(self, seconds: float) -> list[Message]:
        return [
            Message(TopicPartition(one.topic, one.partition), one.offset, one.value or b"")
            for one in self._consumer.poll(seconds)
        ]

    def committed(self) -> dict[TopicPartition, int]:
        found = self._consumer.committed(*self._partitions, timeout=CALL_S)
        return {tp: one.offset for tp, one in found.items() if one is not None}

    def close(self) -> None:
        self._consumer.close()


class LibrdkafkaSender:
    def __init__(self, bootstrap: str, name: str, timeout_ms: int) -> None:
        self._bootstrap = bootstrap
        self._member: object = None
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": name,
                "transaction.timeout.ms": timeout_ms,
                "socket.timeout.ms": 3000,
                "message.timeout.ms": min(timeout_ms, 20_000),
                "linger.ms": 2,
                "log_level": 0,
            }
        )

    def init(self) -> None:
        _as_librdkafka(lambda: self._producer.init_transactions(CALL_S))

    def begin(self) -> None:
        _as_librdkafka(self._producer.begin_transaction)

    def send(self, tp: TopicPartition, value: bytes) -> None:
        _as_librdkafka(lambda: self._producer.produce(tp.topic, value, partition=tp.partition))

    def flush(self) -> None:
        _as_librdkafka(lambda: self._producer.flush(CALL_S))

    def send_offsets(self, offsets: Mapping[TopicPartition, int], group: str) -> None:
        positions = [_place(tp, offset) for tp, offset in offsets.items()]
        if self._member is None:  # only a consumer can make the object that names a group
            keys = {"bootstrap.servers": self._bootstrap, "group.id": group}
            self._member = confluent_kafka.Consumer(keys).consumer_group_metadata()
        _as_librdkafka(
            lambda: self._producer.send_offsets_to_transaction(positions, self._member, CALL_S)
        )

    def commit(self) -> None:
        _as_librdkafka(lambda: self._producer.commit_transaction(CALL_S))

    def abort(self) -> None:
        """librdkafka cannot abort before the coordinator knows a partition of the transaction: the
        response is 48, after which it ends."""
        self.flush()
        _as_librdkafka(lambda: self._producer.abort_transaction(CALL_S))


def _place(tp: TopicPartition, offset: int) -> confluent_kafka.TopicPartition:
    return confluent_kafka.TopicPartition(tp.topic, tp.partition, offset)


def _as_librdkafka(call: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            call()
            return
        except BufferError:
            time.sleep(0.1)
        except confluent_kafka.KafkaException as failure:
            error = failure.args[0]
            if not error.retriable():
                _raise(error)
            if time.monotonic() > end:
                raise MustEnd(str(error)) from failure
            time.sleep(0.1)


def _raise(error: confluent_kafka.KafkaError) -> NoReturn:
    raise (MustAbort if error.txn_requires_abort() else MustEnd)(str(error))


class LibrdkafkaReceiver:
    def __init__(
        self, bootstrap: str, partitions: Iterable[TopicPartition], isolation: str, group: str
    ) -> None:
        self._partitions = list(partitions)
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group or "unused",
                "isolation.level": isolation,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                "socket.timeout.ms": 3000,
                "log_level": 0,
            }
        )
        self._consumer.assign([_place(tp, 0) for tp in self._partitions])

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Asks again until the partition is being read."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._consumer.seek(_place(tp, offset))
                return
            except confluent_kafka.KafkaException:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def poll(self, seconds: float) -> list[Message]:
        with suppress(confluent_kafka.KafkaException):
            return [
                Message(
                    TopicPartition(one.topic() or "", one.partition() or 0),
                    one.offset() or 0,
                    one.value() or b"",
                )
                for one in self._consumer.consume(500, seconds)
                if one.error() is None
            ]
        return []

    def committed(self) -> dict[TopicPartition, int]:
        places = [_place(tp, 0) for tp in self._partitions]
        try:
            found = self._consumer.committed(places, CALL_S)
        except confluent_kafka.KafkaException as failure:
            raise KafkaError(str(failure)) from failure
        if any(one.error is not None for one in found):
            raise KafkaError(str([one.error for one in found]))
        return {
            TopicPartition(one.topic, one.partition): one.offset for one in found if one.offset >= 0
        }

    def close(self) -> None:
        self._consumer.close()


SENDERS: Final[Mapping[str, Callable[[str, str, int], Sender]]] = {
    "ours": OurSender,
    "librdkafka": LibrdkafkaSender,
}
RECEIVERS: Final[Mapping[str, Callable[[str, Iterable[TopicPartition], str, str], Receiver]]] = {
    "ours": OurReceiver,
    "librdkafka": LibrdkafkaReceiver,
}
