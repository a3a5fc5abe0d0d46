"""Searches in the logs of a cluster in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kafka08.client import log_offsets
from kafka08.client.cluster import ClusterClient
from kafka08.pages.messages import Browser, SearchRequest, Start
from kafka08.protocol.offsets import OffsetsPartitionResponse
from kafka08.structs import TopicPartition
from tests.arrow.logs import T0, LogCluster


class UpgradedCluster(LogCluster):
    """A JVM broker of 0.10.2 with segments at 0, 10 and 20, last written at 100, 200 and 300 ms,
    and log end 25. The messages of the last one have the times 250 to 254, others have none."""

    WRITTEN: Mapping[int, int] = {0: 100, 10: 200, 20: 300}

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__({"t": {0: 1}})
        self.write(T0, [(None, b"v")] * 25)
        monkeypatch.setattr(log_offsets, "messages_at", self._messages_at)

    @staticmethod
    def _messages_at(
        _: ClusterClient, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, tuple[int, int] | None]:
        """The first segment whose largest timestamp, or without one whose last write, is not before
        the time decides alone. Source: kafka.log.Log.fetchOffsetsByTimestamp 0.10.2.2."""

        def first(time_ms: int) -> tuple[int, int] | None:
            if time_ms <= 200:
                return None
            return next(((20 + n, 250 + n) for n in range(5) if 250 + n >= time_ms), None)

        return {tp: first(time_ms) for tp, time_ms in times.items()}

    def _offset(self, broker_id: int, tp: TopicPartition, time_ms: int) -> OffsetsPartitionResponse:
        response = super()._offset(broker_id, tp, time_ms)
        if response.error_code or time_ms < 0:
            return response
        bases = [base for base, written in self.WRITTEN.items() if written <= time_ms]
        ends = [25] if time_ms >= 300 else []
        return replace(response, offsets=sorted(bases + ends, reverse=True))


@pytest.mark.parametrize(
    ("time_ms", "first"), [(50, 0), (150, 0), (200, 10), (201, 20), (253, 23), (299, 10), (301, 25)]
)
def test_a_search_by_time_finds_messages_without_timestamps(
    monkeypatch: pytest.MonkeyPatch, time_ms: int, first: int
) -> None:
    """A broker that finds no message by its timestamp, since it does not search behind a segment
    without timestamps, is not believed: the times at which segments were written decide."""
    cluster = UpgradedCluster(monkeypatch)
    request = SearchRequest("t", 0, Start.TIME, time_ms)
    response = Browser(cluster.client, cluster.clock, negotiates=True).search(request)
    assert list(range(first, 25)) == [message["offset"] for message in response["messages"]]
