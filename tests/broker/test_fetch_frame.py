"""FetchFrame: changing a frame in place gives the same bytes as encoding the changed request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka08.broker.fetch_frame import FetchFrame
from kafka08.protocol.codec import encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
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


@pytest.mark.parametrize("version", range(4))
def test_a_changed_frame_is_the_frame_of_the_changed_request(version: int) -> None:
    """Offset, size and correlation id are changed in the layout of every version."""
    asked = {TopicPartition("ü", 7): "a", TopicPartition("ü", 3): "b", TopicPartition("t", 0): "c"}
    frame = FetchFrame(request(version, 10, 20), "fetcher", asked, has_limit=version >= 3)
    assert frame.numbered(1) == encode_request(request(version, 10, 20), 1, "fetcher")
    frame.put(TopicPartition("ü", 3), 1 << 40, 70_000)
    changed = replace(request(version, 1 << 40, 70_000), version=version)
    assert frame.numbered(9) == encode_request(changed, 9, "fetcher")
    assert {"ü".encode(): {7: "a", 3: "b"}, b"t": {0: "c"}} == frame.by_name
