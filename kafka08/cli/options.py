"""Options that several commands share, and how their values become configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from kafka08.config import load_properties, parse_overrides

Function = TypeVar("Function", bound=Callable[..., Any])


def zookeeper_option(function: Function) -> Function:
    """--zookeeper HOST:PORT[,..][/chroot], or KAFKA08_ZOOKEEPER."""
    return click.option(
        "--zookeeper",
        envvar="KAFKA08_ZOOKEEPER",
        show_envvar=True,
        required=True,
        metavar="HOST:PORT[,..][/chroot]",
        help="Where ZooKeeper answers.",
    )(function)


def bootstrap_option(function: Function) -> Function:
    """--bootstrap HOST:PORT[,..], or KAFKA08_BOOTSTRAP."""
    return click.option(
        "--bootstrap",
        envvar="KAFKA08_BOOTSTRAP",
        show_envvar=True,
        required=True,
        metavar="HOST:PORT[,..]",
        help="Some brokers of the cluster.",
    )(function)


def config_options(function: Function) -> Function:
    """--config FILE and --override KEY=VALUE, passed on as `config_file` and `overrides`."""
    function = click.option(
        "--override",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set one configuration key (repeat for more); stronger than --config.",
    )(function)
    return click.option(
        "--config",
        "config_file",
        type=click.Path(dir_okay=False),
        help="A Java .properties file with Kafka's own keys.",
    )(function)


def read_config(
    config_file: str | None, overrides: tuple[str, ...], defaults: Mapping[str, str] = {}
) -> dict[str, str]:
    """The keys of `defaults`, the file and the overrides, each stronger than the one before."""
    properties = dict(defaults)
    if config_file is not None:
        properties.update(load_properties(config_file))
    properties.update(parse_overrides(overrides))
    return properties


def example(text: str) -> str:
    """The last line of a command's help."""
    return f"Example: {text}"
