"""A failing disk stops the broker, on every path."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import StorageError
from kafka08.protocol import message_set
from kafka08.protocol.codec import encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.types import Request
from tests.broker.fake_runtime import Halted
from tests.broker.world import World


def fail(*_: Any, **__: Any) -> Any:
    raise StorageError("cannot write t-0: No space left on device")


def no_space(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def produce(*partitions: int) -> ProduceRequest:
    data = message_set.encode([(None, b"m")])
    parts = [ProducePartition(number, data) for number in partitions]
    return ProduceRequest(1, 1000, [ProduceTopic("t", parts)])


def fetch(*partitions: int) -> FetchRequest:
    parts = [FetchPartition(number, 0, 1000) for number in partitions]
    return FetchRequest(-1, 0, 1, [FetchTopic("t", parts)])


@pytest.mark.parametrize(
    "request_", [produce(0), produce(0, 1), fetch(0), fetch(0, 1)], ids=lambda r: type(r).__name__
)
def test_the_process_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: Request
) -> None:
    """The process ends at once, for one partition or several, and no client gets a response."""
    world = World(tmp_path)
    world.lead("t", 2)
    log = world.partition("t").log
    world.partition("t").append(bytearray(message_set.encode([(None, b"m")])), 1)
    assert log is not None
    monkeypatch.setattr(log.active_segment, "write", no_space)
    monkeypatch.setattr(log.active_segment, "descriptor", -1)
    monkeypatch.setattr(log, "read", fail)
    with pytest.raises(Halted):
        world.client.send(encode_request(request_, 1, "test"))
    assert [] == world.client.frames()
