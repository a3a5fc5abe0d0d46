"""Options that several commands share, and their conversion to configuration."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click
from click.core import ParameterSource

from kafka08.cli import failures
from kafka08.config import load_properties, parse_overrides
from kafka08.levels import LEVELS, Level
from kafka08.profile import PROFILES
from kafka08.structs import TopicPartition
from kafka08.topic_name import fault_of

if TYPE_CHECKING:
    from kafka08.admin import AdminClient, BrokerAdmin
    from kafka08.client import ClusterClient, Security
    from kafka08.consumer.subscription import TopicFilter
    from kafka08.observe.place import ClusterPlace

Function = TypeVar("Function", bound=Callable[..., Any])
Names = TypeVar("Names", str, tuple[str, ...], None)

NEITHER: Final = (
    "Give --bootstrap (env var: 'KAFKA08_BOOTSTRAP') or --zookeeper (env var: 'KAFKA08_ZOOKEEPER')."
)


COMMAND_CONFIG: Final = "kafka08.command_config"
"""The name of --command-config in the context of a command."""


SECONDS_MAX: Final = 10_000_000
"""A third of a year; much longer waits overflow the system's."""


DIGITS_MAX: Final = 19
"""As many as the largest offset, 2^63 - 1, has. Python refuses to read numbers of thousands."""


def is_number(text: str) -> bool:
    """Whether it has digits alone, and no more than DIGITS_MAX."""
    return text.isdecimal() and len(text) <= DIGITS_MAX


class Number(click.FloatRange):
    """A number in a range. That of click takes nan, which is neither below nor above anything."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


RATE: Final = Number(0.001, 1_000_000_000)
"""Operations per second."""
DURATION: Final = Number(0, SECONDS_MAX, min_open=True)
"""Seconds, more than 0."""


class Whole(click.IntRange):
    """A whole number in a range. That of click calls another text "not a valid integer range"."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number.", param, ctx)
        return int(super().convert(number, param, ctx))


def topic_partition(text: str) -> TopicPartition:
    """`pages:0`, or as Kafka's tools write it, `pages-0`. BadParameter."""
    topic, _, number = text.rpartition(":" if ":" in text else "-")
    if not topic or not is_number(number):
        raise click.BadParameter(f"{text!r} is not of the form TOPIC:NUMBER")
    return TopicPartition(topic, int(number))


class NewDirectory(click.Path):
    """A directory, to be created if needed. Not "", which a shell makes of a variable that is not
    set, and which `click.Path` takes for the current directory."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if value == "":
            self.fail("it is empty; give a directory, . for the current one", param, ctx)
        return Path(os.fsdecode(super().convert(value, param, ctx)))


NEW_DIRECTORY: Final = NewDirectory()


def combined(*options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """One decorator for several options, which the help shows in this order."""

    def add(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def _zookeeper_option(*, required: bool) -> Callable[[Function], Function]:
    return click.option(
        "--zookeeper",
        envvar="KAFKA08_ZOOKEEPER",
        show_envvar=True,
        required=required,
        metavar="HOST:PORT[,..][/chroot]",
        help="The connect string of ZooKeeper.",
    )


def _bootstrap_option(text: str, *other_names: str) -> Callable[[Function], Function]:
    return click.option(
        "--bootstrap",
        *other_names,
        "bootstrap",
        envvar="KAFKA08_BOOTSTRAP",
        show_envvar=True,
        metavar="HOST:PORT[,..]",
        help=text,
    )


zookeeper_option = _zookeeper_option(required=True)
"""--zookeeper HOST:PORT[,..][/chroot], or KAFKA08_ZOOKEEPER."""
client_zookeeper_option = _zookeeper_option(required=False)
"""The same for a command whose --config may have it: see `read_client_config`."""
client_bootstrap_option = _bootstrap_option("Some brokers of the cluster.", "--broker-list")
"""--bootstrap HOST:PORT[,..], or KAFKA08_BOOTSTRAP, or in --config: see `read_client_config`. The
JVM's producing tools call it --broker-list."""
admin_bootstrap_option = _bootstrap_option("Some brokers; default: those registered in ZooKeeper.")
"""The same for a tool that uses ZooKeeper."""


def cluster_options(function: Function) -> Function:
    """--bootstrap, --command-config FILE and --zookeeper, for a tool that needs one of both
    addresses. It is not called with them: `cluster_place`, `cluster_admin` and `cluster_client`
    know which ones count. The mark of `handles_stop_signals` goes above."""

    @wraps(function)
    def command(*arguments: Any, bootstrap: object, zookeeper: object, **options: Any) -> Any:
        return function(*arguments, **options)

    return cast(Function, _cluster_options(command))


def _note_command_config(
    context: click.Context, _: click.Parameter, value: str | None
) -> str | None:
    context.meta[COMMAND_CONFIG] = value
    return value


_cluster_options = combined(
    _bootstrap_option("Some brokers; replaces ZooKeeper.", "--broker-list"),
    click.option(
        "--command-config",
        "command_config",
        envvar="KAFKA08_COMMAND_CONFIG",
        show_envvar=True,
        type=click.Path(dir_okay=False),
        expose_value=False,
        callback=_note_command_config,
        help="A .properties file with the keys for TLS and SASL at --bootstrap.",
    ),
    client_zookeeper_option,
)


def cluster_security() -> Security:
    """How the running command secures its connections to --bootstrap, by --command-config.
    ConfigError."""
    from kafka08.client import PLAINTEXT

    path = click.get_current_context().meta[COMMAND_CONFIG]
    if path is None or not prefers_bootstrap():
        return PLAINTEXT
    return security_of(load_properties(path))


def security_of(properties: Mapping[str, str]) -> Security:
    """The security that these keys ask for, among those of other clients. ConfigError."""
    from kafka08.client.security import PREFIXES, SecureClientConfig

    config = SecureClientConfig({n: v for n, v in properties.items() if n.startswith(PREFIXES)})
    config.log_notes()
    return config.security


def cluster_places() -> tuple[str | None, str | None]:
    """--zookeeper and --bootstrap of the running command, at least one of them; UsageError without
    either. One on the command line drops the other one of the environment, which may be that of
    another cluster. (One that the command requires stays: who uses both checks them.)"""
    zookeeper, bootstrap = _given_places()
    if zookeeper is None and bootstrap is None:
        raise click.UsageError(NEITHER, click.get_current_context())
    return zookeeper, bootstrap


def _given_places() -> tuple[str | None, str | None]:
    context = click.get_current_context()
    places = {name: context.params[name] for name in ("zookeeper", "bootstrap")}
    typed = [
        name for name in places if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    required = {option.name for option in context.command.params if option.required}
    if typed:
        places = {n: place if n in {*typed, *required} else None for n, place in places.items()}
    is_configured = context.get_parameter_source("command_config") is ParameterSource.COMMANDLINE
    if is_configured and places["zookeeper"] is not None:
        raise click.UsageError(
            "--command-config is for --bootstrap alone: with --zookeeper the brokers are asked at "
            "the PLAINTEXT listeners that they have there.",
            context,
        )
    return places["zookeeper"], places["bootstrap"]


def cluster_place() -> ClusterPlace:
    """`cluster_places` and the security of the running command. UsageError, ConfigError."""
    from kafka08.observe.place import ClusterPlace

    return ClusterPlace(*cluster_places(), cluster_security())


def cluster_admin() -> AdminClient | BrokerAdmin:
    """The admin client for the running command with `cluster_options`. UsageError, ConfigError,
    ZooKeeperError."""
    from kafka08.admin.choice import admin_of
    from kafka08.runtime.threads import THREADS

    return admin_of(cluster_place(), THREADS)


def cluster_client(command: str, **settings: Any) -> ClusterClient:
    """A client of the brokers of the running command with `cluster_options`, which has this name;
    `settings` as of ClusterClient. Raises as `cluster_addresses`, and ConfigError."""
    from kafka08.client import ClusterClient

    return ClusterClient(
        cluster_addresses(), client_id=f"kafka08-{command}", security=cluster_security(), **settings
    )


def prefers_bootstrap() -> bool:
    """Whether the running command, with --bootstrap and --zookeeper, uses the brokers alone: only
    --bootstrap is given, or only that on the command line. UsageError without either.
    """
    zookeeper, _ = cluster_places()
    return zookeeper is None


def cluster_addresses(configured_zookeeper: str = "") -> list[tuple[str, int]]:
    """Brokers for the running command with --bootstrap and --zookeeper: those of --bootstrap, else
    those registered in --zookeeper or in the ZooKeeper of its configuration. The command line
    overrides the environment. UsageError without any of them, NoBrokersAvailable,
    ZooKeeperError."""
    from kafka08.client import parse_bootstrap

    zookeeper, bootstrap = _given_places()
    if bootstrap is not None:
        return parse_bootstrap(bootstrap)
    zookeeper = zookeeper or configured_zookeeper
    if not zookeeper:
        raise click.UsageError(NEITHER, click.get_current_context())
    from kafka08.zk.client import ZkClient
    from kafka08.zk.store import ClusterStore

    with ZkClient(zookeeper, name="kafka08", is_patient=False) as zk:
        return ClusterStore(zk).broker_addresses()


match_option = click.option(
    "--match",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Also the groups that match, as 'web-*' (repeat for more).",
)


def json_option(prints: str = "JSON instead of a table.") -> Callable[[Function], Function]:
    """--json, passed on as `as_json`; an error that ends the command is an object, too."""
    return click.option("--json", "as_json", is_flag=True, help=prints, callback=_note_json)


def _note_json(_: click.Context, __: click.Parameter, value: bool) -> bool:
    failures.as_json = value
    return value


rack_option = click.option(
    "--disable-rack-aware",
    "rack_aware",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Ignore the racks of the brokers.",
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would be done, and change nothing."
)


config_options = combined(
    click.option(
        "--config",
        "config_file",
        type=click.Path(dir_okay=False),
        help="A Java .properties file with Kafka's own keys.",
    ),
    click.option(
        "--override",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set one configuration key (repeat for more); overrides --config.",
    ),
)
"""--config FILE and --override KEY=VALUE, passed on as `config_file` and `overrides`."""
log_dirs_option = click.option(
    "--log-dir", "log_dirs", multiple=True, metavar="DIR", help="A log directory on this machine."
)


def interval_option(default: float, *, at_least: float) -> Callable[[Function], Function]:
    """--interval SECONDS, of a command that reads a cluster periodically."""
    return click.option(
        "--interval",
        type=Number(at_least, 3600.0),
        default=default,
        show_default=True,
        help="Seconds between two reads of the cluster.",
    )


def level_option(default: Level, *, envvar: str | None = None) -> Callable[[Function], Function]:
    """The option --level, for `broker_keys`. `default`: the level without it."""
    return click.option(
        "--level",
        type=click.Choice(LEVELS),
        envvar=envvar,
        show_envvar=envvar is not None,
        help=f"The Kafka release whose protocol brokers speak. Default: {default}.",
    )


profile_option = click.option(
    "--profile",
    type=click.Choice(PROFILES),
    help="safe: no unclean elections, and acks=-1 needs two in-sync replicas if there are two. "
    "classic (the default): as in 0.8.2.2.",
)
"""The option --profile, for `broker_keys`."""


def broker_keys(level: str | None, profile: str | None) -> dict[str, str]:
    """The broker keys for --level and --profile."""
    return given({"api.level": level, "kafka08.profile": profile})


def given(options: Mapping[str, str | None]) -> dict[str, str]:
    """Those that were given."""
    return {key: value for key, value in options.items() if value is not None}


def read_config(
    config_file: str | None,
    overrides: tuple[str, ...] = (),
    defaults: Mapping[str, str] = {},
    options: Mapping[str, str] = {},
) -> dict[str, str]:
    """The keys of `defaults`, the file, the `options` of the command line and the overrides; later
    ones override earlier ones."""
    properties = dict(defaults)
    if config_file is not None:
        properties.update(load_properties(config_file))
    properties.update(options)
    properties.update(parse_overrides(overrides))
    return properties


def read_client_config(
    option: str,
    key: str,
    *,
    defaults: Mapping[str, str] = {},
    options: Mapping[str, str] = {},
) -> dict[str, str]:
    """`read_config` of the running command, whose `option` (zookeeper, bootstrap) is `key`.

    On the command line it overrides --config, in the environment --config overrides it. UsageError
    if it is missing everywhere.
    """
    context = click.get_current_context()
    given = context.params[option]
    stated = {} if given is None else {key: given}
    explicit = context.get_parameter_source(option) is ParameterSource.COMMANDLINE
    properties = read_config(
        context.params["config_file"],
        context.params["overrides"],
        {**defaults, **stated},
        {**options, **(stated if explicit else {})},
    )
    if key not in properties:
        raise click.UsageError(
            f"Missing option '--{option}' (env var: 'KAFKA08_{option.upper()}'), "
            f"or {key} in --config.",
            context,
        )
    return properties


def legal_topic(_: click.Context, parameter: click.Parameter, value: Names) -> Names:
    """Callback of an argument with one or several topics, which need not exist."""
    names: tuple[str, ...] = (value,) if isinstance(value, str) else value or ()
    for name in names:
        if fault := fault_of(name):
            raise click.BadParameter(fault, param=parameter)
    return value


def topic_filter(whitelist: str | None, blacklist: str | None) -> TopicFilter:
    """The filter of the one that is given. UsageError for both or none, ConfigError for a bad
    pattern."""
    from kafka08.consumer import Blacklist, Whitelist

    if (whitelist is None) == (blacklist is None):
        raise click.UsageError("Give one of --whitelist and --blacklist.")
    if whitelist == "":
        raise click.UsageError("--whitelist '' matches no topic")
    return Blacklist(blacklist or "") if whitelist is None else Whitelist(whitelist)


def example(text: str) -> str:
    """The last line of a command's help."""
    return f"Example: {text}"
