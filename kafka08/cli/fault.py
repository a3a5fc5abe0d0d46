"""`kafka08 fault`: rules that break requests to the cluster of `kafka08 up`, and its brokers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kafka08.cli.commands import Commands
from kafka08.cli.echo import show
from kafka08.cli.options import Number, Whole, example, json_option
from kafka08.cli.table import show_json, show_table
from kafka08.cli.up import ask_cluster, data_dir_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BROKER_VERBS = {
    "kill": "Kill the broker ID, as a crash would.",
    "pause": "Stop the process of broker ID: connections stay open, it does not respond.",
    "resume": "Let the paused broker ID go on.",
    "cut": "Cut the network of broker ID; needs `up --cuttable`.",
    "restore": "Restore the network of broker ID.",
    "reset_connections": "Reset all connections to broker ID; needs `up --cuttable`.",
    "expire": "Expire the ZooKeeper session of broker ID.",
    "repair_disk": "End the fault of the disk of broker ID.",
}


@click.group(
    cls=Commands,
    epilog=example("kafka08 fault add --api Produce --error NOT_ENOUGH_REPLICAS --times 2"),
)
def fault() -> None:
    """Break requests to the local cluster by rules, or its brokers and networks."""


@fault.command(epilog=example("kafka08 fault add --api Fetch --topic orders --delay-ms 500"))
@click.option("--api", help="Of the requests: Produce, Fetch, Metadata, … Default: all.")
@click.option("--version", type=int, help="Of the requests.")
@click.option("--broker", type=int, help="The broker that receives them.")
@click.option("--topic", help="A topic that they name.")
@click.option("--partition", type=int, help="A partition of that topic.")
@click.option("--group", help="A group that they name.")
@click.option("--transactional-id", help="The transactional id that they name.")
@click.option("--client-id", help="The client id of their sender.")
@click.option("--skip", type=int, help="So many matching requests pass first.")
@click.option("--times", type=int, help="So many are hit at most.")
@click.option("--probability", type=float, help="Each is hit with this probability.")
@click.option("--seed", type=int, help="Of the draws.")
@click.option("--error", help="Respond with this error, a code or a name of Kafka.")
@click.option("--delay-ms", type=int, help="The broker receives the request so much later.")
@click.option("--close", help="Close the connection before or after the request took effect.")
@click.option("--drop", is_flag=True, default=None, help="The response never comes.")
@click.option("--throttle-ms", type=int, help="The response comes so much later.")
@click.option("--cut-bytes", type=int, help="Only so many bytes of the response come.")
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="ID=HOST:PORT",
    help="Metadata and FindCoordinator say this address of a broker; repeatable.",
)
@data_dir_option
@json_option("A JSON list of one object.")
def add(data_dir: Path | None, as_json: bool, addresses: tuple[str, ...], **rule: Any) -> None:
    """Add a rule: which requests, which of those that match, and one thing that happens to them."""
    for name in ("api", "error"):
        if rule[name] is not None and rule[name].isdecimal():
            rule[name] = int(rule[name])
    given = {name: value for name, value in rule.items() if value is not None}
    if addresses:
        given["addresses"] = dict(map(_parsed, addresses))
    show_rules([ask_cluster(data_dir, "add_fault", **given)], as_json)


def _parsed(text: str) -> tuple[str, str]:
    broker, found, address = text.partition("=")
    if not found:
        raise click.BadParameter(f"{text!r} is not ID=HOST:PORT", param_hint="--address")
    return broker, address


@fault.command("list", epilog=example("kafka08 fault list"))
@data_dir_option
@json_option("A JSON list of objects.")
def list_rules(data_dir: Path | None, as_json: bool) -> None:
    """Show all rules with their hits."""
    show_rules(ask_cluster(data_dir, "faults"), as_json)


@fault.command(epilog=example("kafka08 fault wait 1 --hits 2"))
@click.argument("number", type=Whole(1))
@click.option("--hits", type=Whole(0), default=1, show_default=True)
@click.option("--timeout", type=Number(0.0), default=30.0, show_default=True)
@data_dir_option
@json_option("A JSON list of one object.")
def wait(number: int, hits: int, timeout: float, data_dir: Path | None, as_json: bool) -> None:
    """Wait until the rule NUMBER has hit so many requests."""
    found = ask_cluster(data_dir, "wait_fault", number=number, hits=hits, timeout=timeout)
    show_rules([found], as_json)


@fault.command(epilog=example("kafka08 fault remove 1"))
@click.argument("number", type=Whole(1), required=False)
@data_dir_option
@json_option("A JSON list of objects.")
def remove(number: int | None, data_dir: Path | None, as_json: bool) -> None:
    """Remove the rule NUMBER, or all rules."""
    if number is None:
        removed = ask_cluster(data_dir, "remove_faults")
    else:
        removed = [ask_cluster(data_dir, "remove_fault", number=number)]
    show_rules(removed, as_json)


@fault.command(epilog=example("kafka08 fault heal"))
@data_dir_option
@json_option("One JSON object.")
def heal(data_dir: Path | None, as_json: bool) -> None:
    """Undo every fault: rules, pauses, cuts, disks, stopped brokers; damaged files stay."""
    state = ask_cluster(data_dir, "heal")
    if as_json:
        show_json(state)
    else:
        for broker in state["brokers"]:
            show(broker["text"])


@fault.command(epilog=example("kafka08 fault break-disk 1 --full"))
@click.argument("broker", metavar="ID", type=Whole(0))
@click.option("--full", is_flag=True, help="No file can grow. A broker that tries halts.")
@click.option("--failing-fsync", is_flag=True, help="Every fsync fails. A broker that tries halts.")
@click.option("--delay-ms", type=int, default=0, help="Every write and fsync takes so much longer.")
@data_dir_option
@json_option("One JSON object.")
def break_disk(broker: int, data_dir: Path | None, as_json: bool, **fault: Any) -> None:
    """Let the disk of broker ID be full, fail or be slow."""
    show_broker(ask_cluster(data_dir, "break_disk", broker=broker, **fault), as_json)


def broker_command(verb: str, text: str) -> None:
    """Add `kafka08 fault VERB ID`, with `text` as its help."""
    name = verb.replace("_", "-")

    @fault.command(name, epilog=example(f"kafka08 fault {name} 1"), help=text)
    @click.argument("broker", metavar="ID", type=Whole(0))
    @data_dir_option
    @json_option("One JSON object.")
    def command(broker: int, data_dir: Path | None, as_json: bool) -> None:
        show_broker(ask_cluster(data_dir, verb, broker=broker), as_json)


for of_broker in BROKER_VERBS.items():
    broker_command(*of_broker)


def show_broker(state: Mapping[str, Any], as_json: bool) -> None:
    """Print the state of a broker."""
    if as_json:
        show_json(state)
    else:
        show(f"broker {state['id']} is {state['condition']}")


def show_rules(rules: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print rules with their hits."""
    if as_json:
        show_json(rules)
        return
    rows = [
        (rule["number"], rule["hits"], rule["matches"], in_words(rule["rule"])) for rule in rules
    ]
    show_table(("RULE", "HITS", "MATCHES", "WHAT"), rows, if_none="There are no fault rules.")


def in_words(rule: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in rule.items())
