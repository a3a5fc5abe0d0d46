from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka08.errors import CorruptLog, StorageError
from kafka08.log import crashpoints
from kafka08.log.checkpoint import OffsetCheckpoint, parse, render
from kafka08.structs import TopicPartition
from tests.log.conftest import CrashAt, Died

DATA = Path(__file__).parent.parent / "data"


def test_text_is_that_of_0_8_2_2() -> None:
    """A captured checkpoint parses to its entries, and they render to the same text."""
    captured = json.loads((DATA / "sandbox-logs-0.8.2.2.json").read_text())
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        assert captured[name] == render(parse(captured[name]))
    cleaner = captured["compaction"]["cleaner-offset-checkpoint"]
    assert {TopicPartition("cmp", 0): 53} == parse(cleaner)


def test_missing_and_empty_files_have_no_entries(tmp_path: Path) -> None:
    """A checkpoint that is missing or empty, as after the very first start, has no entries."""
    checkpoint = OffsetCheckpoint(tmp_path / "c")
    assert {} == checkpoint.read_offsets()
    (tmp_path / "c").touch()
    assert {} == checkpoint.read_offsets()


def test_a_checkpoint_round_trips(tmp_path: Path) -> None:
    """A reader finds what was written, and no temporary file remains."""
    offsets = {TopicPartition("a-b", 1): 5, TopicPartition("ü", 0): 2**62}
    OffsetCheckpoint(tmp_path / "c").write(offsets)
    assert offsets == OffsetCheckpoint(tmp_path / "c").read_offsets()
    assert [tmp_path / "c"] == list(tmp_path.iterdir())


def test_the_new_name_is_on_disk_as_well(tmp_path: Path, synced: list[str]) -> None:
    """A power failure after `write` cannot bring the old text back. With the old text, a start
    would trust a recovery point above messages that were truncated and written again."""
    OffsetCheckpoint(tmp_path / "c").write({TopicPartition("t", 0): 1})
    assert ["c.tmp", tmp_path.name] == synced


@pytest.mark.parametrize(
    "text",
    [
        "1\n0\n",
        "x\n",
        "0\n2\na 0 1\n",
        "0\n1\na 0\n",
        "0\n1\na 0 x\n",
        "0\nx\n",
        f"0\n1\na {-(2**31) - 1} 5\n",
        f"0\n1\na {2**31} 5\n",
        f"0\n1\na 0 {2**63}\n",
    ],
)
def test_a_damaged_checkpoint_is_an_error(tmp_path: Path, text: str) -> None:
    """A wrong version, a wrong count or a line without three fields is an error. With it a broker
    does not start."""
    (tmp_path / "c").write_text(text)
    with pytest.raises(CorruptLog, match="is not an offset checkpoint"):
        OffsetCheckpoint(tmp_path / "c").read_offsets()


def test_a_crash_before_the_rename_keeps_the_old_text(tmp_path: Path) -> None:
    """A crash after the new file is complete and before the rename keeps the old text. The next
    owner deletes the new file."""
    OffsetCheckpoint(tmp_path / "c").write({TopicPartition("t", 0): 1})
    dying = OffsetCheckpoint(tmp_path / "c", CrashAt(crashpoints.CHECKPOINT_WRITTEN))
    with pytest.raises(Died):
        dying.write({TopicPartition("t", 0): 2})
    assert {TopicPartition("t", 0): 1} == OffsetCheckpoint(tmp_path / "c").read_offsets()
    assert [tmp_path / "c"] == list(tmp_path.iterdir())


def test_a_disk_that_refuses_is_a_storage_error(tmp_path: Path) -> None:
    """An error of the disk is a StorageError with the action and the path."""
    checkpoint = OffsetCheckpoint(tmp_path / "gone" / "c")
    with pytest.raises(StorageError, match=r"cannot write .*gone"):
        checkpoint.write({})
