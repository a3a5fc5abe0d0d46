"""A batch of messages as lines for `consume`."""

from __future__ import annotations

import pytest

from kafka08 import kernel
from kafka08.cli.rendering import FORMATS
from kafka08.consumer import MessageBatch
from kafka08.protocol import message_set
from kafka08.structs import TopicPartition

MESSAGES = [(None, b"a"), (b"k", None), ("é".encode(), b'"'), (b"\xff", b"\xfe")]


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("text", [b"a", b"null", b'"', b"\xfe"]),
        ("hex", [b"t 2 7 null 61", b"t 2 8 6b null", b"t 2 9 c3a9 22", b"t 2 10 ff fe"]),
        (
            "json",
            [
                b'{"topic": "t", "partition": 2, "offset": 7, "key": null, "value": "a"}',
                b'{"topic": "t", "partition": 2, "offset": 8, "key": "k", "value": null}',
                '{"topic": "t", "partition": 2, "offset": 9, "key": "é", "value": "\\""}'.encode(),
                (
                    b'{"topic": "t", "partition": 2, "offset": 10, "key": "/w==", "value": "/g==",'
                    b' "encoding": "base64"}'
                ),
            ],
        ),
    ],
)
def test_each_message_is_a_line(form: str, lines: list[bytes]) -> None:
    """Null is `null`, and the last line has an end. Bytes that are no UTF-8 are in base64."""
    data = message_set.encode(MESSAGES, base_offset=7)
    batch = MessageBatch(
        TopicPartition("t", 2), next(kernel.column_batches(data, 0, None, message_set.unpack))
    )
    assert b"".join(line + b"\n" for line in lines) == FORMATS[form](batch)
