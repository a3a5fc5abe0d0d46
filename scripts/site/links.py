"""Links of a Markdown page, as they stand on a code host, turned into links of the site.

On a code host a link names a file of the repository, relative to the page's. On the site a page may
stand elsewhere, and a source file is a page of its own: a link to kafka08/log/log.py whose label is
`Log.append` leads to the line where that file defines it.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

LINK: Final = re.compile(r"\[(?P<label>[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*)\]\((?P<target>[^)\s]+)\)")
FENCE: Final = re.compile(r"^(```+|~~~+).*?^\1$", re.MULTILINE | re.DOTALL)
NAME: Final = re.compile(r"`([A-Za-z_][\w.]*)(?:\(\))?`")
THREE: Final = re.compile(r" {3}\S| {5}\S")
"""A line under a numbered item, or under an item of a list in it."""
NUMBER: Final = re.compile(r"\d+\. ")
OUTSIDE: Final = re.compile(r"[a-z]+:|#")


class Link(NamedTuple):
    """One link: its span in the text, what is shown, the file that it names, and its anchor."""

    start: int
    end: int
    label: str
    path: str
    anchor: str

    @property
    def name(self) -> str | None:
        """The name in the label, if it is one name in backquotes."""
        match = NAME.fullmatch(self.label)
        return match[1] if match else None


def links_of(text: str, page: str) -> Iterator[Link]:
    """Links to files, outside fences; `page` and the paths are relative to the repository."""
    fences = [match.span() for match in FENCE.finditer(text)]
    for match in LINK.finditer(text):
        inside = any(start <= match.start() < end for start, end in fences)
        if inside or OUTSIDE.match(match["target"]):
            continue
        target, _, anchor = match["target"].partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        yield Link(*match.span("target"), match["label"], path, anchor)


def rewritten(text: str, page: str, place: str, target_of: Callable[[Link], str | None]) -> str:
    """The page's text for the site, where it stands at `place`. `target_of` says where there the
    target of a link is, with its anchor, or None: the link stays."""
    parts, done = [], 0
    for link in links_of(text, page):
        target = target_of(link)
        if target is not None:
            path, _, anchor = target.partition("#")
            relative = posixpath.relpath(path, posixpath.dirname(place) or ".")
            parts += [text[done : link.start], relative + (f"#{anchor}" if anchor else "")]
            done = link.end
    return "".join([*parts, text[done:]])


def titled(text: str, page: str, title_of: Callable[[str], str | None]) -> str:
    """The page's text with titles for labels: on a code host a link may show the name of its file,
    but no page of the site has that name. `title_of` says a file's title, or None: the label
    stays."""
    parts, done = [], 0
    for link in links_of(text, page):
        title = title_of(link.path) if link.label == posixpath.basename(link.path) else None
        if title is not None:
            label = link.start - len(f"{link.label}](")
            parts += [text[done:label], title]
            done = label + len(link.label)
    return "".join([*parts, text[done:]])


def indented(text: str) -> str:
    """The text with the bodies of `1. ` moved from three columns to four, and an empty line before
    a list: a code host takes both, Python-Markdown only this."""
    fences = [match.span() for match in FENCE.finditer(text)]
    lines: list[str] = []
    position = 0
    for line in text.split("\n"):
        inside = any(start <= position < end for start, end in fences)
        position += len(line) + 1
        before = lines[-1] if lines else ""
        if inside or not THREE.match(line):
            # A number right under a paragraph of the item before it would belong to that.
            lines += [""] if NUMBER.match(line) and before.startswith("    ") else []
            lines.append(line)
            continue
        if line.startswith("   - ") and before and not before.startswith("     "):
            is_list = before.startswith("    - ")
            lines += [] if is_list else [""]
        lines.append(f" {line}")
    return "\n".join(lines)


def definitions(source: str) -> Mapping[str, int]:
    """The names in a Python file: Class, Class.method, function and CONSTANT → line, from 1."""
    found: dict[str, int] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(prefix + node.name, node.lineno)
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(prefix + target.id, node.lineno)
            elif isinstance(node, ast.If):
                visit([*node.body, *node.orelse], prefix)

    visit(ast.parse(source).body, "")
    return found


def line_of(source: str, name: str) -> int | None:
    """Where a file defines a name: in full, or the last part of it (`Partition.read` is `read` of
    the only class that has one)."""
    found = definitions(source)
    if name in found:
        return found[name]
    lines = [line for full, line in found.items() if full.endswith(f".{name}")]
    return lines[0] if len(lines) == 1 else None
