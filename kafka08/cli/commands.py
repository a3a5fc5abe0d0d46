"""Groups of commands: nouns in singular or plural, suggestions for mistyped commands, and the
options that every command has."""

from __future__ import annotations

import logging
from typing import Final

import click

from kafka08.nearest import did_you_mean

LEVELS: Final = ("debug", "info", "warning", "error")
LEVEL: Final = "kafka08.log_level"
"""The context's key for --log-level, for a command that sets up its own log."""
SENTENCE: Final = 1000
"""More letters than the first sentence of any help has."""
OVERRIDE: Final = "a key of the configuration is set with --override KEY=VALUE."
REPORTER: Final = "only a JVM has that reporter; --show-detailed-stats shows figures while it runs."
HINTS: Final = {
    "--new-consumer": "a group with a coordinator is joined with --bootstrap alone.",
    **dict.fromkeys(("--property", "--producer-property", "--consumer-property"), OVERRIDE),
    **dict.fromkeys(("--csv-reporter-enabled", "--metrics-dir"), REPORTER),
    "--port": "it is --listen PORT where a command serves; a broker has --override port=N.",
}
"""Options of other tools, or that one would expect, and what does their work here."""
WORDS: Final = ("--topic", "--group")
"""Options of other tools whose value is an argument here."""


def hint_for(option: str, command: click.Command, path: str) -> str | None:
    """The answer to an option of another tool: how this command, or another, takes its value."""
    verb = option.removeprefix("--")
    if isinstance(command, click.Group) and verb in command.commands:
        return f"it is a command: '{path} {verb}'."
    if option not in WORDS:
        return HINTS.get(option)
    noun = option.removeprefix("--")
    names = {noun} | ({"name"} if f" {noun} " in path else set())
    for argument in command.params:
        if isinstance(argument, click.Argument):
            word = argument.human_readable_name.lower().rstrip("s.")
            if word in names:
                return f"the {noun} is a word of its own, as in '{path} {noun.upper()}'."
    about_one = f"kafka08 {noun} describe {noun.upper()}"
    return f"give the {noun} to a command about one, as in '{about_one}'."


class Commands(click.Group):
    """A group that also finds a command by its plural or singular: `topics` is `topic`."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        names = self.list_commands(ctx)
        for name in (cmd_name, f"{cmd_name}s", cmd_name.removesuffix("s")):
            if name in names:
                return self.load(ctx, name)
        return None

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            where = error.ctx
            assert where is not None
            hint = hint_for(error.option_name, where.command, where.command_path)
            if hint is None:
                raise
            says = f"No such option {error.option_name!r}: {hint}"
            raise click.UsageError(says, error.ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The first sentence of each, whole: click cuts it to a line."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, one.get_short_help_str(SENTENCE)) for name, one in commands if one]
            )

    def load(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command of exactly this name."""
        return super().get_command(ctx, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        known = ctx.resilient_parsing or name.startswith("-") or self.get_command(ctx, name)
        if not known:
            hint = did_you_mean(name, self.list_commands(ctx)) or "."
            raise click.UsageError(f"No such command '{name}'{hint}", ctx)
        return super().resolve_command(ctx, args)


def add_common_options(command: click.Command) -> None:
    """Add --log-level to the command, and to all commands of a group. May be called again."""
    if isinstance(command, click.Group):
        for one in command.commands.values():
            add_common_options(one)
        if not command.invoke_without_command:
            return
    if all(parameter.name != "log_level" for parameter in command.params):
        command.params.append(log_level_option())


def log_level_option() -> click.Option:
    return click.Option(
        ["--log-level"],
        type=click.Choice(LEVELS),
        envvar="KAFKA08_LOG_LEVEL",
        expose_value=False,
        is_eager=True,
        callback=_set_log_level,
        help="Lowest level of log lines on stderr; default: warning (of a broker: info).",
    )


def _set_log_level(context: click.Context, _: click.Parameter, level: str | None) -> None:
    if level is None or context.resilient_parsing:
        return
    from kafka08.cli.stderr_logging import show_from

    context.meta[LEVEL] = level
    show_from(logging.getLevelNamesMapping()[level.upper()])
