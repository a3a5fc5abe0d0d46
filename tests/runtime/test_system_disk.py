"""The real disk, and the one in memory that stands in for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from kafka08.clock import SYSTEM_CLOCK
from kafka08.runtime.disk import Disk, OpenMode
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.simulation.memory_disk import MemoryDisk

NAMES = ("a", "b", "c")


@pytest.fixture
def memory_disk(tmp_path: Path) -> MemoryDisk:
    """With an empty directory of the same name as the real one."""
    disk = MemoryDisk(SYSTEM_CLOCK.time_ms)
    disk.make_directories(tmp_path)
    return disk


@pytest.fixture(params=["real", "memory"])
def disk(request: pytest.FixtureRequest, memory_disk: MemoryDisk) -> Disk:
    return SYSTEM_DISK if request.param == "real" else memory_disk


def a_step(random: Random, directory: Path) -> Callable[[Disk], object]:
    """Something to do with a disk, that says what it found."""
    path, other = (directory / random.choice(NAMES) for _ in range(2))
    folder = directory / random.choice("de")
    mode = random.choice(list(OpenMode))
    position, size = random.randrange(3000), random.randrange(1, 2000)
    data = random.randbytes(size)
    file_steps: list[Callable[[Disk], object]] = [
        lambda disk: disk.open(path, mode).pwrite(data, position),
        lambda disk: disk.open(path, mode).pread(size, position),
        lambda disk: disk.open(path, mode).pread_into(memoryview(bytearray(size)), position),
        lambda disk: disk.open(path, mode).truncate(size),
        lambda disk: disk.open(path, mode).allocate(position, size),
        lambda disk: disk.open(path, mode).sync(),
        lambda disk: disk.open(path, OpenMode.UPDATE).set_modified_ns(position * 10**6),
        lambda disk: disk.open(path, mode).size(),
        lambda disk: _store_in_map(disk, path, data),
        lambda disk: disk.size(path),
        lambda disk: disk.remove(path),
        lambda disk: disk.rename(path, other),
    ]
    directory_steps: list[Callable[[Disk], object]] = [
        lambda disk: disk.make_directories(folder / "deep"),
        lambda disk: disk.open(folder / "f", mode).pwrite(data, 0),
        lambda disk: disk.files_in(folder),
        lambda disk: list(disk.directories_in(folder)),
        lambda disk: disk.is_directory(folder),
        lambda disk: disk.is_accessible(folder),
        lambda disk: disk.is_own(folder),
        lambda disk: disk.exists(folder / "f"),
        lambda disk: disk.open_directory(folder).sync(),
        lambda disk: disk.remove(folder / "f"),
        lambda disk: disk.remove_tree(folder),
        lambda disk: disk.open(folder, OpenMode.UPDATE),
        lambda disk: disk.open_directory(path).sync(),
    ]
    return random.choice(file_steps if random.random() < 0.7 else directory_steps)


def _store_in_map(disk: Disk, path: Path, data: bytes) -> None:
    file = disk.open(path, OpenMode.UPDATE)
    size = min(len(data), file.size())
    if size:
        mapped = file.map(size)
        mapped[:] = data[:size]
        mapped.release()


def outcome(step: Callable[[Disk], object], disk: Disk) -> object:
    try:
        found = step(disk)
    except OSError as error:
        return type(error)
    return found if isinstance(found, int | bytes | bool | list) else None


@pytest.mark.parametrize("seed", range(20))
def test_both_disks_do_the_same(tmp_path: Path, memory_disk: MemoryDisk, seed: int) -> None:
    """The same random calls give the same results, errors and files on the real disk and on the one
    in memory."""
    random = Random(seed)
    for number in range(300):
        step = a_step(random, tmp_path)
        assert outcome(step, SYSTEM_DISK) == outcome(step, memory_disk), f"step {number}"
        for found in (SYSTEM_DISK.files_in, SYSTEM_DISK.directories_in):
            in_memory = getattr(memory_disk, found.__name__)
            assert list(found(tmp_path)) == list(in_memory(tmp_path))
    for path in SYSTEM_DISK.files_in(tmp_path):
        assert path.read_bytes() == memory_disk.open(path, OpenMode.READ).pread(10_000, 0)


def test_a_file_outlives_its_name(tmp_path: Path, disk: Disk) -> None:
    """Renamed and removed, it reads on; another file takes the name."""
    file = disk.open(tmp_path / "a", OpenMode.CREATE)
    file.pwrite(b"old", 0)
    disk.rename(tmp_path / "a", tmp_path / "b")
    disk.remove(tmp_path / "b")
    disk.open(tmp_path / "a", OpenMode.CREATE).pwrite(b"new", 0)
    assert (b"old", 3) == (file.pread(9, 0), file.size())


@pytest.mark.parametrize("gone", ["d/e", "d"])
def test_what_is_gone_counts_as_removed(
    tmp_path: Path, disk: Disk, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree of which another process removes a part, before or meanwhile, is removed."""
    disk.make_directories(tmp_path / "d" / "e")
    for name in ("d/e/f", "d/e/g", "d/h"):
        disk.open(tmp_path / name, OpenMode.CREATE)
    remove = disk.remove

    def remove_after_another(path: Path) -> None:
        monkeypatch.undo()
        disk.remove_tree(tmp_path / gone)
        remove(path)

    monkeypatch.setattr(disk, "remove", remove_after_another)
    disk.remove_tree(tmp_path / "d")
    assert not disk.exists(tmp_path / "d")
    disk.remove_tree(tmp_path / "d")


def test_the_time_of_the_last_write(tmp_path: Path, disk: Disk) -> None:
    """Is what was set, until the next write."""
    file = disk.open(tmp_path / "a", OpenMode.CREATE)
    file.set_modified_ns(1_000_000)
    assert 1_000_000 == disk.modified_ns(tmp_path / "a")
    file.pwrite(b"x", 0)
    assert abs(disk.modified_ns(tmp_path / "a") / 1e6 - SYSTEM_CLOCK.time_ms()) < 60_000


def test_a_lock_keeps_out_until_its_release(tmp_path: Path, disk: Disk) -> None:
    """Others of the same process as well; a file that is locked can be made by that."""
    lock = disk.lock(tmp_path / "l")
    for _ in range(2):
        with pytest.raises(BlockingIOError):
            disk.lock(tmp_path / "l")
    lock.release()
    disk.lock(tmp_path / "l").release()
    lock.release()


def test_a_copied_lock_file_has_another_identity(tmp_path: Path) -> None:
    """The same file has the same one every time, so what it says is proved by it."""
    (tmp_path / "l").write_text("")
    shutil.copy(tmp_path / "l", tmp_path / "copy")
    held = [SYSTEM_DISK.lock(tmp_path / name) for name in ("l", "copy")]
    first, copied = (lock.identity for lock in held)
    assert first != copied
    held.pop(0).release()
    assert first == SYSTEM_DISK.lock(tmp_path / "l").identity


def test_close_by_makes_the_last_call(tmp_path: Path, disk: Disk) -> None:
    """Once, when the last holder lets go, with what closes the file."""
    file = disk.open(tmp_path / "a", OpenMode.CREATE)
    closes: list[Callable[[], object]] = []
    file.close_by(closes.append)
    held = file
    del file
    assert [] == closes
    del held
    (close,) = closes
    close()


def test_a_close_by_another_leaves_the_descriptor_open_until_then(tmp_path: Path) -> None:
    """A deleted file's pages are freed by `close`, not by the destructor."""
    file = SYSTEM_DISK.open(tmp_path / "a", OpenMode.CREATE)
    descriptor = file.fd  # type: ignore[attr-defined]  # of a SystemFile
    closes: list[Callable[[], object]] = []
    file.close_by(closes.append)
    del file
    os.fstat(descriptor)
    closes.pop()()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_new_files_have_the_permissions_of_the_jvm(tmp_path: Path) -> None:
    """A new file has the mode 0666 less the umask."""
    before = os.umask(0o002)
    try:
        SYSTEM_DISK.open(tmp_path / "a", OpenMode.CREATE)
    finally:
        os.umask(before)
    assert 0o664 == (tmp_path / "a").stat().st_mode & 0o777


def test_a_private_file_is_its_owners(tmp_path: Path) -> None:
    """Its mode does not depend on the umask."""
    before = os.umask(0)
    try:
        SYSTEM_DISK.open(tmp_path / "a", OpenMode.PRIVATE)
    finally:
        os.umask(before)
    assert 0o600 == (tmp_path / "a").stat().st_mode & 0o777


def test_a_write_in_parts_arrives_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call is repeated until all bytes are written."""
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, data[:7], at))
    SYSTEM_DISK.open(tmp_path / "a", OpenMode.CREATE).pwrite(bytes(range(100)), 5)
    assert bytes(5) + bytes(range(100)) == (tmp_path / "a").read_bytes()


def test_a_directory_is_renamed_with_its_files(disk: Disk, tmp_path: Path) -> None:
    """Its files are found under the new name, the old name is gone, and an open file still
    works."""
    old, new = tmp_path / "old", tmp_path / "new"
    disk.make_directories(old)
    file = disk.open(old / "a", OpenMode.CREATE)
    disk.rename(old, new)
    file.pwrite(b"x", 0)
    assert (disk.is_directory(old), disk.size(new / "a")) == (False, 1)
    with pytest.raises(OSError):
        disk.rename(old, new)


@pytest.mark.parametrize("depth", [0, 1])
def test_a_deletion_follows_no_link(tmp_path: Path, depth: int) -> None:
    """Neither a link in a directory that is deleted, nor one in its place: what is behind stays."""
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "file").write_bytes(b"kept")
    deleted = tmp_path / "t-0"
    if depth:
        deleted.mkdir()
        (deleted / "link").symlink_to(foreign)
        (deleted / "file-link").symlink_to(foreign / "file")
    else:
        deleted.symlink_to(foreign)
    SYSTEM_DISK.remove_tree(deleted)
    assert not deleted.is_symlink()
    assert not deleted.exists()
    assert b"kept" == (foreign / "file").read_bytes()


def test_a_directory_of_another_user_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of our own is, and one of root, as container volumes are."""
    owner = tmp_path.stat().st_uid
    assert SYSTEM_DISK.is_own(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert SYSTEM_DISK.is_own(tmp_path) == (owner == 0)
    assert SYSTEM_DISK.is_own(Path("/"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert SYSTEM_DISK.is_own(tmp_path)
