"""The reference of the command line, made from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import click

from kafka08.cli.root import root

EVERYWHERE: Final = ("--log-level", "--help")
"""Options of every command: told once, at the top of the page."""


def page() -> str:
    """Markdown: a section for each command, a subsection for each of a group's."""
    return "\n".join(_sections(root, ["kafka08"]))


def _sections(command: click.Command, path: list[str]) -> Iterator[str]:
    context = click.Context(command, info_name=" ".join(path))
    if len(path) > 1:
        yield f"{'#' * min(len(path), 4)} {' '.join(path)}\n"
        yield _prose(command.help or "")
        if not isinstance(command, click.Group) or command.params:
            usage = " ".join(command.collect_usage_pieces(context))
            yield f"```\n{' '.join(path)} {usage}\n```\n"
        yield from _options(command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            if not child.hidden:
                yield from _sections(child, [*path, name])


def _prose(text: str) -> str:
    """Help as Markdown: after \\b a paragraph keeps its lines."""
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", click.unstyle(_dedented(text))):
        kept = paragraph.startswith("\b")
        body = paragraph.removeprefix("\b").strip("\n")
        paragraphs.append(f"```text\n{body}\n```" if kept else _escaped(" ".join(body.split())))
    return "\n\n".join(paragraphs) + "\n"


def _dedented(text: str) -> str:
    lines = text.splitlines()
    indents = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    cut = min(indents, default=0)
    return "\n".join([*lines[:1], *(line[cut:] for line in lines[1:])]).partition("\f")[0]


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    rows = [
        record
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option) and not set(EVERYWHERE) & set(parameter.opts)
        for record in [parameter.get_help_record(context)]
        if record is not None
    ]
    if rows:
        yield "| option | |\n|---|---|"
        for names, text in rows:
            shown = re.sub(r"\s+", " ", names)
            yield f"| `{shown}` | {_escaped(' '.join(text.split()))} |"
        yield ""


def _escaped(text: str) -> str:
    """Text as Markdown: what is in backquotes stays as it is."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*_|\[\]])", r"\\\1", part.replace("<", "&lt;"))
        for part in parts
    )
