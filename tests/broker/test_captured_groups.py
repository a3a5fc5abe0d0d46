"""This broker gives the responses that real brokers of 0.9.0.1 and 0.10.2.2 gave to the requests of
groups.

The captured exchanges are sent in order to one broker. Member ids end in a random UUID, so those of
the capture are replaced by the ids in our JoinGroup responses. Responses are compared as decoded
messages, without the order of their lists, which is a hash map's in the JVM."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from kafka08.levels import Level
from kafka08.protocol.codec import decode_request, decode_response, encode_request
from kafka08.protocol.served import SERVED
from kafka08.structs import OFFSETS_TOPIC
from tests.broker.world import Client, World

DATA = Path(__file__).parent.parent / "data"
CLOSED = "connection closed by broker"
GROUP_KEYS = frozenset({8, 9, 11, 12, 13, 14, 15, 16})
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")


class Replay:
    """One broker, and the exchanges that are sent to it."""

    def __init__(self, directory: Path, level: Level, **config: Any) -> None:
        self.level = level
        self.world = World(directory, api_level=str(level), **config)
        self.world.lead(OFFSETS_TOPIC, 50)
        self.ours: dict[str, str] = {}
        """Member ids of the capture → ours."""
        self.parked: list[tuple[Client, dict[str, Any]]] = []
        self.responses: list[tuple[str, Any, Any]] = []
        """Name of the exchange, the response of the capture, ours."""

    def lose(self) -> None:
        """Makes another broker the leader of the offsets topic."""
        self.world.lead(OFFSETS_TOPIC, 50, leader=2, isr=(2,), replicas=(1, 2))
        self.look_at_parked()

    def regain(self) -> None:
        self.world.lead(OFFSETS_TOPIC, 50, replicas=(1, 2))

    def move_away_and_back(self) -> None:
        self.lose()
        self.regain()

    def send(self, entry: dict[str, Any]) -> None:
        client = Client(self.world)
        client.peer = "127.0.0.1:50000"
        header, request = decode_request(
            bytes.fromhex(entry["request_hex"])[4:], SERVED[self.level]
        )
        request = self.translated(request)
        client.send(encode_request(request, header.correlation_id, header.client_id))
        if client.parked:
            self.parked.append((client, entry))
        else:
            self.note(client, entry)
        self.look_at_parked()

    def look_at_parked(self) -> None:
        for client, entry in list(self.parked):
            if not client.parked:
                self.parked.remove((client, entry))
                self.note(client, entry)

    def note(self, client: Client, entry: dict[str, Any]) -> None:
        request_bytes = bytes.fromhex(entry["request_hex"])[4:]
        _, request = decode_request(request_bytes, SERVED[self.level])
        (frame,) = client.frames()
        captured = bytes.fromhex(entry["response_hex"])[4:]
        _, got = decode_response(type(request), frame, request.version)
        _, expected = decode_response(type(request), captured, request.version)
        if getattr(expected, "member_id", ""):
            self.ours.setdefault(expected.member_id, got.member_id)
            assert bool(UUID.search(expected.member_id)) == bool(UUID.search(got.member_id))
        self.responses.append((entry["name"], expected, got))

    def differences(self) -> str:
        """Compares once all requests have responses, because a new member may be described before
        its JoinGroup is answered."""
        self.look_at_parked()
        assert [] == self.parked
        pairs = [(n, simplified(self.translated(e)), simplified(g)) for n, e, g in self.responses]
        return "\n".join(f"{n}\n  expected {e}\n  got      {g}" for n, e, g in pairs if e != g)

    def translated(self, message: Any) -> Any:
        """The message with our member ids."""
        if is_dataclass(message):
            for field in fields(message):
                setattr(message, field.name, self.translated(getattr(message, field.name)))
            return message
        if isinstance(message, list):
            return [self.translated(part) for part in message]
        return self.ours.get(message, message) if isinstance(message, str) else message


def simplified(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: simplified(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list):
        return sorted((simplified(part) for part in value), key=str)
    return bytes(value) if isinstance(value, memoryview) else value


def captured(name: str) -> list[dict[str, Any]]:
    """The exchanges of a recording as runs of one broker each, in the order in which they were
    sent."""
    entries: list[dict[str, Any]] = json.loads((DATA / f"{name}.json").read_text())
    runs: list[list[dict[str, Any]]] = [[]]
    for entry in entries:
        if entry["name"] in RUN_STARTS:
            runs.append([])
        if entry.get("api_key") in GROUP_KEYS and entry["outcome"] != CLOSED:
            runs[-1].append(entry)
    return [entry for run in runs for entry in sorted(run, key=sent)]


def sent(entry: dict[str, Any]) -> int:
    number: int = entry["response"]["corr"]
    return number


RUN_STARTS = {"mig-join", "gv-before"}
DEPARTURES = {
    "join-no-protocols": "23 here; there -1, and the group can never be used again",
    "describe-gnp": "that group",
}
"""Exchanges in which we answer differently on purpose (docs/compatibility.md)."""
OTHER_CLUSTER = {"list-groups", "list-groups-other-broker", "list-end", "list-after"}
"""These depend on which of two brokers leads what, and on how long a load takes."""


def test_0_9_0_1(tmp_path: Path) -> None:
    """The capture has a group of two members and one without members, from the first join to the
    last leave."""
    replay = Replay(tmp_path, Level.V0_9_0)
    replay.world.lead("g1", 4)
    for entry in captured("api-0.9.0.1"):
        replay.send(entry)
    assert "" == replay.differences()


def test_0_10_2_2(tmp_path: Path) -> None:
    """The capture has votes, timeouts, simple commits, expiry, and a partition that moves away and
    back."""
    replay = Replay(tmp_path, Level.V0_10_2, offsets_retention_check_interval_ms=3000)
    replay.world.lead("b-plain")
    before: dict[str, Callable[[], object]] = {
        "rt-after-awaiting-sync-session": lambda: replay.world.runtime.advance(10),
        "mig-hb-old": replay.lose,
        "mig-hb-new": replay.regain,
        "mig2-hb": replay.move_away_and_back,
        "gv-before": replay.move_away_and_back,
        "gv-after": replay.lose,
    }
    entries = captured("0.10-api-groups")
    names = [entry["name"] for entry in entries]
    old = names.index("mig-hb-old")
    entries[old - 1], entries[old] = entries[old], entries[old - 1]
    for entry in entries:
        name = entry["name"]
        if name in DEPARTURES or name in OTHER_CLUSTER or name.endswith("-not-coordinator"):
            continue
        before.get(name, lambda: None)()
        replay.send(entry)
        if name == "rt-join-2-waits-2s":
            replay.world.runtime.advance(entry["ms"] / 1000)
    assert "" == replay.differences()


def test_a_broker_that_is_not_the_coordinator(tmp_path: Path) -> None:
    """Every request of a group gets 16."""
    replay = Replay(tmp_path, Level.V0_10_2)
    replay.world.lead("b-plain")
    replay.lose()
    entries = [e for e in captured("0.10-api-groups") if e["name"].endswith("-not-coordinator")]
    assert 8 == len(entries)
    for entry in entries:
        replay.send(entry)
    assert "" == replay.differences()
