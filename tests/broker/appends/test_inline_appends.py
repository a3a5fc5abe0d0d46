"""What one turn of the event loop unpacks is bounded, whatever the sets are."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08 import kernel
from kafka08.broker.appends.inline_appends import NATIVE_MIN_BYTES, RATIO_MAX, UNPACKED_BYTES
from kafka08.network.server_connection import LARGE_BYTES
from kafka08.protocol import compression, message_set
from kafka08.protocol.codec import encode_request
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from tests.broker.world import Client, World

LEVELS = ["0.8.2", "0.10.2"]
GZIP = compression.GZIP


class Unpacked:
    """Counts the bytes that the event loop has unpacked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        decompress = compression.decompress

        def counted(codec: int, data: bytes, max_size: int, **chosen: object) -> bytes | bytearray:
            self.sizes.append(max_size)  # so much, if it raises
            unpacked = decompress(codec, data, max_size, **chosen)  # type: ignore[arg-type]
            self.sizes[-1] = len(unpacked)
            return unpacked

        monkeypatch.setattr(compression, "decompress", counted)

    def take(self) -> int:
        total = sum(self.sizes)
        self.sizes.clear()
        return total


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> Unpacked:
    return Unpacked(monkeypatch)


def world_of(directory: Path, level: str, partitions: int = 1, **overrides: str) -> World:
    world = World(directory, native_inline=False, api_level=level)
    config = {name.replace("_", "."): value for name, value in overrides.items()}
    world.lead("t", partitions=partitions, config=config)
    return world


def magic_of(level: str) -> int:
    return 1 if level == "0.10.2" else 0


def packed(size: int, level: str, count: int = 1) -> bytes:
    """A gzip wrapper around messages with values of together `size` zeros."""
    messages = [(None, bytes(size // count))] * count
    return message_set.encode(messages, GZIP, magic=magic_of(level))


def send(world: World, sets: list[bytes]) -> Client:
    """A Produce request with the sets for partitions 0, 1, 2 …"""
    client = Client(world)
    partitions = [ProducePartition(number, data) for number, data in enumerate(sets)]
    client.send(encode_request(ProduceRequest(1, 1000, [ProduceTopic("t", partitions)]), 1, "test"))
    return client


def ends(world: World, partitions: int) -> list[int]:
    return [world.partition("t", number).log.log_end_offset for number in range(partitions)]


@pytest.mark.parametrize("level", LEVELS)
def test_small_sets_that_unpack_to_much_are_unpacked_in_threads(
    tmp_path: Path, unpacked: Unpacked, level: str
) -> None:
    """20 sets of 20 KB that hold 20 MB each: the loop unpacks no more than its limit, twice (for
    FastProduce and for the handler), and then all are appended."""
    world = world_of(tmp_path, level, partitions=20)
    sets = [packed(20 << 20, level)] * 20
    assert len(sets[0]) < NATIVE_MIN_BYTES
    client = send(world, sets)
    assert 0 < unpacked.take() <= 2 * UNPACKED_BYTES
    assert client.parked
    world.runtime.run_native_jobs()
    assert unpacked.take() > 20 * (20 << 20)
    assert 1 == len(client.frames())
    assert [1] * 20 == ends(world, 20)


@pytest.mark.parametrize("level", LEVELS)
def test_a_wrapper_behind_a_plain_message_is_no_exception(
    tmp_path: Path, unpacked: Unpacked, level: str
) -> None:
    """The first entry says nothing about the others."""
    world = world_of(tmp_path, level)
    plain = message_set.encode([(None, b"a")], magic=magic_of(level))
    client = send(world, [plain + packed(20 << 20, level)])
    assert unpacked.take() <= 2 * UNPACKED_BYTES
    assert client.parked
    world.runtime.run_native_jobs()
    assert [2] == ends(world, 1)


@pytest.mark.parametrize("level", LEVELS)
def test_ordinary_sets_are_appended_at_once_up_to_the_limit(
    tmp_path: Path, unpacked: Unpacked, level: str
) -> None:
    """Sets of 100 KB of messages, 120 in a request: 40 fit into the limit and take no thread."""
    world = world_of(tmp_path, level, partitions=120)
    client = send(world, [packed(100 << 10, level, count=10)] * 120)
    at_once = sum(ends(world, 120)) // 10
    assert at_once >= UNPACKED_BYTES // (102 << 10)
    assert unpacked.take() <= 2 * UNPACKED_BYTES
    world.runtime.run_native_jobs()
    assert 1 == len(client.frames())
    assert [10] * 120 == ends(world, 120)


def test_a_set_may_unpack_to_a_multiple_of_its_size(tmp_path: Path, unpacked: Unpacked) -> None:
    """So the many small requests that a connection may send in one turn are bounded, too: the time
    of a turn is not looked at after a request below LARGE_BYTES."""
    world = world_of(tmp_path, "0.8.2")
    limit = RATIO_MAX * LARGE_BYTES
    client = send(world, [packed(limit - 100, "0.8.2")])
    assert not client.parked
    unpacked.take()
    client = send(world, [packed(limit, "0.8.2")])
    assert client.parked
    assert 2 * limit == unpacked.take()
    world.runtime.run_native_jobs()
    assert [2] == ends(world, 1)


def test_nothing_is_unpacked_at_once_behind_a_job(tmp_path: Path, unpacked: Unpacked) -> None:
    """Sets that wait in a partition's queue are unpacked in threads, however small they are; plain
    ones are not."""
    world = world_of(tmp_path, "0.8.2")
    small, plain = packed(100, "0.8.2"), message_set.encode([(None, b"a")])
    clients = [
        send(world, [data]) for data in (packed(1 << 20, "0.8.2"), small, plain + small, plain)
    ]
    unpacked.take()
    jobs = 0
    while world.runtime.native_jobs:
        unpacked.sizes.clear()
        job = world.runtime.native_jobs.pop(0)
        job()
        jobs += 1
        assert 1 >= sum(size > 0 for size in unpacked.sizes)
    assert 3 == jobs
    assert [1] * 4 == [len(client.frames()) for client in clients]
    assert [5] == ends(world, 1)


def test_large_plain_sets_are_compressed_in_a_thread(tmp_path: Path) -> None:
    """With compression.type a plain set is compressed by the leader, which takes as long."""
    world = world_of(tmp_path, "0.10.2", compression_type="gzip")
    data = message_set.encode([(None, bytes(1000))] * 100, magic=1)
    clients = [send(world, [data]) for _ in range(2)]
    assert [True, True] == [client.parked for client in clients]
    world.runtime.run_native_jobs()
    assert [200] == ends(world, 1)
    assert 200 * 1000 > world.partition("t").log.size
    small = send(world, [message_set.encode([(None, b"a")], magic=1)])
    assert not small.parked


def test_small_plain_sets_are_compressed_at_once_up_to_the_limit(tmp_path: Path) -> None:
    """They count as if they had been unpacked."""
    world = world_of(tmp_path, "0.10.2", partitions=200, compression_type="gzip")
    data = message_set.encode([(None, bytes(60_000))], magic=1)
    client = send(world, [data] * 200)
    assert UNPACKED_BYTES // 60_000 <= sum(ends(world, 200)) <= 2 * UNPACKED_BYTES // 60_000 + 2
    world.runtime.run_native_jobs()
    assert [1] * 200 == ends(world, 200)
    assert 1 == len(client.frames())


def test_a_set_that_fails_spends_what_it_might_have_unpacked(
    tmp_path: Path, unpacked: Unpacked
) -> None:
    """A set whose content is broken was unpacked before that was found. So many of them take no
    more than the limit either."""
    world = world_of(tmp_path, "0.10.2", partitions=60)
    value = compression.compress(GZIP, bytes(120 << 10), magic=1)
    broken = bytes(kernel.wrap(value, 0, GZIP, 1, 0, False))
    client = send(world, [broken] * 60)
    assert unpacked.take() <= 2 * UNPACKED_BYTES
    world.runtime.run_native_jobs()
    assert 1 == len(client.frames())
    assert [0] * 60 == ends(world, 60)
