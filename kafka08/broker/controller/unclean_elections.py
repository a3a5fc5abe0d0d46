"""Whether a topic allows unclean elections: its override, else the broker's default.

0.8.2.2 reads ZooKeeper each time, for one topic; here `load` reads the topics of a burst of
elections at once, and `allowed` reads single ones on demand. Nothing is kept beyond the next
`load`, so a changed override applies from the next event on.
"""

from __future__ import annotations

from collections.abc import Collection

from kafka08.topic_config import unclean_elections_allowed
from kafka08.zk.store import ClusterStore


class TopicUncleanElections:
    """Whether topics allow unclean elections, from /config/topics.

    default   unclean.leader.election.enable of this broker
    """

    def __init__(self, store: ClusterStore, *, default: bool) -> None:
        self._store = store
        self._default = default
        self._allowed: dict[str, bool] = {}

    def load(self, topics: Collection[str]) -> None:
        """Read the overrides of `topics` in one burst, before calls of `allowed`. Switches."""
        self._allowed = self._read(topics)

    def allowed(self, topic: str) -> bool:
        """Switches if the topic was not loaded."""
        if topic not in self._allowed:
            self._allowed |= self._read([topic])
        return self._allowed[topic]

    def _read(self, topics: Collection[str]) -> dict[str, bool]:
        configs = self._store.topic_configs(sorted(topics)) if topics else {}
        return {
            topic: unclean_elections_allowed(topic, configs.get(topic, {}), self._default)
            for topic in topics
        }
