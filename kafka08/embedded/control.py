"""Requests of commands to the process that runs a cluster: a Unix socket in its directory.

One request per connection, a JSON line each way; the verbs are those of `ClusterControl`:

    {"verb": "restart", "parameters": {"broker": 1}}  →  {"result": …}  or  {"error": "…"}
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kafka08.errors import KafkaError
from kafka08.lifecycle import Closeable

logger = logging.getLogger(__name__)

RESPONSE_S = 120.0
"""A clean stop takes up to 20 s, a start up to 60 s."""
_REQUEST_S = 5.0
_REQUEST_CHARACTERS_MAX = 64 * 1024
_NAME = "control"
_ADDRESS_BYTES_MAX = 100
"""Unix limits socket addresses to about 104 to 108 bytes."""

Execute = Callable[[str, Mapping[str, Any]], Any]


class ControlServer(Closeable):
    """The server, in the process that runs the cluster and has claimed its directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _NAME
        # Left over from a process that was killed.
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        with _address(directory) as address:
            self._listener.bind(address)
        self._listener.listen()

    def serve(self, execute: Execute, seconds: float) -> None:
        """Wait for a request, at most `seconds`, and let a thread respond: it may wait for long.
        The response has the error of `execute`, if any; the connection of a client that sends
        nothing is closed."""
        self._listener.settimeout(seconds)
        try:
            connection, _ = self._listener.accept()
        except TimeoutError:
            return
        except OSError as error:  # no descriptor is left, say: the cluster goes on
            logger.warning("A request to the cluster was not accepted: %s", error)
            time.sleep(seconds)
            return
        threading.Thread(
            target=_serve_one, args=(connection, execute), name="control", daemon=True
        ).start()

    def close(self) -> None:
        """Accept no more requests."""
        self._listener.close()
        self._path.unlink(missing_ok=True)


def ask(directory: Path, verb: str, response_s: float = RESPONSE_S, **parameters: Any) -> Any:
    """Send a request to the process that runs the cluster; returns the result once it has executed
    it. KafkaError if it fails, does not respond in time, or is stopping."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(response_s)
        try:
            with _address(directory) as address:
                connection.connect(address)
            request = {"verb": verb, "parameters": parameters}
            connection.sendall(json.dumps(request).encode() + b"\n")
            line = connection.makefile("r").readline()
        except TimeoutError:
            raise KafkaError(
                f"no response from {directory / _NAME} within {response_s:.0f} s"
            ) from None
        except (FileNotFoundError, ConnectionRefusedError):  # `ControlServer.close` was first
            raise KafkaError(
                f"the cluster in {directory} is stopping, and takes no more requests: start it "
                "again when it has ended"
            ) from None
        except OSError as error:
            raise KafkaError(f"cannot connect to {directory / _NAME}: {error.strerror}") from error
    if not line:
        raise KafkaError("the cluster ended before it responded")
    response = json.loads(line)
    if "error" in response:
        raise KafkaError(response["error"])
    return response["result"]


def _serve_one(connection: socket.socket, execute: Execute) -> None:
    with connection, suppress(OSError):
        connection.settimeout(_REQUEST_S)
        request = connection.makefile("r", errors="replace")
        response = _respond(execute, request.readline(_REQUEST_CHARACTERS_MAX))
        connection.sendall(json.dumps(response).encode() + b"\n")


def _respond(execute: Execute, line: str) -> dict[str, Any]:
    try:
        request = json.loads(line)
        verb, parameters = request["verb"], request["parameters"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {"error": f"not a request: {line!r:.200}"}
    if not isinstance(verb, str) or not isinstance(parameters, dict):
        return {"error": f"not a request: {line!r:.200}"}
    try:
        return {"result": execute(verb, parameters)}
    except (KafkaError, OSError) as error:
        return {"error": str(error)}


@contextmanager
def _address(directory: Path) -> Iterator[str]:
    """The socket's address. Addresses are short, and a directory's path may be long; on Linux a
    descriptor of the directory makes it short."""
    path = str(directory / _NAME)
    if len(os.fsencode(path)) <= _ADDRESS_BYTES_MAX:
        yield path
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{descriptor}/{_NAME}"
    finally:
        os.close(descriptor)
