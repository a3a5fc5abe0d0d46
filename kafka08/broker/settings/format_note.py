"""The line of a starting broker about the format of new messages, and what that refuses."""

from __future__ import annotations

from collections.abc import Iterator

from kafka08.levels import Level
from kafka08.protocol_version import LATEST, ProtocolVersion


def format_note(level: Level, protocol: ProtocolVersion, stored: ProtocolVersion) -> str:
    """The mode of a broker of this inter.broker.protocol.version and log.message.format.version:
    alone with brokers of its level, or together with older ones."""
    own = LATEST[level]
    peers = "brokers of this level" if protocol == own else f"brokers of {protocol} and later"
    says = f"api.level={level} among {peers}; new messages have the format of {stored}"
    lacks = list(_lacks(level, stored.magic))
    if lacks:
        says += f" where their topic has none of its own. {'. '.join(lacks)}"
    return says


def _lacks(level: Level, magic: int) -> Iterator[str]:
    """Yields what producers of the level can send and this format cannot store."""
    if level >= Level.V0_11_0 and magic < LATEST[Level.V0_11_0].magic:
        yield "Headers, idempotent producers and transactions are refused there"
    if level >= Level.V0_10_2 and magic < LATEST[Level.V0_10_2].magic:
        yield "Timestamps are not stored"
