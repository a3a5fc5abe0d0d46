"""OffsetManager on real logs: commits, responses, loads after a restart or by a new leader, expiry.

With two partitions of the offsets topic, group "a" (hash 97) is in partition 1 and "b" in partition
0."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from kafka08.broker.groups.offset_loader import LOAD_RETRY_S
from kafka08.broker.groups.offset_manager import FetchedOffset, OffsetManager
from kafka08.broker.settings.config import BrokerConfig
from kafka08.errors import CorruptLog, OffsetsLoadInProgress, ProtocolError, StorageError
from kafka08.log.log import Log
from kafka08.protocol import message_set
from kafka08.protocol.offset_records import OffsetKey, encode_key, encode_value
from kafka08.structs import OFFSETS_TOPIC, OffsetAndMetadata, TopicPartition
from tests.broker.fake_runtime import FakeRuntime, Halted
from tests.broker.groups.conftest import Coordinator

DATA = Path(__file__).parents[2] / "data"
HOUR_S = 3600
NONE = FetchedOffset(-1, "", 0)


def test_a_commit_is_read_back(coordinator: Coordinator) -> None:
    """Offset and metadata are returned; null stays null as long as it is cached (as captured from
    0.8.2.2, whose record has ""). -1 is an ordinary offset."""
    coordinator.lead(1)
    assert coordinator.commit("a", 0, 7, "note") == 0
    assert coordinator.commit("a", 1, 8, None) == 0
    assert coordinator.commit("a", 2, -1) == 0
    assert coordinator.fetch("a", 0) == FetchedOffset(7, "note")
    assert coordinator.fetch("a", 1) == FetchedOffset(8, None)
    assert coordinator.fetch("a", 2) == FetchedOffset(-1, "")
    assert coordinator.fetch("a", 3) == NONE
    assert len(coordinator.offsets) == 3


def test_the_record_is_that_of_0_8_2_2(coordinator: Coordinator) -> None:
    """Key and value have version 0, the broker's time replaces -1, and the set is uncompressed."""
    coordinator.lead(1)
    coordinator.commit("a", 0, 7, "note")
    coordinator.commit("a", 1, 8, "", when=1234)
    found = [(m.key, m.value) for m in message_set.decode(coordinator.log_bytes(1))]
    now = coordinator.runtime.time_ms()
    assert found == [
        (encode_key(OffsetKey("a", "t", 0)), encode_value(OffsetAndMetadata(7, "note", now))),
        (encode_key(OffsetKey("a", "t", 1)), encode_value(OffsetAndMetadata(8, "", 1234))),
    ]


def test_long_metadata_is_refused_and_not_kept(coordinator: Coordinator) -> None:
    """The partition with long metadata gets 12 and the other 0. We do not cache the refused offset,
    as 0.8.2.2 does."""
    coordinator.lead(1)
    limit = coordinator.config.offset_metadata_max_bytes
    long, short = TopicPartition("t", 0), TopicPartition("t", 1)
    responses: list[dict[TopicPartition, int]] = []
    offsets = {
        long: OffsetAndMetadata(5, "x" * (limit + 1)),
        short: OffsetAndMetadata(6, "x" * limit),
    }
    coordinator.offsets.commit("a", offsets, responses.append)
    assert responses == [{long: 12, short: 0}]
    assert coordinator.fetch("a", 0) == NONE
    assert coordinator.fetch("a", 1).offset == 6


def test_metadata_is_measured_as_java_measures_it(coordinator: Coordinator) -> None:
    """The length counts UTF-16 units, so a character outside the basic plane counts twice."""
    coordinator.lead(1)
    limit = coordinator.config.offset_metadata_max_bytes
    assert coordinator.commit("a", 0, 1, "é" * limit) == 0
    assert coordinator.commit("a", 0, 1, "\U0001f600" * (limit // 2)) == 0
    assert coordinator.commit("a", 0, 1, "\U0001f600" * (limit // 2) + "x") == 12


def test_codes_for_another_brokers_groups(coordinator: Coordinator) -> None:
    """If the partition of the offsets topic is not here, a commit gets 15; if this broker follows
    it, 16. A fetch gets 16 in both cases."""
    coordinator.lead(0)
    assert coordinator.commit("a", 0, 1) == 15
    assert coordinator.fetch("a", 0).error_code == 16
    coordinator.follow(1)
    assert coordinator.commit("a", 0, 1) == 16
    assert coordinator.fetch("a", 0).error_code == 16
    assert coordinator.commit("b", 0, 1) == 0


def test_an_unacknowledged_commit_is_not_seen(coordinator: Coordinator) -> None:
    """Each commit waits for the ISR as with acks -1. After its timeout it gets 7, and the cache
    keeps the earlier offset."""
    coordinator.lead(1, isr=(1, 2))
    tp = TopicPartition("t", 0)
    responses: list[dict[TopicPartition, int]] = []
    coordinator.offsets.commit("a", {tp: OffsetAndMetadata(5)}, responses.append)
    assert responses == []
    assert coordinator.fetch("a", 0) == NONE
    coordinator.runtime.advance(coordinator.config.offsets_commit_timeout_ms / 1000 + 0.1)
    assert responses == [{tp: 7}]
    assert coordinator.fetch("a", 0) == NONE


def test_a_commit_is_seen_when_the_isr_has_it(coordinator: Coordinator) -> None:
    """The follower's next fetch acknowledges the commit."""
    coordinator.lead(1, isr=(1, 2))
    tp = TopicPartition("t", 0)
    responses: list[dict[TopicPartition, int]] = []
    coordinator.offsets.commit("a", {tp: OffsetAndMetadata(5)}, responses.append)
    coordinator.replica_manager.record_follower_fetches(
        [coordinator.replica_manager.partition(TopicPartition(OFFSETS_TOPIC, 1))], [1], 2
    )
    assert responses == [{tp: 0}]
    assert coordinator.fetch("a", 0) == FetchedOffset(5, "")


def test_a_new_leader_finds_committed_offsets(coordinator: Coordinator, tmp_path: Path) -> None:
    """After a restart the cache is loaded from the log with the newest offset of each key."""
    coordinator.lead(1)
    for offset in range(10):
        coordinator.commit("a", offset % 2, offset, f"m{offset}")
    coordinator.close()

    again = Coordinator(tmp_path)
    assert again.fetch("a", 0).error_code == 16
    again.lead(1)
    assert again.fetch("a", 0) == FetchedOffset(8, "m8")
    assert again.fetch("a", 1) == FetchedOffset(9, "m9")
    again.close()


def test_losing_and_regaining_leadership(coordinator: Coordinator) -> None:
    """A follower drops its cache and loads it again when it leads. A new epoch of the same leader
    changes nothing."""
    coordinator.lead(1)
    coordinator.commit("a", 0, 4)
    coordinator.lead(1)
    assert coordinator.fetch("a", 0).offset == 4
    coordinator.follow(1)
    assert len(coordinator.offsets) == 0
    coordinator.lead(1)
    assert coordinator.fetch("a", 0).offset == 4


def test_a_record_larger_than_the_load_buffer(tmp_path: Path) -> None:
    """A record larger than the buffer makes it grow. 0.8.2.2 stalls for ever."""
    first = Coordinator(tmp_path)
    first.lead(1)
    first.commit("a", 0, 4, "x" * 4000)
    first.commit("a", 1, 5)
    first.close()
    again = Coordinator(tmp_path, offsets_load_buffer_size=100)
    again.lead(1)
    assert again.fetch("a", 0).offset == 4
    assert again.fetch("a", 1).offset == 5
    again.close()


def test_an_unreadable_record_does_not_hide_the_others(coordinator: Coordinator) -> None:
    """A record that cannot be parsed is skipped. 0.8.2.2 stops the load there, and every group of
    the partition starts over."""
    coordinator.lead(1)
    coordinator.commit("a", 0, 4)
    coordinator.log(1).append(
        bytearray(message_set.encode([(b"\x00\x09?", b"?"), (None, b"x"), (b"", b"")]))
    )
    coordinator.commit("a", 1, 5)
    coordinator.follow(1)
    coordinator.lead(1)
    assert coordinator.fetch("a", 0).offset == 4
    assert coordinator.fetch("a", 1).offset == 5


def test_compressed_commits_are_loaded(tmp_path: Path) -> None:
    """Commits that offsets.topic.compression.codec compressed are loaded."""
    first = Coordinator(tmp_path, offsets_topic_compression_codec="gzip")
    first.lead(1)
    tps = {TopicPartition("t", number): OffsetAndMetadata(number) for number in range(5)}
    responses: list[dict[TopicPartition, int]] = []
    first.offsets.commit("a", tps, responses.append)
    assert set(responses[0].values()) == {0}
    first.close()
    again = Coordinator(tmp_path)
    again.lead(1)
    assert [again.fetch("a", number).offset for number in range(5)] == [0, 1, 2, 3, 4]
    again.close()


def test_a_partition_written_by_0_8_2_2_and_by_0_9_loads(coordinator: Coordinator) -> None:
    """Captured segments load, with their records of groups."""
    for file, wanted in (
        ("sandbox-logs-0.8.2.2.json", FetchedOffset(120, "")),
        ("logs-0.9.0.1.json", FetchedOffset(11, "")),
    ):
        segments = json.loads((DATA / file).read_text(encoding="utf-8"))["consumer_offsets"]
        data = bytes.fromhex(segments["__consumer_offsets-1/00000000000000000000.log"]["hex"])
        coordinator.follow(1)
        coordinator.lead(1)
        coordinator.log(1).append(bytearray(data))
        coordinator.replica_manager.partition(
            TopicPartition(OFFSETS_TOPIC, 1)
        ).maybe_raise_high_watermark()
        coordinator.follow(1)
        coordinator.lead(1)
        group, topic = ("cg-kafka", "tt") if "0.8" in file else ("grp", "g1")
        assert coordinator.offsets.partition_for(group) == 1
        tp = TopicPartition(topic, 0)
        assert coordinator.offsets.fetch(group, [tp]) == {tp: wanted}


def test_a_commit_that_cannot_be_written_keeps_nothing_from_expiring(
    coordinator: Coordinator,
) -> None:
    """A commit whose topic name is too long for a record is refused. Its other keys may expire."""
    coordinator.lead(1)
    coordinator.commit("a", 0, 4)
    names = ("t", "\ufffd" * 15_000)
    offsets = {TopicPartition(name, 0): OffsetAndMetadata(5) for name in names}
    with pytest.raises(ProtocolError):
        coordinator.offsets.commit("a", offsets, lambda _codes: None)
    coordinator.runtime.advance(24 * HOUR_S + 600)
    assert coordinator.fetch("a", 0) == NONE


def test_old_offsets_expire_with_tombstones(coordinator: Coordinator, tmp_path: Path) -> None:
    """Every ten minutes expired offsets leave the cache at once, and the log for the next
    leader."""
    coordinator.lead(1)
    coordinator.commit("a", 0, 4)
    coordinator.runtime.advance(23 * HOUR_S)
    coordinator.commit("a", 1, 5)
    assert coordinator.fetch("a", 0).offset == 4
    coordinator.runtime.advance(HOUR_S + 600)
    assert coordinator.fetch("a", 0) == NONE
    assert coordinator.fetch("a", 1).offset == 5
    last = list(message_set.decode(coordinator.log_bytes(1)))[-1]
    assert (last.key, last.value) == (encode_key(OffsetKey("a", "t", 0)), None)
    coordinator.close()
    again = Coordinator(tmp_path)
    again.lead(1)
    assert again.fetch("a", 0) == NONE
    assert again.fetch("a", 1).offset == 5
    again.close()


def test_a_client_that_commits_old_times_loses_them_quickly(coordinator: Coordinator) -> None:
    """0.8: the age of an offset counts from the client's timestamp."""
    coordinator.lead(1)
    yesterday = coordinator.runtime.time_ms() - 25 * HOUR_S * 1000
    coordinator.commit("a", 0, 4, when=yesterday)
    assert coordinator.fetch("a", 0).offset == 4
    coordinator.runtime.advance(601)
    assert coordinator.fetch("a", 0) == NONE


@pytest.mark.parametrize("earlier", [None, 3])
def test_a_commit_on_its_way_does_not_survive_its_topic(
    tmp_path: Path, earlier: int | None
) -> None:
    """The offset of a deleted partition is deleted, also if its commit is acknowledged after that:
    in the log the tombstone follows it. A topic of the same name would begin there."""
    coordinator = Coordinator(tmp_path, api_level="0.10.2", log_cleaner_enable=False)
    try:
        coordinator.lead(1)
        if earlier is not None:
            coordinator.commit("a", 0, earlier)
        coordinator.lead(1, isr=(1, 2))
        tp = TopicPartition("t", 0)
        responses: list[dict[TopicPartition, int]] = []
        coordinator.offsets.commit("a", {tp: OffsetAndMetadata(5)}, responses.append)
        coordinator.offsets.forget_partitions([tp])
        end = coordinator.log(1).log_end_offset
        coordinator.replica_manager.record_follower_fetches(
            [coordinator.replica_manager.partition(TopicPartition(OFFSETS_TOPIC, 1))], [end], 2
        )
        assert responses == [{tp: 0}]
        assert coordinator.fetch("a", 0) == NONE
        assert len(coordinator.offsets) == 0
        assert not coordinator.offsets.has_offsets(1, "a")
    finally:
        coordinator.close()


def test_a_disk_that_fails_under_a_load_halts(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk error during a load halts the broker, as any other. (The partition used to load for
    ever while its groups waited.)"""
    coordinator.lead(1)
    coordinator.commit("a", 0, 7)
    coordinator.follow(1)
    monkeypatch.setattr(Log, "read", failing(StorageError("read error")))
    with pytest.raises(Halted):
        coordinator.lead(1)


@pytest.mark.parametrize("error", [CorruptLog("bad bytes"), RuntimeError("a bug")])
def test_a_load_that_failed_is_tried_again(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Groups get 14 until the retry, and lose nothing."""
    coordinator.lead(1)
    coordinator.commit("a", 0, 7)
    coordinator.follow(1)
    with monkeypatch.context() as broken:
        broken.setattr(Log, "read", failing(error))
        coordinator.lead(1)
    assert OffsetsLoadInProgress.code == coordinator.fetch("a", 0).error_code
    coordinator.runtime.advance(LOAD_RETRY_S)
    assert 7 == coordinator.fetch("a", 0).offset


@pytest.mark.parametrize(
    ("position", "claim"), [(0, (1 << 40).to_bytes(8, "big")), (8, (1 << 30).to_bytes(4, "big"))]
)
def test_a_record_that_claims_an_offset_or_size_beyond_the_log(
    coordinator: Coordinator, position: int, claim: bytes
) -> None:
    """A record whose offset or size lies beyond the log stops its partition, as other damage does.
    (Records behind such an offset used to be skipped silently, and such a size was read again and
    again, which blocked the hub for ever.)"""
    coordinator.lead(1)
    coordinator.commit("a", 0, 7)
    coordinator.commit("a", 1, 7)
    log = coordinator.log(1)
    coordinator.follow(1)
    path = log.directory / "00000000000000000000.log"
    with path.open("r+b") as file:
        file.seek(position)
        file.write(claim)
    coordinator.lead(1)
    assert OffsetsLoadInProgress.code == coordinator.fetch("a", 0).error_code


def test_a_load_is_not_tried_again_elsewhere(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another broker leads the partition by then, the load is not retried."""
    coordinator.lead(1)
    coordinator.commit("a", 0, 7)
    coordinator.follow(1)
    monkeypatch.setattr(Log, "read", failing(CorruptLog("bad bytes")))
    coordinator.lead(1)
    coordinator.follow(1)
    loads = len(coordinator.runtime.spawned)
    coordinator.runtime.advance(LOAD_RETRY_S)
    assert loads == len(coordinator.runtime.spawned)


def failing(error: Exception) -> Callable[..., object]:
    def fail(*_: object) -> object:
        raise error

    return fail


@pytest.mark.parametrize(("exists_with", "expected"), [(0, 50), (7, 7)])
def test_groups_are_looked_for_where_the_topic_has_them(exists_with: int, expected: int) -> None:
    """The existing number of partitions decides, not the number with which the topic would be
    created."""
    config = BrokerConfig({"broker.id": 1, "zookeeper.connect": "z:1"}, api_level="0.10.2")
    no_one = cast("Any", None)
    manager = OffsetManager(FakeRuntime(), config, no_one, no_one, lambda _: False, exists_with)
    groups = [f"group-{number}" for number in range(1000)]
    assert set(range(expected)) == {manager.partition_for(group) for group in groups}
