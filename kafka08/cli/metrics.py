"""`kafka08 metrics`."""

from __future__ import annotations

import gc
import sys
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from kafka08.cli.background import run_until_stopped
from kafka08.cli.echo import pass_on, say
from kafka08.cli.http_server import serve_http
from kafka08.cli.options import (
    Number,
    Whole,
    cluster_options,
    cluster_place,
    example,
    interval_option,
)
from kafka08.cli.signals import StopRequest, handles_stop_signals
from kafka08.cli.spinner import show_no_waits
from kafka08.structs import host_port

if TYPE_CHECKING:
    from kafka08.exporter import Exporter, Probe

INTERVAL_S = 15.0
PROBE_INTERVAL_S = 1.0
PROBE_TIMEOUT_S = 10.0
STOP_S = 1.0
"""The longest wait for a read in progress when a command that serves is stopped."""


@click.command(epilog=example("kafka08 metrics --zookeeper localhost:2181 --listen 9308"))
@click.option("--listen", type=Whole(0, 65535), metavar="PORT", help="Serve on this port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address for --listen.")
@interval_option(INTERVAL_S, at_least=1.0)
@click.option(
    "--probe",
    "topic",
    metavar="TOPIC",
    help="Write a message to each partition of TOPIC periodically, and read it back.",
)
@click.option(
    "--probe-interval",
    type=Number(0.05, 3600.0),
    default=PROBE_INTERVAL_S,
    show_default=True,
    help="Seconds between two messages of the probe.",
)
@click.option(
    "--probe-timeout",
    type=Number(0.1, 600.0),
    default=PROBE_TIMEOUT_S,
    show_default=True,
    help="A message of the probe that is not read within this time is lost.",
)
@handles_stop_signals
@cluster_options
def metrics(
    listen: int | None,
    host: str,
    interval: float,
    topic: str | None,
    probe_interval: float,
    probe_timeout: float,
) -> None:
    """Show the metrics of a cluster of any kind: brokers, partitions, groups in both stores.

    The names are those of kafka_exporter; added are the lag of a group in seconds, and Burrow's
    verdict. With --listen it serves them to Prometheus until it is stopped. With --probe it
    measures latency and losses end to end, under kminion's names; without --listen it sends one
    message to each partition. Without --listen it exits 1 if a part is not known.
    """
    stopping = StopRequest()
    place = cluster_place()
    if topic is not None and place.security.protocol != "PLAINTEXT":
        raise click.UsageError("--probe uses a PLAINTEXT listener: it takes no --command-config.")
    is_whole = threading.Event()

    def work() -> bytes:
        from kafka08.exporter import ClusterReader, Exporter
        from kafka08.exporter.exporter import COLLECTIONS
        from kafka08.runtime.threads import THREADS

        gc.set_threshold(*COLLECTIONS)
        with ExitStack() as stack:
            reader = stack.enter_context(ClusterReader(*place))
            exporter = Exporter(reader, THREADS)
            exporter.refresh()
            if topic is not None:
                probe = stack.enter_context(open_probe(exporter, topic, probe_timeout))
                if listen is not None:
                    THREADS.spawn(probe.run, probe_interval, name="probe")
                else:
                    probe.round()
                    probe.settle()
                    exporter.refresh()
            if listen is not None:
                serve(exporter, host, listen)
                exporter.run(interval, stopping)
            if exporter.is_whole:
                is_whole.set()
            return exporter.body

    patience_s = 0 if listen is None else STOP_S
    body = run_until_stopped(work, stopping, name="exporter", patience_s=patience_s)
    if listen is None:
        if body is None:
            raise click.Abort
        pass_on(body)  # into a file or pipe as Prometheus reads it
        sys.exit(0 if is_whole.is_set() else 1)


def open_probe(exporter: Exporter, topic: str, timeout: float) -> Probe:
    """A probe whose metrics `exporter` includes from its next refresh on."""
    from kafka08.errors import KafkaError
    from kafka08.exporter import Probe
    from kafka08.runtime.threads import THREADS

    if exporter.view is None or not exporter.view.brokers:
        raise KafkaError("--probe: no broker is known; start one")
    bootstrap = ",".join(host_port(b.host, b.port) for b in exporter.view.brokers.values())
    probe = Probe(bootstrap, topic, timeout_s=timeout, runtime=THREADS)
    exporter.more = probe.families
    return probe


def serve(exporter: Exporter, host: str, port: int) -> None:
    """Serve from now on, in other threads. ConfigError if it cannot bind the address."""
    address = serve_http(exporter.app, host, port, "--listen")
    show_no_waits()  # what it does not know is in the metrics
    say(f"Serving metrics at {address}/metrics")
