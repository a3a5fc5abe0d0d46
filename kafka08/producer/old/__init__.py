"""The producer of 0.8, `Producer`, sync and async.

Start with `producer`; `event_handler` sends messages in columns (`encoded`, `message_columns`),
`router` chooses partitions, `async_queue` adds the async mode.
"""
