"""The responses that the metadata cache keeps."""

from __future__ import annotations

from kafka08.broker.cluster.metadata_cache import (
    CACHED_REQUEST_BYTES_MAX,
    ENCODED_BYTES_MAX,
    MetadataCache,
)
from kafka08.protocol.update_metadata import UpdateMetadataRequest


def test_a_response_is_remembered_until_the_next_update() -> None:
    """A response is kept by the bytes of its request, until the next update."""
    cache = MetadataCache(1)
    cache.cache_response(b"request", b"response")
    assert b"response" == cache.cached_response(b"request")
    cache.update(UpdateMetadataRequest(9, 1, [], []))
    assert cache.cached_response(b"request") is None


def test_long_questions_are_not_remembered() -> None:
    """Requests up to CACHED_REQUEST_BYTES_MAX are kept, if their response is within the budget."""
    cache = MetadataCache(1)
    longest = bytes(CACHED_REQUEST_BYTES_MAX)
    cache.cache_response(longest, b"response")
    cache.cache_response(longest + b"x", b"response")
    cache.cache_response(b"all", bytes(ENCODED_BYTES_MAX))
    assert b"response" == cache.cached_response(longest)
    assert cache.cached_response(longest + b"x") is None
    assert cache.cached_response(b"all") is None


def test_cached_responses_have_a_budget_of_bytes() -> None:
    """A response that would exceed the budget replaces all others."""
    cache = MetadataCache(1)
    half = bytes(ENCODED_BYTES_MAX // 2 - 1)
    for question in (b"a", b"b", b"c"):
        cache.cache_response(question, half)
    assert [None, None, half] == [cache.cached_response(q) for q in (b"a", b"b", b"c")]
