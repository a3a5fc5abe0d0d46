"""`kafka08 zookeeper start`: one ZooKeeper server in the foreground."""

from __future__ import annotations

from pathlib import Path

import click

from kafka08.cli.commands import Commands
from kafka08.cli.options import NEW_DIRECTORY, example
from kafka08.cli.signals import StopRequest, handles_stop_signals
from kafka08.config import PORT_MAX

POLL_SECONDS = 1.0


@click.group(cls=Commands, epilog=example("kafka08 zookeeper start --port 2181"))
def zookeeper() -> None:
    """Run one ZooKeeper server."""


@zookeeper.command("start", epilog=example("kafka08 zookeeper start --data-dir /var/lib/zk"))
@click.option("--port", default=2181, show_default=True, type=click.IntRange(0, PORT_MAX))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--data-dir",
    default="zookeeper-data",
    show_default=True,
    type=NEW_DIRECTORY,
    help="The directory of its data; created if needed.",
)
@handles_stop_signals
def start_zookeeper(port: int, host: str, data_dir: Path) -> None:
    """Run a ZooKeeper server in the foreground until SIGTERM or Ctrl-C."""
    stopping = StopRequest()
    from kafka08.embedded.zookeeper import ZooKeeperServer

    if stopping.is_set():
        return
    with ZooKeeperServer(data_dir, port=port, host=host) as server:
        click.echo(f"ZooKeeper is running at {server.connect_string}", err=True)
        while not stopping.wait(POLL_SECONDS):
            server.check_alive()
