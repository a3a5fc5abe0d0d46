"""`kafka08 completion`: shell completion with Tab."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from kafka08.cli.echo import pass_on
from kafka08.cli.options import example

BASH_END: Final = "\n    return 0\n"
NO_BLANK: Final = "\n    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null"
"""The value of `KEY=` follows without a blank. (click's script puts one behind every completion;
bash 3 has no compopt.)"""


@click.command(epilog=example('eval "$(kafka08 completion bash)"'))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL; put the example's line into ~/.bashrc or ~/.zshrc."""
    script = get_completion_class(shell)
    assert script is not None, "click knows all three"
    source = script(ctx.find_root().command, {}, "kafka08", "_KAFKA08_COMPLETE").source()
    if shell == "bash":
        source = source.replace(BASH_END, f"{NO_BLANK}\n{BASH_END}")
    pass_on(f"{source}\n")
