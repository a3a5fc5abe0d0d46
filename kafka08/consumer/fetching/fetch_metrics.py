"""FetchMetrics: a consumer's fetches, under Java's metric names.

It counts fetches, never single messages. Rates and means cover the last 30 to 60 seconds.
Source: Fetcher.FetchManagerMetrics 0.10.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from kafka08.consumer.fetching.owned_partition import Chunk
from kafka08.metrics import Mean, Rate
from kafka08.runtime import ClientRuntime
from kafka08.structs import TopicPartition

GROUP: Final = "consumer-fetch-manager-metrics"


class FetchMetrics:
    """The metrics of all fetchers of a consumer. Thread-safe."""

    def __init__(self, runtime: ClientRuntime) -> None:
        self._runtime = runtime
        self._lock = runtime.lock()
        self._fetches = Rate()
        self._records = Rate()
        self._bytes = Rate()
        self._latency_ms = Mean()
        self._fetch_bytes = Mean()
        self._fetch_records = Mean()

    def fetched(self, chunks: Iterable[Chunk], asked_at: float) -> None:
        """Count the response to a request that was sent at `asked_at` (monotonic seconds)."""
        now = self._runtime.monotonic()
        size = records = 0
        for chunk in chunks:
            size += len(chunk.data)
            records += chunk.next_offset - chunk.from_offset
        with self._lock:
            self._fetches.add(1, now)
            self._latency_ms.add((now - asked_at) * 1000, now)
            self._bytes.add(size, now)
            self._records.add(records, now)
            self._fetch_bytes.add(size, now)
            self._fetch_records.add(records, now)

    def values(
        self,
        lags: Mapping[TopicPartition, int],
        replicas: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> dict[str, dict[str, float]]:
        """Metric group → name → value. `lags` has the lag of each assigned partition, in messages
        to the high watermark of its last fetch, `replicas` the follower from which it is read,
        NO_REPLICA for the leader. Records are counted by their offsets."""
        now = self._runtime.monotonic()
        with self._lock:
            found = {
                GROUP: {
                    "fetch-rate": self._fetches.per_second(now),
                    "fetch-total": self._fetches.total,
                    "fetch-latency-avg": self._latency_ms.mean(now),
                    "fetch-latency-max": self._latency_ms.largest(now),
                    "fetch-size-avg": self._fetch_bytes.mean(now),
                    "fetch-size-max": self._fetch_bytes.largest(now),
                    "bytes-consumed-rate": self._bytes.per_second(now),
                    "bytes-consumed-total": self._bytes.total,
                    "records-consumed-rate": self._records.per_second(now),
                    "records-consumed-total": self._records.total,
                    "records-per-request-avg": self._fetch_records.mean(now),
                    "records-lag-max": float(max(lags.values(), default=0)),
                }
            }
        for tp, lag in lags.items():
            of_partition = found[f"{GROUP}.{tp.topic}-{tp.partition}"] = {"records-lag": float(lag)}
            if tp in replicas:
                of_partition["preferred-read-replica"] = float(replicas[tp])
        found["consumer-coordinator-metrics"] = {"assigned-partitions": float(len(lags))}
        return found
