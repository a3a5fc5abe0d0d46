"""Bounds: the start and end of a read, as its options give them. Pure; `resolve` turns bounds into
offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from kafka08.arrow.option_text import OptionText, numbers_from_json
from kafka08.errors import ConfigError
from kafka08.structs import EARLIEST_OFFSET, LATEST_OFFSET, TopicPartition

SEGMENT_GRAIN: Final = (
    "messages of 0.8 and 0.9 carry no time; brokers know only when each segment was last written. "
    "With timestampGranularity=segment a read by time starts and ends at segment borders: "
    "it holds everything asked for, and usually more"
)


class Extreme(Enum):
    """An end of the log."""

    EARLIEST = EARLIEST_OFFSET
    LATEST = LATEST_OFFSET


@dataclass(frozen=True, slots=True)
class Offsets:
    """An offset for each partition; EARLIEST_OFFSET and LATEST_OFFSET mean the ends of its log."""

    by_partition: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Times:
    """A time in ms for each partition, or one for all (`by_partition` is None).

    latest_if_later   a start later than all messages means the log end; else it is an error
    by_segment        by the times when segments were written; else by the timestamps of messages
    """

    by_partition: Mapping[TopicPartition, int] | None
    of_all: int = 0
    latest_if_later: bool = False
    by_segment: bool = False

    def of(self, tp: TopicPartition) -> int:
        return self.of_all if self.by_partition is None else self.by_partition[tp]


@dataclass(frozen=True, slots=True)
class Committed:
    """A group's committed offsets; `fallback` for partitions without one (None: an error)."""

    fallback: Extreme | None = field(default=None)


Bound: TypeAlias = Extreme | Offsets | Times | Committed


def take_start(options: OptionText, *, streaming: bool, segment_grain: bool) -> Bound:
    """The start of a read: startingTimestamp, else startingOffsetsByTimestamp, else
    startingOffsets. A batch must not start at the latest offset: it would read nothing."""
    by_time = _take_times(options, "starting", segment_grain)
    latest = ["latest"] if streaming else []
    text = options.take("startingOffsets")
    fallback = options.take_choice("committedFallback", ["error", "earliest", *latest], "error")
    if by_time is not None:
        return by_time
    match (text or ("latest" if streaming else "earliest")).lower():
        case "earliest":
            return Extreme.EARLIEST
        case "latest":
            if not streaming:
                raise ConfigError("startingOffsets: a batch query cannot start at latest")
            return Extreme.LATEST
        case "committed":
            return Committed(None if fallback == "error" else Extreme[fallback.upper()])
    assert text is not None
    _check_object(text, "startingOffsets", ["earliest", *latest, "committed"])
    offsets = numbers_from_json(text, "startingOffsets", low=EARLIEST_OFFSET)
    if not streaming and LATEST_OFFSET in offsets.values():
        raise ConfigError("startingOffsets: -1 (latest) is for streams; a batch cannot start there")
    return Offsets(offsets)


def take_end(options: OptionText, *, segment_grain: bool) -> Bound:
    """The end of a batch: endingTimestamp, else endingOffsetsByTimestamp, else endingOffsets."""
    by_time = _take_times(options, "ending", segment_grain)
    text = options.take("endingOffsets")
    if by_time is not None:
        return by_time
    match (text or "latest").lower():
        case "latest":
            return Extreme.LATEST
        case "earliest":
            raise ConfigError("endingOffsets: a query cannot end at earliest")
    assert text is not None
    _check_object(text, "endingOffsets", ["latest"])
    offsets = numbers_from_json(text, "endingOffsets", low=EARLIEST_OFFSET)
    if EARLIEST_OFFSET in offsets.values():
        raise ConfigError("endingOffsets: -2 (earliest) cannot be where a query ends")
    return Offsets(offsets)


def _check_object(text: str, option: str, words: Sequence[str]) -> None:
    """Reject a text that is neither one of the option's `words` nor meant as JSON."""
    if not text.lstrip().startswith("{"):
        raise ConfigError(
            f'{option}: {text!r} is not {", ".join(words)} or offsets like {{"topic":{{"0":23}}}}'
        )


def _take_times(options: OptionText, which: str, segment_grain: bool) -> Times | None:
    """The bound by time, if an option gives one."""
    names = f"{which}Timestamp", f"{which}OffsetsByTimestamp"
    of_all = options.take_number(names[0], low=0)
    text = options.take(names[1])
    strategy = "error"
    if which == "starting":
        strategy = options.take_choice(
            "startingOffsetsByTimestampStrategy", ["error", "latest"], "error"
        )
    if of_all is None and text is None:
        return None
    if of_all is not None:
        return Times(None, of_all, strategy == "latest", segment_grain)
    assert text is not None
    by_partition = numbers_from_json(text, names[1], low=0)
    return Times(by_partition, 0, strategy == "latest", segment_grain)
