"""What strangers leave, and limits of a disk, in a simulated cluster."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kafka08.protocol import message_set
from kafka08.runtime.disk import OpenMode
from kafka08.simulation.log_checks import agree
from kafka08.simulation.memory_disk import NAME_MAX, MemoryDisk
from kafka08.simulation.strangers import TEXTS, ZNODES


def test_a_name_has_a_limit() -> None:
    """A disk refuses a longer one for a file, a directory and a rename, and is unchanged."""
    disk = MemoryDisk(lambda: 0)
    disk.open(Path("/" + "a" * NAME_MAX), OpenMode.CREATE)
    long = Path("/" + "b" * (NAME_MAX + 1))
    for make in (
        lambda: disk.open(long, OpenMode.CREATE),
        lambda: disk.make_directories(long),
        lambda: disk.rename(Path("/" + "a" * NAME_MAX), long),
    ):
        with pytest.raises(OSError) as refused:
            make()
        assert refused.value.errno == errno.ENAMETOOLONG
    assert [path.name for path in disk.files_in(Path("/"))] == ["a" * NAME_MAX]
    assert not list(disk.directories_in(Path("/")))


def test_compacted_copies_agree_where_both_have_a_message() -> None:
    """Each broker compacts its own copy: one may lack what a later message of its key replaces, but
    no message may differ."""
    whole = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]
    one = message_set.encode(whole)
    compacted = message_set.encode(whole[1:], base_offset=1)
    assert agree(one, compacted, is_compacted=True)
    assert not agree(one, compacted, is_compacted=False)
    other = [*whole[:2], (b"a", b"9")]
    assert not agree(compacted, message_set.encode(other), is_compacted=True)


def test_strangers_write_no_legal_state() -> None:
    """A legal text would change the cluster, and break rules by right."""
    assert len(set(ZNODES)) == len(ZNODES)
    assert all("replicas" not in (text or "") for text in TEXTS)
