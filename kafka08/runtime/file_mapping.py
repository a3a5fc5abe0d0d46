"""Maps of files that hold no descriptor.

`mmap.mmap` duplicates the descriptor for as long as the map lives. A broker maps one index of each
partition, two from 0.10.2 on, so it would need two or three times the descriptors of a JVM broker
(ulimit -n). This module calls the C library instead. (From Python 3.13 on mmap has `trackfd`.)
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Final
from weakref import WeakValueDictionary

_libc: Final = ctypes.CDLL(None, use_errno=True)
_map: Final = _libc.mmap
_map.restype = ctypes.c_void_p
_map.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
_unmap: Final = _libc.munmap
_unmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
MAP_FAILED: Final = ctypes.c_void_p(-1).value

_classes: Final[WeakValueDictionary[int, type[ctypes.Array[ctypes.c_char]]]] = WeakValueDictionary()
"""The classes of maps, by size: nearly all active indexes have the same size."""


def map_file(fd: int, size: int) -> memoryview:
    """A writable map of the first `size` bytes of a file. The map ends with its last view. OSError;
    ValueError unless 0 < size <= the file's size."""
    length = os.fstat(fd).st_size
    if not 0 < size <= length:
        raise ValueError(f"cannot map {size} bytes of a file of {length}")
    address = _map(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    if address == MAP_FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return memoryview(_class(size).from_address(address)).cast("B")


def _class(size: int) -> type[ctypes.Array[ctypes.c_char]]:
    found = _classes.get(size)
    if found is None:
        # Views reference the array, so it lives as long as the last of them.
        methods = {"__del__": lambda self, unmap=_unmap: unmap(ctypes.addressof(self), size)}
        found = _classes[size] = type("MappedBytes", (ctypes.c_char * size,), methods)
    return found
