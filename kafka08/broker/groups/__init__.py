"""The group coordinator, and the offset manager: the broker's side of `__consumer_offsets`.

offset_manager      the driver: commit, fetch, load on leadership, expiry
offset_cache        the cached offsets, and which record is the newest (pure)
append_codes        the error code for a group after a failed append (pure)

From level 0.9 on the broker also coordinates the members of groups:

group_coordinator   all groups of the broker: checks of requests, load, unload, expiry
coordinated_group   one group with its timers and its records in the log
group               the state machine of one group (pure); group_state documents its states
group_events        the inputs and actions of the state machine
protocol_votes      which protocol a group chooses (pure)

Start with group_state. The encoding of keys and values is in kafka08/protocol/offset_records.py and
group_records.py.
"""
