"""The transaction coordinator: the broker's side of `__transaction_state`, and markers.

transaction               the state machine of one transactional id (pure)
transactional_ids         those of one partition: what is appended, answered and sent (pure)
marker_codes              the reaction to the answers of partition leaders (pure)
transaction_coordinator   the driver: requests, load on leadership, timeouts, expiry
marker_sender             sends markers to the leaders of partitions
marker_writer             appends the markers of coordinators to partitions led here

Start with `transaction`. The encoding of keys and values is in
kafka08/protocol/transaction_records.py.
"""
