"""The rules for topic names.

Source: kafka.common.Topic 0.8.2.2 and 0.10.2.2, org.apache.kafka.common.internals.Topic 0.11.0.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kafka08.levels import Level
from kafka08.structs import INTERNAL_TOPICS

MAX_LENGTH: Final = 255
LATER_MAX_LENGTH: Final = 249
"""Of a new topic from 0.10.2 on: with a partition's number the name must fit into a file name."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def max_length_at(level: Level) -> int:
    """The length of the longest name of a new topic."""
    return LATER_MAX_LENGTH if level >= Level.V0_10_2 else MAX_LENGTH


def fault_of(name: str, max_length: int = MAX_LENGTH) -> str | None:
    """Why `name` is illegal, in 0.8.2.2's words; None if it is legal."""
    if not name:
        return "topic name is illegal, can't be empty"
    if name in {".", ".."}:
        return 'topic name cannot be "." or ".."'
    if len(name) > max_length:
        return f"topic name is illegal, can't be longer than {max_length} characters"
    if not _LEGAL.fullmatch(name):
        return (
            f"topic name {name} is illegal, contains a character other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


def fault_at(name: str, level: Level) -> str | None:
    """Why brokers of `level` do not create a topic `name`, in their words; None if they do."""
    fault = fault_of(name, max_length_at(level))
    if fault is None or level < Level.V0_11_0:
        return fault
    if name in {".", ".."}:
        return 'Topic name cannot be "." or ".."'
    if not name:
        return "Topic name is illegal, it can't be empty"
    if len(name) > LATER_MAX_LENGTH:
        return (
            f"Topic name is illegal, it can't be longer than {LATER_MAX_LENGTH} characters, topic "
            f"name: {name}"
        )
    return (
        f'Topic name "{name}" is illegal, it contains a character other than ASCII alphanumerics, '
        "'.', '_' and '-'"
    )


def deletion_fault_of(name: str) -> str | None:
    """Why the tools of 0.9 and later do not delete an existing topic, in their words: its offsets
    are those of every group. None if they do."""
    if name in INTERNAL_TOPICS:
        return (
            f"Topic {name} is a kafka internal topic and is not allowed to be marked for deletion."
        )
    return None


def colliding(name: str, existing: Iterable[str]) -> list[str]:
    """The existing topics whose names differ from `name` only in `.` and `_`: metrics have one name
    for both, so that brokers from 0.9 on do not create the second one."""
    metric = metric_name(name)
    return [other for other in existing if metric_name(other) == metric]


def metric_name(topic: str) -> str:
    """The name of a topic in the names of metrics."""
    return topic.replace(".", "_")
