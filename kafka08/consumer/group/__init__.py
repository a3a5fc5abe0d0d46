"""The consumer that polls: `KafkaConsumer`, for groups with a coordinator.

Start with `kafka_consumer`, which a program uses, and `poller`, which does the work in the
program's thread. `group_member` keeps the member in its group in a background thread, by the state
machine `membership`. `pending_commits` has the commits until their callbacks return, `committer`
sends them; `position_searches` looks for positions, which `start_finder` finds. `partitions` and
`polled_stream` have the fetched sets and positions. The fetchers are those of `fetching`.
`membership`, `watched_topics`, `assignors`, `sticky` and `subscription` are pure.
"""

from __future__ import annotations
