"""Kafka's wire protocol: bytes ↔ objects, no socket and no decision in here.

One module per API holds its request and response classes, the layouts of each version (types), and
a row per version (api). `apis` is the registry of all rows, `served` says which of them a broker of
a level serves. Start with `codec`, which turns messages into bytes and back, then `frame` for
cutting a stream into payloads, and `message_set` with `compression` for the messages;
`grouping` goes from partitions to topics and back; `offset_records` and `group_records` are the
messages of the offsets topic, `consumer_protocol` the consumers' bytes in the group APIs.

Import from the modules: a client then makes the classes of the APIs that it uses, and no others.
"""
