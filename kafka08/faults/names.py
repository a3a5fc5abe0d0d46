"""The topics, partitions and groups that a request names, whatever its API. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from kafka08.protocol.types import Request

OF_TOPICS: Final = ("topics", "partition_states", "partitions")
"""Fields of requests that list topics, or partitions each with its topic."""
OF_GROUPS: Final = ("group", "groups")


def partitions_in(request: Request) -> Iterator[tuple[str, int | None]]:
    """Each (topic, partition) of a request; the partition is None where it names the topic alone.
    Nothing for all topics."""
    for name in OF_TOPICS:
        for entry in getattr(request, name, None) or ():
            if isinstance(entry, str):
                yield entry, None
                continue
            partitions = getattr(entry, "partitions", None)
            if not isinstance(partitions, list):
                yield entry.topic, getattr(entry, "partition", None)
                continue
            for partition in partitions:
                yield entry.topic, getattr(partition, "partition", partition)


def groups_in(request: Request) -> list[str]:
    """The groups that a request names."""
    groups = getattr(request, "groups", None)
    return [request.group] if hasattr(request, "group") else list(groups or ())


def names_topics(request: type[Request]) -> bool:
    return _has_field(request, OF_TOPICS)


def names_partitions(request: type[Request]) -> bool:
    """Whether requests of that class name partitions, not only topics."""
    return names_topics(request) and request.__name__ not in WITHOUT_PARTITIONS


def names_groups(request: type[Request]) -> bool:
    return _has_field(request, OF_GROUPS)


WITHOUT_PARTITIONS: Final = frozenset(
    {"MetadataRequest", "CreateTopicsRequest", "DeleteTopicsRequest", "JoinGroupStubRequest"}
)


def _has_field(request: type[Request], names: tuple[str, ...]) -> bool:
    return any(field.name in names for field in fields(request))
