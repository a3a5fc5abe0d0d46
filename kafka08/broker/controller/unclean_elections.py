"""Whether a topic may get a leader that is not in sync: its override, else the broker's default.

0.8.2.2 asks ZooKeeper each time, for one topic; here `load` reads what a burst of elections will
ask for in one go, and `allowed` reads single ones as they come. Nothing is kept longer than until
the next `load`, so that a changed override counts from the next event on.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from kafka08.zk.store import ClusterStore

log = logging.getLogger(__name__)

KEY: Final = "unclean.leader.election.enable"


class TopicUncleanElections:
    """`state_changes.UncleanElections` out of /config/topics.

    default   unclean.leader.election.enable of this broker
    """

    def __init__(self, store: ClusterStore, *, default: bool) -> None:
        self._store = store
        self._default = default
        self._allowed: dict[str, bool] = {}

    def load(self, topics: Collection[str]) -> None:
        """Read the overrides of `topics`. Switches."""
        configs = self._store.topic_configs(sorted(topics)) if topics else {}
        self._allowed = {topic: self._parse(topic, configs.get(topic, {})) for topic in topics}

    def allowed(self, topic: str) -> bool:
        """Switches if the topic was not loaded."""
        if topic not in self._allowed:
            self._allowed[topic] = self._parse(topic, self._store.topic_config(topic))
        return self._allowed[topic]

    def _parse(self, topic: str, overrides: dict[str, str]) -> bool:
        text = overrides.get(KEY)
        if text is None:
            return self._default
        if text not in {"true", "false"}:
            log.error("Topic %s has %s=%r, which is neither true nor false", topic, KEY, text)
            return self._default
        return text == "true"
