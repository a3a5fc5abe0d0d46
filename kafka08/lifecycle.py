"""How objects that hold threads, connections or processes begin and end.

`Closeable` and `Startable` are their context managers, for objects with `close`, or with `start`
and `stop`; ConsumerConnector, with `shutdown`, and ZkClient, with `start` and `close`, have their
own. `ProcessBound` is the base of all of them: such an object belongs to the process that made it,
and may have something to finish when its program ends, or when it is dropped.
"""

from __future__ import annotations

import _thread
import atexit
import logging
import os
import sys
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from typing import Any, Final, Never, Self
from weakref import WeakSet

logger = logging.getLogger(__name__)

ENDINGS: Final = frozenset({"close", "shutdown", "stop"})
"""Methods that end an object."""


def _at_home(end: Callable[..., Any]) -> Callable[..., Any]:
    """`end`, a method that ends an object; it does nothing in a forked process."""

    @wraps(end)
    def guarded(self: ProcessBound, *args: Any, **keywords: Any) -> Any:
        return None if self._is_inherited else end(self, *args, **keywords)

    return guarded


class ProcessBound:
    """An object that holds threads, connections or processes.

    A process that is forked from its own has none of its threads, and shares its sockets: a request
    there would get another one's response. So each use there raises RuntimeError, and ending it
    (`close`, `shutdown`, `stop`, a `with` block) does nothing. It cannot be copied or pickled.
    """

    _is_inherited = False
    """Whether it came to this process by a fork."""
    _is_simulated = False
    """Whether its process is a simulated one, which ends what it holds: no thread of this process
    may do that."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name in ENDINGS.intersection(vars(cls)):
            # Also for one that was looked up before the fork: atexit.register(consumer.close).
            setattr(cls, name, _at_home(getattr(cls, name)))

    def __new__(cls, *_: Any, **__: Any) -> Self:
        made = super().__new__(cls)
        _bound.add(made)
        _register_exit()
        return made

    def _begin_finish(self) -> None:
        """Called at the end of a program for all objects, before one is waited for in `_finish`:
        begin to finish what would be lost. Must not wait."""

    def _finish(self, timeout: float) -> None:
        """Called at the end of a program, while threads still run: finish within `timeout` seconds
        what would be lost, and log what is lost."""

    def _drop(self) -> None:
        """Called when nobody has the object any more: if it was not ended, let its threads end, and
        then warn (`warn_unclosed`, which raises where warnings are errors). By the garbage
        collector, anywhere: it must take no lock."""

    def __del__(self) -> None:
        if not (self._is_inherited or self._is_simulated or sys.is_finalizing()):
            self._drop()

    def _abandon(self) -> None:
        """Called in a forked process, before it becomes unusable there: end what is reached without
        its methods, such as an iterator. Must take no lock, which a thread of the parent may have
        held."""

    def _check_process(self) -> None:
        """RuntimeError in a process that was forked from its own. For what runs without a call of a
        public method, such as a generator."""

    def __reduce_ex__(self, _: object) -> Never:
        raise TypeError(
            f"a {type(self).__name__} holds threads or connections of this process, and cannot be "
            "copied or pickled: pass its configuration, and make one where it is used"
        )


def warn_unclosed(one: object) -> None:
    """The ResourceWarning of Python's own files and sockets."""
    warnings.warn(f"unclosed {one!r}", ResourceWarning, stacklevel=4, source=one)


def end_dropped(end: Callable[[], object]) -> None:
    """Call `end`, which may wait and take locks, in a thread of its own, for an object that was
    dropped."""

    def run() -> None:
        try:
            end()
        except Exception:
            logger.exception("Error while closing an object that was dropped")

    ending = threading.Thread(target=run, name="kafka08-dropped", daemon=True)
    with suppress(RuntimeError):  # the system has no thread left
        # Started by a bare thread: `start` takes locks, which the dropping thread may hold.
        _thread.start_new_thread(ending.start, ())


class Closeable(ProcessBound, ABC):
    """Usable from its construction on; closed at the end of a `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Release its resources. Closing twice does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Startable(ProcessBound, ABC):
    """Started by a `with` block and stopped at its end; a failed start leaves nothing running."""

    @abstractmethod
    def start(self) -> None:
        """Returns when it is ready to serve."""

    @abstractmethod
    def stop(self) -> None:
        """Stop every running part. Stopping twice does nothing."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


# ----------------------------------------------------------------------------- after a fork

_bound: Final[WeakSet[ProcessBound]] = WeakSet()
"""The objects of this process."""


class _Unusable:
    """The methods of an object of the process from which this one was forked."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name not in ENDINGS:
            _refuse(self)
        return object.__getattribute__(self, name)

    def _check_process(self) -> None:
        _refuse(self)

    def __enter__(self) -> Never:
        _refuse(self)

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Never:
        _refuse(self)

    def __next__(self) -> Never:
        _refuse(self)

    def __del__(self) -> None:
        pass

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of the process that forked this one>"


def _refuse(one: object) -> Never:
    kind = type(one).__name__
    raise RuntimeError(
        f"the threads and connections of this {kind} belong to the process that made it, from "
        f"which this one was forked: make a {kind} in each process, after the fork"
    )


def unusable(kind: Any) -> Any:
    """The class that objects of `kind` get in a forked process: a check in each method would cost
    their hot paths time, and one could be forgotten."""
    # The only base is `kind`: with another one the memory of both would differ for Python.
    methods = {name: method for name, method in vars(_Unusable).items() if callable(method)}
    return type(kind)(kind.__name__, (kind,), {"__slots__": (), "_is_inherited": True, **methods})


def _give_up_all() -> None:
    """In a forked process."""
    inherited = _all_bound()
    _bound.clear()
    _exit_registered.clear()
    kinds = {type(one): unusable(type(one)) for one in inherited}
    for one in inherited:
        with suppress(AttributeError):  # another thread was making it
            one._abandon()
        one.__class__ = kinds[type(one)]


def _all_bound() -> list[ProcessBound]:
    while True:
        try:
            return list(_bound)
        except RuntimeError:  # another thread made one meanwhile
            continue


# -------------------------------------------------------------------- at the end of a program

EXIT_S: Final = 30.0
"""How long the end of a program may take in all, if its clients were not closed."""
_exit_registered: Final[list[bool]] = []
"""Not empty once it is."""


def _register_exit() -> None:
    """Have `_finish_all` called when this process ends. A child of multiprocessing does not run
    `atexit`, but its own finalizers."""
    if not _exit_registered:
        _exit_registered.append(True)
        atexit.register(_finish_all)
        multiprocessing = sys.modules.get("multiprocessing.util")
        if multiprocessing is not None:
            multiprocessing.Finalize(None, _finish_all, exitpriority=0)


def _finish_all() -> None:
    give_up_at = time.monotonic() + EXIT_S
    ending = [one for one in _all_bound() if not one._is_simulated]
    # All begin before one is waited for: its brokers may be gone, and those of the others are not.
    for one in ending:
        _guarded(one._begin_finish)
    for one in ending:
        _guarded(partial(one._finish, max(0.0, give_up_at - time.monotonic())))


def _guarded(call: Callable[[], object]) -> None:
    """Call it; its error keeps no other object from its end."""
    try:
        call()
    except Exception:
        logger.exception("Error at the end of the program")


def in_forked_processes(call: Callable[[], object]) -> None:
    """Call it in each process that is forked from this one. It must take no lock."""
    os.register_at_fork(after_in_child=call)


in_forked_processes(_give_up_all)
