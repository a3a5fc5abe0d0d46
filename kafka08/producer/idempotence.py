"""Whether brokers store each batch of a producer once, and who that producer is to them."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

EPOCH_MAX: Final = (1 << 15) - 1
UNACKNOWLEDGED_MAX: Final = 5
"""The batches of a producer and partition that a broker recognizes if they come again."""


class Idempotence(Enum):
    """OFF       a retry may store a batch twice
    WANTED    brokers from 0.11 on store each once
    REQUIRED  the same, and nothing is sent to older ones
    """

    OFF = "off"
    WANTED = "wanted"
    REQUIRED = "required"


class Terms(NamedTuple):
    """Demands of a producer on brokers for a batch.

    acks        0, 1 or -1
    retries     attempts after the first one
    delivery_s  no retry later than this after a batch was created; inf: as retries say
    """

    acks: int
    retries: int
    delivery_s: float


class Identity(NamedTuple):
    """The id and epoch that a broker gave."""

    producer_id: int
    epoch: int
