"""Where groups keep their offsets: the broker's side of `__consumer_offsets`.

offset_manager    the driver: commit, fetch, load on leadership, expiry
offset_cache      what is known and which record wins (pure)

The bytes of its keys and values are kafka08/protocol/offset_records.py.
"""

from __future__ import annotations

from kafka08.broker.coordinator.offset_manager import FetchedOffset, OffsetManager

__all__ = ["FetchedOffset", "OffsetManager"]
