"""`kafka08 completion`: what a shell needs to complete our words with Tab."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from kafka08.cli.options import example


@click.command(epilog=example('eval "$(kafka08 completion bash)"'))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL; put the example's line into ~/.bashrc or ~/.zshrc."""
    script = get_completion_class(shell)
    assert script is not None, "click knows all three"
    click.echo(script(ctx.find_root().command, {}, "kafka08", "_KAFKA08_COMPLETE").source())
