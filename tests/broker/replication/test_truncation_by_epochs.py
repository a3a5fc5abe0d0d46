"""A follower at 0.11 asks where its leader's epochs end, and truncates there before it fetches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.replication import follower_truncation
from kafka08.broker.replication.leader_queries import LeaderQueries
from kafka08.broker.replication.log_comparison import same_entries
from kafka08.broker.replication.replica_fetcher import PARTITION_BACKOFF_S
from kafka08.log.log import Log
from kafka08.protocol.types import Buffer
from kafka08.structs import TopicPartition
from tests.broker.fake_runtime import Halted
from tests.broker.fetching_pair import Pair, contents
from tests.log.test_log_records import sent

KEYS: dict[str, Any] = {
    "api_level": "0.11.0",
    "inter_broker_protocol_version": "0.11.0",
    "log_message_format_version": "0.11.0",
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The epochs that followers ask for. No log is compared by its messages."""
    epochs: list[int] = []
    ask = LeaderQueries.ends_of_epochs

    def note(self: LeaderQueries, wanted: dict[TopicPartition, int]) -> Any:
        epochs.extend(wanted.values())
        return ask(self, wanted)

    def refuse(*_: object) -> None:
        raise AssertionError("a log was compared")

    monkeypatch.setattr(LeaderQueries, "ends_of_epochs", note)
    monkeypatch.setattr(follower_truncation, "same_entries", refuse)
    return epochs


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path, **KEYS)


def write(pair: Pair, own: list[int], leader: list[int], high_watermark: int = 0) -> None:
    """Give the copy and the leader a record of each of these epochs."""
    epochs: tuple[list[int], list[int]] = (own, leader)
    for partition, of in zip((pair.copy, pair.original), epochs, strict=True):
        for sequence, epoch in enumerate(of):
            partition.log.append(sent(sequence), leader_epoch=epoch)
    pair.copy.set_high_watermark(high_watermark)
    pair.fetcher.add(pair.copies)


def settled(pair: Pair) -> list[int]:
    """Until the copy is settled; its log ends after each round."""
    ends = []
    for _ in range(6):
        pair.fetcher.round()
        ends.append(pair.copy.log.log_end_offset)
    assert contents(pair.copy) == contents(pair.original)
    return ends


def test_what_the_leader_has_is_kept(pair: Pair, asked: list[int]) -> None:
    """Above the HW, too: at no moment is it cut."""
    write(pair, [0, 0, 1], [0, 0, 1, 2])
    assert 3 == min(settled(pair))
    assert [1, 0] == asked


def test_what_the_leader_has_not_is_cut(pair: Pair, asked: list[int]) -> None:
    """Before anything is fetched."""
    write(pair, [0, 0, 1, 1], [0, 0, 2, 2, 2], high_watermark=2)
    assert 2 == settled(pair)[0]
    assert [1, 0, 0, -1] == asked


@pytest.mark.parametrize("leader", [[], [2]])
def test_a_leader_that_lacks_every_epoch_and_the_high_watermark_is_followed(
    pair: Pair, leader: list[int]
) -> None:
    """As one that has lost its log with its power: it has no answer for the follower's epochs, so
    that the offsets of the logs decide. Another question would have the same answer, for ever."""
    pair.follower.store.configs["t"] = {"unclean.leader.election.enable": "true"}
    write(pair, [0, 0, 1], leader, high_watermark=3)
    settled(pair)


def test_records_at_and_below_the_high_watermark_are_settled_by_epochs(
    pair: Pair, asked: list[int]
) -> None:
    """The comparison of messages begins at the HW, and would see nothing of this."""
    pair.follower.store.configs["t"] = {"unclean.leader.election.enable": "true"}
    write(pair, [0, 1, 1], [0, 2, 2, 2], high_watermark=3)
    assert 1 == settled(pair)[0]


def test_acknowledged_records_are_not_cut_unless_the_topic_allows_it(
    pair: Pair, asked: list[int]
) -> None:
    """The broker halts, as where the leader's log is shorter."""
    pair.follower.store.configs["t"] = {"unclean.leader.election.enable": "false"}
    write(pair, [0, 1, 1], [0, 2], high_watermark=3)
    with pytest.raises(Halted):
        pair.fetcher.round()


def test_what_is_left_of_a_log_is_on_disk_before_it_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush may have been refused before the log was cut."""
    pair = Pair(tmp_path, log_flush_interval_messages=1, **KEYS)
    with monkeypatch.context() as patch:
        patch.setattr(Log, "flush", lambda _: None)
        write(pair, [0, 0, 1, 1], [0, 0, 2])
    pair.fetcher.round()
    assert (2, 2) == (pair.copy.log.log_end_offset, pair.copy.log.recovery_point)


def test_a_leader_that_is_none_yet_is_asked_again(pair: Pair, asked: list[int]) -> None:
    """After a pause; nothing is fetched, and nothing cut, before it answers."""
    write(pair, [0, 0, 1], [0, 0])
    pair.leader.lead("t", leader=2, isr=(1, 2), replicas=(1, 2))
    pair.fetcher.round()
    assert 3 == pair.copy.log.log_end_offset
    pair.lead()
    pair.follower.runtime.advance(PARTITION_BACKOFF_S + 0.01)
    assert 2 == min(settled(pair))


def test_a_log_behind_its_leaders_start_begins_there(pair: Pair, asked: list[int]) -> None:
    """No epoch may be common then; its end is below what the leader has."""
    write(pair, [0, 0], [0, 0, 1, 1])
    pair.original.set_high_watermark(4)
    pair.original.log.raise_log_start(3)
    for _ in range(4):
        pair.fetcher.round()
    assert (3, 4) == (pair.copy.log.log_start_offset, pair.copy.log.log_end_offset)


def test_a_lost_connection_is_a_reason_to_ask_again(pair: Pair, asked: list[int]) -> None:
    """The leader may be back without its last messages, in the same epoch."""
    write(pair, [0], [0, 0])
    settled(pair)
    asked.clear()
    pair.fetcher._connection.close()
    pair.fetcher.round()
    assert [0] == asked[:1]


def test_older_brokers_are_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an older inter.broker.protocol.version messages are compared, as before."""
    older = {"inter_broker_protocol_version": "0.11.0-IV1"}
    pair = Pair(tmp_path, **KEYS | older | {"log_message_format_version": "0.11.0-IV0"})
    compared: list[int] = []

    def note(log: Any, offset: int, message_set: Buffer) -> Any:
        compared.append(offset)
        return same_entries(log, offset, message_set)

    monkeypatch.setattr(follower_truncation, "same_entries", note)
    write(pair, [0, 0, 1], [0, 0, 2])
    settled(pair)
    assert [0] == compared[:1]
