"""`kafka08 zookeeper start`, `broker start`: one node in the foreground; `broker ping`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kafka08.cli.options import example, profile_keys, profile_option, read_config
from kafka08.config import PORT_MAX

PING_TIMEOUT_MS = 3000


@click.group(epilog=example("kafka08 zookeeper start --port 2181"))
def zookeeper() -> None:
    """Run one ZooKeeper server."""


@zookeeper.command("start", epilog=example("kafka08 zookeeper start --data-dir /var/lib/zk"))
@click.option("--port", default=2181, show_default=True, type=click.IntRange(0, PORT_MAX))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--data-dir",
    default="zookeeper-data",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where its data lives; made if absent.",
)
def start_zookeeper(port: int, host: str, data_dir: Path) -> None:
    """Run a ZooKeeper server in the foreground until SIGTERM or Ctrl-C."""
    from kafka08.cli.signals import wait_for_stop
    from kafka08.embedded.zookeeper import ZooKeeperServer

    with ZooKeeperServer(data_dir, port=port, host=host) as server:
        click.echo(f"ZooKeeper answers at {server.connect_string}", err=True)
        wait_for_stop(server.check_alive)


@click.group(epilog=example("kafka08 broker start server.properties"))
def broker() -> None:
    """Run one broker, or see whether one answers."""


@broker.command(
    "start", epilog=example("kafka08 broker start server.properties --override port=9093")
)
@click.argument("config", type=click.Path(dir_okay=False))
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set one configuration key (repeat for more); stronger than the file.",
)
@profile_option
def start_broker(config: str, overrides: tuple[str, ...], profile: str | None) -> None:
    """Run a broker in the foreground; CONFIG is a server.properties of Kafka 0.8.

    SIGTERM and Ctrl-C stop it cleanly: leaders are moved away, logs are flushed and closed.
    """
    from kafka08.broker.main import run

    sys.exit(run(read_config(config, overrides, options=profile_keys(profile))))


@broker.command(epilog=example("kafka08 broker ping localhost:9092,localhost:9093"))
@click.argument("bootstrap", envvar="KAFKA08_BOOTSTRAP", metavar="HOST:PORT[,..]")
def ping(bootstrap: str) -> None:
    """Ask each broker named (default: KAFKA08_BOOTSTRAP) for metadata; exits 1 if one is silent.

    Prints its host:port, how many brokers it knows, and how many topics: 0 and 0 before the first
    topic of a cluster, with which a broker of 0.8 is told of the others.
    """
    from kafka08.client import ClusterClient, parse_bootstrap
    from kafka08.errors import KafkaError

    silent = 0
    for host, port in parse_bootstrap(bootstrap):
        client = ClusterClient(
            [(host, port)], timeout_ms=PING_TIMEOUT_MS, connect_timeout_ms=PING_TIMEOUT_MS
        )
        try:
            known = client.refresh()
        except KafkaError as error:
            silent += 1
            click.echo(f"{host}:{port} does not answer: {error}", err=True)
        else:
            click.echo(f"{host}:{port} brokers {len(known.brokers)} topics {len(known.topics)}")
        finally:
            client.close()
    sys.exit(1 if silent else 0)
