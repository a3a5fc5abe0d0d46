"""Every test of this package runs under both kernels, and under the native one's portable CRC."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import ModuleType

import pytest

from kafka08.kernel import _python
from kafka08.kernel.choice import load_native


@pytest.fixture(scope="session", params=["python", "native", "native, portable crc"])
def kernel(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """The module under test. The native ones are skipped where nothing was compiled."""
    if request.param == "python":
        yield _python
        return
    native = native_or_skip()
    native.select_crc32("portable" if request.param != "native" else None)
    yield native
    native.select_crc32()


def native_or_skip() -> ModuleType:
    try:
        return load_native()
    except ImportError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("no compiled kernel: install a C compiler, then pip install -e . again")
