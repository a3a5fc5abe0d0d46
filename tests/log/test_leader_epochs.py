"""Leader epochs of a log, and the text of their checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import CorruptLog
from kafka08.log.leader_epochs import NO_END_OFFSET, EpochStart, LeaderEpochs

RECORDING = json.loads(
    (Path(__file__).parents[1] / "data" / "0.11-idempotence.json").read_text(encoding="utf-8")
)
appends = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=30)
"""(epoch, offsets that pass before the batch) of each."""


def texts(node: Any) -> Iterator[str]:
    """Every checkpoint in the recording."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name.endswith("leader-epoch-checkpoint"):
                yield value["text"]
            else:
                yield from texts(value)


def made_of(batches: list[tuple[int, int]]) -> tuple[LeaderEpochs, int]:
    """The epochs of a log with these batches, and its LEO."""
    epochs, offset = LeaderEpochs(), 0
    for epoch, gap in batches:
        offset += gap
        epochs.assign(epoch, offset)
        offset += 1
    return epochs, offset


def test_captured_checkpoints_are_read_and_written() -> None:
    """Each file of the recording is decoded and encoded back to its bytes."""
    found = set(texts(RECORDING["files"]))
    assert {"0\n1\n0 0\n", "0\n2\n0 0\n1 3\n", "0\n2\n0 0\n2 6\n"} <= found
    for text in found - {""}:
        assert text == LeaderEpochs.decode(text).encode()


def test_an_empty_file_has_no_epochs() -> None:
    """A log has one before its first record batch."""
    assert () == LeaderEpochs.decode("").entries


def test_captured_answers() -> None:
    """Broker 2 with epoch 0 up to 3, and 1 up to 4, as captured."""
    epochs = LeaderEpochs.decode("0\n2\n0 0\n1 3\n")
    assert [3, 4] == [epochs.end_offset(0, 4), epochs.end_offset(1, 4)]
    for unknown in (-1, 2, 99):
        assert NO_END_OFFSET == epochs.end_offset(unknown, 4)


def test_an_epoch_without_batches_ends_where_the_next_begins() -> None:
    """Epoch 1 appended nothing: a follower that is at 0 or 1 truncates to the start of 2."""
    epochs = LeaderEpochs.decode("0\n2\n0 0\n2 6\n")
    assert [6, 6, 9] == [epochs.end_offset(epoch, 9) for epoch in (0, 1, 2)]


def test_an_epoch_before_the_first_is_unknown() -> None:
    """Where it ended is no longer in the log."""
    assert NO_END_OFFSET == LeaderEpochs([EpochStart(3, 50)]).end_offset(2, 60)


@given(appends)
def test_both_numbers_ascend(batches: list[tuple[int, int]]) -> None:
    """Whatever epochs the batches have, each entry is above the one before it."""
    entries = made_of(batches)[0].entries
    assert list(entries) == sorted(entries)
    assert len({entry.epoch for entry in entries}) == len(entries)
    assert entries == LeaderEpochs.decode(LeaderEpochs(entries).encode()).entries


@given(appends, st.integers(0, 60))
def test_a_truncated_log_knows_what_a_shorter_one_would(
    batches: list[tuple[int, int]], offset: int
) -> None:
    """After a truncation the epochs are those of the batches that are left."""
    epochs, _ = made_of(batches)
    epochs.truncate(offset)
    kept, end = [], 0
    for epoch, gap in batches:
        if end + gap < offset:
            kept.append((epoch, gap))
        end += gap + 1
    assert made_of(kept)[0].entries == epochs.entries


@given(appends, st.integers(0, 60))
def test_a_raised_start_keeps_every_end_above_it(
    batches: list[tuple[int, int]], offset: int
) -> None:
    """The end of each epoch that ends above the new start is unchanged, and no entry is below."""
    epochs, end = made_of(batches)
    offset = min(offset, end)
    before = {epoch: epochs.end_offset(epoch, end) for epoch, _ in epochs.entries}
    latest = epochs.latest
    epochs.raise_start(offset)
    assert latest == epochs.latest
    assert all(entry.start_offset >= offset for entry in epochs.entries)
    for epoch, was in before.items():
        if was > offset:
            assert was == epochs.end_offset(epoch, end)


@pytest.mark.parametrize(
    "text",
    [
        "1\n0\n",
        "0\n",
        "0",
        "0\n2\n0 0\n",
        "0\n1\n0 0",
        "0\n1\n0 0\n1 1\n",
        "0\n1\n0\n",
        "0\n1\n-1 0\n",
        "0\n1\n0 x\n",
        "0\n2\n1 0\n0 5\n",
        "0\n2\n0 5\n1 4\n",
        "0\n-1\n",
        f"0\n1\n{'9' * 5000} 0\n",
        "0\n99999999999\n",
    ],
)
def test_a_damaged_checkpoint_is_named(text: str) -> None:
    """It is CorruptLog, not a guess."""
    with pytest.raises(CorruptLog, match="leader-epoch-checkpoint"):
        LeaderEpochs.decode(text)
