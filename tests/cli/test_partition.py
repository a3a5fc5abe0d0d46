"""`kafka08 partition`: files and names that cannot be used are told in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Commands


@pytest.mark.parametrize(
    "arguments",
    [("reassign", "--plan"), ("reassign", "--brokers", "1", "--topics-file"), ("elect", "--file")],
    ids=lambda arguments: arguments[-1],
)
def test_a_file_that_is_no_text_is_named(
    kafka08: Commands, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """Whichever file it is: a plan that was packed, say."""
    file = tmp_path / "plan.json.gz"
    file.write_bytes(b"\x1f\x8b\x08")
    done = kafka08.refused("partition", *arguments, file)
    assert 1 == done.code
    assert f"Error: {file} is not UTF-8 text; give the JSON file" in done.err


def test_a_topic_that_cannot_be_is_refused(kafka08: Commands) -> None:
    """Before ZooKeeper is asked for it."""
    done = kafka08.refused("partition", "reassign", "--topic", "..", "--brokers", "1")
    assert 2 == done.code
    assert 'topic name cannot be "." or ".."' in done.err
