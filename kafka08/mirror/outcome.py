"""Decides what to do after messages were sent together. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka08.client.retry import is_retriable
from kafka08.errors import BufferExhausted, KafkaError

Failures = Sequence[tuple[Sequence[int], KafkaError]]
"""Indexes of messages that were not stored (or may not have been), with errors."""


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


def judge(count: int, failures: Failures) -> Outcome:
    """Decide which of `count` messages that were sent together are sent again, and which are
    refused.

    From the first message whose error may pass, or that was refused together with others, all are
    sent again that are not refused, stored or not: a message that was stored behind one that was
    not would otherwise come before it for good.
    """
    refused: dict[int, KafkaError] = {}
    passing: dict[int, KafkaError] = {}
    suspects: set[int] = set()
    for places, error in failures:
        if passes(error):
            passing.update(dict.fromkeys(places, error))
        elif len(places) == 1:
            refused[places[0]] = error
        else:
            suspects.update(places)
    first = min(passing.keys() | suspects, default=count)
    return Outcome(
        tuple(place for place in range(first, count) if place not in refused),
        passing.get(min(passing, default=first)),
        tuple(sorted(refused.items(), key=lambda item: item[0])),
        bool(suspects),
    )


def passes(error: KafkaError) -> bool:
    """Whether the same message may be stored later: a full buffer empties when brokers respond."""
    return is_retriable(error) or isinstance(error, BufferExhausted)
