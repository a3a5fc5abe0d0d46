"""Topics, partitions, groups and transactional ids in a request, whatever its API. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.consumer_metadata import GROUP, TRANSACTION
from kafka08.protocol.layout import layout_of
from kafka08.protocol.types import Request

OF_TOPICS: Final = ("topics", "partition_states", "partitions")
"""Fields of requests that list topics, or partitions each with its topic."""
OF_MARKERS: Final = "markers"
"""A field that lists what itself has one of those fields."""
OF_GROUPS: Final = ("group", "groups")
OF_COORDINATOR: Final = "coordinator_type"
"""A field that says that `group` is a transactional id, or is not."""
OF_TRANSACTION: Final = "transactional_id"
WITHOUT_PARTITIONS: Final = frozenset(
    {"MetadataRequest", "CreateTopicsRequest", "DeleteTopicsRequest", "JoinGroupStubRequest"}
)


def partitions_in(request: Request) -> Iterator[tuple[str, int | None]]:
    """Each (topic, partition) of a request; the partition is None where it names the topic alone.
    Nothing for all topics."""
    for part in (request, *getattr(request, OF_MARKERS, ())):
        for name in OF_TOPICS:
            for entry in getattr(part, name, None) or ():
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
    if getattr(request, OF_COORDINATOR, GROUP) == TRANSACTION:
        return []
    groups = getattr(request, "groups", None)
    return [request.group] if hasattr(request, "group") else list(groups or ())


def transactional_id_in(request: Request) -> str | None:
    """The transactional id that a request names."""
    if getattr(request, OF_COORDINATOR, GROUP) == TRANSACTION:
        assert hasattr(request, "group")
        return str(request.group)
    found: str | None = getattr(request, OF_TRANSACTION, None)
    return found


def keys_named(api: Api, row: ApiVersion) -> set[str]:
    """The keys of a rule whose values a request of that version may name."""
    names = {name for name, _ in layout_of(row.request_form).fields}
    keys = set()
    if names & {*OF_TOPICS, OF_MARKERS}:
        keys.add("topic")
        if api.request.__name__ not in WITHOUT_PARTITIONS:
            keys.add("partition")
    if names & {*OF_GROUPS}:
        keys.add("group")
    if names & {OF_TRANSACTION, OF_COORDINATOR}:
        keys.add("transactional_id")
    if row.has_client_id:
        keys.add("client_id")
    return keys
