"""GroupRun: processes that read as one group while chance kills, stops and adds some, kills the
group's coordinator, and holds or resets connections; then peace, in which every message must be
processed.

Their lines are merged by time and told to a GroupHistory, whose rules they are to obey.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from kafka08.errors import KafkaError
from kafka08.hashing import group_partition
from kafka08.lifecycle import Closeable
from kafka08.simulation.group_history import GroupHistory
from kafka08.structs import OFFSETS_TOPIC, TopicPartition
from kafka08.zk.store import ClusterStore
from tests.migration.live_group import Load
from tests.waiting import until

ROOT = Path(__file__).parent.parent.parent
MEMBERS_MAX = 4
RATE = 100
HOLD_S = 2.5
"""The longest time for which bytes are held: longer than the session of a member."""


class Killable(Protocol):
    def kill(self) -> None: ...

    def start(self) -> None: ...


class Network(Protocol):
    """Between clients and brokers, each named by its id."""

    def hold(self, broker: int) -> None:
        """Let no byte pass, and lose none, until `release`."""

    def release(self) -> None: ...

    def reset(self, broker: int) -> None:
        """End the connections that there are with an error."""


def coordinator_of(
    store: ClusterStore,
    brokers: Mapping[int, Killable],
    group: str,
    partitions: Sequence[TopicPartition],
    offsets_partitions: int,
) -> Killable | None:
    """The broker that coordinates `group`; None unless all replicas of the offsets and of
    `partitions` are in sync, so that nothing is lost with it."""
    offsets = TopicPartition(OFFSETS_TOPIC, group_partition(group, offsets_partitions))
    states = store.leader_and_isr([offsets, *partitions])
    if any(tp not in states or len(states[tp].isr) < len(brokers) for tp in (offsets, *partitions)):
        return None
    return brokers.get(states[offsets].leader)


class GroupRun(Closeable):
    """`topic` exists, with `partitions` partitions; the group is called like it.

    coordinator   the broker that coordinates the group now; None: none may be killed now
    brokers       the ids of the brokers in `network`
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        directory: Path,
        rng: random.Random,
        coordinator: Callable[[], Killable | None],
        network: Network,
        brokers: Sequence[int],
    ) -> None:
        self.faults: list[str] = []
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = [TopicPartition(topic, number) for number in range(partitions)]
        self._directory = directory
        self._rng = rng
        self._coordinator = coordinator
        self._network = network
        self._brokers = brokers
        self._seed = rng.randrange(10**9)
        self._started = 0
        self._members: list[subprocess.Popen[bytes]] = []
        self._frozen: list[subprocess.Popen[bytes]] = []
        self._load = Load(bootstrap, self._partitions, RATE)

    def close(self) -> None:
        self._network.release()
        for member in self._members:
            member.kill()
            member.wait()
        self._load.close()

    def run(self, seconds: float) -> GroupHistory:
        """Faults for so long; as `run_while`."""
        return self.run_while(lambda: self._break_things(seconds))

    def run_while(self, change: Callable[[], object]) -> GroupHistory:
        """Two members read while `change` is made. AssertionError if not every message is processed
        in the end."""
        for _ in range(2):
            self._join()
        until(lambda: self._history().count > 0, "the first messages")
        change()
        return self._settle()

    def _break_things(self, seconds: float) -> None:
        faults = [self._join, self._kill, self._leave, self._freeze, self._thaw]
        faults += [self._fail_over, self._hold, self._reset]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._do_one_of(faults)
            self._check_members()
            time.sleep(self._rng.uniform(0.1, 1.5))

    def _settle(self) -> GroupHistory:
        """The history once every message is processed, and all members have left."""
        while self._frozen:
            self._thaw()
        if not self._members:
            self._join()
        self._load.close()
        ends = until(self._ends, "the ends of the logs")
        until(
            lambda: not self._missing(ends),
            "every message is processed",
            explain=lambda: self._explain(ends),
        )
        self._check_members()
        for member in self._members:
            member.terminate()
        for member in self._members:
            member.wait(60)
        return self._history()

    def _do_one_of(self, faults: Sequence[Callable[[], None]]) -> None:
        fault = self._rng.choice(faults)
        self.faults.append(fault.__name__.lstrip("_"))
        fault()

    def _check_members(self) -> None:
        """AssertionError with what a member said last that ended by itself."""
        ended = [str(member.args) for member in self._members if member.poll() is not None]
        logs = [file.read_text()[-2000:] for file in self._directory.glob("*.log")] if ended else []
        assert not ended, f"ended by themselves: {ended}; what they all said: {logs}"

    @property
    def problems(self) -> list[str]:
        """The rules that were broken."""
        found: list[str] = []
        self._history(found)
        return found

    # -------------------------------------------------------------------------------- the faults

    def _join(self) -> None:
        if len(self._members) >= MEMBERS_MAX:
            return
        self._started += 1
        name = f"m{self._started}"
        keys = (f"bootstrap.servers={self._bootstrap}", f"group.id={self._topic}")
        module = "tests.histories.polling_member"
        line = [sys.executable, "-m", module, name, self._topic, str(self._seed), *keys]
        with (self._directory / name).open("wb") as out, self._log(name).open("wb") as log:
            member = subprocess.Popen(line, stdout=out, stderr=log, cwd=ROOT)
        self._members.append(member)

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def _kill(self) -> None:
        if self._members:
            member = self._members.pop(self._rng.randrange(len(self._members)))
            member.kill()
            member.wait()
            with suppress(ValueError):
                self._frozen.remove(member)

    def _leave(self) -> None:
        awake = [one for one in self._members if one not in self._frozen]
        if awake:
            member = self._rng.choice(awake)
            self._members.remove(member)
            member.terminate()
            # It may have been told before it could listen.
            assert member.wait(60) in {0, -signal.SIGTERM}, "a member that was to leave failed"

    def _freeze(self) -> None:
        awake = [one for one in self._members if one not in self._frozen]
        if awake:
            member = self._rng.choice(awake)
            member.send_signal(signal.SIGSTOP)
            self._frozen.append(member)

    def _thaw(self) -> None:
        if self._frozen:
            self._frozen.pop(0).send_signal(signal.SIGCONT)

    def _fail_over(self) -> None:
        broker = self._coordinator()
        if broker is not None:
            broker.kill()
            broker.start()

    def _hold(self) -> None:
        """The connections to a broker for a while, in which something may befall a member."""
        self._network.hold(self._rng.choice(self._brokers))
        time.sleep(self._rng.uniform(0.0, HOLD_S / 2))
        self._do_one_of([self._join, self._kill, self._freeze, self._thaw])
        time.sleep(self._rng.uniform(0.0, HOLD_S / 2))
        self._network.release()

    def _reset(self) -> None:
        self._network.reset(self._rng.choice(self._brokers))

    # ------------------------------------------------------------------------------- the history

    def _lines(self) -> Iterator[list[str]]:
        lines = []
        for file in self._directory.glob("m*[0-9]"):
            text = file.read_text()
            # The last line of a killed process may be cut: it did nothing after it.
            lines += [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]
        lines.sort(key=lambda words: float(words[0]))
        return iter(lines)

    def _history(self, wrong: list[str] | None = None) -> GroupHistory:
        found: list[str] = [] if wrong is None else wrong
        history = GroupHistory(found.append, is_safe=True)
        for _, event, member, *numbers in self._lines():
            values = [int(number) for number in numbers]
            if event in {"assigned", "revoked"}:
                getattr(history, event)(member, [self._partitions[n] for n in values])
                continue
            tp, offset = self._partitions[values[0]], values[1]
            if event == "handed":
                history.handed(member, tp, offset)
            elif event == "processed":
                history.processed(tp, offset)
            else:
                history.committed(member, {tp: offset})
        return history

    def _ends(self) -> dict[TopicPartition, int] | None:
        """None while a broker starts."""
        try:
            return self._load.stop()
        except KafkaError:
            return None

    def _explain(self, ends: dict[TopicPartition, int]) -> str:
        for member in self._members:
            member.send_signal(signal.SIGUSR1)
        time.sleep(1)
        return (
            f"missing: {self._missing(ends)}, faults: {self.faults}; what the members said, and "
            f"the stacks of those that live, are in {self._directory}"
        )

    def _missing(self, ends: dict[TopicPartition, int]) -> int:
        history = self._history()
        return sum(len(history.missing(tp, range(end))) for tp, end in ends.items())
