"""Every error and every public value survives pickle, copy and repr: programs send them between
processes (multiprocessing, Spark, Celery)."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kafka08
from kafka08 import errors
from kafka08.arrow import OffsetRange
from kafka08.client import ClusterMetadata, PartitionInfo, RetryPolicy, TopicInfo
from kafka08.consumer import (
    Blacklist,
    ConsumerConfig,
    ConsumerState,
    FetchedSet,
    KafkaConsumerConfig,
    MessageAndMetadata,
    MessageBatch,
    OffsetAndTimestamp,
    Whitelist,
)
from kafka08.kernel import column_batches, types
from kafka08.producer import (
    ByteArrayPartitioner,
    DefaultEncoder,
    DefaultPartitioner,
    KafkaProducerConfig,
    KeyedMessage,
    NullEncoder,
    ProducerConfig,
    ProducerRecord,
    RecordMetadata,
    StringEncoder,
)
from kafka08.protocol import message_set
from kafka08.protocol.message_set import fetched_unpacker
from kafka08.structs import Broker, OffsetAndMetadata, TopicPartition

TP = TopicPartition("t", 0)
SET = message_set.encode([(b"k", b"v"), (None, None)])
SAMPLES: dict[str, Any] = {
    "str": "text",
    "int": 3,
    "int | None": 3,
    "TopicPartition": TP,
    "tuple[object, ...]": (b"m",),
    "str | None": None,
}
SOURCE = Path(kafka08.__file__).parent


def batch() -> MessageBatch:
    [columns] = column_batches(memoryview(SET), 0, None, fetched_unpacker(0), timestamps=True)
    return MessageBatch(TP, columns)


def all_errors() -> Iterator[type[Exception]]:
    """The classes of the error table and of the kernel, and the public ones of other modules."""
    for path in ("consumer/zookeeper/registry", "spark/session", "arrow/topic_scan",
                 "arrow/data_loss", "mirror/outcome", "zk/errors", "admin/client"):  # fmt: skip
        importlib.import_module("kafka08." + path.replace("/", "."))
    found: set[type[Exception]] = {errors.KafkaError}
    while more := {sub for kind in found for sub in kind.__subclasses__()} - found:
        found |= more
    found.remove(errors.ApiError)  # only its subclasses have a code
    found |= {k for k in vars(types).values() if inspect.isclass(k) and issubclass(k, ValueError)}
    yield from sorted((k for k in found if k.__module__.startswith("kafka08")), key=str)


def sample(kind: type[Exception]) -> Exception:
    if kind.__init__ is Exception.__init__:
        return kind("text")
    given = list(inspect.signature(kind).parameters.values())
    return kind(*(SAMPLES[str(p.annotation)] for p in given if p.kind is p.POSITIONAL_OR_KEYWORD))


VALUES: tuple[Callable[[], Any], ...] = (
    lambda: TP,
    lambda: OffsetAndMetadata(3, "m"),
    lambda: OffsetAndTimestamp(3, 4),
    lambda: MessageAndMetadata("t", 0, 1, b"k", b"v", 5, 1),
    lambda: FetchedSet(TP, 0, memoryview(SET), 100, "b", 2),
    lambda: FetchedSet(TP, 0, b"", 100, "b", -1, errors.OffsetOutOfRange("x")),
    batch,
    lambda: Whitelist("a.*"),
    lambda: Blacklist("a.*"),
    lambda: ConsumerState.STALLED,
    lambda: ConsumerConfig(group_id="g", zookeeper_connect="h:1"),
    lambda: KafkaConsumerConfig(bootstrap_servers="h:1"),
    lambda: KafkaProducerConfig({"bootstrap.servers": "h:1", "x": "y"}),
    lambda: ProducerConfig(metadata_broker_list="h:1"),
    lambda: ProducerRecord("t", b"v", b"k", 0, 5),
    lambda: KeyedMessage("t", b"v", b"k", 0),
    lambda: RecordMetadata("t", 0, 1, 2),
    lambda: ClusterMetadata({1: Broker(1, "h", 9092)}, {"t": TopicInfo("t", errors.UnknownError)}),
    lambda: PartitionInfo(0, 1, (1,), (1,)),
    RetryPolicy,
    lambda: OffsetRange("t", 0, 1, 2),
    ByteArrayPartitioner,
    DefaultPartitioner,
    DefaultEncoder,
    NullEncoder,
    StringEncoder,
)
WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_error_survives(way: str) -> None:
    """With its text, its attributes and its class."""
    for kind in all_errors():
        error = sample(kind)
        again = WAYS[way](error)
        assert type(again) is kind
        assert (str(again), repr(again)) == (str(error), repr(error))
        assert (again.args, vars(again)) == (error.args, vars(error))


@pytest.mark.parametrize("way", WAYS)
def test_every_public_value_survives(way: str) -> None:
    """As an equal value, or one that shows the same."""
    for make in VALUES:
        value = make()
        again = WAYS[way](value)
        assert type(again) is type(value)
        has_equality = "__eq__" in {
            name for kind in type(value).__mro__[:-1] for name in vars(kind)
        }
        assert again == value or not has_equality
        assert shown(again) == shown(value)


def shown(value: Any) -> Any:
    """What a program sees of it."""
    if isinstance(value, MessageBatch):
        return repr(value), value.keys(), value.values(), list(value.offsets)
    if isinstance(value, FetchedSet) and value.error is None:
        return repr(value), [*value]
    return repr(value).partition(" at 0x")[0]
