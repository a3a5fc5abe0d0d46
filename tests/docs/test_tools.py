"""docs/tools.md: every tool of 0.8.2.2 has a row, and every command that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import click

from kafka08.cli.root import root

PAGE = (Path(__file__).parent.parent.parent / "docs" / "tools.md").read_text()

SCRIPTS = """
console-consumer console-producer consumer-offset-checker consumer-perf-test mirror-maker
preferred-replica-election producer-perf-test reassign-partitions replay-log-producer
replica-verification run-class server-start server-stop simple-consumer-shell topics
"""
ZOOKEEPER_SCRIPTS = ("server-start", "server-stop", "shell")
TOOLS = """
ConsoleConsumer ConsoleProducer ConsumerOffsetChecker ConsumerPerformance DumpLogSegments
ExportZkOffsets GetOffsetShell ImportZkOffsets JmxTool KafkaMigrationTool MirrorMaker PerfConfig
ProducerPerformance ReplayLogProducer ReplicaVerificationTool SimpleConsumerPerformance
SimpleConsumerShell StateChangeLogMerger TestEndToEndLatency TestLogCleaning UpdateOffsetsInZK
VerifyConsumerRebalance ZooKeeperMainWrapper
"""
ADMIN = "AdminUtils PreferredReplicaLeaderElectionCommand ReassignPartitionsCommand TopicCommand"


def test_every_script_and_class_has_a_row() -> None:
    """The page has those of bin/, kafka.tools and kafka.admin of 0.8.2.2."""
    names = {f"kafka-{name}.sh" for name in SCRIPTS.split()}
    names |= {f"zookeeper-{name}.sh" for name in ZOOKEEPER_SCRIPTS}
    names |= {f"kafka.tools.{name}" for name in TOOLS.split()}
    names |= {f"kafka.admin.{name}" for name in ADMIN.split()}
    rows = {match[1] for match in re.finditer(r"^\| `([^` ]+)", PAGE, re.MULTILINE)}
    assert set() == names - rows


def options_of(text: str) -> tuple[str, set[str]]:
    """Of the command that the first words of `text` lead to: its name and its options."""
    command: click.Command = root
    for word in text.split():
        if not isinstance(command, click.Group):
            break
        found = command.get_command(click.Context(command), word)
        if found is None:
            break
        command = found
    assert command.name is not None
    return command.name, {option for parameter in command.params for option in parameter.opts}


def test_every_command_and_option_that_is_named_exists() -> None:
    """Every `kafka08 noun verb --option` of the page exists."""
    named = re.findall(r"`kafka08 ([^`]+)`", PAGE)
    assert len(named) > 40
    for text in named:
        name, options = options_of(text)
        assert name in text.split()[:2], text
        assert set() == set(re.findall(r"--[a-z-]+", text)) - options, text


def test_options_that_are_unchanged_exist_here() -> None:
    """The options right before "unchanged" belong to the first command of their row."""
    checked = 0
    for row in PAGE.splitlines():
        said = re.search(r"((?:`--[a-z.-]+`(?:, | and )?)+) unchanged", row)
        command = re.search(r"`kafka08 ([^`]+)`", row)
        if said is not None and command is not None:
            assert set() == set(re.findall(r"--[a-z.-]+", said[1])) - options_of(command[1])[1], row
            checked += 1
    assert checked > 6
