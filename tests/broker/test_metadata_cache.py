"""What the metadata cache remembers of its own answers."""

from __future__ import annotations

from kafka08.broker.metadata_cache import (
    ENCODED_BYTES_MAX,
    QUESTION_BYTES_MAX,
    MetadataCache,
)
from kafka08.protocol.update_metadata import UpdateMetadataRequest


def test_an_answer_is_remembered_until_the_next_update() -> None:
    """By the bytes of its question."""
    cache = MetadataCache(1)
    cache.remember_answer(b"question", b"answer")
    assert b"answer" == cache.encoded_answer(b"question")
    cache.update(UpdateMetadataRequest(9, 1, [], []))
    assert cache.encoded_answer(b"question") is None


def test_long_questions_are_not_remembered() -> None:
    """Up to QUESTION_BYTES_MAX, and with an answer within the budget."""
    cache = MetadataCache(1)
    longest = bytes(QUESTION_BYTES_MAX)
    cache.remember_answer(longest, b"answer")
    cache.remember_answer(longest + b"x", b"answer")
    cache.remember_answer(b"all", bytes(ENCODED_BYTES_MAX))
    assert b"answer" == cache.encoded_answer(longest)
    assert cache.encoded_answer(longest + b"x") is None
    assert cache.encoded_answer(b"all") is None


def test_what_is_remembered_has_a_budget_of_bytes() -> None:
    """The answer that would pass it is remembered, and what stood there goes."""
    cache = MetadataCache(1)
    half = bytes(ENCODED_BYTES_MAX // 2 - 1)
    for question in (b"a", b"b", b"c"):
        cache.remember_answer(question, half)
    assert [None, None, half] == [cache.encoded_answer(q) for q in (b"a", b"b", b"c")]
