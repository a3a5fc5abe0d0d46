"""Metrics of the clients of 0.8, by the names that they have in JMX.

A meter has the attributes Count and OneMinuteRate, a timer and a histogram Mean and Max too. Rates,
means and maxima are of the last 30 to 60 seconds (kafka08.metrics), not decayed as Yammer's.
Source: kafka.metrics.KafkaMetricsGroup 0.8.2.2.
"""

from __future__ import annotations

from kafka08.metrics import Mean, Rate

Values = dict[str, float]


def meter_values(name: str, rate: Rate, now: float) -> Values:
    return {f"{name}.Count": rate.total, f"{name}.OneMinuteRate": rate.per_second(now)}


def mean_values(name: str, mean: Mean, now: float) -> Values:
    return {f"{name}.Mean": mean.mean(now), f"{name}.Max": mean.largest(now)}


class RequestMetrics:
    """Requests of one kind: how many, how long each took in ms, and bytes of each.

    timer, size   names of both
    """

    __slots__ = ("_ms", "_rate", "_size", "_sizes", "_timer")

    def __init__(self, timer: str, size: str) -> None:
        self._timer = timer
        self._size = size
        self._rate = Rate()
        self._ms = Mean()
        self._sizes = Mean()

    def add(self, seconds: float, size: int, now: float) -> None:
        self._rate.add(1, now)
        self._ms.add(seconds * 1000, now)
        self._sizes.add(size, now)

    def values(self, now: float) -> Values:
        return {
            **meter_values(self._timer, self._rate, now),
            **mean_values(self._timer, self._ms, now),
            **mean_values(self._size, self._sizes, now),
        }
