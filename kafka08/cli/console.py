"""`kafka08 console`."""

from __future__ import annotations

import os

import click

from kafka08.cli.background import run_until_stopped
from kafka08.cli.echo import say
from kafka08.cli.http_server import serve_http
from kafka08.cli.options import Whole, cluster_options, cluster_place, example, interval_option
from kafka08.cli.signals import StopRequest, handles_stop_signals

PORT = 9080
INTERVAL_S = 5.0
STOP_S = 1.0
"""When the command is stopped, a read in progress may take this long to end."""
TOKEN = "KAFKA08_CONSOLE_TOKEN"
TOKEN_CHARACTERS_MIN = 16


@click.command(epilog=example("kafka08 console --zookeeper localhost:2181"))
@click.option(
    "--listen",
    type=Whole(0, 65535),
    default=PORT,
    show_default=True,
    metavar="PORT",
    help="0: any free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Any but loopback requires a token.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="A host name under which browsers reach it. IP addresses and localhost need none.",
)
@click.option(
    "--allow-changes",
    is_flag=True,
    help="Create, alter and delete topics, elect leaders, set groups' offsets.",
)
@interval_option(INTERVAL_S, at_least=0.5)
@handles_stop_signals
@cluster_options
def console(
    listen: int,
    host: str,
    names: tuple[str, ...],
    allow_changes: bool,
    interval: float,
) -> None:
    """Serve a cluster to browsers: brokers, topics, groups with their lag, messages, the doctor.

    It serves until it is stopped, on this machine alone, and only reads. On another address it
    requires a token: the one in KAFKA08_CONSOLE_TOKEN, or one that it draws and prints. There is
    no TLS: put a proxy before it, or reach it through ssh.
    """
    stopping = StopRequest()
    place = cluster_place()
    import secrets

    from kafka08.exporter import Watch
    from kafka08.pages.console import Console
    from kafka08.pages.guard import Guard
    from kafka08.pages.live import Live
    from kafka08.runtime.sockets import is_loopback
    from kafka08.runtime.threads import THREADS

    given = os.environ.get(TOKEN)
    is_fit = given is None or (given.isascii() and given.isalnum())
    if not is_fit or len(given or TOKEN) < TOKEN_CHARACTERS_MIN:
        raise click.UsageError(
            f"{TOKEN} must have {TOKEN_CHARACTERS_MIN} letters and digits or more"
        )
    token = given or (None if is_loopback(host) else secrets.token_hex(16))
    page_token = secrets.token_hex(16)
    guard = Guard(page_token, token, frozenset(map(str.lower, names)), allow_changes)
    settings = {
        "page_token": page_token,
        "allows_changes": allow_changes,
        "interval_s": interval,
    }
    live = Live(place, Watch(*place), THREADS, settings)
    address = serve_http(Console(live, guard), host, listen, "--listen")
    query = "" if token is None else f"/?token={'TOKEN' if given else token}"
    say(f"The console is at {address}{query}")

    def work() -> None:
        with live:
            live.run(interval, stopping)

    run_until_stopped(work, stopping, name="console", patience_s=STOP_S)
