"""Forks servers: a process that has imported all of a broker, or of the ZooKeeper server for tests,
and can be one at once.

    python -P -m kafka08.embedded.fork_server_process broker|zookeeper DESCRIPTOR

DESCRIPTOR is a socket of messages (SOCK_SEQPACKET). Each starts a server: a JSON object, with two
descriptors, for the server's output and for what becomes of it:

    {"name": "broker 0", "arguments": ["/…/server.properties"], "directory": "/…"}
                     → its process id once it is forked      (4 bytes, big-endian, signed)
                       or the error of the fork, negative; nothing follows
                     → its exit code, as from `subprocess`   (the same)

A process that has ended stays a zombie until the second descriptor's other end is closed, so that
its id is not reused before. When the other end of DESCRIPTOR is closed, by whatever end of its
process, this process ends, and the system kills its servers with it.

They share nothing with this process: it has no thread, no event loop, no random source that is not
seeded again, and closes its descriptors in each. To stay so it uses the functions of the standard
library that were there before it was patched for gevent. Linux alone.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from os import fork, waitid, waitpid
from select import POLLHUP, POLLIN, poll
from signal import set_wakeup_fd
from signal import signal as set_handler
from socket import recv_fds
from typing import Final, TypeAlias

from kafka08.stop_signals import hold_stop_signals, stop_signals

MESSAGE_BYTES_MAX: Final = 64 * 1024
STATUS_BYTES: Final = 4
PR_SET_PDEATHSIG: Final = 1
PR_SET_NAME: Final = 15
"""Of prctl(2)."""
NAME_BYTES_MAX: Final = 15
OF_THE_LIBRARY: Final = ("encodings.idna", "encodings.latin_1", "locale", "shutil")
"""Modules that the standard library imports in functions that a start calls."""
OF_FAULTS: Final = (
    "kafka08.embedded.fault_injection",
    "kafka08.embedded.fault_rules",
    "kafka08.embedded.faulty_disk",
)


@dataclass(frozen=True)
class Start:
    """One message: the server that a forked process becomes."""

    name: str
    arguments: list[str]
    directory: str
    output: int


class Forks:
    """The loop. commands: the socket of DESCRIPTOR, made before this process was patched."""

    def __init__(self, commands: socket.socket) -> None:
        self._commands = commands
        self._statuses: dict[int, int | None] = {}
        """Process id → the descriptor for what becomes of it; None once nobody asks for it."""
        self._ended: set[int] = set()
        """Those whose exit code was sent, until then zombies."""
        self._woken, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll = poll()
        for descriptor in (commands.fileno(), self._woken):
            self._poll.register(descriptor, POLLIN)
        set_handler(signal.SIGCHLD, lambda *_: None)  # with it the system writes to the waker
        set_wakeup_fd(self._waker, warn_on_full_buffer=False)

    def serve(self) -> Start | None:
        """Fork until the other end is closed: None. In each forked process it returns, too: what
        that process is to be."""
        while True:
            for descriptor, events in self._poll.poll():
                if descriptor == self._woken:
                    os.read(self._woken, MESSAGE_BYTES_MAX)
                    self._report_ended()
                elif descriptor != self._commands.fileno():
                    self._forget(descriptor)
                elif events & POLLHUP:  # also before a message that is not read yet
                    return None
                elif (start := self._execute()) is not None:
                    return start

    def _execute(self) -> Start | None:
        """Execute one message. In the forked process it returns what that is to be."""
        message, descriptors, _, _ = recv_fds(self._commands, MESSAGE_BYTES_MAX, 2)
        if len(descriptors) < 2:  # this process may not have so many
            for descriptor in descriptors:
                os.close(descriptor)
            return None
        output, status = descriptors
        start = Start(**json.loads(message), output=output)
        parent = os.getpid()
        # Until the new process holds them itself: they would end it without a word.
        signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals())
        try:
            child = fork()
        except OSError as error:  # no memory, or too many processes
            child = -(error.errno or errno.EAGAIN)
        if child == 0:
            os.close(status)
            self._part_from(parent)
            return start
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stop_signals())
        os.close(output)
        if child < 0:
            _tell(status, child)
            os.close(status)
            return None
        self._statuses[child] = status
        self._poll.register(status, POLLHUP)
        _tell(status, child)
        return None

    def _part_from(self, parent: int) -> None:
        """In a forked process: end with the parent, and share nothing with it."""
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        os.setsid()
        set_wakeup_fd(-1)
        set_handler(signal.SIGCHLD, signal.SIG_DFL)
        self._commands.close()
        for descriptor in (self._woken, self._waker, *self._statuses.values()):
            if descriptor is not None:
                os.close(descriptor)

    def _report_ended(self) -> None:
        for child, status in list(self._statuses.items()):
            if status is None:
                if waitpid(child, os.WNOHANG) != (0, 0):
                    del self._statuses[child]
            elif child not in self._ended and (code := _exit_code(child)) is not None:
                self._ended.add(child)
                _tell(status, code)

    def _forget(self, status: int) -> None:
        """Its other end is closed: nobody asks for that process any more."""
        [child] = [pid for pid, other in self._statuses.items() if other == status]
        self._poll.unregister(status)
        os.close(status)
        self._statuses[child] = None
        if child in self._ended:
            self._ended.discard(child)
            self._report_ended()


def main(arguments: Sequence[str]) -> int:
    kind, descriptor = arguments
    commands = socket.socket(fileno=int(descriptor))
    serve = KINDS[kind]()
    for module in OF_THE_LIBRARY:
        import_module(module)
    gc.collect()
    gc.freeze()  # a collection in a forked process would copy the pages that it shares
    start = Forks(commands).serve()
    if start is None:
        os._exit(0)  # at once, and with it its servers
    _begin(start)
    return serve(start.arguments)


def _begin(start: Start) -> None:
    hold_stop_signals()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stop_signals())
    _prctl(PR_SET_NAME, start.name.encode()[:NAME_BYTES_MAX])
    for stream in (1, 2):
        os.dup2(start.output, stream)
    os.close(start.output)
    os.chdir(start.directory)


def _import_broker() -> Serve:
    from kafka08.broker.process.main import import_broker
    from kafka08.embedded.broker_process import main

    import_broker()
    for module in OF_FAULTS:
        import_module(module)
    return partial(main, is_patched=True)


def _import_zookeeper() -> Serve:
    from kafka08.zk.server.__main__ import main

    return main


Serve: TypeAlias = Callable[[Sequence[str]], int]
KINDS: Final[dict[str, Callable[[], Serve]]] = {
    "broker": _import_broker,
    "zookeeper": _import_zookeeper,
}
"""What imports a server, and returns its main function."""


def _prctl(option: int, value: int | bytes) -> None:
    ctypes.CDLL(None).prctl(option, value)


def _exit_code(child: int) -> int | None:
    """None while it runs. It stays a zombie."""
    ended = waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _tell(status: int, number: int) -> None:
    with suppress(OSError):  # the other end is closed
        os.write(status, number.to_bytes(STATUS_BYTES, "big", signed=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
