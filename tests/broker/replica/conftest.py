"""Tests of the rules run with both kernels, and with the rules' source and their compiled build."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kafka08 import kernel as chosen
from kafka08.broker import replica
from kafka08.kernel import _python
from tests.kernel.conftest import native_or_skip

SOURCE = Path(replica.__file__).with_name("replica_state.py")
BUILDS = ("source, python", "source, native", "compiled, native")


def source_rules(kernel: ModuleType) -> ModuleType:
    """The rules as their source says, on this kernel."""
    spec = importlib.util.spec_from_file_location("rules", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    rules = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rules)
    rules.kernel = kernel  # type: ignore[attr-defined]
    return rules


def build_of(name: str) -> Any:
    """The names of a kernel and of the rules on it."""
    kernel = _python if name.endswith("python") else native_or_skip()
    rules = source_rules(kernel) if name.startswith("source") else compiled_or_skip()
    return SimpleNamespace(**(vars(kernel) | vars(rules)))


def compiled_or_skip() -> ModuleType:
    if chosen.NAME != "native":
        pytest.skip("compiled rules run on the compiled kernel alone")
    try:
        return importlib.import_module("kafka08.broker.replica._replica_state")
    except ImportError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("no compiled rules: install a C compiler, then pip install -e . again")


@pytest.fixture(scope="session", params=BUILDS)
def kernel(request: pytest.FixtureRequest) -> Any:
    return build_of(request.param)
