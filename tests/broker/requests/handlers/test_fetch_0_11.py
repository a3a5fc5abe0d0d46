"""Fetch at level 0.11.0: captured exchanges on the captured logs of 0.11.0.3, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka08.protocol import message_set
from kafka08.protocol.codec import decode_response
from kafka08.protocol.fetch import MAGIC_2_VERSION, FetchPartitionResponse, FetchRequest
from kafka08.protocol.frame import SIZE
from tests.broker.world import World
from tests.format.captures import DATA as LOGS

EXCHANGES: dict[str, dict[str, Any]] = {
    entry["name"]: entry
    for entry in json.loads(
        (Path(__file__).parents[3] / "data" / "0.11-api-data.json").read_text(encoding="utf-8")
    )
}
FORMATS = {"v-m1": "0.10.2", "v-m1z": "0.10.2", "v-m0": "0.8.2", "v-m0z": "0.8.2"}
FETCHES = [
    name
    for name, one in EXCHANGES.items()
    if one["api_key"] == 1
    and one.get("response")
    and f"{one['request']['body']['topics'][0]['topic']}-0" in LOGS
]


OVERLAPS = {"fetch-v4-v-misc2", "fetch-v3-v-misc2"}
"""The log has offsets that were given out twice, which was searched while it was shorter."""


def replayed(tmp_path: Path, name: str) -> tuple[bytes, bytes]:
    """Our response and the captured one, to a broker with the captured log of the topic."""
    exchange = EXCHANGES[name]
    (topic,) = exchange["request"]["body"]["topics"]
    directory = tmp_path / f"{topic['topic']}-0"
    directory.mkdir()
    for file_name, file in LOGS[directory.name].items():
        if "hex" in file:
            (directory / file_name).write_bytes(bytes.fromhex(file["hex"]))
    world = World(tmp_path, api_level="0.11.0")
    stored = FORMATS.get(topic["topic"], "0.11.0")
    world.lead(topic["topic"], config={"message.format.version": stored})
    world.client.send(bytes.fromhex(exchange["request_hex"]))
    world.runtime.advance(10)
    (payload,) = world.client.frames()
    return payload, bytes.fromhex(exchange["response_hex"])[SIZE.size :]


def decoded(payload: bytes, version: int) -> tuple[FetchPartitionResponse, list[Any]]:
    """The partition of a response without its set, and the messages of that."""
    _, response = decode_response(FetchRequest, payload, version)
    (topic,) = response.topics
    (partition,) = topic.partitions
    data, partition.message_set = partition.message_set, b""
    return partition, list(message_set.decode(bytes(data)))


@pytest.mark.parametrize("name", sorted({*FETCHES} - OVERLAPS))
def test_the_captured_exchanges(tmp_path: Path, name: str) -> None:
    """The response has the captured bytes. What had to be compressed again has the captured
    messages; an old consumer gets those with headers without them, and not -1 for ever."""
    version = EXCHANGES[name]["api_version"]
    ours, theirs = replayed(tmp_path, name)
    if ours == theirs:
        return
    assert version < MAGIC_2_VERSION
    (our_head, our_rows), (their_head, their_rows) = (
        decoded(one, version) for one in (ours, theirs)
    )
    if their_head.error_code:
        assert (0, -1) == (our_head.error_code, their_head.error_code)
        assert our_rows
    else:
        assert (our_head, our_rows) == (their_head, their_rows)
