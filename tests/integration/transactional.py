"""What a transactional KafkaProducer does, on brokers of any release that has transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kafka08.consumer import KafkaConsumer
from kafka08.errors import (
    FailedTransaction,
    InvalidTxnState,
    MessageSizeTooLarge,
    ProducerFenced,
)
from kafka08.producer import KafkaProducer, ProducerRecord
from kafka08.structs import TopicPartition
from tests.integration.polling_cluster import read
from tests.waiting import until

LARGE = bytes(1_200_000)
"""More than a broker takes by default."""


def producer_on(bootstrap: str, name: str, **keys: Any) -> KafkaProducer:
    return KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name, **keys)


def committed_values(bootstrap: str, topic: str, wanted: Sequence[bytes]) -> None:
    """Of partition 0: these, and then an end."""
    tp = TopicPartition(topic, 0)
    with KafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([tp])
        assert [m.value for m in read(consumer, len(wanted), 30)] == list(wanted)
        assert consumer.poll(0.2) == []


def commits_and_aborts(bootstrap: str, topic: str) -> None:
    """A block is committed at its end, and aborted if it raises; single records and many. Nothing
    is sent outside of one."""
    with producer_on(bootstrap, topic) as producer:
        producer.init_transactions()
        with pytest.raises(InvalidTxnState, match="begin_transaction comes first"):
            producer.send(ProducerRecord(topic, b"outside"))
        with producer.transaction():
            futures = [producer.send(ProducerRecord(topic, b"%d" % n)) for n in range(3)]
        assert [future.result(30).offset for future in futures] == [0, 1, 2]
        with pytest.raises(KeyError):
            raise_in(producer, topic)
        with producer.transaction():
            producer.send_many(topic, [b"many"] * 2)
            with pytest.raises(InvalidTxnState, match="in a transaction"):
                producer.begin_transaction()
        with producer.transaction():
            pass
    committed_values(bootstrap, topic, [b"0", b"1", b"2", b"many", b"many"])


def raise_in(producer: KafkaProducer, topic: str) -> None:
    with producer.transaction():
        assert producer.send(ProducerRecord(topic, b"gone")).result(30).offset == 4
        raise KeyError


def unsent_records_are_dropped(bootstrap: str, topic: str) -> None:
    """An abort does not wait for what lingers; its futures say why."""
    with producer_on(bootstrap, topic, linger_ms=1_000_000) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        future = producer.send(ProducerRecord(topic, b"gone"))
        producer.abort_transaction(30)
        with pytest.raises(FailedTransaction, match="was aborted"):
            future.result(0)
        with producer.transaction():
            producer.send(ProducerRecord(topic, b"kept"))
    committed_values(bootstrap, topic, [b"kept"])


def offsets_belong_to_the_transaction(bootstrap: str, topic: str) -> None:
    """They are committed with it, and not without."""
    tp, group = TopicPartition(topic, 0), f"group-{topic}"
    with producer_on(bootstrap, topic) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(ProducerRecord(topic, b"a"))
            producer.send_offsets_to_transaction({tp: 7}, group)
        producer.begin_transaction()
        producer.send_offsets_to_transaction({tp: 9}, group)
        producer.abort_transaction()
    with KafkaConsumer(bootstrap_servers=bootstrap, group_id=group) as consumer:
        found = consumer.committed(tp)[tp]
    assert found is not None
    assert found.offset == 7


def a_member_commits_what_it_has_read(bootstrap: str, topic: str) -> None:
    """Its positions, with the metadata of its group: also where brokers do not compare it."""
    tp = TopicPartition(topic, 0)
    keys: dict[str, Any] = {"bootstrap_servers": bootstrap, "group_id": f"member-{topic}"}
    with (
        producer_on(bootstrap, topic) as producer,
        KafkaConsumer(**keys, auto_offset_reset="earliest", enable_auto_commit=False) as consumer,
    ):
        producer.init_transactions()
        with producer.transaction():
            producer.send(ProducerRecord(topic, b"a", partition=0))
        consumer.subscribe([topic])
        assert [m.value for m in read(consumer, 1, 30)] == [b"a"]
        with producer.transaction():
            producer.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())
        until(lambda: consumer.committed(tp)[tp] == consumer.positions()[tp], "the commit")


def a_later_producer_fences(bootstrap: str, topic: str) -> None:
    """One with the same name aborts what the former one began, which can do nothing any more."""
    with producer_on(bootstrap, topic) as former, producer_on(bootstrap, topic) as later:
        former.init_transactions()
        former.begin_transaction()
        former.send(ProducerRecord(topic, b"zombie")).result(30)
        later.init_transactions()
        with later.transaction():
            later.send(ProducerRecord(topic, b"new"))
        with pytest.raises(ProducerFenced, match="Another producer of this name"):
            former.commit_transaction()
        with pytest.raises(ProducerFenced):
            former.begin_transaction()
    committed_values(bootstrap, topic, [b"new"])


def a_record_that_fails_ends_it(bootstrap: str, topic: str) -> None:
    """The commit raises its error; after the abort the next transaction is as any other."""
    with producer_on(bootstrap, topic, max_request_size=2 << 20) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(ProducerRecord(topic, b"before")).result(30)
        large = producer.send(ProducerRecord(topic, LARGE))
        with pytest.raises(MessageSizeTooLarge):
            producer.commit_transaction()
        with pytest.raises(MessageSizeTooLarge):
            large.result(0)
        producer.abort_transaction()
        with producer.transaction():
            producer.send(ProducerRecord(topic, b"after"))
        with pytest.raises(MessageSizeTooLarge), producer.transaction():
            producer.send(ProducerRecord(topic, LARGE))
        with producer.transaction():
            producer.send(ProducerRecord(topic, b"last"))
    committed_values(bootstrap, topic, [b"after", b"last"])


SCENARIOS = (
    commits_and_aborts,
    unsent_records_are_dropped,
    offsets_belong_to_the_transaction,
    a_member_commits_what_it_has_read,
    a_later_producer_fences,
    a_record_that_fails_ends_it,
)
