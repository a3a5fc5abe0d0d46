"""Options become offsets: by time at the grain of segments, committed, and lost ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kafka08.arrow import resolve
from kafka08.arrow.data_loss import DataLost
from kafka08.arrow.options import parse_read_options
from kafka08.arrow.ranges import OffsetRange
from kafka08.arrow.resolve import Resolver, by_segment_end
from kafka08.arrow.unread_ranges import ranges_until_now
from kafka08.client import log_offsets
from kafka08.client.cluster import ClusterClient
from kafka08.errors import ConfigError, LeaderNotAvailable, UnknownTopicOrPartition
from kafka08.protocol.offsets import OffsetsPartitionResponse
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, NO_LEADER, TopicPartition
from tests.arrow.logs import T0, LogCluster


class SegmentedCluster(LogCluster):
    """[t,0] with segments at 0, 10 and 20, last written at 100, 200 and 300 ms, log end 25;
    [t,1] empty; [u,0]."""

    SEGMENTS = ((0, 100), (10, 200), (20, 300))

    def __init__(self) -> None:
        super().__init__({"t": {0: 1, 1: 2}, "u": {0: 1}})
        for tp, count in ((T0, 25), (TopicPartition("u", 0), 4)):
            self.write(tp, [(None, b"v")] * count)

    def _offset(self, broker_id: int, tp: TopicPartition, time_ms: int) -> OffsetsPartitionResponse:
        response = super()._offset(broker_id, tp, time_ms)
        if response.error_code or tp != T0 or time_ms == EARLIEST_OFFSET:
            return response
        bases = [base for base, _ in self.SEGMENTS]
        if time_ms != LATEST_OFFSET:
            bases = [base for base, written in self.SEGMENTS if written <= time_ms]
            ends = [25] if time_ms >= 400 else []
        else:
            ends = [25]
        # kafka.server.KafkaApis.fetchOffsetsBefore: descending, as many as were asked for.
        return OffsetsPartitionResponse(tp.partition, 0, sorted(bases + ends, reverse=True))


def resolver(**given: str) -> Resolver:
    options = {"kafka.bootstrap.servers": "b1:9092", **given}
    cluster = SegmentedCluster()
    return Resolver(parse_read_options(options), cluster.client)


def ranges(**given: str) -> list[tuple[int, int, int]]:
    return [(r.partition, r.from_offset, r.until_offset) for r in resolver(**given).batch()]


BY_TIME = {"assign": '{"t":[0]}', "timestampGranularity": "segment"}


@pytest.mark.parametrize(
    ("time_ms", "start"),
    [(50, 0), (100, 0), (150, 0), (200, 10), (299, 10), (300, 20)],
)
def test_start_by_time(time_ms: int, start: int) -> None:
    """A read by segments starts at the last segment that was completely written by that time, else
    at the earliest offset."""
    assert ranges(startingTimestamp=str(time_ms), **BY_TIME) == [(0, start, 25)]
    by_partition = f'{{"t":{{"0":{time_ms}}}}}'
    assert ranges(startingOffsetsByTimestamp=by_partition, **BY_TIME) == [(0, start, 25)]


def test_start_later_than_everything() -> None:
    """It is an error, or the log end with the strategy `latest`."""
    with pytest.raises(ConfigError, match=r"no message is later than .* \[t,0\]"):
        ranges(startingTimestamp="500", **BY_TIME)
    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    assert ranges(startingTimestamp="500", **strategy, **BY_TIME) == [(0, 25, 25)]


def test_brokers_of_0_8_know_no_message_by_its_time() -> None:
    """A read by time is a ConfigError there, which names the option that accepts additional
    rows."""
    for name in ("startingTimestamp", "endingTimestamp"):
        with pytest.raises(ConfigError, match=f"{name}: .*timestampGranularity=segment"):
            ranges(assign='{"t":[0]}', **{name: "5"})


def upgraded(monkeypatch: pytest.MonkeyPatch, **given: str) -> Resolver:
    """Of SegmentedCluster on a JVM broker of 0.10.2, where the messages of the last segment have
    the times 250 to 254, and those before have none."""

    def messages_at(
        _: ClusterClient, times: Mapping[TopicPartition, int], __: int
    ) -> dict[TopicPartition, tuple[int, int] | None]:
        """As kafka.log.Log.fetchOffsetsByTimestamp 0.10.2.2: the first segment whose largest
        timestamp, or without one whose last write, is not before the time decides alone."""

        def first(time_ms: int) -> tuple[int, int] | None:
            if time_ms <= 200:
                return None
            return next(((20 + n, 250 + n) for n in range(5) if 250 + n >= time_ms), None)

        return {tp: first(time_ms) for tp, time_ms in times.items()}

    monkeypatch.setattr(log_offsets, "messages_at", messages_at)
    found = resolver(assign='{"t":[0]}', **given)
    address = replace(found.options.address, negotiates=True)
    found.options = replace(found.options, address=address)
    return found


@pytest.mark.parametrize("time_ms", [0, 100, 150, 200])
def test_times_before_an_upgrade(monkeypatch: pytest.MonkeyPatch, time_ms: int) -> None:
    """A broker that finds no message, since it does not search behind a segment without timestamps
    that was written later, is not believed: a read by time is a ConfigError, and conditions on the
    time leave the ranges whole."""
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    for given in ({"startingTimestamp": str(time_ms)}, {"endingTimestamp": str(time_ms)}):
        with pytest.raises(ConfigError, match=r"=segment .*\[t,0\]: .* without timestamps"):
            upgraded(monkeypatch, **given, **latest).batch()
    found = upgraded(monkeypatch)
    assert found.since(found.batch(), time_ms) == [OffsetRange("t", 0, 0, 25)]


def test_times_after_an_upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the same log a message is found by its time, and a time behind everything is the log
    end."""
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    for time_ms, offset in ((201, 20), (253, 23), (301, 25)):
        found = upgraded(monkeypatch, startingTimestamp=str(time_ms), **latest)
        assert found.batch() == [OffsetRange("t", 0, offset, 25)]
    with pytest.raises(ConfigError, match="no message is later"):
        upgraded(monkeypatch, startingTimestamp="301").batch()
    found = upgraded(monkeypatch)
    assert found.since(found.batch(), 301) == []


@pytest.mark.parametrize(
    ("time_ms", "end"),
    [(50, 10), (100, 20), (199, 20), (200, 25), (300, 25), (500, 25)],
)
def test_end_by_time(time_ms: int, end: int) -> None:
    """A read by segments ends with the segment that was active at that time."""
    assert ranges(endingTimestamp=str(time_ms), **BY_TIME) == [(0, 0, end)]


@pytest.mark.parametrize(
    ("last_before", "borders", "end"),
    [(None, [0], 0), (None, [0, 5], 5), (0, [0, 5], 5), (5, [0, 5], 5), (0, [0, 5, 9, 12], 9)],
)
def test_segment_end(last_before: int | None, borders: list[int], end: int) -> None:
    """The end is found in an empty log, one of one segment, and one that was complete before that
    time."""
    assert by_segment_end(last_before, borders) == end


def test_subscriptions_find_partitions() -> None:
    """By name, by pattern and by partition, sorted; what does not exist is named."""
    assert ranges(subscribe="u,t") == [(0, 0, 25), (1, 0, 0), (0, 0, 4)]
    assert ranges(subscribePattern="[tv]") == [(0, 0, 25), (1, 0, 0)]
    assert ranges(subscribePattern="x.*") == []
    assert ranges(assign='{"t":[1],"u":[0]}') == [(1, 0, 0), (0, 0, 4)]
    with pytest.raises(UnknownTopicOrPartition, match="topic x does not exist; topic y does not"):
        ranges(subscribe="t,x,y")
    with pytest.raises(UnknownTopicOrPartition, match=r"topic T does not exist; did you mean t\?"):
        ranges(assign='{"T":[0],"u":[0]}')
    fault = r"\[t,2\]: the topic has 2 partitions; \[u,1\]: the topic has 1 partition$"
    with pytest.raises(UnknownTopicOrPartition, match=fault):
        ranges(assign='{"t":[0,2],"u":[1]}')


def test_a_cluster_that_never_had_a_topic() -> None:
    """Its brokers' metadata lists no broker, like that of brokers which are starting: after the
    retries a pattern matches no topic."""
    cluster = LogCluster({})
    cluster.brokers.clear()
    options = {"kafka.bootstrap.servers": "b1:9092", "subscribePattern": "t"}
    found = Resolver(parse_read_options(options), cluster.client)
    assert found.batch() == []
    assert sum(cluster.clock.slept) == pytest.approx(10)


def test_a_partition_is_gone_if_it_still_is_a_moment_later() -> None:
    """A second request decides: a broker may know only some partitions yet."""
    cluster = SegmentedCluster()
    options = {"kafka.bootstrap.servers": "b1:9092", "offsetRanges": '[["t",0,5,8]]'}
    found = Resolver(parse_read_options(options), cluster.client)
    leader = cluster.leaders.pop(T0)

    def hear(seconds: float) -> None:
        cluster.leaders[T0] = leader

    cluster.clock.sleep = hear  # type: ignore[method-assign]
    assert found.batch() == [OffsetRange("t", 0, 5, 8)]


def test_minus_two_and_minus_one_are_the_ends() -> None:
    """-2 and -1 are the ends of a log; a map must name exactly the subscribed partitions."""
    assert ranges(
        subscribe="t",
        startingOffsets='{"t":{"0":-2,"1":-2}}',
        endingOffsets='{"t":{"0":-1,"1":-1}}',
    ) == [(0, 0, 25), (1, 0, 0)]
    with pytest.raises(ConfigError, match=r"endingOffsets .* \[t,1\]; not subscribed: none"):
        ranges(subscribe="t", endingOffsets='{"t":{"0":-1}}')


def test_times_name_all_partitions() -> None:
    """A map of times must name exactly the subscribed partitions, too."""
    by_time = {"subscribe": "t", "timestampGranularity": "segment"}
    with pytest.raises(ConfigError, match=r"startingOffsetsByTimestamp .* missing: \[t,1\]; not"):
        ranges(startingOffsetsByTimestamp='{"t":{"0":100}}', **by_time)
    with pytest.raises(ConfigError, match=r"endingOffsetsByTimestamp .* not subscribed: \[t,7\]"):
        ranges(endingOffsetsByTimestamp='{"t":{"0":100,"1":100,"7":100}}', **by_time)


def test_losses_are_listed_together() -> None:
    """One error lists every missing range, also of partitions that are gone; or the ranges are
    cut."""
    wanted = '[["t",0,20,30],["t",1,0,1],["x",0,0,9],["u",0,1,2],["t",0,5,5]]'
    with pytest.raises(DataLost) as lost:
        ranges(offsetRanges=wanted)
    assert "[t,0] [20, 30): only [0, 25) is there; [t,1] [0, 1): only [0, 0) is there" in str(
        lost.value
    )
    assert "[x,0] [0, 9): the partition is gone" in str(lost.value)
    kept = ranges(offsetRanges=wanted, failOnDataLoss="false")
    assert kept == [(0, 20, 25), (1, 0, 0), (0, 0, 0), (0, 1, 2), (0, 5, 5)]


def test_a_start_ahead_of_the_log() -> None:
    """The offsets between the log end and the start are lost (the topic was recreated): an error,
    or an empty range at the log end, where messages may be written later."""
    ahead = {"subscribe": "t", "startingOffsets": '{"t":{"0":40,"1":0}}'}
    with pytest.raises(DataLost, match=r": \[t,0\] \[25, 40\): only \[0, 25\) is there\."):
        ranges(**ahead)
    assert ranges(**ahead, failOnDataLoss="false") == [(0, 25, 25), (1, 0, 0)]


def just_elected() -> LogCluster:
    """[t,0] with 25 messages, of which consumers see 8."""
    cluster = LogCluster({"t": {0: 1}})
    cluster.write(T0, [(None, b"v")] * 25)
    cluster.shapes[T0].visible = 8
    return cluster


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_high_watermark_that_lags_is_no_loss(monkeypatch: pytest.MonkeyPatch, fail: str) -> None:
    """The leader that was just elected has a high watermark below offsets that are in its log:
    ranges up to there stay whole, and a read that starts there reads nothing before it."""
    cluster = just_elected()

    def planned(**given: str) -> list[OffsetRange]:
        options = {"kafka.bootstrap.servers": "b1:9092", "failOnDataLoss": fail, **given}
        return Resolver(parse_read_options(options), cluster.client).batch()

    assert planned(offsetRanges='[["t",0,5,25]]') == [OffsetRange("t", 0, 5, 25)]
    starts = {"startingOffsets": '{"t":{"0":25}}', "assign": '{"t":[0]}'}
    assert planned(**starts) == [OffsetRange("t", 0, 25, 25)]
    monkeypatch.setattr(resolve, "cluster_at", lambda *_: cluster.client)
    assert ranges_until_now("b1:9092", "t", {0: 25})[0] == OffsetRange("t", 0, 25, 25)


def test_a_log_cut_below_its_start_while_the_high_watermark_lags() -> None:
    """Only what the leader's log does not have is lost."""
    cluster = just_elected()
    options = {"kafka.bootstrap.servers": "b1:9092", "offsetRanges": '[["t",0,5,30]]'}
    with pytest.raises(DataLost, match=r"\[t,0\] \[5, 30\): only \[0, 25\) is there"):
        Resolver(parse_read_options(options), cluster.client).batch()


def test_cuts_are_those_of_sparks_connector() -> None:
    """No task has more than maxRecordsPerPartition offsets. (Cuts used to move to the borders of
    segments near by, and a task had up to 1.07 times as many.)"""
    found = resolver(assign='{"t":[0]}', maxRecordsPerPartition="250")
    cuts = [range(n, n + 250) for n in range(0, 1000, 250)]
    tasks = found.tasks([OffsetRange("t", 0, 0, 1000)])
    assert [range(r.from_offset, r.until_offset) for r in tasks] == cuts


class CountedRange(OffsetRange):
    """An OffsetRange that counts how often one is compared with another."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedRange.comparisons += 1
        return super().__eq__(other)

    __hash__ = OffsetRange.__hash__


@pytest.mark.parametrize("least", ["1", "3000"])
def test_a_plan_grows_with_its_ranges(least: str) -> None:
    """Not with their square: each range that is cut, and each that is not, is looked up without a
    comparison with all others. (20,000 ranges once took 3 s.)"""
    ranges = [CountedRange("t", n % 2, 10 * n, 10 * n + 9) for n in range(2000)]
    CountedRange.comparisons = 0
    tasks = resolver(subscribe="t", minPartitions=least).tasks(ranges)
    assert CountedRange.comparisons <= len(ranges)
    assert len(tasks) >= len(ranges)
    assert sum(r.size for r in tasks) == 9 * len(ranges)


@pytest.mark.parametrize("found_after_s", [60, None])
def test_a_plan_waits_for_a_leader_as_long_as_a_task(found_after_s: int | None) -> None:
    """Its limit is a time, kafkaConsumer.pollTimeoutMs, and no number of tries, which ended a
    stream after 10 s without a leader."""
    cluster = SegmentedCluster()
    leader = cluster.leaders[T0]
    cluster.leaders[T0] = NO_LEADER
    sleep = cluster.clock.sleep

    def sleep_until_elected(seconds: float) -> None:
        sleep(seconds)
        if found_after_s is not None and sum(cluster.clock.slept) >= found_after_s:
            cluster.leaders[T0] = leader

    cluster.clock.sleep = sleep_until_elected  # type: ignore[method-assign]
    options = parse_read_options({"kafka.bootstrap.servers": "b1:9092", "subscribe": "t"})
    client = ClusterClient(
        cluster.bootstrap, retry_policy=options.settings.retry_policy, runtime=cluster.runtime
    )
    found = Resolver(options, client)
    with found.deadline():
        if found_after_s is not None:
            assert OffsetRange("t", 0, 0, 25) in found.batch()
        else:
            with pytest.raises(LeaderNotAvailable):
                found.batch()
            assert sum(cluster.clock.slept) == pytest.approx(120, abs=1)
