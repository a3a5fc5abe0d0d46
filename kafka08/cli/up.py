"""`kafka08 up | status | down`: a local cluster, in the foreground or one that stays."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka08.cli.options import (
    config_options,
    example,
    json_option,
    profile_keys,
    profile_option,
    read_config,
)
from kafka08.config import parse_overrides

if TYPE_CHECKING:
    from kafka08.embedded.standing import ClusterDirectory, StandingCluster

ZOOKEEPER_PORT, FIRST_BROKER_PORT = 2181, 9092
"""Where people look first; others are taken if these are not free."""
_POLL_SECONDS = 0.05

data_dir_option = click.option(
    "--data-dir",
    envvar="KAFKA08_DATA_DIR",
    show_envvar=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The cluster's directory; default: one for each user.",
)


@click.command(epilog=example("kafka08 up --detach --brokers 3 --data-dir cluster"))
@click.option("--brokers", default=3, show_default=True, type=click.IntRange(1, 20))
@click.option(
    "--data-dir",
    envvar="KAFKA08_DATA_DIR",
    show_envvar=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where ZooKeeper and the brokers keep their data. Default: a temporary directory; with "
    "--detach, one for each user.",
)
@click.option("--detach", is_flag=True, help="Return when it is ready, and let it run.")
@profile_option
@config_options
def up(
    brokers: int,
    data_dir: Path | None,
    detach: bool,
    profile: str | None,
    config_file: str | None,
    overrides: tuple[str, ...],
) -> None:
    """Run ZooKeeper and some brokers until SIGTERM or Ctrl-C, or, detached, until `kafka08 down`.

    The keys given go to every broker, except broker.id, port, advertised.port and
    zookeeper.connect, which are each broker's own. If a cluster runs in the directory already, says
    where it answers and starts nothing.
    """
    config = keys_for_all(config_file, overrides, profile)
    if detach:
        show(start_detached(open_directory(data_dir), brokers, config))
        return
    directory = None if data_dir is None else open_directory(data_dir)
    if directory is not None and not directory.claim():
        show(await_ready(directory))
        click.echo("It runs already: nothing was started.", err=True)
        return
    try:
        run(brokers, config, data_dir, directory)
    finally:
        if directory is not None:
            directory.release()


@click.command(epilog=example('eval "$(kafka08 status --env)"'))
@data_dir_option
@json_option("One JSON object.")
@click.option("--env", "as_env", is_flag=True, help="Shell lines that set the other commands up.")
def status(data_dir: Path | None, as_json: bool, as_env: bool) -> None:
    """Say where the detached cluster answers; exits 1 if none runs."""
    directory = open_directory(data_dir)
    standing = directory.running()
    if standing is None:
        say_that_none_runs(directory)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps(asdict(standing)))
    elif as_env:
        standing = await_ready(directory)
        click.echo(f"export KAFKA08_ZOOKEEPER={standing.zookeeper}")
        click.echo(f"export KAFKA08_BOOTSTRAP={standing.bootstrap}")
    elif not standing.is_ready:
        click.echo(f"starting   process {standing.pid} in {standing.directory}")
    else:
        show(standing)


@click.command(epilog=example("kafka08 down"))
@data_dir_option
def down(data_dir: Path | None) -> None:
    """Stop the detached cluster cleanly. Its data stays for the next `up` on the directory."""
    directory = open_directory(data_dir)
    stopped = directory.stop()
    if stopped is None:
        say_that_none_runs(directory)
    else:
        click.echo(f"Stopped the cluster in {directory.path}; its data stays there.", err=True)


def open_directory(data_dir: Path | None) -> ClusterDirectory:
    from kafka08.embedded.standing import ClusterDirectory, default_directory

    return ClusterDirectory(data_dir or default_directory())


def keys_for_all(
    config_file: str | None, overrides: tuple[str, ...], profile: str | None
) -> dict[str, str]:
    """The keys given but those that each broker has for itself: the file of one broker has them by
    nature, an override of them is BadParameter, for it would go unheard."""
    from kafka08.embedded.broker import OWN_KEYS

    for key in parse_overrides(overrides):
        if key in OWN_KEYS:
            reason = f"`up` sets {key} for each broker; use `kafka08 broker start` for one of yours"
            raise click.BadParameter(reason, param_hint="--override")
    config = read_config(config_file, overrides, options=profile_keys(profile))
    return {key: value for key, value in config.items() if key not in OWN_KEYS}


def say_that_none_runs(directory: ClusterDirectory) -> None:
    """And why, if the last one left word."""
    click.echo(f"No cluster runs in {directory.path}", err=True)
    if (error := directory.last_error()) is not None:
        click.echo(f"{directory.log} says of the last one: {error.rstrip(':')}", err=True)


def run(
    brokers: int,
    config: dict[str, str],
    data_dir: Path | None,
    directory: ClusterDirectory | None,
) -> None:
    """Be the process that the cluster belongs to. A signal that comes while it starts stops it when
    it has."""
    from kafka08.cli.signals import stop_event, wait_for_stop
    from kafka08.embedded import EmbeddedCluster
    from kafka08.embedded.standing import StandingCluster

    # A start that is broken off may leave a process behind that the guard does not know of yet.
    stopping = stop_event()
    ports = [ZOOKEEPER_PORT, *range(FIRST_BROKER_PORT, FIRST_BROKER_PORT + brokers)]
    with EmbeddedCluster(brokers, config, data_dir, ports=ports) as cluster:
        if directory is not None:
            show(directory.announce(cluster))
        else:
            addresses = cluster.zookeeper.connect_string, cluster.bootstrap
            show(StandingCluster(0, str(cluster.data_dir), *addresses))
        click.echo("Ctrl-C stops the cluster.", err=True)
        wait_for_stop(cluster.check_alive, stopping)


def start_detached(
    directory: ClusterDirectory, brokers: int, config: dict[str, str]
) -> StandingCluster:
    """The cluster of the directory, started if need be. ClickException if it does not come up."""
    if directory.running() is not None:
        click.echo("It runs already: nothing was started.", err=True)
        return await_ready(directory)
    directory.path.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "kafka08.cli", "up", f"--brokers={brokers}"]
    command.append(f"--data-dir={directory.path}")
    command += [f"--override={key}={value}" for key, value in config.items()]
    with directory.log.open("w") as output:
        owner = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while owner.poll() is None:
            standing = directory.running()
            if standing is not None and standing.is_ready:
                return standing
            time.sleep(_POLL_SECONDS)
    except BaseException:  # Ctrl-C reaches this process alone
        click.echo("Stopping the cluster.", err=True)
        owner.terminate()
        owner.wait()
        raise
    raise click.ClickException(f"the cluster did not start:\n{directory.log.read_text().rstrip()}")


def await_ready(directory: ClusterDirectory) -> StandingCluster:
    """The cluster that another process runs there, once it is ready. ClickException if it ends."""
    while (standing := directory.running()) is not None:
        if standing.is_ready:
            return standing
        time.sleep(_POLL_SECONDS)
    raise click.ClickException(f"the cluster in {directory.path} ended while it was starting")


def show(standing: StandingCluster) -> None:
    """Where it answers, where its data is, and lines to go on with."""
    click.echo(f"ZooKeeper  {standing.zookeeper}")
    click.echo(f"brokers    {standing.bootstrap}")
    click.echo(f"data       {standing.directory}")
    click.echo(
        f"shell      export KAFKA08_ZOOKEEPER={standing.zookeeper} "
        f"KAFKA08_BOOTSTRAP={standing.bootstrap}"
    )
    click.echo(
        'python     ConsumerConnector(ConsumerConfig(group_id="readers", '
        f'zookeeper_connect="{standing.zookeeper}"))'
    )
