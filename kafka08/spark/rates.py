"""Limits the messages of a DStream's interval: fixed rates, and backpressure.

Backpressure is a PID controller: it lowers the rate of all partitions together until intervals
finish in time. Source: org.apache.spark.streaming.scheduler.rate.PIDRateEstimator and
DirectKafkaInputDStream.maxMessagesPerPartition, 2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from kafka08.errors import ConfigError
from kafka08.structs import TopicPartition

MAX_RATE: Final = "spark.streaming.kafka.maxRatePerPartition"
BACKPRESSURE: Final = "spark.streaming.backpressure."

Get = Callable[[str, str], str]
"""(name, default) → value in the Spark configuration."""


@dataclass(slots=True)
class PidRate:
    """Estimates the rate at which intervals finish in time, in messages per second.

    interval_ms     of the stream
    proportional, integral, derived, min_rate   Spark's settings of these names; the rate is never
                    below min_rate
    """

    interval_ms: int
    proportional: float = 1.0
    integral: float = 0.2
    derived: float = 0.0
    min_rate: float = 100.0
    rate: float | None = None
    """None until two intervals with messages have ended: the first one is where it begins."""
    _last: tuple[int, float, float] | None = None
    """The last interval: its end in ms, its rate, and the error of that rate."""

    @classmethod
    def configured(cls, get: Get, interval_ms: int) -> Self:
        """The rate by spark.streaming.backpressure.*. ConfigError if the estimator is not `pid`."""
        estimator = get(f"{BACKPRESSURE}rateEstimator", "pid")
        if estimator != "pid":
            raise ConfigError(f"{BACKPRESSURE}rateEstimator: {estimator} does not exist; use pid")
        return cls(
            interval_ms,
            float(get(f"{BACKPRESSURE}pid.proportional", "1.0")),
            float(get(f"{BACKPRESSURE}pid.integral", "0.2")),
            float(get(f"{BACKPRESSURE}pid.derived", "0.0")),
            float(get(f"{BACKPRESSURE}pid.minRate", "100")),
        )

    def done(self, end_ms: int, count: int, processing_ms: int, waited_ms: int) -> None:
        """An interval of `count` messages ended at `end_ms` after `processing_ms`; before that it
        had waited `waited_ms` for earlier intervals. Intervals without messages are ignored."""
        if count <= 0 or processing_ms <= 0 or (self._last is not None and end_ms <= self._last[0]):
            return
        reached = count / processing_ms * 1000
        if self._last is None:
            self._last = end_ms, reached, 0.0
            return
        last_end_ms, last_rate, last_error = self._last
        error = last_rate - reached
        backlog = waited_ms * reached / self.interval_ms
        change = (error - last_error) / ((end_ms - last_end_ms) / 1000)
        self.rate = max(
            last_rate - self.proportional * error - self.integral * backlog - self.derived * change,
            self.min_rate,
        )
        self._last = end_ms, self.rate, error


class RateLimit:
    """The limits of each interval, from the Spark configuration.

    pid   gets the processing times of intervals; None without backpressure
    """

    def __init__(self, get: Get, interval_ms: int) -> None:
        self._seconds = interval_ms / 1000
        self._per_partition = int(get(MAX_RATE, "0") or 0)
        self._initial = int(get(f"{BACKPRESSURE}initialRate", "0") or 0)
        enabled = get(f"{BACKPRESSURE}enabled", "false").lower() == "true"
        self.pid = PidRate.configured(get, interval_ms) if enabled else None

    def limits(self, lags: Mapping[TopicPartition, int]) -> dict[TopicPartition, int] | None:
        """partition → most messages in the next interval, from the lag of each; None without a
        limit. A common rate is divided in proportion to the lags; each gets at least 1."""
        most = self._per_partition
        rate = self._initial if self.pid is None or self.pid.rate is None else self.pid.rate
        if self.pid is None or rate <= 0:
            rates = dict.fromkeys(lags, float(most))
        else:
            total = sum(lags.values()) or 1
            shares = {tp: lag / total * rate for tp, lag in lags.items()}
            rates = {tp: min(share, most) if most > 0 else share for tp, share in shares.items()}
        if sum(rates.values()) <= 0:
            return None
        return {tp: max(1, int(self._seconds * each)) for tp, each in rates.items()}
