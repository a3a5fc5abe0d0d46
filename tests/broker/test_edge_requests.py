"""Requests without names or partitions get the response bytes of 0.8.2.2."""

from __future__ import annotations

from pathlib import Path
from struct import pack

from kafka08.structs import OFFSETS_TOPIC
from tests.broker.edge_requests import CORRELATION_ID, EDGE_REQUESTS
from tests.broker.world import Client, World


def test_the_responses_are_those_of_0_8_2_2(tmp_path: Path) -> None:
    """A null name comes back as null with an error. A topic without partitions is left out, and a
    partition that is listed twice is answered once. The connection stays open."""
    world = World(tmp_path, offsets_topic_num_partitions=1)
    world.lead("edge")
    world.lead(OFFSETS_TOPIC)
    client = Client(world)
    responses = {}
    for request in EDGE_REQUESTS:
        client.send(request.frame)
        responses[request.name] = b"".join(client.frames())
    head = pack(">i", CORRELATION_ID)
    assert {request.name: head + request.response for request in EDGE_REQUESTS} == responses


def test_null_is_not_the_topic_called_null(tmp_path: Path) -> None:
    """The null topic is unknown, although a topic named "null" exists."""
    world = World(tmp_path)
    world.lead("null")
    nameless = [r for r in EDGE_REQUESTS if r.name in {"null topic, Produce", "null topic, Fetch"}]
    client = Client(world)
    for request in nameless:
        client.send(request.frame)
    head = pack(">i", CORRELATION_ID)
    assert [head + request.response for request in nameless] == client.frames()
    assert 0 == world.partition("null").log.log_end_offset
