"""A cleaner has removed messages between a follower's HW and its log end: at the leader, in the
follower's copy, or in both. A checkpoint of the HW may be that old after a kill."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka08.broker.replication.log_comparison import Difference, same_entries
from kafka08.log.cleaner import LogCleaner
from kafka08.protocol import compression, message_set
from tests.broker.fetching_pair import TP, Pair, contents
from tests.broker.world import World

KEYS = b"abababab"  # of offsets 0 to 7
COMMITTED = 8
PLAIN, COMPRESSED = compression.NONE, compression.GZIP


@pytest.fixture(params=["0.8.2", "0.10.2"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Pair:
    return Pair(tmp_path, api_level=request.param, log_cleanup_policy="compact")


def entry(pair: Pair, offset: int, value: bytes = b"", codec: int = PLAIN) -> bytearray:
    """A set with the message of this offset; compressed, it also has the one before."""
    magic = pair.copy.log.config.magic
    numbers = [offset] if codec == PLAIN else [offset - 1, offset]
    messages = [
        (KEYS[number : number + 1] or b"c", value or b"value %d" % number) for number in numbers
    ]
    return bytearray(message_set.encode(messages, codec, numbers[0], magic=magic))


def fill(partition: Any, entries: list[bytearray]) -> None:
    """Append these, with the committed ones in a segment of their own."""
    for data in entries:
        partition.log.append_as_follower(data)
        if partition.log.log_end_offset == COMMITTED:
            partition.log.roll()


def clean(world: World, end: int = COMMITTED) -> None:
    """Clean below this offset, up to where a segment ends."""
    cleaner = LogCleaner(world.log_manager, world.config.cleaner_config(), committed=lambda _: end)
    while cleaner.clean_one():
        pass


def offsets(partition: Any) -> list[int]:
    return [message.offset for message in message_set.decode(contents(partition))]


def follow(pair: Pair, *, isr: tuple[int, ...] = (1, 2), leader_knows: int = COMMITTED) -> None:
    """The follower knows two messages to be committed, the leader `leader_knows`."""
    pair.original.high_watermark = leader_knows
    pair.copy.high_watermark = 2
    states = pair.follower.store.states
    states[TP] = replace(states[TP], isr=isr)
    pair.fetcher.add(pair.copies)
    for _ in range(4):
        pair.fetcher.round()


@pytest.mark.parametrize("codec", [PLAIN, COMPRESSED])
@pytest.mark.parametrize("cleaned", ["leader", "follower", "both"])
def test_a_replica_in_sync_keeps_what_is_committed(
    pair: Pair, cleaned: str, codec: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It is never shorter than the leader's HW, not for a moment: if the leader died then, this
    replica would be elected without messages that were acknowledged."""
    step = 1 if codec == PLAIN else 2
    committed = [entry(pair, number, codec=codec) for number in range(step - 1, COMMITTED, step)]
    above = [entry(pair, 8), entry(pair, 9)]
    fill(pair.original, [*committed, *above])
    fill(pair.copy, [*committed, *above[:1]])
    if cleaned != "follower":
        clean(pair.leader)
        assert [6, 7, 8, 9] == offsets(pair.original)
    if cleaned != "leader":
        pair.copy.log.truncate_to(4) if cleaned == "both" else None
        pair.copy.log.roll()
        clean(pair.follower)
        for data in [*committed[4 // step :], above[0]] if cleaned == "both" else ():
            pair.copy.log.append_as_follower(data)
    with caplog.at_level("INFO"):
        follow(pair)
    assert "Truncating" not in caplog.text
    assert 10 == pair.copy.log.log_end_offset
    assert 10 == pair.original.high_watermark


def test_what_differs_above_is_cut_there(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    """Above the leader's HW nothing is cleaned, so that the first difference is one."""
    committed = [entry(pair, number) for number in range(COMMITTED)]
    fill(pair.original, [*committed, *(entry(pair, number) for number in (8, 9, 10))])
    fill(pair.copy, [*committed, entry(pair, 8), entry(pair, 9, b"other")])
    clean(pair.leader)
    with caplog.at_level("INFO"):
        follow(pair)
    assert "Truncating log t-0 to offset 9." in caplog.text
    assert contents(pair.original)[-60:] == contents(pair.copy)[-60:]
    assert 11 == pair.original.high_watermark


def test_another_message_at_the_same_offset_is_cut(pair: Pair) -> None:
    """No cleaner does that: it differs, whatever the leader's HW says."""
    fill(pair.original, [entry(pair, number) for number in range(10)])
    fill(pair.copy, [entry(pair, number, b"other" if number > 4 else b"") for number in range(9)])
    follow(pair)
    assert contents(pair.original) == contents(pair.copy)


def test_what_may_never_have_been_committed_is_cut(pair: Pair) -> None:
    """A replica that is not in sync has led, and has messages that no other has had. Where the
    leader's cleaner has left no message to compare them with, they go nevertheless."""
    fill(pair.original, [entry(pair, number) for number in range(10)])
    fill(pair.copy, [entry(pair, number, b"other" if number > 3 else b"") for number in range(6)])
    clean(pair.leader)
    follow(pair, isr=(1,))
    assert [0, 1, 6, 7, 8, 9] == offsets(pair.copy)
    assert b"other" not in contents(pair.copy)


@pytest.mark.parametrize("produced", [10, 12])
def test_a_search_below_the_leaders_end_stays_above_its_high_watermark(
    pair: Pair, produced: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The leader has lost its last messages with its power, and the follower's HW was above them:
    what both have at their ends is compared backwards, and the cleaner was there too."""
    pair.follower.store.configs["t"] = {"unclean.leader.election.enable": "true"}
    entries = [entry(pair, number) for number in range(14)]
    fill(pair.original, entries[:10])
    fill(pair.copy, [*entries[:9], *(entry(pair, number, b"other") for number in range(9, 14))])
    clean(pair.leader)
    pair.original.high_watermark, pair.copy.high_watermark = COMMITTED, 13
    pair.fetcher.add(pair.copies)
    pair.fetcher.round()
    for data in entries[10:produced]:
        pair.original.log.append_as_follower(data)
    with caplog.at_level("INFO"):
        for _ in range(4):
            pair.fetcher.round()
    assert "Truncating log t-0 to offset 9." in caplog.text
    assert b"other" not in contents(pair.copy)
    assert produced == pair.copy.log.log_end_offset == pair.original.high_watermark


@pytest.mark.parametrize(("isr", "kept"), [((1, 2), 0), ((1,), 8)], ids=["in sync", "not"])
def test_a_leader_that_begins_above_the_high_watermark(
    pair: Pair, isr: tuple[int, ...], kept: int
) -> None:
    """Retention has deleted its first messages. A replica in sync has what follows, and must not
    begin again: it would be empty for a moment."""
    entries = [entry(pair, number) for number in range(10)]
    fill(pair.copy, entries)
    pair.original.log.truncate_fully_and_start_at(COMMITTED)
    fill(pair.original, entries[8:])
    follow(pair, isr=isr, leader_knows=9)
    assert (kept, 10) == (pair.copy.log.log_start_offset, pair.copy.log.log_end_offset)
    assert contents(pair.copy).endswith(contents(pair.original))


class TestSameEntries:
    """What the comparison of a response says about the first difference."""

    @pytest.mark.parametrize(
        ("mine", "fetched", "expected"),
        [
            ([2, 3], [2, 3, 4], Difference.NONE),
            ([2, 3], [], Difference.CERTAIN),
            ([2, 3], [2, 5], Difference.UNCERTAIN),
            ([2, 5], [2, 3, 5], Difference.UNCERTAIN),
            ([2, 3], [2, -3], Difference.CERTAIN),
            ([2, 3], [2, -4], Difference.UNCERTAIN),
        ],
    )
    def test_it_tells_cleaning_from_divergence(
        self, pair: Pair, mine: list[int], fetched: list[int], expected: Difference
    ) -> None:
        """The other message of an offset, here a negative number, is no work of a cleaner; an
        offset that one side lacks may be."""

        def sets(numbers: list[int]) -> list[bytearray]:
            return [entry(pair, abs(one), b"other" if one < 0 else b"") for one in numbers]

        for data in [entry(pair, 0), entry(pair, 1), *sets(mine)]:
            pair.copy.log.append_as_follower(data)
        _, difference = same_entries(pair.copy.log, 2, b"".join(sets(fetched)))
        assert expected is difference

    def test_compressed_sets_may_have_been_written_again(self, pair: Pair) -> None:
        """A cleaner leaves a wrapper's last offset, so that the same one says nothing."""
        for number in (1, 3):
            pair.copy.log.append_as_follower(entry(pair, number, codec=COMPRESSED))
        fetched = entry(pair, 3, b"v", codec=COMPRESSED)
        _, difference = same_entries(pair.copy.log, 2, fetched)
        assert Difference.UNCERTAIN is difference

    def test_the_beginning_of_an_entry_says_nothing(self, pair: Pair) -> None:
        """The response ends within the head of the entry that differs."""
        for number in range(4):
            pair.copy.log.append_as_follower(entry(pair, number))
        fetched = entry(pair, 2) + entry(pair, 7)[:10]
        same, difference = same_entries(pair.copy.log, 2, fetched)
        assert (1, Difference.UNCERTAIN) == (same.count, difference)
