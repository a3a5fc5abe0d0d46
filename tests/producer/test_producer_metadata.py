"""When KafkaProducer refreshes its metadata."""

from __future__ import annotations

from kafka08.producer.producer_metadata import ProducerMetadata
from kafka08.protocol.metadata import BrokerEndpoint, MetadataResponse, TopicMetadata
from kafka08.runtime.threads import ThreadRuntime
from tests.mock_clock import MockClock

RESPONSE = MetadataResponse([BrokerEndpoint(1, "b1", 9092)], [TopicMetadata(0, "t", [])])


def metadata() -> ProducerMetadata:
    """Metadata that knows topic t."""
    made = ProducerMetadata(
        [("b1", 9092)],
        max_age_s=300,
        backoff_s=1,
        on_update=lambda cluster, topics: None,
        runtime=ThreadRuntime(clock=MockClock()),
    )
    with made.awaited("t"):
        made.ask(100)
        made.update(RESPONSE, 100)
    return made


def test_it_asks_when_the_picture_is_old() -> None:
    """Without a request for an update, metadata is refreshed when it is old, and not before."""
    assert metadata().due_in(100) == 300


def test_an_update_that_is_wanted_while_a_question_is_under_way_is_asked_for() -> None:
    """An update that is wanted while a request is in flight needs another request, since the broker
    may have answered before the leader moved. (It used to count, and the next batch had to fail
    first.)"""
    made = metadata()
    made.request_update()
    made.ask(110)
    made.request_update()
    made.update(RESPONSE, 110)
    assert made.due_in(110) == 1
    made.ask(111)
    made.update(RESPONSE, 111)
    assert made.due_in(111) == 300


def test_a_question_that_is_lost_is_asked_again() -> None:
    """After a request without response the update is still due."""
    made = metadata()
    made.request_update()
    made.ask(110)
    assert made.due_in(110) == 1
