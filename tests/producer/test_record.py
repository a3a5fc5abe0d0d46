"""Messages of the producers, which the kernel creates, are named tuples as others are."""

from __future__ import annotations

import inspect
import pickle

from kafka08.producer.record import KeyedMessage, ProducerRecord


class Traced(ProducerRecord):
    """As a user's program may have it, with attributes of its own."""

    span = 0


def test_a_record_is_a_named_tuple() -> None:
    """A record can be pickled, changed and unpacked; it has a repr and a signature."""
    for record in (ProducerRecord("t", b"v", partition=1), KeyedMessage("t", b"v", b"k")):
        assert (type(record), record) == (type(pickle.loads(pickle.dumps(record))), record)
        assert record._replace(topic="u") == ("u", *record[1:])
    assert (
        "ProducerRecord(topic='t', value=b'v', key=None, partition=1, timestamp=7, headers=None)"
        == repr(ProducerRecord("t", b"v", partition=1, timestamp=7))
    )
    names = list(inspect.signature(KeyedMessage).parameters)
    assert ["topic", "message", "key", "partition_key"] == names


def test_a_subclass_of_a_record_has_attributes() -> None:
    """Its instances are its own."""
    traced = Traced("t", key=b"k")
    traced.span = 7
    assert (Traced, ("t", None, b"k", None, None, None), 7) == (
        type(traced),
        tuple(traced),
        traced.span,
    )
