"""The parent's end of the fork servers (fork_server_process.py), and the servers that they fork.

A broker that is executed imports for half a second and more; one that is forked from a process that
has imported it is there in some milliseconds. That process is started by the first cluster, or
before by `warm`, and stays for later ones until our process ends. So does one for ZooKeeper.
"""

from __future__ import annotations

import json
import logging
import math
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final, Literal, TypeAlias

import kafka08
from kafka08.embedded.guard import Guard
from kafka08.embedded.process import ManagedProcess, Started
from kafka08.errors import KafkaError
from kafka08.lifecycle import ProcessBound, in_forked_processes

logger = logging.getLogger(__name__)

MODULE: Final = "kafka08.embedded.fork_server_process"
STATUS_BYTES: Final = 4
LOOK_AGAIN_S: Final = 0.05
FORK_S: Final = 60.0
"""For its imports, on a busy machine."""
ENDING_S: Final = 1.0
OF_ONE_TEST: Final = "PYTEST_CURRENT_TEST"
"""A variable that differs from test to test, and says nothing to a server."""


Kind: TypeAlias = Literal["broker", "zookeeper"]
MODULES: Final[dict[Kind, str]] = {
    "broker": "kafka08.embedded.broker_process",
    "zookeeper": "kafka08.zk.server",
}
"""What is executed where nothing can be forked."""


class ForkedProcess(ManagedProcess):
    """A server with these arguments, forked where that is possible, else executed."""

    def __init__(
        self, name: str, kind: Kind, arguments: Sequence[str], *, log: Path, guard: Guard
    ) -> None:
        command = [sys.executable, "-P", "-m", MODULES[kind], *arguments]
        super().__init__(name, command, log=log, guard=guard, environ=child_environ())
        self._kind = kind
        self._arguments = arguments
        self._own_command = list(self.command)

    def _launch(self, output: IO[bytes]) -> Started:
        # A caller has it run by another program, nsenter for example.
        if self.command != self._own_command:
            return super()._launch(output)
        try:
            server = _server_for(self._kind, self._environ)
            return server.start(self.name, self._arguments, output)
        except ForkServerFailed as error:
            logger.warning("%s is executed, which takes longer: %s", self.name, error)
            return super()._launch(output)


class ForkServerFailed(KafkaError):
    """Raised if a fork server cannot start, or has ended."""


class ForkServer(ProcessBound):
    """One such process. Its servers get the environment and the limits that it was started with."""

    def __init__(self, kind: Kind, environ: Mapping[str, str]) -> None:
        self.circumstances = _circumstances(environ)
        self._running = 0
        self._is_retired = False
        with ExitStack() as opened:
            self._commands, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            opened.enter_context(self._commands)
            with theirs:
                self._errors = opened.enter_context(tempfile.TemporaryFile())
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", MODULE, kind, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._errors,
                    start_new_session=True,
                    env=environ,
                    pass_fds=[theirs.fileno()],
                )
            opened.pop_all()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def start(self, name: str, arguments: Sequence[str], output: IO[bytes]) -> Forked:
        """Start a server; waits until its process is there. Raises ForkServerFailed."""
        message = {"name": name, "arguments": arguments, "directory": os.getcwd()}
        status, theirs = socket.socketpair()
        status.settimeout(FORK_S)
        try:
            with theirs:
                descriptors = [output.fileno(), theirs.fileno()]
                socket.send_fds(self._commands, [json.dumps(message).encode()], descriptors)
            pid = _number(status)
        except OSError as error:
            status.close()
            raise ForkServerFailed(self._fault(str(error))) from error
        if pid is None or pid < 0:
            status.close()
            reason = "it has no descriptor left" if pid is None else os.strerror(-pid)
            raise ForkServerFailed(self._fault(reason))
        self._running += 1
        return Forked(self, pid, status)

    def _fault(self, reason: str) -> str:
        """The end of its errors if it has ended, else `reason`."""
        try:
            code = self._process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            return f"the fork server does not fork: {reason}"
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        self.close()
        return f"the fork server ended with exit code {code}: {' '.join(said[-1:])}"

    def retire(self) -> None:
        """End it as soon as its servers have."""
        self._is_retired = True
        self._close_if_unused()

    def note_end(self) -> None:
        """One of its servers has ended."""
        self._running -= 1
        self._close_if_unused()

    def close(self) -> None:
        """End it, and the servers that still run."""
        if not hasattr(self, "_process"):
            return  # the system refused it
        self._commands.close()
        self._process.kill()
        self._process.wait()
        self._errors.close()

    def _close_if_unused(self) -> None:
        if self._is_retired and not self._running:
            self.close()

    def _abandon(self) -> None:
        # It ends when this socket has no other end left: a forked process must not be one.
        if hasattr(self, "_process"):
            self._commands.close()

    def _finish(self, timeout: float) -> None:
        if not self._running:
            self.close()


class Forked(ProcessBound):
    """A process that the server has forked, with the methods of `subprocess.Popen`."""

    def __init__(self, server: ForkServer, pid: int, status: socket.socket) -> None:
        self.pid = pid
        self._server = server
        self._status = status
        self._exit_code: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        with self._lock:
            return self._look()

    def _look(self) -> int | None:
        """`poll`, under the lock."""
        if self._exit_code is None and _is_readable(self._status, 0):
            code = _number(self._status)
            # Without a code the server was killed, and the system has killed its servers.
            self._exit_code = -signal.SIGKILL if code is None else code
            self._status.close()
            self._server.note_end()
        return self._exit_code

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + (math.inf if timeout is None else timeout)
        while (code := self.poll()) is None:
            if (left := deadline - time.monotonic()) <= 0:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            # Not under the lock. Another thread may close it meanwhile: look again soon.
            _is_readable(self._status, min(left, LOOK_AGAIN_S))
        return code

    def send_signal(self, sig: int, /) -> None:
        """No effect if it has ended."""
        with self._lock:
            if self._look() is None:
                os.kill(self.pid, sig)  # a zombie, if it has ended now: its id is not reused

    def _abandon(self) -> None:
        self._status.close()


_lock = threading.Lock()
_current: dict[Kind, ForkServer] = {}


def _begin_in_forked_process() -> None:
    global _lock
    _lock = threading.Lock()
    _current.clear()


in_forked_processes(_begin_in_forked_process)


def warm() -> None:
    """Start the fork servers, so that they import while this process does something else. No effect
    where there are none."""
    if sys.platform == "linux":
        for kind in MODULES:
            _server_for(kind, child_environ())


def child_environ() -> dict[str, str]:
    """The environment of a server: that of this process, in which it finds kafka08."""
    source = str(Path(kafka08.__file__).parent.parent)
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    environ = {**os.environ, "PYTHONPATH": path}
    environ.pop(OF_ONE_TEST, None)
    return environ


def _server_for(kind: Kind, environ: Mapping[str, str]) -> ForkServer:
    """The fork server for this environment: the one that runs, unless it had another one. Raises
    ForkServerFailed."""
    if sys.platform != "linux":
        raise ForkServerFailed("this system does not end it with the process that forks it")
    with _lock:
        current = _current.get(kind)
        if current is not None:
            if current.is_running and current.circumstances == _circumstances(environ):
                return current
            current.retire()
        _current[kind] = ForkServer(kind, environ)
        return _current[kind]


def _circumstances(environ: Mapping[str, str]) -> object:
    """Everything that a process inherits, for comparison."""
    limits = [resource.getrlimit(kind) for kind in _LIMITS]
    return dict(environ), limits, os.getresuid(), os.getresgid(), os.getgroups()


_LIMITS: Final = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


def _is_readable(one: socket.socket, timeout: float) -> bool:
    if (descriptor := one.fileno()) < 0:
        return False  # closed meanwhile
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(timeout * 1000))


def _number(status: socket.socket) -> int | None:
    """The next number from the server; None if it has ended."""
    data = status.recv(STATUS_BYTES, socket.MSG_WAITALL)
    return int.from_bytes(data, "big", signed=True) if len(data) == STATUS_BYTES else None
