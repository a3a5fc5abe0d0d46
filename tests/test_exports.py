"""Packages whose exports are imported at their first use: what runs is what type checkers read."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

PACKAGES = ("kafka08.arrow", "kafka08.consumer", "kafka08.producer", "kafka08.spark")


def imports_for_type_checkers(package: Any) -> dict[str, str]:
    """Name → module of the imports under TYPE_CHECKING."""
    (guarded,) = (
        node
        for node in ast.parse(Path(package.__file__).read_text()).body
        if isinstance(node, ast.If)
    )
    return {
        alias.name: node.module or ""
        for node in guarded.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(package.__name__)
        for alias in node.names
    }


@pytest.mark.parametrize("name", PACKAGES)
def test_every_export_is_the_object_that_type_checkers_see(name: str) -> None:
    """All names exist; those under TYPE_CHECKING come from the same module, and are in `__all__`
    unless they need an extra, which `import *` would need then."""
    package = import_module(name)
    declared = imports_for_type_checkers(package)
    assert {one for one in declared if not one.startswith("Async")} <= set(package.__all__)
    for export in {*package.__all__, *declared}:
        value = getattr(package, export)
        if export in declared:
            assert value is getattr(import_module(declared[export]), export)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The error names the package and the name, as that of any module."""
    with pytest.raises(AttributeError, match=r"module 'kafka08.consumer' has no attribute 'Kafka'"):
        import_module("kafka08.consumer").Kafka  # noqa: B018
