"""Call: a request that a greenlet answers."""

from __future__ import annotations

from pathlib import Path

from kafka08.broker.requests.call import Call
from kafka08.protocol.codec import RequestHeader
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.types import Request, Response
from tests.broker.world import World


def test_a_failed_error_response_closes_the_connection(tmp_path: Path) -> None:
    """If even the error response fails, the connection is closed. Otherwise the client would wait
    for its timeout, and the connection would read no further request."""
    world = World(tmp_path)

    def fail(*_: object) -> Response:
        raise RuntimeError("a bug")

    request: Request = MetadataRequest([])
    call = Call(world.context, world.client, RequestHeader(3, 0, 1, "c"), request, fail)
    call.run_in_greenlet("Metadata", fail)
    assert world.client.ending
