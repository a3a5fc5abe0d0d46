"""What a producer is given to send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class KeyedMessage:
    """A message for `topic`. Source: kafka.producer.KeyedMessage 0.8.2.2.

    message        the value, for the encoder; None is a null value (to compaction: a deletion)
    key            for the key encoder, stored with the message; None is a null key
    partition_key  what to choose the partition by, instead of `key`; not stored
    """

    topic: str
    message: Any
    key: Any = None
    partition_key: Any = None

    def __post_init__(self) -> None:
        if not self.topic:
            raise ValueError("a message needs a topic")

    @property
    def chosen_by(self) -> Any:
        """What the partitioner gets; None leaves the choice to chance."""
        return self.key if self.partition_key is None else self.partition_key
