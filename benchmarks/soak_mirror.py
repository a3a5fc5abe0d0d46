"""Copies a topic between two clusters, round after round, while mirrors and brokers of the target
die or are suspended.

Each partition of the target has one replica, so a dead broker leaves some without a leader. A
mirror that is suspended until its session is gone wakes beside its successor. At the end of a round
every message must be there, the last copies of each key in order, and no more copies than the
events explain: each may cost all messages that are not yet committed, once. Exits 1 otherwise.
"""

from __future__ import annotations

import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.soak import Outcome, announced, soak, soak_parser
from kafka08.embedded import EmbeddedCluster
from tests.mirror.mirrored import KEYS, PARTITIONS, Feed, Mirrors, check, committed
from tests.waiting import until

EVENTS: Final = 4
BURST: Final = 50 * KEYS
"""Messages between two events."""
SESSION_S: Final = 2.0
END_S: Final = 180.0


class Round:
    def __init__(
        self,
        number: int,
        source: EmbeddedCluster,
        target: EmbeddedCluster,
        directory: Path,
        rng: random.Random,
    ) -> None:
        self.topic = f"mirrored-{number}"
        self._source = source
        self._target = target
        self._rng = rng
        for cluster in (source, target):
            cluster.create_topic(self.topic, PARTITIONS)
        self._feed = Feed(source, self.topic)
        self._mirrors = [Mirrors(source, target, directory / f"{number}-{n}.log") for n in range(2)]
        self.events: list[str] = []
        self.uncommitted = 0
        """Messages that were not committed at an event, which may be copied again."""

    def run(self) -> int:
        """Number of copies too many."""
        running = self._mirrors[0]
        running.start(self.topic)
        for _ in range(EVENTS):
            self._feed.write(BURST)
            time.sleep(self._rng.uniform(0.0, 2.0))
            self.uncommitted += self._feed.count - committed(self._source, self.topic)
            running = self._event(running)
        until(lambda: committed(self._source, self.topic) == self._feed.count, "all copies", END_S)
        running.end()
        return check(self._target, self.topic, self._feed.count)

    def close(self) -> None:
        for one in self._mirrors:
            if one.running is not None:
                one.end(signal.SIGKILL)

    def _event(self, running: Mirrors) -> Mirrors:
        """One event; the mirror that runs afterwards."""
        event = self._rng.choice((self._kill, self._suspend, self._take_leader_away))
        self.events.append(event.__name__.strip("_"))
        return event(running)

    def _kill(self, running: Mirrors) -> Mirrors:
        running.end(signal.SIGKILL)
        running.start(self.topic)
        return running

    def _suspend(self, running: Mirrors) -> Mirrors:
        """Its successor copies what it has not committed; then it wakes, and is stopped."""
        assert running.running is not None
        running.running.send_signal(signal.SIGSTOP)
        time.sleep(SESSION_S * self._rng.uniform(0.5, 3.0))
        [successor] = [one for one in self._mirrors if one is not running]
        successor.start(self.topic)
        time.sleep(self._rng.uniform(0.0, 4.0))
        running.running.send_signal(signal.SIGCONT)
        time.sleep(self._rng.uniform(0.0, 2.0))
        running.end()
        return successor

    def _take_leader_away(self, running: Mirrors) -> Mirrors:
        """Messages for the other partitions arrive meanwhile, once each."""
        victim = self._rng.choice(self._target.brokers)
        self._target.kill(victim)
        self._feed.write(BURST)
        self.uncommitted += BURST
        time.sleep(self._rng.uniform(0.0, 30.0))
        self._target.restart(victim)
        return running


def main() -> int:
    options = soak_parser("soak-mirror", __doc__).parse_args()
    config = {"num.partitions": PARTITIONS}
    with (
        announced(options),
        tempfile.TemporaryDirectory() as directory,
        EmbeddedCluster(1, config, level="0.8.2") as source,
        EmbeddedCluster(2, config) as target,
    ):

        def run_round(number: int, rng: random.Random) -> Outcome:
            this = Round(number, source, target, Path(directory), rng)
            try:
                again = this.run()
            finally:
                this.close()
            problems = []
            if again > this.uncommitted:
                problems.append(f"{again} copies too many, {this.uncommitted} are explained")
            return Outcome(f"{', '.join(this.events)}: {again} copied again", problems)

        return soak(options, run_round)


if __name__ == "__main__":
    sys.exit(main())
