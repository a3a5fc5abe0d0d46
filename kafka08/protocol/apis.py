"""The registry of all APIs, collected from their modules."""

from __future__ import annotations

from typing import Final

from kafka08.protocol import (
    api_versions,
    consumer_metadata,
    controlled_shutdown,
    create_topics,
    delete_topics,
    describe_groups,
    fetch,
    heartbeat,
    join_group,
    leader_and_isr,
    leave_group,
    list_groups,
    metadata,
    offset_commit,
    offset_fetch,
    offsets,
    produce,
    sasl_handshake,
    stop_replica,
    stubs,
    sync_group,
    update_metadata,
)
from kafka08.protocol.api import Api

APIS: Final[tuple[Api, ...]] = (
    produce.API,
    fetch.API,
    offsets.API,
    metadata.API,
    leader_and_isr.API,
    stop_replica.API,
    update_metadata.API,
    controlled_shutdown.API,
    offset_commit.API,
    offset_fetch.API,
    consumer_metadata.API,
    stubs.JOIN_GROUP,
    join_group.API,
    stubs.HEARTBEAT,
    heartbeat.API,
    leave_group.API,
    sync_group.API,
    describe_groups.API,
    list_groups.API,
    sasl_handshake.API,
    api_versions.API,
    create_topics.API,
    delete_topics.API,
)
