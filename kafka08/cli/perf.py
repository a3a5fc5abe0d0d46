"""`kafka08 perf`: throughput of producers and consumers, with the columns and options of
kafka-producer-perf-test and kafka-consumer-perf-test. Source: kafka.tools.ProducerPerformance,
kafka.tools.ConsumerPerformance 0.8.2.2.
"""

from __future__ import annotations

import click

from kafka08.cli.commands import Commands
from kafka08.cli.options import example
from kafka08.cli.perf_consume import consume
from kafka08.cli.perf_produce import produce


@click.group(cls=Commands, epilog=example("kafka08 perf produce --topics load --messages 1000000"))
def perf() -> None:
    """Measure the throughput of producers and consumers."""


perf.add_command(produce)
perf.add_command(consume)
