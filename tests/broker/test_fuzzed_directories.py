"""Log directories with damaged, lost and strange files: a broker starts, or refuses by name; what
it then answers blocks no hub, keeps no memory and meets no bug."""

from __future__ import annotations

import gc
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from kafka08.errors import KafkaError
from kafka08.levels import Level
from kafka08.protocol import message_set
from kafka08.protocol.codec import encode_request
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from kafka08.protocol.offset_fetch import OffsetFetchRequest, OffsetFetchTopic
from kafka08.protocol.offsets import OffsetsPartition, OffsetsRequest, OffsetsTopic
from kafka08.protocol.produce import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.types import Request
from tests.broker.drawn_requests import INTERNAL, LED
from tests.broker.hub import HOLD_S, Hub
from tests.broker.test_fuzzed_requests import deliver, only_bugs
from tests.broker.world import World
from tests.cpu_speed import slowdown
from tests.format.test_segments import write
from tests.memory import lasting_growth, resident_bytes

DIRECTORIES = 20
GROWTH_BYTES_MAX = 4 << 20
CAPTURED: Final = ("v-rolls-0", "v-txn-0", "v-upz-0", "v-misc2-0")
"""Partitions of a live 0.11.0.3, with snapshots, epochs and aborted transactions."""
VERSIONS: Final = {Level.V0_8_2: (0, 0), Level.V0_9_0: (1, 1)}
"""Of Produce and Fetch; 2 at later levels."""


def world_on(directory: Path, level: Level) -> World:
    """Raises KafkaError where the broker refuses to start."""
    world = World(
        directory, api_level=str(level), log_segment_bytes=700, log_index_interval_bytes=50
    )
    topics = [name.removesuffix("-0") for name in CAPTURED] if level >= Level.V0_11_0 else []
    for topic in (LED, *INTERNAL, *topics):
        world.lead(topic)
    return world


def reads_and_writes(level: Level) -> Iterator[Request]:
    """At many offsets and times; then messages and offsets, some of which roll a segment."""
    produce, fetch = VERSIONS.get(level, (2, 2))
    for topic in (LED, *INTERNAL, *(name.removesuffix("-0") for name in CAPTURED)):
        for offset in (0, 1, 7, 20, 33, 60):
            wanted = FetchTopic(topic, [FetchPartition(0, offset, 3000)])
            yield FetchRequest(-1, 0, 0, [wanted], version=fetch)
        for time_ms in (-2, -1, 0, 1_000_000_000):
            yield OffsetsRequest(-1, [OffsetsTopic(topic, [OffsetsPartition(0, time_ms, 3)])])
    yield OffsetFetchRequest("g", [OffsetFetchTopic(LED, [0])], version=1)
    for codec in (0, 1, 2):
        data = message_set.encode([(b"k", b"v" * 50)] * 5, codec, magic=int(produce == 2))
        written = ProduceTopic(LED, [ProducePartition(0, data)])
        yield ProduceRequest(1, 100, [written], version=produce)
    committed = [OffsetCommitTopic(LED, [OffsetCommitPartition(0, 5, "")])]
    yield OffsetCommitRequest("g", committed, version=1)


def filled(directory: Path, level: Level, *, is_clean: bool) -> None:
    """A log directory that was used, and then closed or left as by a killed process."""
    directory.mkdir()
    if level >= Level.V0_11_0:
        for name in CAPTURED:
            write(directory, name)
    world = world_on(directory, level)
    for _ in range(4):
        for request in reads_and_writes(level):
            deliver(world, encode_request(request, 1, "c"))
    world.replica_manager.checkpoint_high_watermarks()
    world.log_manager.checkpoint_recovery_points()
    (world.log_manager.shutdown if is_clean else world.log_manager._release)()


def damage(directory: Path, rng: random.Random) -> None:
    """One to four files are changed, cut, lost, swapped, or get strange neighbours."""
    for _ in range(rng.randrange(1, 5)):
        files = sorted(path for path in directory.rglob("*") if path.is_file())
        path, other = rng.choice(files), rng.choice(files)
        data = bytearray(path.read_bytes())
        match rng.randrange(9):
            case 0 | 1 | 2 if data:
                for _ in range(rng.randrange(1, 4)):
                    data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255))
                path.write_bytes(data)
            case 3:
                path.write_bytes(data[: rng.randrange(len(data) + 1)])
            case 4:
                path.write_bytes(bytes(rng.randrange(2000)))
            case 5:
                path.write_bytes(data + rng.randbytes(rng.randrange(100)))
            case 6:
                path.unlink()
            case 7:
                path.write_bytes(other.read_bytes())
            case _:
                name = rng.choice((f"{7:020d}.log", "9" * 20 + ".log", "x", "-.index", path.name))
                (path.parent / name).write_bytes(rng.randbytes(rng.randrange(100)))


def used(world: World, level: Level) -> float:
    """The longest CPU time for which it blocks its hub."""
    hub = Hub(world)
    works: list[Callable[[], object]] = [
        partial(deliver, world, encode_request(request, 1, "c"))
        for request in reads_and_writes(level)
    ]
    works += (world.log_manager.retain, world.log_manager.checkpoint_recovery_points)
    longest = max(hub.measured(work) for work in works)
    world.log_manager.shutdown()
    return longest


@pytest.mark.parametrize("is_clean", [True, False], ids=["closed", "killed"])
@pytest.mark.parametrize("level", list(Level), ids=str)
def test_no_file_holds_up_a_broker(level: Level, is_clean: bool, tmp_path: Path) -> None:
    """Nor ends what serves: a broker that has started answers, or refuses a partition. What keeps
    one from starting is named."""
    rng, sizes = random.Random(f"{level} {is_clean}"), []
    unnamed: list[KafkaError] = []
    with only_bugs(KafkaError) as bugs:
        filled(tmp_path / "sound", level, is_clean=is_clean)
        for number in range(DIRECTORIES):
            directory = tmp_path / str(number)
            shutil.copytree(tmp_path / "sound", directory)
            damage(directory, rng)
            try:
                world = world_on(directory, level)
            except KafkaError as refused:
                unnamed += [refused] * (str(directory) not in str(refused))
            else:
                held = used(world, level)
                assert held < HOLD_S or held / slowdown() < HOLD_S, directory
            assert [] == bugs.found, directory
            if number % (DIRECTORIES // 2) == DIRECTORIES // 2 - 1:
                gc.collect()
                sizes.append(resident_bytes())
    assert [] == unnamed
    assert lasting_growth(sizes) < GROWTH_BYTES_MAX, sizes
