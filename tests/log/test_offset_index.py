from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.log.offset_index import IndexEntry, OffsetIndex
from kafka08.runtime import system_disk
from tests.log.conftest import index_entries

DATA = Path(__file__).parent.parent / "data"
CAPTURED = json.loads((DATA / "logs-0.8.2.2.json").read_text())["index"]["files"]


def an_index(path: Path, *entries: tuple[int, int], base_offset: int = 100) -> OffsetIndex:
    index = OffsetIndex(path, base_offset)
    index.grow(8000)
    for offset, position in entries:
        index.append(offset, position)
    return index


def test_entries_are_those_of_a_real_index(tmp_path: Path) -> None:
    """A rolled index of 0.8.2.2 opens with the entries of the fixture. Writing these entries gives
    the same bytes."""
    captured = CAPTURED[2]
    assert captured["file"].endswith("19.index")
    path = tmp_path / "captured.index"
    path.write_bytes(bytes.fromhex(captured["hex_head"])[: captured["size"]])
    opened = OffsetIndex(path, 19)
    expected = [IndexEntry(19 + o, p) for o, p in captured["entries_rel_offset_position"]]
    assert expected == index_entries(opened)
    written = an_index(tmp_path / "ours.index", *expected, base_offset=19)
    written.close()
    assert path.read_bytes() == (tmp_path / "ours.index").read_bytes()


def test_it_is_preallocated_and_trimmed(tmp_path: Path) -> None:
    """An active index is pre-allocated, rounded down to whole entries; a sealed one has its exact
    size (10485760 and 48 in the capture)."""
    index = OffsetIndex(tmp_path / "i", 0)
    index.grow(83)
    assert 80 == (tmp_path / "i").stat().st_size
    index.append(5, 50)
    index.seal()
    assert 8 == (tmp_path / "i").stat().st_size
    assert index.is_full
    assert IndexEntry(5, 50) == index.lookup(9)


def test_zeros_of_a_crash_are_no_entries(tmp_path: Path) -> None:
    """A crash leaves zeros behind the last entry. We trim them on load; 0.8.2.2 counts them as
    entries and refuses to start."""
    index = an_index(tmp_path / "i", (101, 10), (105, 20))
    assert 8000 == (tmp_path / "i").stat().st_size
    again = OffsetIndex(tmp_path / "i", 100)
    assert index_entries(index) == index_entries(again)
    assert IndexEntry(105, 20) == again.last
    assert 16 == (tmp_path / "i").stat().st_size
    (tmp_path / "z").write_bytes(bytes(8000))
    assert IndexEntry(100, 0) == OffsetIndex(tmp_path / "z", 100).last


def test_a_load_does_not_map_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load uses `read`, which needs no page for a hole. Through a map, each hole takes a page: on
    a full tmpfs the broker died of SIGBUS at its start, without a line in its log."""
    an_index(tmp_path / "i", (101, 10), (105, 20))

    def refuse(*_: object) -> None:
        raise AssertionError("mapped")

    monkeypatch.setattr(system_disk, "map_file", refuse)
    again = OffsetIndex(tmp_path / "i", 100)
    assert (2, IndexEntry(105, 20)) == (again.entries, again.last)


def test_a_full_tmpfs_is_an_error_or_nothing(tmp_path: Path) -> None:
    """On a full tmpfs an index can be opened, cut, searched and appended to without SIGBUS. Runs in
    a process and mount namespace of its own."""
    script = """
import os, sys
from pathlib import Path
from kafka08.errors import StorageError
from kafka08.log.offset_index import OffsetIndex
os.chdir(sys.argv[1])
index = OffsetIndex(Path("i"), 100)
index.grow(1 << 20)
for number in range(1, 600):
    index.append(100 + number, number)
with open("fill", "wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError as error:
        print(error.strerror)
again = OffsetIndex(Path("i"), 100)
print(again.entries, again.lookup(350), os.stat("i").st_size)
again.grow(1 << 20)
again.truncate_to(110)
print(again.entries, os.stat("i").st_size)
try:
    for number in range(10, 5000):
        again.append(100 + number, number)
except StorageError as error:
    print(error)
"""
    mount = 'mount -t tmpfs -o size=64k none "$1" && exec "$2" -c "$3" "$1"'
    run = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount, "sh", tmp_path, sys.executable, script],
        check=False,
        capture_output=True,
        text=True,
    )
    if "No space left" not in run.stdout and os.environ.get("CI") != "true":
        pytest.skip(f"cannot mount a tmpfs here: {run.stderr.strip()}")
    lines = run.stdout.splitlines()
    assert 0 == run.returncode, run.stderr
    assert "No space left on device" == lines[0]
    assert f"599 {IndexEntry(350, 250)} {599 * 8}" == lines[1]
    assert f"9 {1 << 20}" == lines[2]
    assert "cannot extend i: No space left on device" == lines[3]


def test_a_full_index_says_so(tmp_path: Path) -> None:
    """The log asks whether the index is full, and rolls before it appends."""
    index = OffsetIndex(tmp_path / "i", 0)
    index.grow(16)
    index.append(1, 10)
    assert (1, 2) == (index.entries, index.capacity)
    index.append(2, 20)
    assert index.is_full
    with pytest.raises(AssertionError, match="full index"):
        index.append(3, 30)


@pytest.mark.parametrize(("offset", "position"), [(105, 30), (104, 30), (106, 20)])
def test_entries_must_ascend(tmp_path: Path, offset: int, position: int) -> None:
    """An assertion fails if an entry's offset or position does not exceed the last one."""
    index = an_index(tmp_path / "i", (101, 10), (105, 20))
    with pytest.raises(AssertionError):
        index.append(offset, position)


def test_sanity_check_names_the_fault(tmp_path: Path) -> None:
    """The sanity check reports half an entry, an offset that is not above the base, and a position
    beyond the messages."""
    index = an_index(tmp_path / "i", (101, 10))
    index.seal()
    assert index.problem(11) is None
    assert "beyond" in str(index.problem(10))
    (tmp_path / "i").write_bytes(bytes.fromhex("000000010000000a00"))
    assert "multiple of 8" in str(OffsetIndex(tmp_path / "i", 100).problem(99))
    (tmp_path / "i").write_bytes(bytes.fromhex("000000000000000a"))
    assert "is not above 100" in str(OffsetIndex(tmp_path / "i", 100).problem(99))


def test_reopening_does_not_open_files_before_a_lookup(tmp_path: Path) -> None:
    """Until the first lookup, an old segment holds no descriptor for its index."""
    an_index(tmp_path / "i", (101, 10), (105, 20)).close()
    again = OffsetIndex(tmp_path / "i", 100)
    (tmp_path / "i").rename(tmp_path / "j")
    assert IndexEntry(105, 20) == again.lookup(200)
    again.path = tmp_path / "j"
    assert IndexEntry(101, 10) == again.lookup(104)


entries = st.lists(
    st.tuples(st.integers(1, 50), st.integers(1, 10_000)), min_size=0, max_size=60
)  # steps of offset and position


@given(steps=entries, cut=st.integers(90, 700), reopen=st.booleans())
def test_it_is_a_sorted_list(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[int, int]],
    cut: int,
    reopen: bool,
) -> None:
    """lookup and truncate_to give the same results as a list of pairs, before and after
    reopening."""
    path = tmp_path_factory.mktemp("index") / "i"
    model: list[IndexEntry] = []
    offset, position = 100, 0
    for step, size in steps:
        offset, position = offset + step, position + size
        model.append(IndexEntry(offset, position))
    index = an_index(path, *model)
    for target in (99, 100, cut, offset, offset + 1, *(entry.offset for entry in model[:5])):
        below = [entry for entry in model if entry.offset <= target]
        assert (below or [IndexEntry(100, 0)])[-1] == index.lookup(target)
    index.truncate_to(cut)
    model = [entry for entry in model if entry.offset < cut]
    if reopen:
        index = OffsetIndex(path, 100)
        index.grow(8000)
    assert model == index_entries(index)
    index.append(cut + 700, position + 1)
    assert [*model, IndexEntry(cut + 700, position + 1)] == index_entries(index)
