"""The demo's ledger: any range's content is known, and any difference shows."""

from __future__ import annotations

from kafka08.demo.ledger import Content, Ledger, message_hash


def filled() -> Ledger:
    ledger = Ledger(2)
    for number in range(10):
        ledger.add(number % 2, b"k%d" % number, b"v" * number)
    return ledger


def test_ranges_add_up_to_the_whole() -> None:
    """Content of two halves together is the content of everything, in any order."""
    ledger = filled()
    halves = [ledger.content([(0, 0, 2), (1, 3, 5)]), ledger.content([(1, 0, 3), (0, 2, 5)])]
    assert ledger.whole() == halves[0] + halves[1] == halves[1] + halves[0]
    assert ledger.whole() - halves[0] == halves[1]


def test_reading_in_another_order_gives_the_same_content() -> None:
    """The sum of hashes does not depend on order, so any split over readers can be compared."""
    ledger = filled()
    sums = [message_hash(b"k%d" % n, b"v" * n) for n in reversed(range(10))]
    assert ledger.whole() == Content(10, 20 + 45, sum(sums) % 2**64)


def test_a_key_is_not_a_value_and_null_is_not_empty() -> None:
    """Moving a byte between key and value, or null to empty, changes the hash."""
    assert 4 == len(
        {message_hash(*m) for m in [(b"a", b""), (b"", b"a"), (None, b"a"), (b"a", None)]}
    )


def test_below_counts_from_the_start_of_each_partition() -> None:
    """`below` gives what a group has read that stands at these offsets."""
    ledger = filled()
    assert ledger.content([(0, 0, 1), (1, 0, 4)]) == ledger.below({0: 1, 1: 4})
    assert {0: 5, 1: 5} == ledger.log_ends()
