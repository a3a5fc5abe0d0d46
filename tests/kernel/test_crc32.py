"""CRC-32 is zlib's, whatever the processor offers."""

from __future__ import annotations

import random
import zlib
from types import ModuleType

import pytest

from tests.kernel.conftest import native_or_skip

NOISE = random.Random(8).randbytes(70_000)


def test_every_short_length(kernel: ModuleType) -> None:
    """All lengths 0 to 399, at every alignment of 16."""
    for length in range(400):
        data = NOISE[length % 16 : length % 16 + length]
        assert zlib.crc32(data) == kernel.crc32(data), length


@pytest.mark.parametrize("start", [0, 1, 0x80000000, 0xFFFFFFFF])
def test_goes_on_from_a_value(kernel: ModuleType, start: int) -> None:
    """`value` is the CRC of what came before, also for data shorter than the value itself."""
    for length in (*range(20), 64, 127, 1000):
        assert zlib.crc32(NOISE[:length], start) == kernel.crc32(NOISE[:length], start), length


@pytest.mark.parametrize("length", [4096, 4097, 65_535, 70_000])
def test_long_data(kernel: ModuleType, length: int) -> None:
    assert zlib.crc32(NOISE[:length]) == kernel.crc32(memoryview(NOISE)[:length])


def test_data_above_the_gil_limit(kernel: ModuleType) -> None:
    """Data so long that the GIL is released gives the same."""
    data = NOISE * 8
    assert zlib.crc32(data) == kernel.crc32(data)


def test_the_portable_way_can_be_forced() -> None:
    """Tests can run the tables on a processor that has something better."""
    native = native_or_skip()
    try:
        assert native.select_crc32(portable=True) == "portable"
    finally:
        assert native.select_crc32() in ("pclmul", "arm", "portable")
