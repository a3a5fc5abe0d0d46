"""`python -m kafka08.zk.server --port 2181 --data-dir DIRECTORY`: serves until SIGTERM.

For people `kafka08 zookeeper start --embedded` runs it, and for tests `EmbeddedZooKeeper`.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from kafka08.runtime.sockets import is_loopback
from kafka08.stop_signals import stop_was_requested
from kafka08.zk.model.server import Server
from kafka08.zk.server.driver import Driver, instant, listen
from kafka08.zk.server.journal import Journal
from kafka08.zk.server.limits import NOT_LOOPBACK, WARNING
from kafka08.zk.server.wire_server import WireServer
from kafka08.zk.server.words import Settings


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Exits with 1 and a message on stderr if it cannot listen or keep data, with 2 for misuse."""
    options = _parser().parse_args(arguments)
    if not (options.any_address or is_loopback(options.host)):
        _fail(NOT_LOOPBACK.format(host=options.host))
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    if stop_was_requested():  # held in a process that was forked to be this one
        sys.exit(0)
    _say(WARNING)
    try:
        listener = listen(options.host, options.port)
    except OSError as error:
        _fail(f"cannot listen on {options.host}:{options.port}: {error.strerror or error}")
    _serve(listener, options)


def _serve(listener: socket.socket, options: argparse.Namespace) -> NoReturn:
    settings = Settings(
        options.host,
        listener.getsockname()[1],
        str(options.data_dir or ""),
        options.tick_ms,
        options.max_session_ms,
    )
    now = instant()
    server = Server(
        tick_ms=settings.tick_ms,
        max_session_ms=settings.max_session_ms,
        first_session_id=_first_session_id(now.wall_ms),
    )
    journal = None
    if options.data_dir is not None:
        journal = Journal(server, options.data_dir)
        try:
            options.data_dir.mkdir(parents=True, exist_ok=True)
            journal.open(now)
        except BlockingIOError:
            _fail(f"another server keeps its data in {options.data_dir}: use another directory")
        except OSError as error:
            _fail(f"cannot keep data in {options.data_dir}: {error.strerror or error}")
    driver = Driver(listener, WireServer(server, settings), journal)
    _say(f"serving at {settings.host}:{settings.port}")
    driver.run()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kafka08.zk.server", allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=2181, help="0: any")
    parser.add_argument("--data-dir", type=Path, help="default: nothing survives the process")
    parser.add_argument("--tick-ms", type=int, default=500)
    parser.add_argument("--max-session-ms", type=int, default=60_000)
    parser.add_argument("--any-address", action="store_true", help="allow others than loopback")
    return parser


def _first_session_id(wall_ms: int) -> int:
    """No earlier server gave it to a client that may still ask for it.

    Source: SessionTrackerImpl.initializeNextSessionId 3.9.
    """
    return ((wall_ms << 24) & (1 << 64) - 1) >> 8 | 1 << 56


def _say(text: str) -> None:
    os.write(2, f"{text}\n".encode())


def _fail(text: str) -> NoReturn:
    _say(f"ERROR: {text}")
    sys.exit(1)


def _stop(*_: Any) -> NoReturn:
    """Raised wherever it runs: to stop there is what a kill would be, which the journal knows."""
    sys.exit(0)


if __name__ == "__main__":
    main()
