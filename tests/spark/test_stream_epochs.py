"""StreamReader: an unclean election between two batches replaces messages that were read."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from kafka08.arrow.data_loss import DataLost
from kafka08.arrow.options import parse_read_options
from kafka08.arrow.resolve import Resolver
from kafka08.client import ClusterClient
from kafka08.spark.schema import default_schema
from kafka08.spark.stream import StreamReader
from kafka08.spark.tasks import RangePartition
from tests.arrow.logs import T0
from tests.client.epoch_cluster import EpochCluster
from tests.spark.test_stream_reader import Creations

Position = dict[str, Any]


class EpochStream:
    """A stream of partition 0 of topic t with six messages. Its positions come from JSON, as from a
    checkpoint."""

    def __init__(
        self, cluster: EpochCluster | None = None, creations: Creations | None = None
    ) -> None:
        self.cluster = EpochCluster(1) if cluster is None else cluster
        self.creations = creations
        self.cluster.append(T0, *[b"old %d" % n for n in range(6)])
        self.reader = self.restarted()
        self.begin = stored(self.reader.initialOffset())

    def restarted(self, fail: str = "true") -> StreamReader:
        """The reader of another driver process."""
        keys = {"kafka.bootstrap.servers": "b1:9092", "subscribe": "t", "failOnDataLoss": fail}
        options = parse_read_options({**keys, "startingOffsets": "earliest"}, streaming=True)
        cluster = self.cluster
        client = ClusterClient(cluster.bootstrap, negotiates=True, runtime=cluster.runtime)
        resolver = Resolver(options, client)
        schema = default_schema(False)
        return StreamReader(options, schema, resolver, self.creations)

    def next(self, start: Position) -> Position:
        return stored(self.reader.latestOffset(start, self.reader.getDefaultReadLimit()))

    def ranges(self, start: Position, end: Position) -> list[tuple[int, int]]:
        planned = self.reader.partitions(start, end)
        wanted = [one.wanted for one in planned if isinstance(one, RangePartition)]
        return [(one.from_offset, one.until_offset) for one in wanted]

    def elect(self, keeps: int, new: int) -> None:
        """A leader whose log has `keeps` messages, and then gets `new` others."""
        self.cluster.elect(T0, leader=2, keeps=keeps)
        self.cluster.append(T0, *[b"new %d" % n for n in range(new)])


def stored(position: Position) -> Position:
    found: Position = json.loads(json.dumps(position))
    return found


@pytest.mark.parametrize("restarts", [False, True])
def test_messages_that_were_replaced_are_no_silent_gap(restarts: bool) -> None:
    """Although the log has grown beyond the stream's position; also where the driver was started
    again."""
    stream = EpochStream()
    end = stream.next(stream.begin)
    assert end == {"t": {"0": 6}, "$starts": {"t": {"0": 0}}, "$epochs": {"t": {"0": 0}}}
    assert stream.ranges(stream.begin, end) == [(0, 6)]
    stream.elect(keeps=2, new=6)
    if restarts:
        stream.reader = stream.restarted()
    with pytest.raises(DataLost, match=r"\[t,0\]: the messages from offset 2 to 5 were lost"):
        stream.next(end)


def test_where_loss_is_accepted_the_other_messages_are_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """From the first one on; the batch is repeated from there, and the next one goes on."""
    stream = EpochStream()
    end = stream.next(stream.begin)
    stream.elect(keeps=2, new=6)
    stream.reader = stream.restarted(fail="false")
    with caplog.at_level(logging.WARNING):
        after = stream.next(end)
    assert "messages from offset 2 to 5 were lost" in caplog.text
    assert "reading continues at offset 2" in caplog.text
    assert after == {"t": {"0": 8}, "$starts": {"t": {"0": 2}}, "$epochs": {"t": {"0": 1}}}
    assert stream.ranges(end, after) == [(2, 8)]
    stream.reader = stream.restarted(fail="false")
    assert stream.ranges(end, after) == [(2, 8)]
    assert stream.next(after) == after


def test_a_log_that_was_emptied_is_read_from_its_start() -> None:
    """No message of an epoch up to that of the stream is left."""
    stream = EpochStream()
    end = stream.next(stream.begin)
    stream.elect(keeps=0, new=9)
    with pytest.raises(DataLost, match="has none that was written up to leader epoch 0"):
        stream.next(end)
    stream.reader = stream.restarted(fail="false")
    assert stream.ranges(end, stream.next(end)) == [(0, 9)]


def test_a_log_that_is_shorter_now_is_read_from_the_first_other_message() -> None:
    """Not from its end, where the messages between were passed over. ZooKeeper says that the topic
    is the same: without it such a log counts as that of a new topic."""
    stream = EpochStream(creations=Creations(t=7))
    stream.cluster.append(T0, *[b"old"] * 4)
    end = stream.next(stream.begin)
    stream.elect(keeps=7, new=2)
    stream.reader = stream.restarted(fail="false")
    assert stream.ranges(end, stream.next(end)) == [(7, 9)]


def test_a_leader_that_has_all_messages_is_no_loss() -> None:
    """The next batch has its epoch."""
    stream = EpochStream()
    end = stream.next(stream.begin)
    stream.elect(keeps=6, new=2)
    after = stream.next(end)
    assert after == {"t": {"0": 8}, "$epochs": {"t": {"0": 1}}}
    assert stream.ranges(end, after) == [(6, 8)]


def test_a_batch_that_is_repeated_is_checked_too() -> None:
    """Its process ended before the batch did; Spark asks the next one for no end."""
    stream = EpochStream()
    end = stream.next(stream.begin)
    stream.cluster.append(T0, b"a", b"b")
    after = stream.next(end)
    stream.elect(keeps=4, new=9)
    stream.reader = stream.restarted()
    with pytest.raises(DataLost, match="messages from offset 4 to 5 were lost"):
        stream.ranges(end, after)


def test_brokers_without_epochs() -> None:
    """The position is as it was before there were any."""
    cluster = EpochCluster(1)
    cluster.ranges |= {2: (0, 2), 23: (0, 0)}
    stream = EpochStream(cluster)
    end = stream.next(stream.begin)
    assert end == {"t": {"0": 6}, "$starts": {"t": {"0": 0}}}
    stream.elect(keeps=2, new=6)
    assert stream.ranges(end, stream.next(end)) == [(6, 8)]
