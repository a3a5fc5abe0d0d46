"""A group's committed offsets in either store, through the brokers: no ZooKeeper session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka08.client.cluster import ClusterClient
from kafka08.client.committed import error_codes
from kafka08.client.requests import (
    StorageName,
    commit_request,
    commit_version,
    committed_request,
    committed_results,
    stable_version,
)
from kafka08.client.retry import is_retriable
from kafka08.errors import check
from kafka08.network.connection import Connection
from kafka08.protocol.offset_commit import OffsetCommitRequest
from kafka08.protocol.offset_fetch import OffsetFetchResponse
from kafka08.protocol.types import Request, Response
from kafka08.structs import NO_OFFSET, OffsetAndMetadata, TopicPartition


def committed_only(
    cluster: ClusterClient,
    group: str,
    partitions: Sequence[TopicPartition],
    storage: StorageName,
) -> dict[TopicPartition, int]:
    """The group's committed offsets, without partitions that have none. `partitions` must exist: if
    the coordinator does not know one yet, it is asked again (client.committed says why), and so it
    is while an open transaction has offsets of one."""
    response = _ask(cluster, group, committed_request(group, partitions, storage), storage)
    assert isinstance(response, OffsetFetchResponse)
    return {
        tp: result.offset
        for tp, result in committed_results(response).items()
        if result.offset != NO_OFFSET
    }


def commit_offsets(
    cluster: ClusterClient,
    group: str,
    offsets: Mapping[TopicPartition, int],
    storage: StorageName,
) -> None:
    """Commit for the group. Raises the first partition's error; the others are stored."""
    values = {tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()}
    _ask(cluster, group, commit_request(group, values, storage), storage)


def _ask(cluster: ClusterClient, group: str, request: Request, storage: StorageName) -> Response:
    """Send a request until the response has no errors. Any broker serves ZooKeeper's offsets. The
    group's coordinator serves Kafka's; it is asked again while it is loading, or does not know a
    partition."""
    if storage == "zookeeper":
        return _checked(cluster.ask_any(request), group, storage)

    def ask(connection: Connection) -> Response:
        if isinstance(request, OffsetCommitRequest):
            request.version = commit_version(connection.versions)
        else:
            request.version = stable_version(connection.versions)
        return _checked(connection.send(request), group, storage)

    return cluster.ask_coordinator(group, ask, passes=is_retriable)


def _checked(response: Response, group: str, storage: StorageName) -> Response:
    """The response; raises the group's error, or the first partition's."""
    if isinstance(response, OffsetFetchResponse):
        check(response.error_code, f"offsets of group {group}")
    for tp, code in error_codes(response, storage).items():
        check(code, f"{tp} of group {group} in {storage}")
    return response
