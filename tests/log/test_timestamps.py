"""A log of level 0.10.2 stores produced sets with their timestamps."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka08 import kernel
from kafka08.errors import (
    ConfigError,
    InvalidMessage,
    InvalidTimestamp,
    MessageSetSizeTooLarge,
)
from kafka08.levels import Level
from kafka08.log.config import LogConfig
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.protocol import message_set
from kafka08.protocol.compression import GZIP, LZ4, NONE, SNAPPY
from kafka08.structs import TopicPartition
from tests.log.conftest import START_MS, ManualClock, OpenLog

TIMES = [START_MS - 5, START_MS, START_MS - 9]


def later_log(open_log: OpenLog, **config: Any) -> Log:
    return open_log(level=Level.V0_10_2, segment_index_bytes=4096, **config)


def produced(codec: int = NONE, magic: int = 1, key: bytes | None = b"k") -> bytearray:
    """A set of three messages of magic 1 with TIMES."""
    messages = [(key, b"value")] * 3
    timestamps = TIMES if magic else None
    return bytearray(message_set.encode(messages, codec, 0, magic, timestamps))


def stored(log: Log) -> bytes:
    return log.read(0, 1 << 20).bytes()


def timestamps_of(log: Log) -> list[int]:
    """The timestamps of all messages, as a consumer sees them."""
    return [message.timestamp for message in message_set.decode(stored(log))]


def test_a_set_of_magic_1_keeps_its_timestamps(open_log: OpenLog) -> None:
    """A set of magic 1 keeps its timestamps; only its offsets are written."""
    log = later_log(open_log)
    log.append(produced())
    log.append(produced())
    assert TIMES * 2 == timestamps_of(log)
    assert [0, 1, 2, 3, 4, 5] == [entry.offset for entry in kernel.entries(stored(log))]


def test_magic_0_is_stored_as_magic_1(open_log: OpenLog) -> None:
    """A message of magic 0 is stored as magic 1 without a timestamp."""
    log = later_log(open_log)
    log.append(produced(magic=0))
    assert [(1, -1)] * 3 == [(e.magic, e.timestamp_ms) for e in kernel.entries(stored(log))]


def test_magic_1_is_stored_as_magic_0_where_the_topic_says_so(open_log: OpenLog) -> None:
    """With message.format.version 0.9.0, for consumers of 0.9, a set of magic 1 is stored as magic
    0."""
    log = later_log(open_log, message_format_version="0.9.0")
    log.append(produced())
    assert [0, 0, 0] == [entry.magic for entry in kernel.entries(stored(log))]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_a_wrapper_that_is_numbered_right_keeps_its_bytes(open_log: OpenLog, codec: int) -> None:
    """Only the wrapper's offset changes; the messages are not compressed again."""
    log = later_log(open_log)
    log.append(produced())
    sent = produced(codec)
    info = log.append(bytearray(sent))
    assert (3, 5, 3) == (info.first_offset, info.last_offset, info.count)
    assert bytes(sent[8:]) == log.read(3, 1 << 20).bytes()[8:]


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_log_append_time_is_set_and_returned(
    open_log: OpenLog, clock: ManualClock, codec: int
) -> None:
    """With LogAppendTime every message has the time of the append, and so has the producer's
    response."""
    log = later_log(open_log, message_timestamp_type="LogAppendTime")
    clock.now_ms += 77
    info = log.append(produced(codec))
    assert [START_MS + 77] * 3 == timestamps_of(log)
    assert START_MS + 77 == info.log_append_time_ms
    assert -1 == log.append(bytearray()).log_append_time_ms


def test_a_prepared_set_has_no_append_time_yet(open_log: OpenLog) -> None:
    """With LogAppendTime a cut set is accepted, and a set that fits into no segment is too large.
    The time that this broker stamped is no reason to refuse either."""
    log = later_log(open_log, message_timestamp_type="LogAppendTime", segment_bytes=200)
    info = log.append(produced()[:-1])
    assert (2, START_MS) == (info.count, info.log_append_time_ms)
    assert info.size == len(stored(log))
    with pytest.raises(MessageSetSizeTooLarge):
        log.append(produced() * 3)
    assert 2 == log.log_end_offset


def test_a_timestamp_too_far_from_now_is_refused(open_log: OpenLog, clock: ManualClock) -> None:
    """A timestamp further than message.timestamp.difference.max.ms from the time of the append is
    refused."""
    log = later_log(open_log, message_timestamp_difference_max_ms=10)
    log.append(produced())
    clock.now_ms += 2
    with pytest.raises(InvalidTimestamp):
        log.append(produced())
    assert 3 == log.log_end_offset


def test_a_compacted_topic_takes_no_message_without_a_key(open_log: OpenLog) -> None:
    """A message without a key is refused under either policy that compacts. 0.8 stores it, and the
    cleaner drops it."""
    for number, policy in enumerate(("compact", "compact,delete")):
        log = later_log(open_log, name=f"t-{number}", cleanup_policy=policy)
        with pytest.raises(InvalidMessage):
            log.append(produced(key=None))
    open_log(cleanup_policy="compact").append(produced(magic=0, key=None))


@pytest.mark.parametrize(
    ("compression_type", "codec"),
    [("gzip", GZIP), ("snappy", SNAPPY), ("lz4", LZ4), ("uncompressed", NONE), ("producer", LZ4)],
)
def test_compression_type_decides_the_codec(
    open_log: OpenLog, compression_type: str, codec: int
) -> None:
    """compression.type decides the codec, whatever the producer chose."""
    log = later_log(open_log, compression_type=compression_type)
    log.append(produced(LZ4))
    assert {codec} == {entry.codec for entry in kernel.entries(stored(log))}
    assert TIMES == timestamps_of(log)


@pytest.mark.parametrize("level", [Level.V0_8_2, Level.V0_9_0])
def test_below_0_10_nothing_of_this_holds(open_log: OpenLog, level: Level) -> None:
    """Below 0.10, magic 1 gets offsets and is stored unchanged otherwise, as 0.8.2.2 does."""
    log = open_log(
        level=level, message_timestamp_type="LogAppendTime", message_timestamp_difference_max_ms=0
    )
    sent = produced()
    assert -1 == log.append(bytearray(sent)).log_append_time_ms
    assert bytes(sent) == stored(log)


def test_overrides_decide_the_rules(caplog: pytest.LogCaptureFixture) -> None:
    """A topic's overrides come before the broker's keys. A format that the level does not have is
    ignored with an error in the log."""
    broker = LogConfig(level=Level.V0_10_2, cleanup_policy="compact")
    overrides = {
        "message.format.version": "0.9.0",
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.difference.max.ms": "5",
        "cleanup.policy": "delete",
        "compression.type": "uncompressed",
    }
    config = broker.from_stored("t", overrides)
    assert kernel.Rules(0, True, 5, False) == config.rules
    assert NONE == config.target_codec
    with caplog.at_level(logging.ERROR):
        assert broker == broker.from_stored("t", {"message.format.version": "0.11.0"})
    assert "Topic t: message.format.version: '0.11.0' is not one of" in caplog.text
    assert replace(broker, level=Level.V0_9_0).rules is None


class TestStartWithALowerFormat:
    @pytest.fixture
    def written(self, tmp_path: Path) -> Path:
        """A log.dir with a topic of each magic, after a clean stop."""
        manager = self.manager(tmp_path)
        manager.load()
        manager.get_or_create(TopicPartition("new", 0)).append(produced())
        manager.update_topic_config("old", {"message.format.version": "0.9.0"})
        manager.get_or_create(TopicPartition("old", 0)).append(produced())
        manager.shutdown()
        return tmp_path

    def manager(
        self, directory: Path, topics: Mapping[str, Mapping[str, str]] | None = None, **config: Any
    ) -> LogManager:
        settings = {"level": Level.V0_10_2, "segment_index_bytes": 4096, **config}
        return LogManager([directory], LogConfig(**settings), topics)

    @pytest.mark.parametrize(
        ("config", "named"),
        [
            ({"message_format_version": "0.9.0"}, "log.message.format.version 0.9.0"),
            ({"level": Level.V0_8_2}, "api.level 0.8.2"),
            ({"level": Level.V0_9_0}, "api.level 0.9.0"),
        ],
    )
    def test_it_is_refused(self, written: Path, config: dict[str, Any], named: str) -> None:
        """The error names the setting, the topic and the segment, and nothing was changed. 0.10.2.2
        starts."""
        before = {path: path.read_bytes() for path in written.rglob("*") if path.is_file()}
        with pytest.raises(ConfigError) as caught:
            self.manager(written, **config).load()
        segment = written / "new-0" / f"{0:020d}.log"
        assert f"{named} is too low for topic new: {segment}" in str(caught.value)
        assert before == {path: path.read_bytes() for path in written.rglob("*") if path.is_file()}
        again = self.manager(written)
        again.load()
        again.shutdown()

    @pytest.mark.parametrize("sets_of_magic_0_behind", [0, 5, 500])
    @pytest.mark.parametrize("crashed", [False, True])
    def test_magic_1_without_timestamps_behind_magic_0(
        self, tmp_path: Path, crashed: bool, sets_of_magic_0_behind: int
    ) -> None:
        """Messages of magic 1 without timestamps are found in a segment that begins with magic 0
        and has an empty time index, also if magic 0 follows, as where a JVM broker's format was
        raised and lowered again. Old producers wrote them. A crash leaves zeros in the indexes."""
        manager = self.manager(tmp_path, message_format_version="0.9.0")
        manager.load()
        log = manager.get_or_create(TopicPartition("old", 0))
        values = [(None, b"v" * 1000)] * 3
        for _ in range(5):
            log.append(bytearray(message_set.encode(values)))
        manager.shutdown()
        manager = self.manager(tmp_path)
        manager.load()
        log = manager.logs[TopicPartition("old", 0)]
        for _ in range(20):
            log.append(bytearray(message_set.encode(values)))
        manager.update_topic_config("old", {"message.format.version": "0.9.0"})
        log.active_segment.is_full = False  # the JVM does not roll
        for _ in range(sets_of_magic_0_behind):
            log.append(bytearray(message_set.encode(values)))
        assert [0] == [segment.base_offset for segment in log.segment_facts]
        directory = tmp_path
        if crashed:
            directory = shutil.copytree(tmp_path, tmp_path.with_name(f"{tmp_path.name}-crashed"))
        manager.shutdown()
        assert not any((tmp_path / "old-0" / f"{0:020d}.timeindex").read_bytes())
        with pytest.raises(ConfigError, match="is too low for topic old"):
            self.manager(directory, message_format_version="0.9.0").load()

    def test_a_format_that_is_lowered_begins_a_segment(self, tmp_path: Path) -> None:
        """The log rolls when its format is lowered, so that a start finds magic 1 without
        timestamps behind magic 0. It does not roll when the format is raised."""
        old = {"message.format.version": "0.9.0"}
        manager = self.manager(tmp_path, {"t": old})
        manager.load()
        log = manager.get_or_create(TopicPartition("t", 0))
        values = [(None, b"v" * 1000)] * 3
        for overrides in (old, {}, old, old):
            manager.update_topic_config("t", overrides)
            for _ in range(5):
                log.append(bytearray(message_set.encode(values)))
        assert [0, 30] == [segment.base_offset for segment in log.segment_facts]
        manager.shutdown()
        with pytest.raises(ConfigError, match="is too low for topic t"):
            self.manager(tmp_path, level=Level.V0_8_2).load()

    @pytest.mark.parametrize("level", [Level.V0_8_2, Level.V0_9_0, Level.V0_10_2])
    def test_logs_of_magic_0_are_no_hindrance(self, written: Path, level: Level) -> None:
        """Logs of magic 0 may be opened, although a broker of 0.10.2 wrote them."""
        shutil.rmtree(written / "new-0")
        manager = self.manager(written, level=level, message_format_version="0.9.0")
        manager.load()
        assert 3 == manager.logs[TopicPartition("old", 0)].log_end_offset
        manager.shutdown()

    def test_a_topic_of_its_own_format_may_be_lowered(self, written: Path) -> None:
        """A topic's own message.format.version may be lowered, as in 0.10.2.2."""
        topics = {"new": {"message.format.version": "0.8.2"}}
        manager = self.manager(written, topics, message_format_version="0.9.0")
        manager.load()
        log = manager.logs[TopicPartition("new", 0)]
        log.append(produced())
        assert [1, 1, 1, 0, 0, 0] == [entry.magic for entry in kernel.entries(stored(log))]
        manager.shutdown()

    def test_below_0_10_magic_1_from_a_client_is_no_hindrance(self, tmp_path: Path) -> None:
        """Below 0.10, magic 1 in a log without a time index is accepted: 0.8.2.2 stores what
        clients send, and no later broker has used the log."""
        manager = self.manager(tmp_path, level=Level.V0_8_2)
        manager.load()
        manager.get_or_create(TopicPartition("t", 0)).append(produced())
        manager.shutdown()
        again = self.manager(tmp_path, level=Level.V0_8_2)
        again.load()
        again.shutdown()
