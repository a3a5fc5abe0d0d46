"""A group's committed offsets, in either store, by way of the brokers: no ZooKeeper session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import (
    Storage,
    commit_request,
    commit_results,
    committed_request,
    committed_results,
)
from kafka08.errors import NO_ERROR, UnknownTopicOrPartition, check
from kafka08.network.connection import Connection
from kafka08.protocol.offset_commit import OffsetCommitResponse
from kafka08.protocol.offset_fetch import OffsetFetchResponse
from kafka08.protocol.types import Request, Response
from kafka08.structs import NO_OFFSET, OffsetAndMetadata, TopicPartition


def committed_offsets(
    cluster: ClusterClient, group: str, partitions: Sequence[TopicPartition], storage: Storage
) -> dict[TopicPartition, int]:
    """What the group has committed; partitions without a commit are left out."""
    response = _ask(cluster, group, committed_request(group, partitions, storage), storage)
    assert isinstance(response, OffsetFetchResponse)
    found = {}
    for tp, answer in committed_results(response).items():
        # 0.8: version 0 answers a missing znode with error 3 and offset -1.
        if answer.error_code not in {NO_ERROR, UnknownTopicOrPartition.code}:
            check(answer.error_code, f"{tp} of group {group} in {storage}")
        if answer.offset != NO_OFFSET:
            found[tp] = answer.offset
    return found


def commit_offsets(
    cluster: ClusterClient, group: str, offsets: Mapping[TopicPartition, int], storage: Storage
) -> None:
    """Commit for the group. Raises the first partition's error; the others are stored."""
    values = {tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()}
    response = _ask(cluster, group, commit_request(group, values, storage), storage)
    assert isinstance(response, OffsetCommitResponse)
    for tp, answer in commit_results(response).items():
        check(answer.error_code, f"{tp} of group {group} in {storage}")


def _ask(cluster: ClusterClient, group: str, request: Request, storage: Storage) -> Response:
    """ZooKeeper's version is served by any broker, Kafka's by the group's coordinator."""
    if storage == "zookeeper":
        return cluster.ask_any(request)

    def ask(connection: Connection) -> Response:
        response = connection.send(request)
        _raise_coordinator_errors(response)
        return response

    return cluster.ask_coordinator(group, ask)


def _raise_coordinator_errors(response: Response) -> None:
    """A coordinator that is loading or gone says so for each partition; asked again, it may not."""
    assert isinstance(response, OffsetCommitResponse | OffsetFetchResponse)
    for topic in response.topics:
        for answer in topic.partitions:
            if answer.error_code not in {NO_ERROR, UnknownTopicOrPartition.code}:
                check(answer.error_code, f"[{topic.topic},{answer.partition}]")
