"""The code blocks of a page, and the shell script that runs them.

Blocks of bash and python are run, from the top of the page to its end, in one directory and one
shell (python in a process each). A comment right above a block changes that:

    <!-- not run: WHY -->          only shown
    <!-- file: NAME -->            saved under that name
    <!-- runs on -->               started, and stopped once it has printed a line
    <!-- before: COMMAND -->       run first, for what the page takes for granted; may be repeated
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_BLOCK = re.compile(
    r"(?P<comments>(?:^<!--[^\n]*-->\n)*)^```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_COMMENT = re.compile(r"<!-- ([a-z ]+?)(?:: (.*))? -->")
RUN = ("bash", "python")
DIRECTIVES = ("not run", "file", "runs on", "before")


@dataclass(frozen=True)
class Block:
    """One fenced block, the line it begins at, and what the comments above it say."""

    line: int
    language: str
    code: str
    before: tuple[str, ...] = ()
    not_run: str | None = None
    file: str | None = None
    runs_on: bool = False

    @property
    def is_run(self) -> bool:
        return self.file is not None or (self.language in RUN and self.not_run is None)


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page. AssertionError for a comment that is no directive of ours."""
    for match in _BLOCK.finditer(text):
        said = _COMMENT.findall(match["comments"])
        line = text.count("\n", 0, match.start("language")) + 1
        assert all(word in DIRECTIVES for word, _ in said), f"line {line}: {said}"
        first = dict(said)
        yield Block(
            line,
            match["language"],
            match["code"],
            before=tuple(what for word, what in said if word == "before"),
            not_run=first.get("not run"),
            file=first.get("file"),
            runs_on="runs on" in first,
        )


def script(page: str, text: str, replacements: Mapping[str, str]) -> str:
    """A bash script that runs the page's blocks and stops at the first that fails. What they have
    started in the background ends with it: it would keep the output open."""
    lines = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for block in blocks(text):
        if not block.is_run:
            continue
        code = block.code
        for old, new in replacements.items():
            code = code.replace(old, new)
        lines.append(f"echo '==== {page}:{block.line}' >&2")
        lines += block.before
        lines.append(_shell(block, code))
    return "\n".join(lines) + "\n"


def _shell(block: Block, code: str) -> str:
    if block.file is not None:
        return _here(f"cat >{shlex.quote(block.file)}", code)
    if block.runs_on:
        name = f"block-{block.line}"
        save = _here(f"cat >{name}", code)
        program = "bash" if block.language == "bash" else "python -u"
        return (
            f"{save}\nsetsid {program} {name} >{name}.out & pid=$!\n"
            f"for _ in $(seq 200); do [ -s {name}.out ] && break; sleep 0.1; done\n"
            f"kill -- -$pid; wait $pid || true; [ -s {name}.out ]"
        )
    return code if block.language == "bash" else _here("python -", code)


def _here(command: str, text: str) -> str:
    return f"{command} <<'END-OF-BLOCK'\n{text}END-OF-BLOCK"
