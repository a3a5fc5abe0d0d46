"""kafka08.cli.commands: spellings that are nearly right, and options that every command has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from kafka08.cli.options import Whole
from kafka08.cli.root import COMMANDS, root
from tests.cli.conftest import Commands, Inspector


@pytest.mark.parametrize(
    ("said", "meant"),
    [("topics", "topic"), ("groups", "group"), ("offset", "offsets"), ("brokers", "broker")],
)
def test_a_noun_has_two_numbers(said: str, meant: str) -> None:
    """`kafka08 topics list` is `kafka08 topic list`."""
    context = click.Context(root)
    assert root.get_command(context, said) is root.get_command(context, meant)
    assert root.get_command(context, said) is not None


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("tpoic list", "did you mean topic?"),
        ("topic lst", "did you mean list?"),
        ("group discribe g", "did you mean describe?"),
        ("consum t", "did you mean consume?"),
    ],
)
def test_a_mistyped_command_names_the_nearest(line: str, hint: str) -> None:
    """The error for a mistyped noun or verb names the nearest one."""
    with pytest.raises(click.UsageError, match="No such command") as refused:
        root.main(line.split(), standalone_mode=False)
    assert hint in refused.value.message


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("topic describe --topic t", "'kafka08 topic describe TOPIC'"),
        ("topic list --topic t", "'kafka08 topic describe TOPIC'"),
        ("consume --topic t", "'kafka08 consume TOPIC'"),
        ("offsets reset --group g --to earliest", "'kafka08 offsets reset GROUP'"),
        ("migrate plan --group g", "'kafka08 migrate plan GROUP'"),
        ("group list --new-consumer", "--bootstrap alone"),
        ("broker start --port 9", "--override port=N"),
        ("topic --list", "'kafka08 topic list'"),
        ("produce t --property acks=1", "--override KEY=VALUE"),
        ("topic describe --tipoc", "'--tipoc'"),
    ],
)
def test_an_option_of_kafkas_tools_names_what_does_its_work(line: str, hint: str) -> None:
    """With the command that was given, where it takes the name as a word; any other unknown option
    is an error as before."""
    with pytest.raises(click.UsageError, match="No such option") as refused:
        root.main(line.split(), prog_name="kafka08", standalone_mode=False)
    assert hint in refused.value.format_message()


def leaves(group: click.Group, path: str = "") -> list[tuple[str, click.Command]]:
    """Every command that is no group, with its words."""
    context = click.Context(group)
    found = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found += leaves(command, f"{path}{name} ")
        else:
            found.append((f"{path}{name}", command))
    return found


@pytest.mark.parametrize(("path", "command"), leaves(root), ids=str)
def test_a_word_for_a_number_is_said_to_be_none(path: str, command: click.Command) -> None:
    """Each number of each command has our own type: click's says "not a valid integer range"."""
    for parameter in command.params:
        assert type(parameter.type) not in (click.IntRange, click.FloatRange), (
            path,
            parameter.name,
        )
        if isinstance(parameter.type, Whole):
            with pytest.raises(click.BadParameter, match="'two' is not a whole number"):
                parameter.type.convert("two", parameter, None)


@pytest.mark.parametrize(("path", "command"), leaves(root), ids=str)
def test_every_command_has_a_log_level(path: str, command: click.Command) -> None:
    """Every command has --log-level once, also after it was looked up twice."""
    names = [parameter.name for parameter in command.params]
    assert 1 == names.count("log_level"), path


def test_every_group_knows_both_numbers() -> None:
    """Every group of commands has our own class. Without it, `did you mean` would be missing
    there."""
    for name in COMMANDS:
        command = root.get_command(click.Context(root), name)
        assert not isinstance(command, click.Group) or type(command).__name__ == "Commands", name


def test_the_log_is_shown_from_the_level_on(kafka08: Commands) -> None:
    """With --log-level debug the ZooKeeper session's lines are shown, with time and logger. By
    default none are."""
    loud = kafka08("topic", "list", "--log-level", "debug").err
    assert "kafka08." in loud
    assert "" == kafka08("topic", "list").err


PLANNING = {"partition reassign", "offsets reset", "offsets import", "group reset", "move switch"}
"""They compute a plan: they show it, and carry it out with --execute."""
CHANGING = {
    "broker alter",
    "topic create",
    "topic alter",
    "topic delete",
    "topic delete-records",
    "partition elect",
    "transaction abort",
    "group delete",
    "offsets set",
    "migrate start",
    "migrate finish",
    "migrate rollback",
    "migrate forget",
    "migrate mirror",
    "spark read",
    "spark write",
}
"""They act, and change nothing with --dry-run."""


@pytest.mark.parametrize(("path", "command"), leaves(root), ids=str)
def test_commands_that_change_a_cluster_follow_one_rule(path: str, command: click.Command) -> None:
    """A verb has --execute, --dry-run or neither, as docs/operations.md says."""
    options = {option for parameter in command.params for option in parameter.opts}
    assert (path in PLANNING) == ("--execute" in options)
    assert (path in CHANGING) == ("--dry-run" in options)


WITHOUT_JSON = {
    "completion": "it prints a script for a shell",
    "broker start": "it prints its log alone",
    "zookeeper start": "it prints its log alone",
    "metrics": "it prints the text format of Prometheus",
    "offsets export": "it has --format, of which json is the default",
    "report": "it writes a page",
    "console": "it serves pages",
}


@pytest.mark.parametrize(("path", "command"), leaves(root), ids=str)
def test_every_command_with_results_has_json(path: str, command: click.Command) -> None:
    """Every command that prints results has --json, except for those that are listed with a
    reason."""
    options = {option for parameter in command.params for option in parameter.opts}
    assert (path in WITHOUT_JSON) != ("--json" in options)


def test_the_responses_of_verbs_for_machines(
    kafka08: Commands, inspect: Inspector, tmp_path: Path
) -> None:
    """With --json a verb prints one value on stdout, with counts of what it did, and nothing
    else."""

    def output(line: str, stdin: bytes = b"") -> Any:
        return json.loads(kafka08(*line.split(), "--json", stdin=stdin).out)

    name = "json-by-cli"
    dry = output(f"topic create {name} --partitions 2 --dry-run")
    assert (name, {"0", "1"}, True) == (dry["topic"], set(dry["partitions"]), dry["dry_run"])
    assert name not in inspect.store.topics()
    assert not output(f"topic create {name} --partitions 2")["dry_run"]
    altered = output(f"topic alter {name} --partitions 3 --config retention.ms=1")
    assert (1, 0, ["2"]) == (altered["set"], altered["dropped"], list(altered["added"]))
    assert {"topic": name, "sent": 2} == output(f"produce {name}", b"a\nb\n")
    row = output(f"consume {name} --from-beginning --max-messages 1")
    assert (name, "a") == (row["topic"], row["value"])
    assert all(ping["brokers"] for ping in output("broker ping"))
    plan = output(f"partition reassign --topic {name} --brokers 0")
    assert [False, 3] == [plan["executed"], len(plan["proposed"]["partitions"])]
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    assert {"partitions": 0, "problems": []} == output(f"log check {tmp_path}")
    assert output(f"topic delete {name}")["marked_for_deletion"]
