"""The consumer that polls: `KafkaConsumer`, for groups with a coordinator.

Start with `kafka_consumer`, which a program uses, and `poller`, which does the work in the
program's thread. `group_member` keeps the member in its group in a thread of its own, by the state
machine `membership`; `committer` sends commits, `start_finder` finds positions, `partitions` and
`polled_stream` are what is read and how far. Messages come by kafka08.consumer's fetchers.
`membership`, `assignors`, `sticky` and `subscription` are pure.
"""

from __future__ import annotations
