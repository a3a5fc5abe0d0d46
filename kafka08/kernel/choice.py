"""Which kernel runs: the compiled one if it is there and fits, else its Python twin."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from types import ModuleType

from kafka08.kernel.types import INTERFACE


def load_native() -> ModuleType:
    """The compiled kernel; ImportError if none was built."""
    return importlib.import_module("kafka08.kernel._native")


def load_python() -> ModuleType:
    """Its twin; not imported where the compiled one runs."""
    return importlib.import_module("kafka08.kernel._python")


def choose(forced: str, load: Callable[[], ModuleType] = load_native) -> ModuleType:
    """The kernel that `forced` ("", "python" or "native") asks for.

    With "" the native one, or the twin if there is none. A native kernel of another INTERFACE (a
    stale build) gives the twin and a warning; under "native" both cases are an ImportError.
    """
    if forced not in ("", "python", "native"):
        raise ImportError(f"KAFKA08_KERNEL must be python or native, not {forced!r}")
    if forced == "python":
        return load_python()
    try:
        native = load()
    except ImportError:
        if forced:
            raise
        return load_python()
    if native.INTERFACE == INTERFACE:
        return native
    if forced:
        raise ImportError(_stale(native))
    warnings.warn(f"{_stale(native)}; using the slower Python kernel", RuntimeWarning, stacklevel=3)
    return load_python()


def why_not_native(forced: str, load: Callable[[], ModuleType] = load_native) -> str:
    """Why `choose` takes the twin, and what to do about it; "" where it takes the native kernel."""
    if forced == "python":
        return "KAFKA08_KERNEL=python asks for it"
    try:
        native = load()
    except ImportError as error:
        return f"{error}; install a wheel, or install again where there is a C compiler"
    return "" if native.INTERFACE == INTERFACE else _stale(native)


def _stale(native: ModuleType) -> str:
    return (
        f"kafka08's compiled kernel has interface {native.INTERFACE}, the package wants "
        f"{INTERFACE}: install again to rebuild it"
    )
