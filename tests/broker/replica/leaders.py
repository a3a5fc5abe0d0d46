"""Replicas with logs and fields of the test's choice."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any


def a_leader(kernel: ModuleType, tail: Any, **fields: Any) -> Any:
    """A partition whose log ends with `tail`."""
    leader = kernel.LeaderState()
    values: dict[str, Any] = {
        "log": None if tail is None else SimpleNamespace(active_segment=tail),
        "topic_partition": "t-0",
        "is_queued": False,
        "high_watermark_max": 2**63 - 1,
        "leader_epoch": 3,
        "followers": {},
        "isr": (1,),
        "reached_in_sync": 1,
        "maximal_isr": (1,),
        "is_leader": True,
        "is_internal": False,
        "high_watermark": 0,
        "messages_in": 0,
        "bytes_in": 0,
        "bytes_out": 0,
        "produce_requests": 0,
        "fetch_requests": 0,
    }
    for name, value in (values | fields).items():
        setattr(leader, name, value)
    return leader
