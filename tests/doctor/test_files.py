"""Properties files, as the doctor reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.doctor.files import read_file


@pytest.mark.parametrize(
    ("text", "kind", "fault"),
    [
        ("group.id=g\nzookeeper.connect=h:1\n", "consumer", ""),
        ("group.id=g\nbootstrap.servers=h:1\n", "KafkaConsumer", ""),
        ("group.id=g\nbootstrap.servers=h:1\nmax.poll.records=0\n", "KafkaConsumer", "records"),
        ("group.id=g\n", "consumer", "zookeeper.connect"),
    ],
)
def test_a_file_is_that_of_the_consumer_that_can_use_it(
    tmp_path: Path, text: str, kind: str, fault: str
) -> None:
    """A file that names brokers is a KafkaConsumer's: the doctor missed ZooKeeper's address."""
    file = tmp_path / "consumer.properties"
    file.write_text(text)
    found = read_file(str(file), "consumer")
    assert (found.kind, found.unknown) == (kind, ())
    assert fault in found.fault
    assert bool(fault) == bool(found.fault)
