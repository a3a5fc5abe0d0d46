"""Dispatcher: every API of the level has a handler, and a fast path gets only its own versions."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from kafka08.broker.requests import call
from kafka08.broker.requests.dispatcher import DECODED_AT_ONCE_BYTES, Dispatcher, handlers_at
from kafka08.broker.requests.fallback import FALL_BACK, Fallback
from kafka08.broker.requests.fast_path import FastPath
from kafka08.levels import Level
from kafka08.protocol import compression, message_set
from kafka08.protocol.apis import APIS
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.fetch import FetchRequest
from kafka08.protocol.frame import SIZE
from kafka08.protocol.leader_and_isr import PartitionStateInfo
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.offsets import OffsetsPartition, OffsetsRequest, OffsetsTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.served import SERVED
from kafka08.protocol.stop_replica import StopReplicaPartition, StopReplicaRequest
from kafka08.protocol.update_metadata import UpdateMetadataRequest
from tests.broker.world import CONTROLLER_EPOCH, Client, World


@pytest.mark.parametrize("level", Level)
def test_every_api_of_the_level_has_a_handler(level: Level) -> None:
    """Every request that can be decoded has a handler."""
    rows = SERVED[level].rows
    served = {
        api.request
        for api in APIS
        if any(rows.get((api.key, row.version)) is row for row in api.versions)
    }
    assert set() == served - handlers_at(level).keys()


def test_a_fast_path_sees_its_own_version_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fetch 0 goes to the fast path. Fetch 1, which 0.8.2.2 reads as 0, goes to the handler."""
    seen: list[bytes] = []

    def fetch(self: FastPath, payload: memoryview, _link: object) -> Fallback:
        seen.append(bytes(payload[2:4]))
        return FALL_BACK

    monkeypatch.setattr(FastPath, "fetch", fetch)
    client = Client(World(tmp_path))
    for version in (1, 0):
        payload = bytearray(encode_request(FetchRequest(-1, 0, 0, []), 7, "c")[SIZE.size :])
        payload[2:4] = struct.pack(">h", version)
        client.send(SIZE.pack(len(payload)) + payload)
    assert [struct.pack(">h", 0)] == seen
    assert [struct.pack(">ii", 7, 0)] * 2 == client.frames()


@pytest.mark.parametrize("level", [Level.V0_8_2, Level.V0_10_2])
def test_a_metadata_response_is_encoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: Level
) -> None:
    """What the cache keeps is sent: that of 10,000 topics takes 10 ms. The next request gets the
    same from the cache."""

    def encode_response(*_: object) -> bytes:
        raise AssertionError("encoded again")

    world = World(tmp_path, api_level=str(level))
    world.lead("t", 3)
    monkeypatch.setattr(call, "encode_response", encode_response)
    client = Client(world)
    for _ in range(2):
        client.send(encode_request(MetadataRequest(["t"]), 7, "test"))
    first, second = client.frames()
    assert bytes(first) == bytes(second)


class TestLargeRequests:
    """A request above DECODED_AT_ONCE_BYTES is decoded in a native thread."""

    @staticmethod
    def world_of(directory: Path, level: Level = Level.V0_8_2) -> World:
        return World(directory, native_inline=False, api_level=str(level))

    @staticmethod
    def frame_of(topics: int = 20_000) -> bytearray:
        """A ListOffsets request for partitions that are not here."""
        asked = [OffsetsTopic(f"t{n}", [OffsetsPartition(0, -1, 1)]) for n in range(topics)]
        frame = bytearray(encode_request(OffsetsRequest(-1, asked), 7, "c"))
        assert len(frame) > DECODED_AT_ONCE_BYTES
        return frame

    def test_the_response_comes_later(self, tmp_path: Path) -> None:
        """Meanwhile the buffer that received the request is used for others."""
        world = self.world_of(tmp_path)
        client = Client(world)
        payload = self.frame_of()[SIZE.size :]
        assert world.handle(memoryview(payload), client) is None
        client.parked = True
        payload[:] = bytes(len(payload))
        world.runtime.run_native_jobs()
        (frame,) = client.frames()
        response = decode_response(OffsetsRequest, frame)[1]
        assert {3} == {topic.partitions[0].error_code for topic in response.topics}
        assert 20_000 == len(response.topics)

    @pytest.mark.parametrize("level", Level)
    @pytest.mark.parametrize("key", [4, 5, 6])
    def test_of_a_former_controller(self, tmp_path: Path, level: Level, key: int) -> None:
        """It is refused by its epoch, whatever follows that: 100 MB took 12.8 s to decode."""
        world = self.world_of(tmp_path, level)
        world.lead("t")
        world.runtime.run_native_jobs()
        client = Client(world)
        head = struct.pack(">hhihii", key, 0, 7, -1, 9, CONTROLLER_EPOCH - 1)
        client.send(SIZE.pack(len(head) + (2 << 20)) + head + b"\xff" * (2 << 20))
        (frame,) = client.frames()
        code = -1 if key == 6 and level == Level.V0_8_2 else 11
        assert struct.pack(">ih", 7, code) == frame[:6]
        assert not world.runtime.native_jobs

    def test_of_the_controller(self, tmp_path: Path) -> None:
        """More partitions than decode at once are decoded in a thread, too, and bounded."""
        world = self.world_of(tmp_path)
        client = Client(world)
        request = StopReplicaRequest(
            9, CONTROLLER_EPOCH, 0, [StopReplicaPartition("topic", n) for n in range(100_000)]
        )
        client.send(encode_request(request, 7, "c"))
        assert [] == client.frames()
        world.runtime.run_native_jobs()
        (frame,) = client.frames()
        assert 100_000 == len(decode_response(StopReplicaRequest, frame)[1].partitions)

    def test_malformed_bytes_close_the_connection(self, tmp_path: Path) -> None:
        """The same as for a small one."""
        world = self.world_of(tmp_path)
        client = Client(world)
        frame = self.frame_of()
        del frame[-10:]
        frame[: SIZE.size] = SIZE.pack(len(frame) - SIZE.size)
        client.send(bytes(frame))
        world.runtime.run_native_jobs()
        assert client.closed

    @pytest.mark.parametrize("level", Level)
    def test_an_api_that_is_not_served(self, tmp_path: Path, level: Level) -> None:
        """The level decides whether it gets no response or loses its connection."""
        world = self.world_of(tmp_path, level)
        client = Client(world)
        frame = self.frame_of()
        frame[SIZE.size : SIZE.size + 2] = struct.pack(">h", 99)
        client.send(bytes(frame))
        world.runtime.run_native_jobs()
        assert SERVED[level].closes_on_unsupported == client.closed
        assert not client.parked

    def test_a_client_that_leaves(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its request is not handled."""
        world = self.world_of(tmp_path)
        client = Client(world)
        client.send(bytes(self.frame_of()))
        client.close()
        handled: list[object] = []
        monkeypatch.setattr(Dispatcher, "_respond", lambda *call: handled.append(call))
        world.runtime.run_native_jobs()
        assert [] == handled

    def test_requests_of_the_controller_are_decoded_at_once(self, tmp_path: Path) -> None:
        """Those for 10,000 partitions take 30 ms, or twice as long beside a thread."""
        world = self.world_of(tmp_path)
        client = Client(world)
        states = [
            PartitionStateInfo("t", n, CONTROLLER_EPOCH, 2, 0, [2, 3], 0, [2, 3])
            for n in range(10_000)
        ]
        request = encode_request(UpdateMetadataRequest(9, CONTROLLER_EPOCH, states, []), 7, "c")
        assert len(request) > DECODED_AT_ONCE_BYTES
        client.send(request)
        assert 1 == len(client.frames())

    def test_a_large_produce_of_few_partitions_is_decoded_at_once(self, tmp_path: Path) -> None:
        """Its bytes are messages. Copying them would take longer than decoding it."""
        world = self.world_of(tmp_path)
        world.lead("t")
        client = Client(world)
        data = message_set.encode([(None, random.Random(1).randbytes(200_000))], compression.GZIP)
        request = ProduceRequest(1, 1000, [ProduceTopic("t", [ProducePartition(0, data)])])
        client.send(encode_request(request, 7, "c"))
        assert world.partition("t").is_queued
        world.runtime.run_native_jobs()
        assert 1 == len(client.frames())
        assert 1 == world.partition("t").log.log_end_offset
