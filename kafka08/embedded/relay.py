"""The parent's end of the relay process (relay_process.py): opens links, and breaks them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from kafka08.errors import KafkaError
from kafka08.lifecycle import ProcessBound

_PROGRAM = Path(__file__).with_name("relay_process.py")


class LinkSpec(NamedTuple):
    """Clients connect to `listen` (0: any free port) and reach the server on port `target`."""

    name: str
    host: str
    listen: int
    target: int


class Relay(ProcessBound):
    """A relay process with its links. It ends when we end, because its stdin closes."""

    def __init__(self, links: Iterable[LinkSpec]) -> None:
        """Start it. `ports` has the port of each link, in order. KafkaError if one is taken."""
        # In a session of its own, so that Ctrl-C in a terminal reaches us alone.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
            bufsize=1,
        )
        reply = self._ask({"links": [link._asdict() for link in links]})
        self.ports: list[int] = reply["ports"]

    @property
    def pid(self) -> int:
        return self._process.pid

    def cut(self, cuts: Iterable[tuple[str, int]]) -> None:
        """Cut exactly these links, each with the process behind it, and restore all others."""
        self._ask({"cut": list(cuts)})

    def reset(self, names: Iterable[str]) -> None:
        """Reset every connection over these links; new ones can be made at once."""
        self._ask({"reset": list(names)})

    def stop(self) -> None:
        """End the process, which closes every connection through it. May be called twice."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
        self._process.wait()

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
        except BrokenPipeError:
            pass  # the reply below tells
        reply: dict[str, Any] | None = json.loads(self._process.stdout.readline() or "null")
        if reply is None:
            assert self._process.stderr is not None
            said = self._process.stderr.read().strip()
            self.stop()
            raise KafkaError(f"the relay of the embedded cluster ended: {said}")
        return reply
