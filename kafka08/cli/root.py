"""The table of commands. A command's module is imported only when the command runs."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Final

import click

from kafka08 import __version__
from kafka08.cli.commands import Commands, add_common_options
from kafka08.cli.echo import show
from kafka08.cli.signals import settle_stop_signals

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "demo": ("kafka08.cli.demo:demo", "Load, consume, migrate and read real text, verified."),
    "up": ("kafka08.cli.up:up", "Run a local cluster, in the foreground or detached."),
    "status": ("kafka08.cli.up:status", "Show the cluster's addresses and its brokers' states."),
    "down": ("kafka08.cli.up:down", "Stop the cluster."),
    "fault": (
        "kafka08.cli.fault:fault",
        "Break requests, brokers and networks of a local cluster.",
    ),
    "zookeeper": ("kafka08.cli.zookeeper:zookeeper", "Run one ZooKeeper server."),
    "broker": ("kafka08.cli.broker:broker", "Run one broker, and look at a cluster's brokers."),
    "topic": ("kafka08.cli.topic:topic", "Create, list, describe, alter and delete topics."),
    "partition": ("kafka08.cli.partition:partition", "Move partitions and their leaders."),
    "produce": ("kafka08.cli.produce:produce", "Send lines of text to a topic."),
    "consume": ("kafka08.cli.consume:consume", "Print the messages of topics, as a group member."),
    "mirror": ("kafka08.cli.mirror:mirror", "Copy topics of one cluster to another."),
    "move": ("kafka08.cli.move:move", "Move topics and groups to another cluster, each once."),
    "group": ("kafka08.cli.group:group", "Look at consumer groups, and explain problems."),
    "transaction": (
        "kafka08.cli.transaction:transaction",
        "Look at producers' transactions, and abort one.",
    ),
    "doctor": ("kafka08.cli.doctor:doctor", "Say what is wrong with a cluster, and what to do."),
    "metrics": ("kafka08.cli.metrics:metrics", "Show or serve a cluster's metrics, groups too."),
    "top": ("kafka08.cli.top:top", "Watch brokers, topics and groups, live."),
    "report": ("kafka08.cli.report:report", "Write one HTML page about a cluster."),
    "console": ("kafka08.cli.console:console", "Serve a cluster to browsers, live."),
    "migrate": ("kafka08.cli.migrate:migrate", "Move groups' offsets to Kafka and back, live."),
    "offsets": ("kafka08.cli.offsets:offsets", "Look at committed offsets, and change them."),
    "completion": ("kafka08.cli.completion:completion", "Print the shell's completion script."),
    "perf": ("kafka08.cli.perf:perf", "Measure the throughput of producers and consumers."),
    "log": ("kafka08.cli.log:log", "Dump log segments and check log directories."),
    "simulate": ("kafka08.cli.simulate:simulate", "Run a whole cluster from one seed, simulated."),
    "spark": ("kafka08.cli.spark:spark", "Copy topics to files and back with PySpark."),
}
"""Name → (the command's location, its line in the help)."""


ENDING: Final = frozenset(
    (
        "broker",
        "doctor",
        "group",
        "metrics",
        "migrate",
        "move",
        "offsets",
        "partition",
        "report",
        "top",
        "topic",
        "transaction",
    )
)
"""Commands that somebody waits for, so that they say what they wait for, in a pipe too."""
LASTING: Final = ("broker", "start")
"""Not this one of them: it has its own log, and the threads of a broker are greenlets."""
COMPLETE_VARIABLE: Final = "_KAFKA08_COMPLETE"
"""Set by a shell that asks for completions."""


class LazyCommands(Commands):
    """Knows its commands by name and loads them one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def load(self, ctx: click.Context, name: str) -> click.Command | None:
        module, _, attribute = COMMANDS[name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        add_common_options(command)
        if COMPLETE_VARIABLE in os.environ:
            from kafka08.cli.completion_source import add_completions

            add_completions(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from kafka08.cli.spinner import show_no_waits, show_waits

        name, command, rest = super().resolve_command(ctx, args)
        settle_stop_signals(ctx, command, rest)
        if not ctx.resilient_parsing:
            show_waits(plainly=name in ENDING and (name, *rest[:1]) != LASTING)
            ctx.call_on_close(show_no_waits)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from kafka08 import kernel

    show(f"kafka08 {__version__} ({kernel.NAME} kernel)")
    ctx.exit()


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: kafka08 up --detach",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Print the version and which kernel (native or python) runs.",
)
@click.pass_context
def root(context: click.Context, /, **_: Any) -> None:
    """Apache Kafka of the ZooKeeper age, 0.8 to 0.11: brokers, clients and tools."""
    from kafka08.cli.echo import wanted_colour
    from kafka08.cli.stderr_logging import set_up_stderr_logging

    context.color = wanted_colour()
    set_up_stderr_logging()
