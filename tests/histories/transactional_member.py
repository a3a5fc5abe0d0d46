"""A process that sends, processes or reads transactions, to be killed and suspended: what it does,
line by line.

    python -m tests.histories.transactional_member '{"role": "send", ...}'

Each line is a JSON list that begins with the seconds of the machine's monotonic clock, by which the
lines of several processes are put in order, and is written before the process does anything else.
SIGTERM ends it after the present transaction, SIGUSR1 writes the stacks of its threads to stderr.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

from kafka08.errors import KafkaError
from kafka08.structs import TopicPartition
from tests.histories.transactional_clients import (
    RECEIVERS,
    SENDERS,
    Message,
    MustAbort,
    MustEnd,
    Receiver,
)

SENDS_MAX: Final = 12
PAUSE_S: Final = 0.3
LONG_PAUSE_S: Final = 4.0
ABORTED: Final = 0.15
"""The share of transactions that end with abort_transaction."""
OPEN_LONG: Final = 0.03
"""The share that stays open for LONG_PAUSE_S."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """What such a process is to do.

    role          send: to `outputs`; process: from `inputs` to `outputs`; read: `inputs`
    client        of `transactional_clients`
    name          its transactional id, and its group
    session       the number of its session; every value begins with name and session
    transactions  how many it makes; 0: until SIGTERM
    """

    role: str
    client: str
    name: str
    session: int
    bootstrap: str
    seed: int
    inputs: list[tuple[str, int]]
    outputs: list[tuple[str, int]]
    timeout_ms: int = 60_000
    transactions: int = 0

    def line(self) -> list[str]:
        return [sys.executable, "-m", "tests.histories.transactional_member", self.to_json()]

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def say(kind: str, *words: object) -> None:
    os.write(1, json.dumps([time.monotonic(), kind, *words]).encode() + b"\n")


class Ends:
    """Whether the process has been told to end."""

    def __init__(self) -> None:
        self.told = False
        signal.signal(signal.SIGTERM, self._tell)

    def _tell(self, *_: object) -> None:
        self.told = True


class Transactions:
    """The transactions of one session."""

    def __init__(self, member: Member, ends: Ends) -> None:
        self._member = member
        self._ends = ends
        self._rng = random.Random(f"{member.seed}/{member.name}/{member.session}")
        self._sender = SENDERS[member.client](member.bootstrap, member.name, member.timeout_ms)
        self._outputs = [TopicPartition(*one) for one in member.outputs]
        self._values = 0
        self._receiver: Receiver | None = None
        self._waiting: list[Message] = []

    def run(self) -> None:
        """Until SIGTERM, the last transaction, or an error after which only another session can go
        on."""
        try:
            say("initializing")
            self._sender.init()
            say("initialized")
            if self._member.role == "process":
                self._open_receiver()
            done = 0
            while not self._ends.told and not 0 < self._member.transactions <= done:
                work = self._process if self._member.role == "process" else self._send_some
                done += self._one(work)
        except (MustAbort, MustEnd) as error:
            say("ends", str(error))

    def _one(self, work: Callable[[], None]) -> bool:
        """Whether a transaction was made. One that fails is aborted."""
        if self._member.role == "process" and not self._receive():
            return self._member.transactions > 0
        say("begin")
        self._sender.begin()
        try:
            work()
            self._pause()
            if self._rng.random() >= ABORTED:
                say("committing")
                self._sender.commit()
                say("committed")
                self._waiting = []
                return True
        except MustAbort as error:
            say("failed", str(error))
        self._sender.abort()
        say("aborted")
        return True

    def _send_some(self) -> None:
        for _ in range(self._rng.randint(1, SENDS_MAX)):
            self._send(self._rng.choice(self._outputs), "")
        if self._rng.random() < 0.5:
            self._sender.flush()

    def _send(self, tp: TopicPartition, of: str) -> None:
        self._values += 1
        value = f"{self._member.name}/{self._member.session} {self._values}{of}"
        say("send", tp.topic, tp.partition, value)
        self._sender.send(tp, value.encode())

    def _process(self) -> None:
        offsets: dict[TopicPartition, int] = {}
        for one in self._waiting:
            self._send(self._rng.choice(self._outputs), f" of {one.tp.partition} {one.offset}")
            offsets[one.tp] = one.offset + 1
        places = [(*one.tp, one.offset) for one in self._waiting]
        say("offsets", self._member.name, places, [(*tp, offset) for tp, offset in offsets.items()])
        self._sender.send_offsets(offsets, self._member.name)

    def _pause(self) -> None:
        is_long = self._rng.random() < OPEN_LONG
        seconds = self._rng.uniform(0, LONG_PAUSE_S if is_long else PAUSE_S)
        end = time.monotonic() + seconds
        while not self._ends.told and time.monotonic() < end:
            time.sleep(0.02)

    def _open_receiver(self) -> None:
        """At the group's offsets, which the former session's transaction has moved, if it was
        committed."""
        self._receiver = receiver = RECEIVERS[self._member.client](
            self._member.bootstrap,
            [TopicPartition(*one) for one in self._member.inputs],
            "read_committed",
            self._member.name,
        )
        while not self._ends.told or self._member.transactions:
            try:
                found = receiver.committed()
            except KafkaError:
                time.sleep(0.2)
                continue
            for tp in (TopicPartition(*one) for one in self._member.inputs):
                if tp in found:
                    say("offset", self._member.name, *tp, found[tp])
                receiver.seek(tp, found.get(tp, 0))
            return

    def _receive(self) -> bool:
        """Whether there is something to process: what an abort left, or else new messages."""
        assert self._receiver is not None
        if not self._waiting:
            try:
                self._waiting = self._receiver.poll(0.2)
            except KafkaError as error:
                say("poll", repr(error))
        return bool(self._waiting)


def read(member: Member, ends: Ends) -> None:
    partitions = [TopicPartition(*one) for one in member.inputs]
    receiver = RECEIVERS[member.client](member.bootstrap, partitions, "read_committed", "")
    while not ends.told:
        try:
            found = receiver.poll(0.2)
        except KafkaError as error:
            say("poll", repr(error))
            continue
        if found:
            say("read", [(*one.tp, one.offset, one.value.decode()) for one in found])


def main(text: str) -> None:
    faulthandler.register(signal.SIGUSR1)
    logging.basicConfig(level=logging.WARNING, format="%(relativeCreated)d %(message)s")
    ends = Ends()
    member = Member(**json.loads(text))
    if member.role == "read":
        read(member, ends)
    else:
        Transactions(member, ends).run()
    # Nothing is left to finish, and closing may wait for brokers.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
