"""`kafka08 up`: a local cluster in the foreground."""

from __future__ import annotations

from pathlib import Path

import click

from kafka08.cli.options import config_options, example, read_config


@click.command(epilog=example("kafka08 up --brokers 3 --data-dir cluster"))
@click.option("--brokers", default=3, show_default=True, type=click.IntRange(1, 20))
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where ZooKeeper and the brokers keep their data; default: a temporary directory.",
)
@config_options
def up(
    brokers: int, data_dir: Path | None, config_file: str | None, overrides: tuple[str, ...]
) -> None:
    """Run ZooKeeper and some brokers until SIGTERM or Ctrl-C; the keys given go to every broker."""
    from kafka08.cli.signals import wait_for_stop
    from kafka08.embedded import EmbeddedCluster

    config = read_config(config_file, overrides)
    with EmbeddedCluster(brokers=brokers, config=config, data_dir=data_dir) as cluster:
        zookeeper = cluster.zookeeper.connect_string
        click.echo(f"ZooKeeper  {zookeeper}")
        click.echo(f"brokers    {cluster.bootstrap}")
        click.echo(f"data       {cluster.data_dir}")
        click.echo(f"try        kafka08 topic create words --zookeeper {zookeeper}")
        click.echo("Ctrl-C stops the cluster.", err=True)
        wait_for_stop(cluster.check_alive)
