"""Groups and their offsets: the broker's side of `__consumer_offsets`.

offset_manager      the driver: commit, fetch, load on leadership, expiry
offset_cache        what is known and which record wins (pure)
append_codes        what a failed append means to a group (pure)

From level 0.9 on the broker coordinates the members of groups too:

group_coordinator   all groups of the broker: which requests are looked at, load, unload, expiry
coordinated_group   one group with its timers and its way to the log
group               the state machine of one group (pure); group_state says what it does when
group_events        what the state machine is told and what it wants done
protocol_votes      which protocol a group chooses (pure)

Start with group_state. The bytes of keys and values are kafka08/protocol/offset_records.py and
group_records.py.
"""

from __future__ import annotations

from kafka08.broker.coordinator.offset_manager import FetchedOffset, OffsetManager

__all__ = ["FetchedOffset", "OffsetManager"]
