"""The registry of all APIs, collected from their modules."""

from __future__ import annotations

from typing import Final

from kafka08.protocol import (
    consumer_metadata,
    controlled_shutdown,
    fetch,
    leader_and_isr,
    metadata,
    offset_commit,
    offset_fetch,
    offsets,
    produce,
    stop_replica,
    stubs,
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
    stubs.HEARTBEAT,
)
