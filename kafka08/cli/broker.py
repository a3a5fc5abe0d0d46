"""`kafka08 broker start | ping | list | describe | configs | alter`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafka08.cli.commands import LEVEL, Commands
from kafka08.cli.echo import say, show
from kafka08.cli.failures import exit_if_silent, say_advice
from kafka08.cli.options import (
    Whole,
    broker_keys,
    cluster_admin,
    cluster_options,
    cluster_place,
    example,
    json_option,
    level_option,
    profile_option,
    read_config,
)
from kafka08.cli.signals import handles_stop_signals
from kafka08.cli.table import show_json, show_table
from kafka08.cli.times import moment
from kafka08.levels import LEVELS, Level
from kafka08.listing import some_of
from kafka08.structs import NOT_REGISTERED, host_port

if TYPE_CHECKING:
    from kafka08.admin import BrokerAdmin, BrokerDescription

PING_TIMEOUT_MS: Final = 3000
COLUMNS: Final = ("broker", "address", "controller", "leaders", "replicas", "out of sync")


@click.group(cls=Commands, epilog=example("kafka08 broker start server.properties"))
def broker() -> None:
    """Run one broker, and look at the brokers of a cluster."""


@broker.command(
    "start", epilog=example("kafka08 broker start server.properties --override port=9093")
)
@click.argument("config", type=click.Path(dir_okay=False))
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set one configuration key (repeat for more); overrides the file.",
)
@level_option(Level.V0_8_2, envvar="KAFKA08_LEVEL")
@click.option(
    "--level-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that all brokers of the cluster share, which keeps its level. The first one to "
    "start writes it; a higher --level raises it, a lower one is refused.",
)
@profile_option
@handles_stop_signals
def start_broker(
    config: str,
    overrides: tuple[str, ...],
    level: str | None,
    level_file: Path | None,
    profile: str | None,
) -> None:
    """Run a broker in the foreground; CONFIG is a server.properties of Kafka 0.8.

    SIGTERM and Ctrl-C stop it cleanly: leaders move away, logs are flushed and closed.
    """
    from kafka08.broker.process.main import run

    log_level = click.get_current_context().meta.get(LEVEL, "info")
    properties = read_config(config, overrides, options=broker_keys(level, profile))
    if level_file is not None:
        share_level(level_file, properties)
    sys.exit(run(properties, log_level))


def share_level(file: Path, properties: dict[str, str]) -> None:
    """Give the broker the level of its cluster, and say why. ConfigError."""
    from kafka08.cli.cluster_level import settle_level

    asked = properties.get("api.level")
    if asked is None or asked in LEVELS:  # the broker refuses any other
        names = properties.get("log.dirs", properties.get("log.dir", ""))
        directories = [Path(name.strip()) for name in names.split(",") if name.strip()]
        properties["api.level"], why = settle_level(file, asked, directories)
        say(why)


@broker.command(epilog=example("kafka08 broker ping localhost:9092,localhost:9093"))
@click.argument("bootstrap", envvar="KAFKA08_BOOTSTRAP", metavar="HOST:PORT[,..]")
@json_option("One JSON list.")
def ping(bootstrap: str, as_json: bool) -> None:
    """Ask each broker of the list (default: KAFKA08_BOOTSTRAP) for metadata; exits 1 unless all
    respond.

    Prints its host:port and the numbers of brokers and topics that it knows: 0 and 0 before the
    first topic of a cluster, since a broker of 0.8 does not know the others until then.
    """
    from kafka08.client import ClusterClient, parse_bootstrap
    from kafka08.errors import KafkaError

    results: list[dict[str, object]] = []
    failed: list[KafkaError] = []
    for host, port in parse_bootstrap(bootstrap):
        client = ClusterClient(
            [(host, port)], timeout_ms=PING_TIMEOUT_MS, connect_timeout_ms=PING_TIMEOUT_MS
        )
        try:
            known = client.refresh()
        except KafkaError as error:
            failed.append(error)
            results.append({"address": host_port(host, port), "error": str(error)})
            say(f"{host_port(host, port)} does not respond: {error}")
        else:
            brokers, topics = len(known.brokers), len(known.topics)
            results.append({"address": host_port(host, port), "brokers": brokers, "topics": topics})
            if not as_json:
                show(f"{host_port(host, port)} brokers {brokers} topics {topics}")
        finally:
            client.close()
    say_advice(failed)
    if as_json:
        show_json(results)
    sys.exit(1 if failed else 0)


@broker.command("list", epilog=example("kafka08 broker list --zookeeper localhost:2181"))
@json_option("One JSON list, as from describe.")
@cluster_options
def list_(as_json: bool) -> None:
    """List the brokers: address, controller, and how many partitions each leads, holds, and holds
    out of sync. The list includes unregistered brokers that have replicas."""
    brokers, silent = read_brokers([])
    if as_json:
        show_json([found.as_dict() for found in brokers])
    else:
        rows = [
            (
                found.broker_id,
                address(found),
                "yes" if found.is_controller else None,
                found.leaders,
                found.replicas,
                len(found.out_of_sync),
            )
            for found in brokers
        ]
        show_table(COLUMNS, rows)
    exit_if_silent(silent)


@broker.command(epilog=example("kafka08 broker describe 0 --json"))
@click.argument("broker_ids", nargs=-1, type=Whole(0), metavar="[ID]...")
@json_option("One JSON list.")
@cluster_options
def describe(broker_ids: tuple[int, ...], as_json: bool) -> None:
    """Describe the brokers with these IDs, or all: registration, and the state of their partitions.

    under replicated: it leads the partition, and a replica is not in sync. out of sync: its own
    replica is not in sync.
    """
    brokers, silent = read_brokers(broker_ids)
    if as_json:
        show_json([found.as_dict() for found in brokers])
        exit_if_silent(silent)
        return
    for found in brokers:
        for line in description_lines(found):
            show(line)


@broker.command(epilog=example("kafka08 broker configs 0 --bootstrap localhost:9092"))
@click.argument("broker_id", required=False, type=Whole(0), metavar="[ID]")
@click.option("--all", "with_defaults", is_flag=True, help="Show the defaults too.")
@json_option("One JSON object: key to its value and source.")
@cluster_options
def configs(
    broker_id: int | None,
    with_defaults: bool,
    as_json: bool,
) -> None:
    """Show the configuration of the broker ID, as it runs; without ID what is set for all brokers.
    Needs --bootstrap, and brokers of Kafka 0.11 or later (1.1 without ID).

    source: the broker or all brokers (set at run time), its file, or default. "read-only": only its
    file can change it.
    """
    from kafka08.admin.broker_configs import DEFAULT

    with broker_admin() as admin:
        found = admin.broker_configs(broker_id)
    shown = {key: one for key, one in found.items() if with_defaults or one.source != DEFAULT}
    if as_json:
        show_json({key: one._asdict() for key, one in shown.items()})
        return
    rows = [
        (key, one.value, one.source, "read-only" if one.is_read_only else None)
        for key, one in shown.items()
    ]
    show_table(("key", "value", "source", "change"), rows)


@broker.command(
    epilog=example("kafka08 broker alter 0 --config log.cleaner.threads=2 --bootstrap b:9092")
)
@click.argument("broker_id", required=False, type=Whole(0), metavar="[ID]")
@click.option("--config", "config", multiple=True, metavar="KEY=VALUE", help="Set a key.")
@click.option("--delete-config", multiple=True, metavar="KEY", help="Remove what was set so.")
@click.option("--dry-run", is_flag=True, help="Check everything and change nothing.")
@json_option("One JSON object.")
@cluster_options
def alter(
    broker_id: int | None,
    config: tuple[str, ...],
    delete_config: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Change the configuration of the broker ID while it runs, or without ID of all brokers. Needs
    --bootstrap, and brokers of Kafka 2.3 or later."""
    from kafka08.cli.topic import overrides_of

    if not (config or delete_config):
        raise click.UsageError("Give --config or --delete-config.")
    changed = overrides_of(config)
    with broker_admin() as admin:
        admin.alter_broker(broker_id, config=changed, delete_config=delete_config, dry_run=dry_run)
    if as_json:
        counts = {"set": len(changed), "removed": len(delete_config)}
        show_json({"broker": broker_id, **counts, "dry_run": dry_run})
        return
    who = "all brokers" if broker_id is None else f"broker {broker_id}"
    would = "Would update" if dry_run else "Updated"
    show(f"{would} config for {who}: {len(changed)} set, {len(delete_config)} removed.")


def broker_admin() -> BrokerAdmin:
    """UsageError with --zookeeper alone, which knows nothing of configurations."""
    from kafka08.admin import BrokerAdmin
    from kafka08.client import parse_bootstrap

    place = cluster_place()
    if place.bootstrap is None:
        raise click.UsageError("Give --bootstrap: only brokers know their configuration.")
    return BrokerAdmin(parse_bootstrap(place.bootstrap), security=place.security)


def read_brokers(
    broker_ids: Sequence[int],
) -> tuple[list[BrokerDescription], dict[int, str]]:
    """The brokers with these ids, all if there are none; and why some of them do not respond.
    NoBrokersAvailable if there is none at all."""
    from kafka08.admin import BrokerAdmin

    with cluster_admin() as admin:
        found = admin.describe_brokers(list(broker_ids) or None)
        if isinstance(admin, BrokerAdmin):
            return found, {}
        if not found:
            admin.check_registered()
        silent = admin.silent_brokers()
    named = {broker.broker_id for broker in found}
    return found, {broker_id: why for broker_id, why in silent.items() if broker_id in named}


def address(broker: BrokerDescription) -> str:
    """The address for clients of 0.8, else why it has none."""
    if broker.registration is None:
        return NOT_REGISTERED
    return broker.address or "no PLAINTEXT listener"


def description_lines(broker: BrokerDescription) -> Iterator[str]:
    """`Broker: 0` and an indented line for each field; of partitions the number and the first."""
    yield f"Broker: {broker.broker_id}"
    yield f"  address: {address(broker)}"
    if (found := broker.registration) is not None:
        if found.timestamp_ms >= 0:
            yield f"  registered: {moment(found.timestamp_ms)}"
        if found.endpoints:
            yield f"  endpoints: {', '.join(found.endpoints)}"
        if found.version:
            yield f"  version of the registration: {found.version}"
            yield f"  JMX port: {found.jmx_port if found.jmx_port >= 0 else 'none'}"
    if broker.is_controller is not None:
        yield f"  controller: {'yes' if broker.is_controller else 'no'}"
    yield f"  leaders: {broker.leaders}"
    yield f"  replicas: {broker.replicas}"
    for name, partitions in (
        ("under replicated", broker.under_replicated),
        ("out of sync", broker.out_of_sync),
    ):
        shown = f": {some_of(partitions)}" if partitions else ""
        yield f"  {name}: {len(partitions)}{shown}"
