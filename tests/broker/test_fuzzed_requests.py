"""Drawn requests of every API and version at each level, sound, odd and damaged: whatever a client
sends, the broker goes on, the hub is not blocked, and memory does not grow."""

from __future__ import annotations

import gc
import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from kafka08.errors import ProtocolError
from kafka08.levels import Level
from kafka08.protocol.codec import encode_request
from kafka08.protocol.metadata import MetadataRequest
from kafka08.protocol.served import SERVED
from tests.broker.drawn_requests import FOLLOWED, INTERNAL, LED, NAMES, drawn_request
from tests.broker.hub import HOLD_S, Hub
from tests.broker.world import Client, World
from tests.cpu_speed import slowdown
from tests.memory import lasting_growth, resident_bytes

REQUESTS = 600
"""Between two looks at the memory."""
ROUNDS = 3
GROWTH_BYTES_MAX = 2 << 20
"""After the first round, in which partitions, groups and caches of the few names are made."""


class Bugs(logging.Handler):
    """Exceptions that a handler of requests did not expect; other lines are not kept."""

    def __init__(self, expected: type[Exception]) -> None:
        super().__init__()
        self.found: list[str] = []
        self._expected = expected

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and not isinstance(record.exc_info[1], self._expected):
            self.found.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


@contextmanager
def only_bugs(expected: type[Exception]) -> Iterator[Bugs]:
    """In place of pytest's handlers, which keep every line. The collector runs only when it is
    called."""
    bugs, handlers = Bugs(expected), logging.root.handlers
    logging.root.handlers = [bugs]
    gc.disable()
    try:
        yield bugs
    finally:
        gc.enable()
        logging.root.handlers = handlers


def led_world(level: Level, directory: Path) -> World:
    world = World(directory, api_level=str(level))
    world.lead(LED, 2)
    world.lead(FOLLOWED, leader=2, isr=(1, 2), replicas=(1, 2))
    for topic in INTERNAL:
        world.lead(topic)
    return world


def drawn_frames(level: Level, rng: random.Random) -> Iterator[bytes]:
    """Two of five have some bytes behind the header changed."""
    rows = SERVED[level].rows
    while True:
        version = rng.choice(list(rows))
        request = drawn_request(rows[version].request_form, version[1], rng)
        frame = bytearray(encode_request(request, 1, rng.choice(NAMES)))
        if rng.random() < 0.4:
            for _ in range(rng.randrange(1, 5)):
                frame[rng.randrange(12, len(frame))] = rng.choice((0, 1, 127, 128, 255))
        yield bytes(frame)


def deliver(world: World, frame: bytes) -> None:
    client = Client(world)
    try:
        client.send(frame)
    except ProtocolError:
        pass
    client.close()


@pytest.mark.parametrize("level", list(Level), ids=str)
def test_no_request_blocks_the_hub_or_keeps_memory(level: Level, tmp_path: Path) -> None:
    """Nor ends anything: the broker answers afterwards."""
    world = led_world(level, tmp_path)
    hub, rng = Hub(world), random.Random(str(level))
    frames, sizes = drawn_frames(level, rng), []
    with only_bugs(ProtocolError) as bugs:
        for number, frame in zip(range(ROUNDS * REQUESTS), frames, strict=False):
            held = hub.measured(partial(deliver, world, frame))
            assert held < HOLD_S or held / slowdown() < HOLD_S, frame
            assert [] == bugs.found, frame
            if number % 50 == 49:
                world.runtime.advance(1)
                world.store.advance(60)
            if number % REQUESTS == REQUESTS - 1:
                gc.collect()
                sizes.append(resident_bytes())
    assert lasting_growth(sizes) < GROWTH_BYTES_MAX, sizes
    assert [LED] == [topic.topic for topic in world.client.call(MetadataRequest([LED])).topics]
