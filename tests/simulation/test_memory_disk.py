"""What a power failure leaves on the disk that is kept in memory."""

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


def test_what_was_synced_stays() -> None:
    """Bytes and names, whatever was written to other files."""
    for seed in SEEDS:
        disk = a_disk()
        disk.open(B, OpenMode.CREATE).pwrite(b"b", 0)
        disk.lose_power(Random(seed))
        assert b"o" * 2 * SECTOR_BYTES == content(disk)


def test_a_write_may_be_lost_or_torn() -> None:
    """Each sector is old or new on its own, and the file may have grown by zeros."""
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
    """What was written after it is lost then: old bytes never follow new ones of later."""
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
    """The new one of a rename with all that follow it; there is one of both in any case."""
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
    """And its open files."""
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
    """Seen by readers at once, and lost with the power."""
    found = set()
    for seed in SEEDS:
        disk = a_disk()
        mapped = disk.open(A, OpenMode.UPDATE).map(10)
        mapped[0] = ord("n")
        assert (content(disk) or b"").startswith(b"no")
        disk.lose_power(Random(seed))
        found.add((content(disk) or b"")[:2])
    assert found == {b"no", b"oo"}
