"""Decides what to do after messages were sent together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kafka08.client.retry import is_retriable
from kafka08.errors import (
    BufferExhausted,
    InvalidTopic,
    KafkaError,
    TopicMissing,
)

Failures = Sequence[tuple[Sequence[int], KafkaError]]
"""Indexes of messages that were not stored (or might not have been), with errors."""


class MirrorFailed(KafkaError):
    """The mirror ended without being stopped. Unfinished messages are not committed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """resend   indexes of the messages to send again, ascending
    because  the first error that may pass; None if there is none
    refused  (index, error) of the messages that the target refuses permanently, ascending
    singly   send each of them by itself: the target refused several together, maybe for one
    """

    resend: tuple[int, ...] = ()
    because: KafkaError | None = None
    refused: tuple[tuple[int, KafkaError], ...] = ()
    singly: bool = False


def judge(
    count: int,
    failures: Failures,
    share_order: Callable[[int], object | None],
) -> Outcome:
    """Decide which of `count` messages that were sent together are sent again, and which are
    refused.

    What failed is sent again, stored or not; and of the messages whose order with it counts, all
    behind it: one that was stored before the copy of an earlier one would stay before it for good.
    The others are not: they went to other partitions of the target, of which one without a leader
    would multiply the messages of the healthy ones.

    share_order   index → what messages have in common whose order is kept; None: no other's
    """
    refused: dict[int, KafkaError] = {}
    passing: dict[int, KafkaError] = {}
    suspects: set[int] = set()
    for places, error in failures:
        if is_missing(error):
            refused.update(dict.fromkeys(places, error))
        elif passes(error):
            passing.update(dict.fromkeys(places, error))
        elif len(places) == 1:
            refused[places[0]] = error
        else:
            suspects.update(places)
    again = passing.keys() | suspects
    first_of: dict[object, int] = {}
    for place in sorted(again):
        if (shared := share_order(place)) is not None:
            first_of.setdefault(shared, place)
    return Outcome(
        tuple(
            place
            for place in range(min(again, default=count), count)
            if place not in refused
            and (place in again or place > first_of.get(share_order(place), count))
        ),
        passing[min(passing)] if passing else None,
        tuple(sorted(refused.items(), key=lambda item: item[0])),
        bool(suspects),
    )


def passes(error: KafkaError) -> bool:
    """Whether the same message may be stored later: a full buffer empties when brokers respond."""
    return is_retriable(error) or isinstance(error, BufferExhausted)


def is_missing(error: KafkaError) -> bool:
    """Whether the target has no such topic, and makes none: all its messages are refused."""
    return isinstance(error, TopicMissing | InvalidTopic)
