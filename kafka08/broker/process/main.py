"""The process of one broker: `python -m kafka08.broker.process.main FILE [--override K=V]...`.

SIGTERM, SIGINT and SIGHUP stop it cleanly; a second SIGTERM or SIGINT while it stops ends it at
once. Exit 0 after a clean stop, 1 if it could not start, 2 for a wrong command line. Source:
kafka.Kafka 0.8.2.2.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping, Sequence

from kafka08.stop_signals import hold_stop_signals, stop_signals, stop_was_requested

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without the import

if TYPE_CHECKING:
    from kafka08.broker.process.server import KafkaServer
    from kafka08.broker.settings.config import BrokerConfig
    from kafka08.log_limit import LineLimit
    from kafka08.runtime.greenlets import GeventRuntime

    MakeServer = Callable[[BrokerConfig, GeventRuntime], KafkaServer]

LOG_LIMIT_S = 10.0
COLLECTION_S = 10.0
OUTAGE_S = 30.0
MIDDLE_GENERATION = 1
IMPORTED_BY_A_START = (
    "argparse",
    "kafka08.broker.cluster.outage_log",
    "kafka08.broker.process.descriptors",
    "kafka08.broker.process.memory",
    "kafka08.broker.process.server",
    "kafka08.exposition",
    "kafka08.printable",
    "kafka08.zk.kazoo_adapter.green_handler",
)
"""The modules that functions of a broker's start import, with all that these import."""
LOG_FORMAT = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"


def main(arguments: Sequence[str] | None = None, *, is_patched: bool = False) -> int:
    """Parse the command line and run. is_patched: `import_broker` was called before."""
    # Not above: nothing that takes time is imported before the signals are held.
    import argparse

    from kafka08.config import load_properties, parse_overrides
    from kafka08.errors import ConfigError

    parser = argparse.ArgumentParser(
        prog="kafka08.broker.process.main", description="Run one broker."
    )
    parser.add_argument("config", help="a server.properties of Kafka 0.8")
    parser.add_argument(
        "--override", action="append", default=[], metavar="KEY=VALUE", help="override one key"
    )
    options = parser.parse_args(arguments)
    try:
        properties = {**load_properties(options.config), **parse_overrides(options.override)}
    except ConfigError as error:
        print(error, file=sys.stderr)  # noqa: T201 - there is no logging yet
        return 2
    return run_patched(properties) if is_patched else run(properties)


def run(
    properties: Mapping[str, str],
    log_level: str = "info",
    make_server: MakeServer | None = None,
) -> int:
    """Be a broker until SIGTERM, SIGINT or SIGHUP; the exit status. Patches this process for
    gevent. A signal that was held before (stop_signals.py) ends it before it starts. make_server:
    makes the broker; None: KafkaServer."""
    from kafka08.extras import missing_extra

    try:
        # Before anything else of a broker is imported: it takes the patched modules for granted.
        from kafka08.runtime.greenlets import patch_process
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        print(f"a broker cannot start: {missing}", file=sys.stderr)  # noqa: T201 - no logging yet
        return 1
    patch_process()
    return run_patched(properties, log_level, make_server)


def import_broker() -> None:
    """Patch this process and import all of a broker, without an event loop or a thread: processes
    that are forked from it can be brokers."""
    from importlib import import_module

    from kafka08.runtime.greenlets import patch_process

    patch_process()
    for module in IMPORTED_BY_A_START:
        import_module(module)


def run_patched(
    properties: Mapping[str, str],
    log_level: str = "info",
    make_server: MakeServer | None = None,
) -> int:
    """`run` in a process that is patched."""
    import gc
    import logging

    from kafka08.broker.cluster.outage_log import log_outage
    from kafka08.broker.cluster.peer_protocols import log_misfits
    from kafka08.broker.process.descriptors import raise_descriptor_limit
    from kafka08.broker.process.memory import keep_freed_memory
    from kafka08.broker.process.server import KafkaServer
    from kafka08.broker.settings.config import BrokerConfig
    from kafka08.errors import ConfigError, KafkaError
    from kafka08.runtime.greenlets import GeventRuntime

    keep_freed_memory()
    raise_descriptor_limit()
    limit = set_up_logging(log_level)
    logger = logging.getLogger("kafka.Kafka")
    try:
        config = BrokerConfig(properties)
    except ConfigError as error:
        logger.critical("%s", error)
        return 1
    for name in sorted(config.given):
        logger.debug("Property %s is overridden to %s", name, properties.get(name))
    config.log_notes()
    runtime = GeventRuntime()
    runtime.every(limit.interval_s, limit.end_interval, name="log-limit")
    # The collector's own turns come with new objects, which a quiet broker has none of.
    runtime.every(COLLECTION_S, lambda: gc.collect(MIDDLE_GENERATION), name="collector")
    server = (make_server or KafkaServer)(config, runtime)
    runtime.every(OUTAGE_S, lambda: log_outage(config.broker_id, server.store), name="outage-log")
    try:
        serve_metrics(config, runtime, server)
    except ConfigError as error:
        logger.critical("%s", error)
        return 1

    asked_to_stop = False

    def stop() -> None:
        nonlocal asked_to_stop
        asked_to_stop = True
        # Not of SIGHUP: a terminal that closes may send several.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        server.shutdown()

    for wanted in stop_signals():
        runtime.on_signal(wanted, stop)
    if stop_was_requested():
        logger.info("[Kafka Server %d], stopped before it started", config.broker_id)
        return 0
    # What lives now lives long: keep it out of the collector's way, or its pauses grow with it.
    gc.collect()
    gc.freeze()
    try:
        server.startup()
    except (KafkaError, OSError):
        return 0 if asked_to_stop else 1  # said already
    # Clients wait already: a full collection of 10,000 logs takes 90 ms, and finds nothing.
    gc.collect(MIDDLE_GENERATION)
    gc.freeze()
    if server.store is not None:
        log_misfits(config.broker_id, config.level, config.protocol_version, server.store)
    server.await_shutdown()
    limit.end_interval()
    return 0


def serve_metrics(config: BrokerConfig, runtime: GeventRuntime, server: KafkaServer) -> None:
    """Serve the broker's metrics if it has a metrics.port; ConfigError if that is not possible."""
    import logging

    from kafka08.errors import ConfigError
    from kafka08.exposition import metrics_app
    from kafka08.runtime.listen_errors import listen_error_text

    if config.metrics_port is None:
        return
    host, port = config.metrics_host, config.metrics_port
    try:
        port = runtime.serve_http(host, port, metrics_app(server.families))
    except ConfigError as error:
        raise ConfigError(f"metrics.port: {error}") from error
    except OSError as error:
        reason = listen_error_text(error)
        raise ConfigError(f"metrics.port: cannot listen on {host}:{port}: {reason}") from error
    logger = logging.getLogger("kafka.Kafka")
    logger.info("Serving metrics at http://%s:%d/metrics", host, port)


def set_up_logging(level: str) -> LineLimit:
    """Log to stderr from `level` on as log4j's pattern `[%d] %p %m (%c)` does, and nowhere else.
    Returns what bounds the lines that peers cause."""
    import logging

    from kafka08.log_limit import LineLimit
    from kafka08.printable import LogFormatter

    logging.basicConfig(level=level.upper(), stream=sys.stderr, force=True)
    logging.getLogger("kazoo").setLevel(logging.WARNING)
    limit = LineLimit(LOG_LIMIT_S)
    for handler in logging.getLogger().handlers:
        handler.addFilter(limit)
        handler.setFormatter(LogFormatter(LOG_FORMAT))
    return limit


if __name__ == "__main__":
    hold_stop_signals()
    sys.exit(main())
