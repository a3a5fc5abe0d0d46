"""Every command has a help line, an example that parses, and completion."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from kafka08.cli.root import COMMANDS, root


def commands(group: click.Group = root, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command and group, with () for `kafka08`."""
    yield path
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


def find(path: tuple[str, ...]) -> click.Command:
    command: click.Command = root
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None, f"no command {' '.join(path)}"
        command = found
    return command


def test_an_unknown_command_is_misuse() -> None:
    """The exit code is 2, and the error has the unknown word."""
    with pytest.raises(click.UsageError, match="nonsense"):
        root.main(["nonsense"], standalone_mode=False)


def test_a_group_says_the_whole_sentence_of_each_command() -> None:
    """Folded, not cut off where the line ends."""
    for path in filter(lambda path: isinstance(find(path), click.Group), commands()):
        lists = find(path).get_help(click.Context(find(path), terminal_width=60))
        assert "..." not in lists.partition("Commands:")[2].partition("Example:")[0]


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_it_has_help_and_an_example_that_parses(path: tuple[str, ...]) -> None:
    """The example names its command, which accepts it word for word with its options."""
    command = find(path)
    assert command.help, "a sentence about what it does"
    assert command.epilog is not None, "an example (options.example)"
    match = re.fullmatch(r"Example: (.*)", command.epilog)
    assert match, command.epilog
    # `... | kafka08 produce words` and `eval "$(kafka08 status --env)"` hold the command too.
    [line] = re.findall(r"kafka08[^)|]*", match[1])
    words = shlex.split(line.rstrip('"'))[1:]
    assert tuple(words[: len(path)]) == path
    if path and not isinstance(command, click.Group):
        # Unknown options and words too many are refused here; files need not exist.
        given, rest, _ = command.make_parser(click.Context(command)).parse_args(words[len(path) :])
        assert not rest
        for parameter in command.params:
            if isinstance(parameter, click.Argument) and parameter.required:
                assert given.get(parameter.name), (
                    f"{parameter.human_readable_name} is not in {line}"
                )


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_every_option_has_a_help_text(path: tuple[str, ...]) -> None:
    """Options are long, and each has a help text or a default that explains it."""
    for parameter in find(path).params:
        if isinstance(parameter, click.Option):
            assert all(name.startswith("--") for name in parameter.opts), parameter.opts
            told = parameter.help or parameter.show_default or parameter.type.name == "choice"
            assert told, parameter.opts


def test_the_table_of_commands_has_a_line_for_each() -> None:
    """`kafka08 --help` has one line for each command, without importing any."""
    for _, line in COMMANDS.values():
        assert line.endswith(".")
        assert len(line) < 70


def test_words_are_completed() -> None:
    """`kafka08 completion bash` prints text for the shell to evaluate. Then Tab completes the
    verbs."""
    script = subprocess.run(
        [sys.executable, "-m", "kafka08.cli", "completion", "bash"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "_KAFKA08_COMPLETE=bash_complete" in script
    completed = subprocess.run(
        [sys.executable, "-m", "kafka08.cli"],
        env={
            **os.environ,
            "_KAFKA08_COMPLETE": "bash_complete",
            "COMP_WORDS": "kafka08 topic ",
            "COMP_CWORD": "2",
        },
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert {"plain,create", "plain,list", "plain,describe"} <= set(completed.split())
