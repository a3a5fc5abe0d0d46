"""CRC-32 is zlib's, whatever the processor offers."""

from __future__ import annotations

import random
import zlib
from itertools import product
from types import ModuleType

import pytest

from tests.kernel.conftest import native_or_skip

NOISE = random.Random(8).randbytes(70_000)
WAYS = ("vpclmul", "pclmul", "arm", "portable")


def test_every_short_length(kernel: ModuleType) -> None:
    """All lengths from 0 to 399 at every alignment of 16 agree with zlib."""
    for length in range(400):
        data = NOISE[length % 16 : length % 16 + length]
        assert zlib.crc32(data) == kernel.crc32(data), length


@pytest.mark.parametrize("start", [0, 1, 0x80000000, 0xFFFFFFFF])
def test_goes_on_from_a_value(kernel: ModuleType, start: int) -> None:
    """`value` is the CRC of the preceding bytes, also for data shorter than the CRC."""
    for length in (*range(20), 64, 127, 1000):
        assert zlib.crc32(NOISE[:length], start) == kernel.crc32(NOISE[:length], start), length


@pytest.mark.parametrize("length", [4096, 4097, 65_535, 70_000])
def test_long_data(kernel: ModuleType, length: int) -> None:
    """From 4,096 bytes on, whole steps and odd ends agree with zlib."""
    assert zlib.crc32(NOISE[:length]) == kernel.crc32(memoryview(NOISE)[:length])


def test_data_above_the_gil_limit(kernel: ModuleType) -> None:
    """Data for which the GIL is released gives the same CRC."""
    data = NOISE * 8
    assert zlib.crc32(data) == kernel.crc32(data)


def test_each_implementation_of_this_processor() -> None:
    """Each set of instructions uses the start value and reads no byte before the data."""
    native = native_or_skip()
    try:
        for name in sorted({native.select_crc32(name) for name in WAYS}):
            assert native.select_crc32(name) == name
            for length, start in product((*range(300), 4096, 70_000), (0, 1, 0x89ABCDEF)):
                data = NOISE[-length:] if length else b""
                found = native.crc32(data, start)
                assert zlib.crc32(data, start) == found, (name, length, start)
    finally:
        assert native.select_crc32() in WAYS


def test_the_portable_implementation_can_be_forced() -> None:
    """Tests can select the tables on a faster processor; an unknown name selects them too."""
    native = native_or_skip()
    try:
        assert native.select_crc32("portable") == "portable"
        assert native.select_crc32("no such") == "portable"
    finally:
        native.select_crc32()
