"""perf produce and perf consume: the columns of the JVM's tools, counts that are true."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Commands, Inspector

MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"


@pytest.mark.parametrize("how", [[], ["--sync"], ["--new-producer"], ["--new-producer", "--sync"]])
def test_messages_go_out(
    kafka08: Commands, inspect: Inspector, kafka08_topic: str, how: list[str]
) -> None:
    """One header and one line of figures; every message is in the topic."""
    size = ["--messages", "700", "--message-size", "50", "--threads", "2"]
    done = kafka08("perf", "produce", "--topics", kafka08_topic, *size, *how)
    header, figures = done.out.decode().splitlines()
    assert header.startswith("start.time, end.time, compression, message.size, batch.size, ")
    assert re.fullmatch(rf"{MOMENT}, {MOMENT}, 0, 50, 200, 0\.03, [\d.]+, 700, [\d.]+", figures)
    assert len(inspect.messages(kafka08_topic)) == 700


def test_messages_come_in(kafka08: Commands, inspect: Inspector, kafka08_topic: str) -> None:
    """As many as were asked for; numbered ones are as the JVM's tool words them."""
    ids = ["--messages", "9", "--initial-message-id", "4", "--message-size", "30"]
    done = kafka08("perf", "produce", "--topics", kafka08_topic, *ids, "--hide-header")
    assert inspect.messages(kafka08_topic)[0][1] == b"Message:0000000004:xxxxxxxxxxx"
    done = kafka08("perf", "consume", "--topic", kafka08_topic, "--messages", "9")
    header, figures = done.out.decode().splitlines()
    assert header.startswith("start.time, end.time, fetch.size, data.consumed.in.MB, ")
    assert re.fullmatch(rf"{MOMENT}, {MOMENT}, 1048576, 0\.0003, [\d.]+, 9, [\d.]+", figures)
