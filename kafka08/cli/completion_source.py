"""Values for shell completion: topics, groups and brokers of the cluster, configuration keys."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from kafka08.cli.background import Background
from kafka08.cli.options import legal_topic

if TYPE_CHECKING:
    from kafka08.admin import AdminClient

Values = Collection[str]
Source = Callable[[click.Context], Callable[[], Values]]
"""Imports what it needs, then returns the question to the cluster, which alone has a time limit: on
a busy machine the imports take longer than that."""

TIMEOUT_S: Final = 0.5
"""A shell waits for the values: those of a cluster that takes longer are not offered."""
PLAIN: Final = re.compile(r"[\w.:=@%+/][\w.:=@%+/-]*", re.ASCII)
"""What a shell reads as one word as it stands, and no command as an option. The shell gets a value
raw, and anybody can make a group: others are not offered."""
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
    """The plain values that begin with `incomplete`; in a list such as `1,2` its last part counts.
    Empty if the cluster does not respond within TIMEOUT_S."""
    head, comma, last = incomplete.rpartition(",")
    values = within(TIMEOUT_S, partial(source, context))
    return [
        CompletionItem(f"{head}{comma}{value}")
        for value in sorted(values)
        if value.startswith(last) and PLAIN.fullmatch(value)
    ]


def within(seconds: float, prepare: Callable[[], Callable[[], Values]]) -> Values:
    """The answer to the question that `prepare` returns, or nothing if the answer takes longer, or
    one of them fails: Tab must not print an error."""
    logging.disable()
    try:
        return Background(prepare(), name="completion").result(seconds)
    except Exception:  # noqa: BLE001 - Tab shows no errors
        return ()


def nothing() -> Values:
    return ()


def topics(context: click.Context) -> Callable[[], Values]:
    """Topic names from ZooKeeper if its address is known, else from the brokers."""
    if context.command_path in NEW_NAMES:
        return nothing
    zookeeper, bootstrap = (context.params.get(name) for name in ("zookeeper", "bootstrap"))
    if zookeeper is not None:
        return in_zookeeper(zookeeper, lambda admin: admin.list_topics())
    if bootstrap is None:
        return nothing
    from kafka08.client import ClusterClient, parse_bootstrap

    def ask() -> Values:
        with closing(ClusterClient(parse_bootstrap(bootstrap))) as client:
            return list(client.refresh().topics)

    return ask


def in_zookeeper(connect: str, ask: Callable[[AdminClient], Values]) -> Callable[[], Values]:
    """A question to ZooKeeper."""
    from kafka08.admin import AdminClient
    from kafka08.zk.client import ZkClient

    # Made here, connected there: making it imports its library, which has no time limit.
    zk = ZkClient(connect, name="completion", is_patient=False)

    def run() -> Values:
        with zk:
            return ask(AdminClient(zk=zk))

    return run


def groups(context: click.Context) -> Callable[[], Values]:
    """Those that ZooKeeper knows and those that brokers coordinate."""
    zookeeper = context.params.get("zookeeper") or context.params.get("source_zookeeper")
    bootstrap = context.params.get("bootstrap")
    if zookeeper is None and bootstrap is None:
        return nothing
    from kafka08.groups import GroupReader

    if zookeeper is not None:
        from kafka08.zk.client import ZkClient

        ZkClient(zookeeper)  # imports its library; the reader has its own session

    def ask() -> Values:
        with GroupReader(zookeeper, bootstrap) as reader:
            registered = {g.name for g in reader.groups()} if reader.has_zookeeper else set()
            return registered | {g.name for g in reader.coordinated_groups().groups}

    return ask


def local_brokers(context: click.Context) -> Callable[[], Values]:
    """The ids of the cluster that `kafka08 up` runs, whether they are alive or not."""
    from kafka08.cli.up import open_directory

    here, above = (c.params.get("data_dir") if c else None for c in (context, context.parent))
    directory = open_directory(here or above)

    def ask() -> Values:
        state = directory.running()
        return [] if state is None else [str(broker.id) for broker in state.brokers]

    return ask


def brokers(context: click.Context) -> Callable[[], Values]:
    """The ids of live brokers."""
    if (zookeeper := context.params.get("zookeeper")) is None:
        return nothing
    return in_zookeeper(zookeeper, lambda admin: [str(n) for n in admin.live_brokers()])


def config_keys(context: click.Context) -> Callable[[], Values]:
    """The keys of the command's configuration, each with `=` at the end."""
    keys = [f"{key}=" for key in keys_of(context.command_path)]
    return lambda: keys


def override_names(_: click.Context) -> Callable[[], Values]:
    """The topic overrides, without values."""
    keys = keys_of("kafka08 topic")
    return lambda: keys


def keys_of(command_path: str) -> Values:
    """The configuration keys for a command."""
    words: tuple[str, ...] = tuple(command_path.split()[1:])
    keys: Any = ()
    if words[:1] in {("topic",), ("topics",)}:
        from kafka08.topic_config import TOPIC_KEYS as keys
    elif words[:1] in {("broker",), ("brokers",), ("up",)}:
        from kafka08.broker.settings.config import BrokerConfig

        keys = BrokerConfig.KEYS
    elif words[-1:] == ("consume",):
        from kafka08.consumer import ConsumerConfig

        keys = ConsumerConfig.KEYS
    elif words[-1:] == ("produce",):
        from kafka08.producer import KafkaProducerConfig, ProducerConfig

        keys = {**ProducerConfig.KEYS, **KafkaProducerConfig.KEYS}
    return list(keys)
