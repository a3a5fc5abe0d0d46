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


class Identity(NamedTuple):
    """The id and epoch that a broker gave."""

    producer_id: int
    epoch: int
