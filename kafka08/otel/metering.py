"""`metrics()` of a producer or consumer as OpenTelemetry's observable gauges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation, get_meter

SCOPE: Final = "kafka08"
Values = Mapping[str, Mapping[str, float]]
"""Metric group → name → value."""


def observe(prefix: str, metrics: Callable[[], Values], meter: Meter | None = None) -> None:
    """A gauge for each name that `metrics` gives now: `<prefix>.record_send_rate` of
    record-send-rate, with attributes (`topic`, `partition`, `broker`).
    `metrics` is called at each collection, once for each name; what comes to it later under a known
    name is seen too. Call it when the client is made; a client that was closed is observed on.

    prefix   such as kafka.producer
    meter    None: that of the application's meter provider
    """
    meter = meter or get_meter(SCOPE)
    for name in sorted({name for values in metrics().values() for name in values}):
        meter.create_observable_gauge(
            f"{prefix}.{instrument_name(name)}", [partial(_observations, metrics, name)]
        )


def _observations(
    metrics: Callable[[], Values], name: str, _: CallbackOptions
) -> Iterable[Observation]:
    for group, values in metrics().items():
        if name in values:
            yield Observation(values[name], attributes_of(group))


def instrument_name(name: str) -> str:
    """A name as OpenTelemetry writes it: `records-lag-max` is `records_lag_max`."""
    return name.replace("-", "_")


def attributes_of(group: str) -> Mapping[str, str | int]:
    """The attributes of a metric group: none, a topic, a partition, or a broker."""
    kind, _, subject = group.partition(".")
    if not subject:
        return {}
    if kind.endswith("fetch-manager-metrics"):
        topic, _, partition = subject.rpartition("-")
        return {"topic": topic, "partition": int(partition)}
    return {"broker" if ":" in subject else "topic": subject}
