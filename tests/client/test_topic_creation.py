"""Which clients may create topics: metadata by name makes a broker create them."""

from __future__ import annotations

import re
from pathlib import Path

import kafka08

ROOT = Path(kafka08.__file__).parent
BY_NAME = re.compile(
    r"creates_topics=True|(?<!\w)MetadataRequest\("
    r"(?!None|\[\]|\[\"\"\]|topics or None|wanted)[^)]"
)
PRODUCERS = {
    "producer/old/producer.py",
    "producer/sender.py",
    "spark/sink.py",
    "spark/written.py",  # the same client, for the commits of the sink
}
NO_CLIENTS = {"broker", "simulation", "protocol"}


def test_only_producers_request_metadata_by_name() -> None:
    """A new reader that does would create the topics that it looks for, deleted ones too."""
    found = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0] not in NO_CLIENTS and BY_NAME.search(path.read_text())
    }
    assert found <= PRODUCERS, "create a ClusterClient without creates_topics"
