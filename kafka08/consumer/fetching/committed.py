"""Fetched sets for readers of committed messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from kafka08 import kernel
from kafka08.protocol.fetch import AbortedTransaction
from kafka08.protocol.types import Buffer


def committed(data: Buffer, aborted: Iterable[AbortedTransaction]) -> Buffer:
    """`data`, which was checked, without the messages of these transactions, which a broker names
    in any order."""
    in_order = sorted((one.first_offset, one.producer_id) for one in aborted)
    return kernel.without_aborted(data, in_order)
