"""Chooses the kernel: the compiled one if there is one of this INTERFACE, else its Python twin.
Chooses between the source of rules elsewhere and their compiled build."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

from kafka08.kernel.types import INTERFACE

PACKAGE = Path(__file__).resolve().parent.parent


def load_native() -> ModuleType:
    """The compiled kernel. ImportError if this install has none."""
    return importlib.import_module("kafka08.kernel._native")


def load_python() -> ModuleType:
    """The Python twin; imported only if it runs."""
    return importlib.import_module("kafka08.kernel._python")


def choose(forced: str, load: Callable[[], ModuleType] = load_native) -> ModuleType:
    """The kernel for `forced`: "python", "native", or "" for the native one if there is one.

    With "", a native kernel of another INTERFACE (a stale build) is not used: the result is the
    twin, with a RuntimeWarning. With "native", a missing or stale kernel is an ImportError.
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
    """Why `choose` returns the twin, and what to do about it; "" if it returns the native one."""
    if forced == "python":
        return "KAFKA08_KERNEL=python is set"
    try:
        native = load()
    except ImportError as error:
        if (other := hidden_install()) is not None:
            return (
                f"this is the source in {PACKAGE.parent}, which hides the install in "
                f"{other.parent} that has it; run Python in another folder, or as python -P"
            )
        return f"{error}; install a wheel, or install again where there is a C compiler"
    return "" if native.INTERFACE == INTERFACE else _stale(native)


def hidden_install() -> Path | None:
    """Another kafka08 on sys.path, with a compiled kernel: Python was started in a checkout. None
    for one in a zip file, which was put in front on purpose."""
    if not PACKAGE.is_dir():
        return None
    for entry in sys.path:
        found = Path(entry or ".", PACKAGE.name).resolve()
        builds = (found / "kernel" / f"_native{suffix}" for suffix in EXTENSION_SUFFIXES)
        if found != PACKAGE and any(build.is_file() for build in builds):
            return found
    return None


def _stale(native: ModuleType) -> str:
    return (
        f"kafka08's compiled kernel has interface {native.INTERFACE}, but the package needs "
        f"{INTERFACE}: install again to rebuild it"
    )


def use_build(name: str) -> None:
    """Let an import of the module `name` find its compiled build, which setup.py makes of the same
    text, if there is one of the present text and the compiled kernel runs.

    KAFKA08_RULES=source keeps the source: for tests that patch its functions.
    """
    if importlib.import_module("kafka08.kernel").NAME != "native":
        return
    if os.environ.get("KAFKA08_RULES") == "source":
        return
    package, _, module = name.rpartition(".")
    try:
        build = importlib.import_module(f"{package}._{module}")
    except (ImportError, ValueError):  # there is none, or it is of another kernel
        return
    source = importlib.util.find_spec(name)
    if source is not None and source.origin and build.SOURCE == digest(Path(source.origin)):
        sys.modules[name] = build
        setattr(sys.modules[package], module, build)


def digest(source: Path) -> str:
    """The SHA-256 of a source, which its build names."""
    return sha256(source.read_bytes()).hexdigest()
