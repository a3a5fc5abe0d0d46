"""Maps of files hold no descriptor and end with their last view."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka08.runtime.file_mapping import map_file

SIZE = 3 << 20


def make(path: Path, size: int = SIZE) -> int:
    path.write_bytes(bytes(size))
    return os.open(path, os.O_RDWR)


def is_mapped(path: Path) -> bool:
    return str(path) in Path("/proc/self/maps").read_text()


def test_a_map_outlives_the_descriptor(tmp_path: Path) -> None:
    """Stores reach the file after it was closed; nothing is open then."""
    path = tmp_path / "index"
    fd = make(path)
    mapped = map_file(fd, SIZE)
    os.close(fd)
    opened = Path("/proc/self/fd").iterdir()
    assert path not in {one.readlink() for one in opened if one.is_symlink()}
    mapped[5:8] = b"abc"
    assert (SIZE, b"abc") == (len(mapped), path.read_bytes()[5:8])


def test_the_last_view_ends_it(tmp_path: Path) -> None:
    """A view of a view keeps it; releasing the last one, or dropping it, unmaps the file."""
    path = tmp_path / "index"
    fd = make(path)
    mapped = map_file(fd, SIZE)
    part = mapped[10:20]
    mapped.release()
    assert is_mapped(path)
    part[0] = 7
    del part
    assert not is_mapped(path)
    for size in (4096, 8192, 4096):
        assert size == len(map_file(fd, size))
    assert not is_mapped(path)
    os.close(fd)


@pytest.mark.parametrize("size", [0, -1, 4097])
def test_a_map_is_not_larger_than_its_file(tmp_path: Path, size: int) -> None:
    """A load from behind the end would kill the process."""
    fd = make(tmp_path / "index", 4096)
    with pytest.raises(ValueError, match="cannot map"):
        map_file(fd, size)
    os.close(fd)


def test_a_failed_mapping_is_an_oserror(tmp_path: Path) -> None:
    """The error has the system's number: here for a file that is not open for writing."""
    path = tmp_path / "index"
    os.close(make(path))
    fd = os.open(path, os.O_RDONLY)
    with pytest.raises(PermissionError):
        map_file(fd, 4096)
    os.close(fd)
