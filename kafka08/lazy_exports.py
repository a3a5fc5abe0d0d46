"""Exports of a package whose modules are imported at the first use of a name (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any

from kafka08.extras import naming_extra


def lazy_exports(
    package: str, names: Mapping[str, Collection[str]], extra: str = ""
) -> Callable[[str], Any]:
    """A `__getattr__` for the package: module, relative to it → the names that it exports. `extra`
    is the one to install if a library is missing.

    Type checkers read the same imports under TYPE_CHECKING; tests/test_exports.py compares the two.
    """
    modules = {name: module for module, exported in names.items() for name in exported}

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with naming_extra(f"{package}.{name}", extra):
            value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
