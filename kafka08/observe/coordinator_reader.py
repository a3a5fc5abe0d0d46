"""Reads the groups that have a coordinator from the brokers alone. Changes nothing.

A group has one coordinator, so a list asks every broker, and a description the coordinator alone. A
broker of 0.8 closes the connection on either request; a broker that is down refuses connections.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from kafka08.client import ClusterClient, RetryPolicy
from kafka08.clock import Clock
from kafka08.errors import (
    ConnectionFailed,
    KafkaError,
    OffsetsLoadInProgress,
    check,
)
from kafka08.network.connection import Connection
from kafka08.observe.coordinated import CoordinatedGroup, CoordinatedGroups, group_of
from kafka08.observe.layout import FIRST_COORDINATING
from kafka08.protocol.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafka08.protocol.list_groups import ListGroupsRequest, ListGroupsResponse
from kafka08.protocol.offset_fetch import probe
from kafka08.protocol.types import Request, Response
from kafka08.structs import (
    OFFSETS_TOPIC,
    Broker,
)
from kafka08.zk.store import ClusterStore

RETRIES: Final = RetryPolicy(tries=15, backoff_ms=200)
"""Retries while a coordinator is loading or moving: about 3 s in all."""
AT_ONCE: Final = 100
"""The most groups in one DescribeGroups request."""


def may_coordinate(store: ClusterStore) -> bool:
    """Whether a broker of 0.9 or later is registered. A broker of 0.8 logs an error for each
    unknown request, so callers check this first where they can read ZooKeeper."""
    return any(r.version >= FIRST_COORDINATING for r in store.registrations().values())


class CoordinatorReader:
    """Sends its requests through `cluster`, which the caller closes."""

    def __init__(self, cluster: ClusterClient, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    def groups(self) -> CoordinatedGroups:
        """Every group of every broker of 0.9 or later. Raises NoBrokersAvailable."""
        brokers = self._cluster.brokers()
        of_brokers = self._cluster.run_concurrently(partial(self._groups_of, b) for b in brokers)
        found = {group.name: group for groups, _ in of_brokers for group in groups or ()}
        return CoordinatedGroups(
            tuple(found[name] for name in sorted(found)),
            tuple(why for _, failed in of_brokers for why in failed),
            sum(groups is None for groups, _ in of_brokers),
        )

    def _groups_of(self, broker: Broker) -> tuple[list[CoordinatedGroup] | None, list[str]]:
        """(the broker's groups, or None from one of 0.8; what of them is unknown, and why)."""
        failed: list[str] = []
        try:
            with self._cluster.connection(broker) as connection:
                return _groups_of(connection, broker, failed), failed
        except KafkaError as error:
            return [], [*failed, f"groups of broker {broker.id}: {error}"]

    def describe(self, group: str) -> CoordinatedGroup | None:
        """The group, from its coordinator. None if the coordinator does not know the name or is of
        0.8, or if the offsets topic does not exist (looking up the coordinator would create it).
        Raises KafkaError if the coordinator does not respond."""
        if not self.has_offsets_topic():
            return None

        def ask(connection: Connection) -> DescribedGroup | None:
            response = _ask(connection, DescribeGroupsRequest([group]))
            if response is None:
                return None
            assert isinstance(response, DescribeGroupsResponse)
            [described] = response.groups
            check(described.error_code, f"description of group {group}")
            return described

        described = self._cluster.ask_coordinator(group, ask, policy=RETRIES, search_tries=1)
        if described is None:
            return None
        found = group_of(described, self._cluster.coordinator(group))
        return found if found.exists else None

    def has_offsets_topic(self) -> bool:
        return OFFSETS_TOPIC in self._cluster.refresh().topics


def _groups_of(
    connection: Connection, broker: Broker, failed: list[str]
) -> list[CoordinatedGroup] | None:
    """The groups that a broker coordinates; None for a broker of 0.8."""
    listed = _ask(connection, ListGroupsRequest())
    if listed is None:
        return None
    assert isinstance(listed, ListGroupsResponse)
    if listed.error_code == OffsetsLoadInProgress.code:
        failed.append(f"groups of broker {broker.id}: it is loading some of them; try again")
    else:
        check(listed.error_code, f"groups of broker {broker.id}")
    found = []
    names = [group.group for group in listed.groups]
    for start in range(0, len(names), AT_ONCE):
        response = connection.send(DescribeGroupsRequest(names[start : start + AT_ONCE]))
        assert isinstance(response, DescribeGroupsResponse)
        for described in response.groups:
            if described.error_code:
                failed.append(f"group {described.group} has just moved; try again")
            elif (group := group_of(described, broker)).exists:
                found.append(group)
    return found


def _ask(connection: Connection, request: Request) -> Response | None:
    """The response. None if the broker does not know the request: one of 0.8 closes the connection
    then, each time. A connection of a later one may be lost too, but hardly twice. Raises
    ConnectionFailed if it cannot be connected to again."""
    for _ in range(2):
        try:
            return connection.send(request)
        except ConnectionFailed:
            connection.send(probe())
    return None
