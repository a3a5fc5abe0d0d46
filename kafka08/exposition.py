"""Families as Prometheus text, and the WSGI application that serves them.

The one home of prometheus-client, an extra of this package: without it `metrics_app` raises
ConfigError, and nothing else misses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from kafka08.errors import ConfigError
from kafka08.metrics import Family

Collect: TypeAlias = Callable[[], Iterable[Family]]
WsgiApp: TypeAlias = Callable[..., Any]

MISSING = (
    "metrics need the package prometheus-client, which is not installed; in the checkout of "
    "kafka08: pip install '.[metrics]'"
)


def metrics_app(collect: Collect) -> WsgiApp:
    """Serves what `collect` gives at the time of each request, and the process's own metrics
    (`process_cpu_seconds_total`, `process_open_fds` …). ConfigError without prometheus-client."""
    try:
        from prometheus_client import make_wsgi_app
        from prometheus_client.process_collector import ProcessCollector
    except ModuleNotFoundError:
        raise ConfigError(MISSING) from None
    registry = _registry(collect)
    registry.register(ProcessCollector(registry=None))
    # Without compression: it holds the event loop, and is no gain on loopback.
    app: WsgiApp = make_wsgi_app(registry, disable_compression=True)
    return app


def text_of(families: Iterable[Family]) -> str:
    """The families in Prometheus' text format. ConfigError without prometheus-client."""
    try:
        from prometheus_client import generate_latest
    except ModuleNotFoundError:
        raise ConfigError(MISSING) from None
    return generate_latest(_registry(lambda: families)).decode()


def _registry(collect: Collect) -> Any:
    from prometheus_client import CollectorRegistry, Metric
    from prometheus_client.samples import Sample

    class Families:
        def describe(self) -> list[Metric]:
            return []  # or the registry would collect at once, to learn the names

        def collect(self) -> Iterator[Metric]:
            for family in collect():
                metric = Metric(family.name, family.help, family.kind)
                # A generator, so that the samples of one family may be made in turns.
                metric.samples = (  # type: ignore[assignment]
                    Sample(f"{family.name}{suffix}", dict(labels), value)
                    for suffix, labels, value in family.samples
                )
                yield metric

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Families())
    return registry
