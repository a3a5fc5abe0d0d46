"""`metrics()` of producers and consumers as OpenTelemetry's observable gauges."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from inspect import ismethod
from typing import Final
from weakref import WeakMethod

from opentelemetry.metrics import CallbackOptions, Meter, Observation, get_meter

SCOPE: Final = "kafka08"
CLIENT: Final = "messaging.client.id"
"""The attribute that tells the clients of one prefix apart."""
TOTAL: Final = ""
PARTS: Final = ("topic", "partition", "broker")
LATER: Final = (("partition", "records-lag"),)
"""Names that a client may get when it has partitions, and that no total has."""
FRESH_S: Final = 0.1
"""A collection asks for each name: all of them within this time are of one call of `metrics`."""
Values = Mapping[str, Mapping[str, float]]
"""Metric group → name → value."""


def observe(
    prefix: str,
    metrics: Callable[[], Values],
    meter: Meter | None = None,
    *,
    client: str | None = None,
) -> None:
    """A gauge for each name that `metrics` gives now: `<prefix>.record_send_rate` of
    record-send-rate. Those of topics, partitions and brokers are gauges of their own, such as
    `<prefix>.topic.record_send_rate` with the attribute `topic`: a sum over the points of one gauge
    counts nothing twice. Call it when the client is made; what comes later under a known name is
    seen too. A client that the program has dropped is not observed on, one that it has closed is.

    prefix   such as kafka.producer; of several clients if need be
    meter    None: that of the application's meter provider
    client   the value of the attribute messaging.client.id. None: its client.id; without one the
             last word of `prefix`. A further client of that name gets a number
    """
    key = (prefix, meter)
    if key not in _instruments:
        _instruments[key] = _Instruments(prefix, meter or get_meter(SCOPE))
    _instruments[key].add(metrics, client or client_id_of(metrics) or prefix.rpartition(".")[2])


class _Instruments:
    """The gauges of one prefix, and the clients that they observe."""

    def __init__(self, prefix: str, meter: Meter) -> None:
        self._prefix = prefix
        self._meter = meter
        self._created: set[tuple[str, str]] = set()
        self._clients: dict[str, _Client] = {}

    def add(self, metrics: Callable[[], Values], name: str) -> None:
        self._clients = {n: one for n, one in self._clients.items() if not one.is_gone}
        numbered = (f"{name}-{number}" for number in itertools.count(2))
        free = next(n for n in itertools.chain([name], numbered) if n not in self._clients)
        self._clients[free] = _Client(metrics)
        names = {one for values in metrics().values() for one in values}
        for one in sorted(names):
            for part in (TOTAL, *PARTS):
                self._create(part, one)
        for part, one in LATER:
            self._create(part, one)

    def _create(self, part: str, name: str) -> None:
        if (part, name) not in self._created:
            self._created.add((part, name))
            full = ".".join(filter(None, (self._prefix, part, instrument_name(name))))
            self._meter.create_observable_gauge(full, [partial(self._points, part, name)])

    def _points(self, part: str, name: str, _: CallbackOptions) -> Iterable[Observation]:
        for client, one in list(self._clients.items()):
            for group, values in one.values().items():
                found = attributes_of(group)
                if name in values and next(iter(found), TOTAL) == part:
                    yield Observation(values[name], {CLIENT: client, **found})


class _Client:
    """The metrics of a client, which it does not keep from being collected as garbage."""

    def __init__(self, metrics: Callable[[], Values]) -> None:
        self._find: Callable[[], Callable[[], Values] | None] = (
            WeakMethod(metrics) if ismethod(metrics) else lambda: metrics
        )
        self._values: Values = {}
        self._fresh_until = 0.0

    @property
    def is_gone(self) -> bool:
        return self._find() is None

    def values(self) -> Values:
        """Those of now; none of a client that is gone."""
        metrics, now = self._find(), time.monotonic()
        if metrics is None:
            return {}
        if now >= self._fresh_until:
            self._values, self._fresh_until = metrics(), now + FRESH_S
        return self._values


_instruments: Final[dict[tuple[str, Meter | None], _Instruments]] = {}


def client_id_of(metrics: Callable[[], Values]) -> str:
    """The client.id of the producer or consumer whose method it is; "" without one."""
    owner = getattr(metrics, "__self__", None)
    config = getattr(getattr(owner, "producer", owner), "config", None)
    return str(getattr(config, "client_id", ""))


def instrument_name(name: str) -> str:
    """A name as OpenTelemetry writes it: `records-lag-max` is `records_lag_max`."""
    return name.replace("-", "_")


def attributes_of(group: str) -> Mapping[str, str | int]:
    """The attributes of a metric group, that of its kind first: none, a topic, a partition and its
    topic, or a broker."""
    kind, _, subject = group.partition(".")
    if not subject:
        return {}
    if kind.endswith("fetch-manager-metrics"):
        topic, _, partition = subject.rpartition("-")
        return {"partition": int(partition), "topic": topic}
    return {"broker" if ":" in subject else "topic": subject}
