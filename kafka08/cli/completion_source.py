"""Values for shell completion: topics, groups and brokers of the cluster, configuration keys."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from contextlib import closing
from functools import partial
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from kafka08.cli.options import legal_topic

Source = Callable[[click.Context], Collection[str]]

TIMEOUT_S: Final = 1.5
"""A shell waits for the values: those that take longer are not offered."""
NEW_NAMES: Final = {"kafka08 topic create"}
"""Commands whose argument is a new name."""


def add_completions(command: click.Command) -> None:
    """Give every parameter of the command, or of all commands of a group, its completions."""
    if isinstance(command, click.Group):
        for one in command.commands.values():
            add_completions(one)
    for parameter in command.params:
        source = source_of(parameter)
        if source is not None:
            parameter.shell_complete = partial(complete, source)  # type: ignore[method-assign]


def source_of(parameter: click.Parameter) -> Source | None:
    """The source of a parameter's values; None: click has one, or there is none."""
    name = parameter.name or ""
    if parameter.callback is legal_topic or name in {"topic", "topics"}:
        return topics
    if name in {"group", "groups"} or parameter.metavar == "GROUP":
        return groups
    if name == "broker_ids" or (name == "brokers" and parameter.metavar is not None):
        return brokers
    if parameter.metavar == "ID":
        return local_brokers
    if name == "delete_config":
        return override_names
    if parameter.metavar == "KEY=VALUE":
        return config_keys
    return None


def complete(source: Source, context: click.Context, incomplete: str) -> list[CompletionItem]:
    """The values that begin with `incomplete`; in a list such as `1,2` its last part counts. Empty
    if the cluster does not respond within TIMEOUT_S; keys need no cluster, only imports."""
    head, comma, last = incomplete.rpartition(",")
    limit = None if source in (config_keys, override_names) else TIMEOUT_S
    values = within(limit, partial(source, context))
    return [CompletionItem(f"{head}{comma}{v}") for v in sorted(values) if v.startswith(last)]


def within(seconds: float | None, ask: Callable[[], Collection[str]]) -> Collection[str]:
    """The result, or nothing if it takes longer (None: however long) or fails: Tab must not print
    an error."""
    logging.disable()
    found: list[Collection[str]] = []

    def run() -> None:
        try:
            found.append(ask())
        except Exception:  # noqa: BLE001 - the root of a thread; Tab shows no errors
            pass

    asking = threading.Thread(target=run, name="completion", daemon=True)
    asking.start()
    asking.join(seconds)
    return found[0] if found else ()


def topics(context: click.Context) -> Collection[str]:
    """Topic names from ZooKeeper if its address is known, else from the brokers."""
    if context.command_path in NEW_NAMES:
        return ()
    zookeeper, bootstrap = (context.params.get(name) for name in ("zookeeper", "bootstrap"))
    if zookeeper is not None:
        from kafka08.admin import AdminClient

        with AdminClient(zookeeper) as admin:
            return admin.list_topics()
    if bootstrap is None:
        return ()
    from kafka08.client import ClusterClient, parse_bootstrap

    with closing(ClusterClient(parse_bootstrap(bootstrap))) as client:
        return list(client.refresh().topics)


def groups(context: click.Context) -> Collection[str]:
    """Those that ZooKeeper knows and those that brokers coordinate."""
    zookeeper = context.params.get("zookeeper") or context.params.get("source_zookeeper")
    bootstrap = context.params.get("bootstrap")
    if zookeeper is None and bootstrap is None:
        return ()
    from kafka08.groups import GroupReader

    with GroupReader(zookeeper, bootstrap) as reader:
        in_zookeeper = {g.name for g in reader.groups()} if reader.has_zookeeper else set()
        return in_zookeeper | {g.name for g in reader.coordinated_groups().groups}


def local_brokers(context: click.Context) -> Collection[str]:
    """The ids of the cluster that `kafka08 up` runs, whether they are alive or not."""
    from kafka08.cli.up import open_directory

    here, above = (c.params.get("data_dir") if c else None for c in (context, context.parent))
    state = open_directory(here or above).running()
    return [] if state is None else [str(broker.id) for broker in state.brokers]


def brokers(context: click.Context) -> Collection[str]:
    """The ids of live brokers."""
    if (zookeeper := context.params.get("zookeeper")) is None:
        return ()
    from kafka08.admin import AdminClient

    with AdminClient(zookeeper) as admin:
        return [str(broker) for broker in admin.live_brokers()]


def config_keys(context: click.Context) -> Collection[str]:
    """The keys of the command's configuration, each with `=` at the end."""
    return [f"{key}=" for key in keys_of(context.command_path)]


def override_names(_: click.Context) -> Collection[str]:
    """The topic overrides, without values."""
    return keys_of("kafka08 topic")


def keys_of(command_path: str) -> Collection[str]:
    """The configuration keys for a command."""
    words: tuple[str, ...] = tuple(command_path.split()[1:])
    keys: Any = ()
    if words[:1] in {("topic",), ("topics",)}:
        from kafka08.topic_config import TOPIC_KEYS as keys
    elif words[:1] in {("broker",), ("brokers",), ("up",)}:
        from kafka08.broker.config import BrokerConfig

        keys = BrokerConfig.KEYS
    elif words[-1:] == ("consume",):
        from kafka08.consumer import ConsumerConfig

        keys = ConsumerConfig.KEYS
    elif words[-1:] == ("produce",):
        from kafka08.producer import KafkaProducerConfig, ProducerConfig

        keys = {**ProducerConfig.KEYS, **KafkaProducerConfig.KEYS}
    return list(keys)
