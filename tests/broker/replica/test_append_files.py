"""`append_sets` on the active segment of a log has the same effect as Log.append."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from kafka08.broker.replica.partition import Partition
from kafka08.broker.replica.replica_state import append_sets
from kafka08.errors import ApiError
from kafka08.levels import Level
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.protocol import message_set
from kafka08.structs import LeaderAndIsr
from tests.log.conftest import ManualClock


def random_set(drawn: random.Random, magic: int, now_ms: int) -> bytearray:
    count = drawn.randrange(1, 5)
    messages = [
        (drawn.choice([None, b"k", b"k"]), drawn.randbytes(drawn.randrange(200)))
        for _ in range(count)
    ]
    times = [now_ms - drawn.randrange(500) for _ in messages] if magic else None
    codec = drawn.choice([0, 0, 0, 2])
    data = bytearray(message_set.encode(messages, codec, magic=magic, timestamps=times))
    return data[: drawn.choice([len(data)] * 9 + [len(data) - 3])]


def append_fast(log: Log, data: bytearray, now_ms: int) -> None:
    """Appends as FastProduce does."""
    partition = Partition(log.topic_partition, 1)
    partition.attach_log(log, 0)
    partition.make_leader(LeaderAndIsr(1, 1, (1,), 0, 1), (1,), 0.0)
    own = bytearray(data)
    if append_sets(own, [partition], [0], [len(own)], 1, now_ms) == [-1]:
        log.append(own, now_ms)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("level", [Level.V0_8_2, Level.V0_10_2])
def test_both_ways_write_the_same_files(tmp_path: Path, level: Level, seed: int) -> None:
    """Both functions write the same offsets, segments, indexes and time indexes: for random sets,
    rolls by size, by age and by a full index, truncations, and changed settings."""
    drawn, clock = random.Random(seed), ManualClock()
    config = LogConfig(
        level=level,
        segment_bytes=4000,
        segment_ms=drawn.choice([2000, 1 << 40]),
        index_interval_bytes=300,
        segment_index_bytes=drawn.choice([40, 4000]),
        message_timestamp_type=drawn.choice(["CreateTime", "LogAppendTime"]),
        cleanup_policy=drawn.choice(["delete", "compact"]),
    )
    logs = [Log(tmp_path / name / "t-0", config, clock=clock) for name in ("slow", "fast")]
    slow, fast = logs
    for _ in range(150):
        clock.now_ms += drawn.randrange(200)
        magics = [config.magic] if config.gives_time else [0, config.magic]
        data = random_set(drawn, drawn.choice(magics), clock.now_ms)
        try:
            slow.append(bytearray(data), clock.now_ms)
        except ApiError as error:
            with pytest.raises(type(error)):
                append_fast(fast, data, clock.now_ms)
        else:
            append_fast(fast, data, clock.now_ms)
        if drawn.random() < 0.03:
            offset = drawn.randrange(slow.log_start_offset, slow.log_end_offset + 1)
            for log in logs:
                log.truncate_to(offset)
        if drawn.random() < 0.03:
            config = replace(config, segment_bytes=drawn.choice([2000, 4000]))
            for log in logs:
                log.config = config
        assert slow.log_end == fast.log_end
        sizes = [[(one.base_offset, one.size) for one in log.segment_facts] for log in logs]
        assert sizes[0] == sizes[1]
    for log in logs:
        log.close()
    for path in sorted((tmp_path / "slow" / "t-0").iterdir()):
        assert path.read_bytes() == (tmp_path / "fast" / "t-0" / path.name).read_bytes(), path.name


def test_a_log_says_which_appends_it_accepts(tmp_path: Path) -> None:
    """The kernel must not append where an fsync or a compression may be due, to a closed log, or to
    a sealed segment."""
    config = LogConfig(level=Level.V0_10_2)
    log = Log(tmp_path / "t-0", config)
    data = bytearray(message_set.encode([(None, b"a")], magic=1))
    log.append(bytearray(data))
    sealed = log.active_segment
    for setting in ({"flush_messages": 5}, {"compression_type": "gzip"}):
        log.config = replace(config, **setting)
        assert not log.active_segment.takes_plain_sets
        log.config = config
        assert log.active_segment.takes_plain_sets
    log.roll()
    assert (False, True) == (sealed.takes_plain_sets, log.active_segment.takes_plain_sets)
    log.close()
    assert not log.active_segment.takes_plain_sets


@pytest.mark.parametrize("level", [Level.V0_8_2, Level.V0_10_2])
def test_offsets_that_no_index_can_hold_end_the_segment(tmp_path: Path, level: Level) -> None:
    """The kernel leaves such an index entry to the segment, which takes no more appends then."""
    config = LogConfig(level=level, index_interval_bytes=0, message_format_version="0.9.0")
    log = Log(tmp_path / "t-0", config)
    for offset in (0, 2**31 - 2):
        log.append_as_follower(message_set.encode([(None, b"a")], base_offset=offset))
    for number in range(5):
        append_fast(log, bytearray(message_set.encode([(None, b"b")])), 0)
        assert 2**31 + number == log.log_end_offset
    assert 2 == log.segment_count
    log.close()
