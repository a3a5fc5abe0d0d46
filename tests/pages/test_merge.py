"""Messages of several partitions in the order of their timestamps."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kafka08.pages.merge import in_order, merge, newest

Messages = dict[int, list[dict[str, Any]]]


def log_of(partition: int, *times: int | None) -> list[dict[str, Any]]:
    return [{"partition": partition, "offset": n, "time_ms": t} for n, t in enumerate(times)]


def places(messages: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(message["partition"], message["offset"]) for message in messages]


def merged(logs: Messages, limit: int = 1000) -> list[dict[str, Any]]:
    return merge({partition: iter(log) for partition, log in logs.items()}, limit)[0]


rising = st.lists(st.integers(0, 20), max_size=8).map(sorted)
logs_of_time = st.lists(rising, max_size=5).map(
    lambda all_: {n: log_of(n, *times) for n, times in enumerate(all_)}
)
any_logs = st.lists(
    st.lists(st.none() | st.integers(0, 20), max_size=8), max_size=5
).map(lambda all_: {n: log_of(n, *times) for n, times in enumerate(all_)})  # fmt: skip


@given(logs_of_time, st.integers(1, 20))
def test_the_first_ones_are_those_with_the_lowest_times(logs: Messages, limit: int) -> None:
    """They are the lowest of all partitions while times do not fall within each; the result has
    what was read ahead."""
    every = sorted(m["time_ms"] for log in logs.values() for m in log)
    taken, untaken = merge({n: iter(log) for n, log in logs.items()}, limit)
    assert every[:limit] == [message["time_ms"] for message in taken]
    for partition, message in untaken.items():
        assert message["offset"] == sum(m["partition"] == partition for m in taken)


@given(logs_of_time, st.integers(1, 20))
def test_the_newest_ones_are_those_with_the_highest_times(logs: Messages, limit: int) -> None:
    """They are the last messages of the partitions."""
    every = sorted(m["time_ms"] for log in logs.values() for m in log)
    chosen = newest(logs, limit)
    assert every[-limit:] == sorted(m["time_ms"] for log in chosen.values() for m in log)
    for partition, log in chosen.items():
        assert logs[partition][-len(log) :] == log


@given(any_logs, st.integers(1, 20))
def test_no_message_is_lost_repeated_or_put_before_an_earlier_one(
    logs: Messages, limit: int
) -> None:
    """With any timestamps, continuing where a read stopped returns each partition's messages in
    order."""
    rest = dict(logs)
    found: list[dict[str, Any]] = []
    while any(rest.values()):
        taken, _ = merge({n: iter(log) for n, log in rest.items()}, limit)
        found += taken
        rest = {n: log[sum(m["partition"] == n for m in taken) :] for n, log in rest.items()}
    of_partitions = groupby(sorted(found, key=lambda m: m["partition"]), lambda m: m["partition"])
    assert {n: log for n, log in logs.items() if log} == {n: list(log) for n, log in of_partitions}


def test_nothing_is_read_after_the_last_one() -> None:
    """The next match of a text may be a million messages away."""
    source = iter(log_of(0, 1, 2, 3))
    assert [(0, 0), (0, 1)] == places(merge({0: source}, 2)[0])
    assert [(0, 2)] == places(list(source))


def test_a_message_without_a_timestamp_follows_the_one_before_it() -> None:
    """It follows that of its partition; without any before it, it comes first."""
    logs = {0: log_of(0, None, 30, None), 1: log_of(1, 20, 40)}
    assert [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1)] == places(merged(logs))


def test_without_timestamps_partitions_take_turns_and_are_shown_one_by_one() -> None:
    """So a limit leaves messages of each, from either end."""
    logs = {0: log_of(0, *[None] * 5), 1: log_of(1, *[None] * 5)}
    assert ([(0, 0), (0, 1), (1, 0), (1, 1)], "partition") == shown(merged(logs, 4))
    chosen = newest(logs, 4)
    assert ([(0, 3), (0, 4), (1, 3), (1, 4)], "partition") == shown(merged(chosen))
    assert "time" == shown(merged({0: log_of(0, None, 1)}))[1]


def shown(messages: list[dict[str, Any]]) -> tuple[list[tuple[int, int]], str]:
    found, order = in_order(messages)
    return places(found), order
