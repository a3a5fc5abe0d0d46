"""How a migration and the live members of its group communicate.

The journal /kafka08/migrations/<group> carries the order: a member reads its keys `step` and
`storage`. The member confirms with an ephemeral znode of the same form,
/kafka08/migrations/<group>/members/<consumer id>: "since this step I commit there". The other keys
of the journal: kafka08/migration/journal.py.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka08.errors import ZooKeeperError

DAMAGE: Final = (*(ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError),)
"""What reading a text raises whose writer was another program."""


class OffsetStorage(enum.Enum):
    """The store that the members of a group commit to and start from."""

    ZOOKEEPER = "zookeeper"
    DUAL = "dual"
    KAFKA = "kafka"

    @property
    def in_zookeeper(self) -> bool:
        return self is not OffsetStorage.KAFKA

    @property
    def in_kafka(self) -> bool:
        return self is not OffsetStorage.ZOOKEEPER

    @property
    def properties(self) -> Mapping[str, str]:
        """The keys of consumer.properties that make a member of 0.8.2.2 do so."""
        keys = {
            "offsets.storage": "kafka" if self.in_kafka else "zookeeper",
            "dual.commit.enabled": "true" if self is OffsetStorage.DUAL else "false",
        }
        return keys if self.in_kafka else {"offsets.storage": "zookeeper"}

    @staticmethod
    def of(offsets_storage: str, dual_commit_enabled: bool) -> OffsetStorage:
        """The storage that a member's configuration asks for."""
        if offsets_storage == "zookeeper":
            return OffsetStorage.ZOOKEEPER
        return OffsetStorage.DUAL if dual_commit_enabled else OffsetStorage.KAFKA


@dataclass(frozen=True, slots=True)
class Order:
    """An order: from `step` on (1, 2, … of a group) commit to `storage`. An acknowledgement has the
    same form."""

    step: int
    storage: OffsetStorage


def decode_order(text: str | None) -> Order | None:
    """The order in a journal; None if it has none, or does not exist. ZooKeeperError if it cannot
    be read: a member that then commits to the wrong store may skip messages."""
    if text is None:
        return None
    try:
        fields: Mapping[str, Any] = json.loads(text)
        if fields.get("storage") is None:
            return None
        return Order(int(fields["step"]), OffsetStorage(fields["storage"]))
    except DAMAGE as error:
        raise ZooKeeperError(f"migration order: cannot be read: {text[:100]!r}") from error


def encode_confirmation(order: Order) -> str:
    fields = {"version": 1, "step": order.step, "storage": order.storage.value}
    return json.dumps(fields, separators=(",", ":"))
