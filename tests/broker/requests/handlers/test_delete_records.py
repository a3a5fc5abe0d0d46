"""DeleteRecords: codes, the wait for followers, and what stays after a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.log.names import LOG_START_CHECKPOINT
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.delete_records import (
    HIGH_WATERMARK,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.structs import OFFSETS_TOPIC
from tests.broker.fetching_pair import Pair
from tests.broker.world import Client, World
from tests.log.test_log_records import sent

KEYS: dict[str, Any] = {
    "api_level": "0.11.0",
    "inter_broker_protocol_version": "0.11.0",
    "log_message_format_version": "0.11.0",
}


def asking(*before: tuple[str, int, int], timeout_ms: int = 1000) -> DeleteRecordsRequest:
    topics = [DeleteRecordsTopic(t, [DeleteRecordsPartition(n, o)]) for t, n, o in before]
    return DeleteRecordsRequest(topics, timeout_ms)


def result(response: Any) -> tuple[int, int]:
    """Low watermark and code of the first partition."""
    one = response.topics[0].partitions[0]
    return one.low_watermark, one.error_code


def led(tmp_path: Path) -> World:
    """A broker that leads [t,0] with three records."""
    world = World(tmp_path, **KEYS)
    world.lead("t")
    log = world.partition("t").log
    for sequence in range(3):
        log.append(sent(sequence))
    world.partition("t").maybe_raise_high_watermark()
    return world


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (("t", 0, 2), (2, 0)),
        (("t", 0, 0), (0, 0)),
        (("t", 0, HIGH_WATERMARK), (3, 0)),
        (("t", 0, 4), (-1, 1)),
        (("t", 0, -2), (-1, 1)),
        (("t", 1, 0), (-1, 3)),
        (("nope", 0, 0), (-1, 3)),
        ((OFFSETS_TOPIC, 0, 0), (-1, 17)),
        (("followed", 0, HIGH_WATERMARK), (-1, 6)),
        (("followed", 0, 0), (-1, 6)),
        (("followed", 0, -2), (-1, 1)),
        (("compacted", 0, 0), (-1, 44)),
    ],
)
def test_the_codes(tmp_path: Path, before: tuple[str, int, int], expected: tuple[int, int]) -> None:
    """As of 0.11.0.3."""
    world = led(tmp_path)
    world.lead(OFFSETS_TOPIC)
    world.lead("followed", leader=2, replicas=(1, 2))
    world.lead("compacted", config={"cleanup.policy": "compact"})
    assert expected == result(world.client.call(asking(before)))


def test_a_refused_partition_keeps_its_records(tmp_path: Path) -> None:
    """0.11.0.3 raises the log start of a compacted topic, and then refuses it."""
    world = led(tmp_path)
    world.log_manager.update_topic_config("t", {"cleanup.policy": "compact"})
    assert (-1, 44) == result(world.client.call(asking(("t", 0, 2))))
    assert 0 == world.partition("t").log.log_start_offset


def test_the_start_is_on_disk_before_the_response(tmp_path: Path) -> None:
    """So a kill does not bring the records back. 0.11.0.3 writes it once a minute."""
    world = led(tmp_path)
    world.client.call(asking(("t", 0, 2)))
    assert "0\n1\nt 0 2\n" == (tmp_path / LOG_START_CHECKPOINT).read_text()


def test_a_lower_offset_changes_nothing(tmp_path: Path) -> None:
    """It is no error; the response has the present start."""
    world = led(tmp_path)
    world.client.call(asking(("t", 0, 2)))
    assert (2, 0) == result(world.client.call(asking(("t", 0, 1), timeout_ms=0)))


@pytest.mark.parametrize("version", [0, 3, 5])
def test_consumers_below_the_start_are_out_of_range(tmp_path: Path, version: int) -> None:
    """Of every version. At the start they read on."""
    world = led(tmp_path)
    world.client.call(asking(("t", 0, 2)))
    for offset, code in ((1, 1), (2, 0)):
        wanted = [FetchTopic("t", [FetchPartition(0, offset, 1000)])]
        response = world.client.call(FetchRequest(-1, 0, 1, wanted, version=version))
        assert code == response.topics[0].partitions[0].error_code


class TestFollowers:
    @pytest.fixture
    def pair(self, tmp_path: Path) -> Pair:
        """A leader and a follower with the same three records."""
        pair = Pair(tmp_path, **KEYS)
        pair.leader.store.live = [1, 2]
        pair.leader.lead("other")
        for value in (b"a", b"b", b"c"):
            pair.produce(value)
        pair.fetcher.round()
        pair.fetcher.round()
        return pair

    def sent(self, pair: Pair, before: int, timeout_ms: int = 5000) -> Client:
        """A client with a request that waits."""
        client = Client(pair.leader)
        client.send(encode_request(asking(("t", 0, before), timeout_ms=timeout_ms), 1, "test"))
        return client

    def answered(self, client: Client) -> tuple[int, int]:
        """The result in its response."""
        (frame,) = client.frames()
        return result(decode_response(DeleteRecordsRequest, frame, 0)[1])

    def test_the_response_waits_for_the_follower(self, pair: Pair) -> None:
        """It hears of the new start with its next response, and tells that it has it with the
        fetch after that. On its disk it is before."""
        client = self.sent(pair, 2)
        assert client.parked
        pair.fetcher.round()
        assert 2 == pair.copy.log.log_start_offset
        file = pair.follower.log_manager.directories[0] / LOG_START_CHECKPOINT
        assert "0\n1\nt 0 2\n" == file.read_text()
        assert client.parked
        pair.fetcher.round()
        assert (2, 0) == self.answered(client)

    def test_a_follower_that_starts_higher_says_so(self, pair: Pair) -> None:
        """Its own retention was earlier."""
        pair.copy.log.raise_log_start(3)
        client = self.sent(pair, 2)
        pair.fetcher.round()
        pair.fetcher.round()
        assert (2, 0) == self.answered(client)

    def test_a_follower_deletes_nothing_above_its_high_watermark(self, pair: Pair) -> None:
        """It hears of the start again and again, until it has the records."""
        pair.produce(b"d")
        pair.original.high_watermark = 4
        pair.original.log.raise_log_start(4)
        pair.copy.set_high_watermark(3)
        pair.fetcher._follow_start(next(iter(pair.fetcher._followed.values())), 4)
        assert 0 == pair.copy.log.log_start_offset

    def test_a_dead_follower_is_not_waited_for(self, pair: Pair) -> None:
        """Once the controller has said so; it learns the start when it is back."""
        client = self.sent(pair, 2)
        pair.leader.store.live = [1]
        pair.leader.lead("other")
        assert (2, 0) == self.answered(client)

    def test_a_slow_follower_is_7_with_the_former_low_watermark(self, pair: Pair) -> None:
        """The leader's start has moved all the same."""
        client = self.sent(pair, 2, timeout_ms=100)
        pair.leader.runtime.advance(0.2)
        assert (0, 7) == self.answered(client)
        assert 2 == pair.original.log.log_start_offset

    def test_the_end_of_the_leadership_ends_the_wait(self, pair: Pair) -> None:
        """With error 6, and nothing of the low watermark."""
        client = self.sent(pair, 2)
        pair.leader.lead("t", leader=2, isr=(1, 2), replicas=(1, 2))
        assert (-1, 6) == self.answered(client)

    def test_a_follower_behind_the_start_begins_there(self, pair: Pair) -> None:
        """It lacks nothing that anybody may read."""
        pair.produce(b"d")
        pair.original.high_watermark = 4
        pair.leader.client.call(asking(("t", 0, 4), timeout_ms=0))
        for _ in range(3):
            pair.fetcher.round()
        assert 4 == pair.copy.log.log_start_offset
        assert 4 == pair.copy.log.log_end_offset
