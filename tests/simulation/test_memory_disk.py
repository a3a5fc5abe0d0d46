"""A power failure on the disk that is kept in memory."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from kafka08.clock import SYSTEM_CLOCK
from kafka08.runtime.disk import OpenMode
from kafka08.simulation.memory_disk import SECTOR_BYTES, Gone, MemoryDisk

SEEDS = range(200)
HOME = Path("/home")
A, B = HOME / "a", HOME / "b"


def a_disk() -> MemoryDisk:
    """With a directory, and `a` in it, all synced."""
    disk = MemoryDisk(SYSTEM_CLOCK.time_ms)
    disk.make_directories(HOME)
    file = disk.open(A, OpenMode.CREATE)
    file.pwrite(b"o" * 2 * SECTOR_BYTES, 0)
    file.sync()
    disk.open_directory(HOME).sync()
    disk.open_directory(Path("/")).sync()
    return disk


def content(disk: MemoryDisk, path: Path = A) -> bytes | None:
    return disk.open(path, OpenMode.READ).pread(9999, 0) if disk.exists(path) else None


def test_synced_bytes_and_names_stay() -> None:
    """A power failure keeps what was synced, whatever was written to other files."""
    for seed in SEEDS:
        disk = a_disk()
        disk.open(B, OpenMode.CREATE).pwrite(b"b", 0)
        disk.lose_power(Random(seed))
        assert b"o" * 2 * SECTOR_BYTES == content(disk)


def test_a_write_may_be_lost_or_torn() -> None:
    """A power failure may keep or lose each sector of an unsynced write, and may leave the new size
    with zeros."""
    found = set()
    for seed in SEEDS:
        disk = a_disk()
        disk.open(A, OpenMode.UPDATE).pwrite(b"n" * 2 * SECTOR_BYTES, SECTOR_BYTES)
        disk.lose_power(Random(seed))
        sectors = content(disk)
        assert sectors is not None
        found.add("".join(chr(sectors[n * SECTOR_BYTES]) for n in range(3) if len(sectors) == 1536))
    assert found == {"", "oo\0", "oon", "on\0", "onn"}


def test_a_truncation_may_be_undone() -> None:
    """A power failure may undo an unsynced truncation, and then loses the bytes written after it:
    old bytes never follow newer ones."""
    found = set()
    for seed in SEEDS:
        disk = a_disk()
        file = disk.open(A, OpenMode.UPDATE)
        file.truncate(0)
        file.pwrite(b"n" * 2, 0)
        disk.lose_power(Random(seed))
        found.add(content(disk))
    assert {b"o" * 2 * SECTOR_BYTES, b"", b"nn", b"\0\0", b"\0", b"n"} >= found - {None}
    assert {b"o" * 2 * SECTOR_BYTES, b"", b"nn"} <= found


def test_a_name_may_be_lost() -> None:
    """A power failure may undo an unsynced rename with all later changes of the directory; the file
    has one of its two names in any case."""
    found = set()
    for seed in SEEDS:
        disk = a_disk()
        disk.rename(A, B)
        disk.open(A, OpenMode.CREATE)
        disk.lose_power(Random(seed))
        found.add(tuple(path.name for path in disk.files_in(HOME)))
        assert b"o" * 2 * SECTOR_BYTES in {content(disk, A), content(disk, B)}
    assert found == {("a",), ("b",), ("a", "b")}


def test_the_end_of_a_process_loses_nothing_but_its_locks() -> None:
    """A kill keeps all bytes and names, frees the locks of the process, and closes its files."""
    disk = a_disk()
    file = disk.open(A, OpenMode.UPDATE)
    file.pwrite(b"new", 0)
    disk.lock(B)
    disk.kill()
    with pytest.raises(Gone):
        file.size()
    disk.lock(B)
    assert (content(disk) or b"").startswith(b"newo")


def test_a_store_into_a_map_is_a_write() -> None:
    """Readers see a store into a map at once, and a power failure may lose it."""
    found = set()
    for seed in SEEDS:
        disk = a_disk()
        mapped = disk.open(A, OpenMode.UPDATE).map(10)
        mapped[0] = ord("n")
        assert (content(disk) or b"").startswith(b"no")
        disk.lose_power(Random(seed))
        found.add((content(disk) or b"")[:2])
    assert found == {b"no", b"oo"}


def test_a_copy_of_a_disk_is_a_disk_of_its_own() -> None:
    """It has what the other one had, synced or not; neither sees the changes of the other, and the
    lock of a copied file has another identity."""
    one, copy = (MemoryDisk(SYSTEM_CLOCK.time_ms, name) for name in ("one", "copy"))
    directory = Path("/d")
    one.make_directories(directory)
    one.open(directory / "f", OpenMode.CREATE).pwrite(b"abc", 0)
    copy.copy_from(one)
    one.open(directory / "f", OpenMode.UPDATE).pwrite(b"x", 0)
    one.remove_tree(directory)
    copy.lose_power(Random(1))
    assert copy.open(directory / "f", OpenMode.READ).pread(9, 0) == b"abc"
    identities = {disk.lock(Path("/lock")).identity for disk in (one, copy)}
    assert len(identities) == 2
