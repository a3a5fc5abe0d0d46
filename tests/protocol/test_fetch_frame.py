"""FetchFrame: changing a frame in place gives the same bytes as encoding the changed request."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.protocol.codec import encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.fetch_frame import FetchFrame
from kafka08.structs import TopicPartition


def request(version: int, offset: int, max_bytes: int) -> FetchRequest:
    return FetchRequest(
        2,
        500,
        1,
        [
            FetchTopic("ü", [FetchPartition(7, 1, 2), FetchPartition(3, offset, max_bytes)]),
            FetchTopic("t", [FetchPartition(0, 5, 6)]),
        ],
        max_bytes=1000,
        version=version,
    )


@pytest.mark.parametrize("version", range(12))
def test_a_changed_frame_is_the_frame_of_the_changed_request(version: int) -> None:
    """Offset, size and correlation id are changed in the layout of every version."""
    names = [TopicPartition("ü", 7), TopicPartition("ü", 3), TopicPartition("t", 0)]
    asked: Any = {name: SimpleNamespace() for name in names}
    frame = FetchFrame(request(version, 10, 20), "fetcher", asked)
    assert frame.numbered(1) == encode_request(request(version, 10, 20), 1, "fetcher")
    first, second, third = asked.values()
    frame.put(second, 1 << 40, 70_000)
    changed = replace(request(version, 1 << 40, 70_000), version=version)
    assert frame.numbered(9) == encode_request(changed, 9, "fetcher")
    assert {"ü".encode(): {7: first, 3: second}, b"t": {0: third}} == frame.by_name
    data, at = frame.numbered(9), second.frame_position
    assert 1 << 40 == int.from_bytes(data[at : at + 8], "big")
