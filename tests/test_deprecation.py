"""A public name that changed still works, and says its new name."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.consumer import SimpleConsumer
from kafka08.doctor import SnapshotReader
from kafka08.exporter import ClusterReader
from kafka08.log import OffsetCheckpoint
from kafka08.producer import partitioners
from kafka08.structs import TopicPartition


def test_the_former_name_works_and_warns(tmp_path: Path) -> None:
    """The warning points to the caller's line."""
    checkpoint = OffsetCheckpoint(tmp_path / "c")
    checkpoint.write({TopicPartition("t", 0): 5})
    with pytest.warns(DeprecationWarning, match=r"OffsetCheckpoint\.read_offsets") as warned:
        assert checkpoint.read() == {TopicPartition("t", 0): 5}
    assert warned[0].filename == __file__


@pytest.mark.parametrize("owner", [ClusterReader, OffsetCheckpoint, SimpleConsumer, SnapshotReader])
def test_methods_that_were_called_read_have_a_verb_of_their_own(owner: type) -> None:
    """And keep the former name for one release."""
    alias = owner.read  # type: ignore[attr-defined]
    assert alias.__wrapped__.__name__ in {
        "read_view",
        "read_offsets",
        "read_range",
        "read_snapshot",
    }


def test_the_former_module_of_the_new_producers_partitioning() -> None:
    """The same partition, with a warning."""
    from kafka08.producer.hash_partitioner import partition_for_key

    with pytest.warns(DeprecationWarning, match="partition_for_key is renamed"):
        assert partition_for_key(b"k", 7) == partitioners.partition_for_key(b"k", 7)
