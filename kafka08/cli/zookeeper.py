"""`kafka08 zookeeper start`: one ZooKeeper server in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka08.cli.commands import Commands
from kafka08.cli.echo import say
from kafka08.cli.options import NEW_DIRECTORY, Whole, example
from kafka08.cli.signals import StopRequest, handles_stop_signals
from kafka08.config import PORT_MAX
from kafka08.zk.server.limits import WARNING

if TYPE_CHECKING:
    from kafka08.embedded.zookeeper_process import ZooKeeperProcess

POLL_S = 1.0
DATA_DIR = "zookeeper-data"


@click.group(cls=Commands, epilog=example("kafka08 zookeeper start --port 2181"))
def zookeeper() -> None:
    """Run one ZooKeeper server."""


@zookeeper.command("start", epilog=example("kafka08 zookeeper start --data-dir /var/lib/zk"))
@click.option("--port", default=2181, show_default=True, type=Whole(0, PORT_MAX))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--data-dir",
    type=NEW_DIRECTORY,
    help=f"The directory of its data; created if needed. Default: {DATA_DIR}; with --embedded, a "
    "temporary one.",
)
@click.option(
    "--embedded",
    is_flag=True,
    help="Run our own server for tests instead of Apache's: it needs no Java, and never syncs to "
    "disk.",
)
@click.option(
    "--any-address",
    is_flag=True,
    help="With --embedded: allow a --host that other machines reach.",
)
@handles_stop_signals
def start_zookeeper(
    port: int, host: str, data_dir: Path | None, embedded: bool, any_address: bool
) -> None:
    """Run a ZooKeeper server in the foreground until SIGTERM or Ctrl-C."""
    stopping = StopRequest()
    if stopping.is_set():
        return
    with make_server(port, host, data_dir, embedded, any_address) as server:
        if embedded:
            say(WARNING)
        say(f"ZooKeeper is running at {server.connect_string}")
        while not stopping.wait(POLL_S):
            server.check_alive()


def make_server(
    port: int, host: str, data_dir: Path | None, embedded: bool, any_address: bool
) -> ZooKeeperProcess:
    """The server of the options; BadParameter for one that Apache's server does not have."""
    if embedded:
        from kafka08.embedded.embedded_zookeeper import EmbeddedZooKeeper

        return EmbeddedZooKeeper(data_dir, port, host, any_address=any_address)
    if any_address:
        raise click.BadParameter("it belongs to --embedded", param_hint="--any-address")
    from kafka08.embedded.zookeeper import ZooKeeperServer

    return ZooKeeperServer(data_dir or DATA_DIR, port, host)
