"""ResendingConnection: one more try after an I/O error, and a request under way in between."""

from __future__ import annotations

import pytest

from kafka08.client.resending import ResendingConnection
from kafka08.errors import Closed, ConnectionFailed, ProtocolError, RequestTimeout
from kafka08.network.connection import Connection
from kafka08.protocol import codec
from kafka08.protocol.consumer_metadata import ConsumerMetadataRequest, ConsumerMetadataResponse
from kafka08.protocol.types import Request, Response
from tests.network.scripted import Hangup, ScriptedNetwork

RESPONSE = ConsumerMetadataResponse(0, 1, "h", 1)
FRAME = codec.encode_response(RESPONSE, 0)
QUESTION = ConsumerMetadataRequest("g")


class Broker:
    """Answers, except that its first requests meet `troubles`: bytes to send, or Hangup."""

    def __init__(self, *troubles: bytes | Hangup) -> None:
        self.troubles = list(troubles)
        self.network = ScriptedNetwork()
        self.network.broker("b", 1, self.respond)
        self.client = ResendingConnection(Connection("b", 1, runtime=self.network.runtime()))

    def respond(self, request: Request) -> Response | bytes:
        if not self.troubles:
            assert isinstance(request, ConsumerMetadataRequest)
            return ConsumerMetadataResponse(0, 1, request.group, 1)
        trouble = self.troubles.pop(0)
        if isinstance(trouble, Hangup):
            raise trouble
        return trouble


@pytest.mark.parametrize("cut", range(len(FRAME)))
@pytest.mark.parametrize("silent", [False, True])
def test_a_response_cut_anywhere_is_asked_for_again(cut: int, silent: bool) -> None:
    """The request is sent once more on a new connection: the caller sees only the second
    response."""
    broker = Broker(FRAME[:cut] if silent else Hangup(FRAME[:cut]))
    assert broker.client.send(QUESTION) == ConsumerMetadataResponse(0, 1, "g", 1)
    assert len(broker.network.opened) == 2
    assert broker.network.requests(ConsumerMetadataRequest) == [QUESTION, QUESTION]


def test_the_second_failure_is_raised() -> None:
    """Two tries, no more; a later request starts over."""
    broker = Broker(Hangup(), b"")
    with pytest.raises(RequestTimeout):
        broker.client.send(QUESTION)
    assert broker.client.send(QUESTION)


def test_a_malformed_response_is_not_asked_for_again() -> None:
    """Another try would not make sense of it."""
    broker = Broker(codec.encode_response(RESPONSE, 9))
    with pytest.raises(ProtocolError):
        broker.client.send(QUESTION)
    assert len(broker.network.opened) == 1


def test_a_broker_that_is_gone_is_a_failed_connection() -> None:
    """If the second attempt cannot connect either, the caller gets ConnectionFailed."""
    broker = Broker()
    broker.network.remove("b", 1)
    with pytest.raises(ConnectionFailed):
        broker.client.send(QUESTION)
    with pytest.raises(ConnectionFailed):
        broker.client.result(broker.client.start(QUESTION))


def test_a_started_request_does_not_disturb_the_next() -> None:
    """Its response is read first and kept for it, however many requests come in between."""
    broker = Broker()
    first = broker.client.start(ConsumerMetadataRequest("1"))
    second = broker.client.start(ConsumerMetadataRequest("2"))
    third = broker.client.send(ConsumerMetadataRequest("3"))
    responses = [broker.client.result(second), broker.client.result(first), third]
    assert [getattr(response, "host", None) for response in responses] == ["2", "1", "3"]
    assert len(broker.network.asked) == 3


@pytest.mark.parametrize("cut", [0, 5])
def test_a_started_request_is_resent_when_its_connection_breaks(cut: int) -> None:
    """It is resent even if another request notices the break first."""
    broker = Broker(Hangup(FRAME[:cut]))
    pending = broker.client.start(ConsumerMetadataRequest("1"))
    assert broker.client.send(ConsumerMetadataRequest("2"))
    response = broker.client.result(pending)
    assert isinstance(response, ConsumerMetadataResponse)
    assert response.host == "1"


def test_nothing_works_after_close() -> None:
    """After close every call raises Closed, and none opens a new connection."""
    broker = Broker()
    pending = broker.client.start(QUESTION)
    broker.client.close()
    for use in (
        lambda: broker.client.send(QUESTION),
        lambda: broker.client.start(QUESTION),
        lambda: broker.client.result(pending),
    ):
        with pytest.raises(Closed):
            use()
    assert len(broker.network.opened) == 1
