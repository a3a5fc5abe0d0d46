"""Exact ranges as an RDD: one Spark partition per range, near its leader if its host is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pyspark import RDD, SparkContext
from pyspark.serializers import CPickleSerializer

from kafka08.arrow.ranges import OffsetRange
from kafka08.arrow.settings import ClusterAddress, ReadSettings
from kafka08.kernel import MessageAndMetadata
from kafka08.spark.task_reader import range_reader
from kafka08.structs import Broker, TopicPartition

if TYPE_CHECKING:
    from pyspark.core.rdd import PipelinedRDD
else:  # where PySpark 3.5 has it; later releases keep that name as an alias
    from pyspark.rdd import PipelinedRDD

Handle = Callable[["MessageAndMetadata[Any, Any]"], Any]
"""Makes an element of a message, whose key and value are bytes or None; runs in the worker."""
BYTE_ARRAY: Final = "[B"


@dataclass(frozen=True, slots=True)
class RangeRead:
    """A function for the workers: the cluster, the settings of a read, and the element function."""

    address: ClusterAddress
    settings: ReadSettings
    handle: Handle

    def __call__(self, _: int, parts: Iterable[tuple[OffsetRange, Broker | None]]) -> Iterator[Any]:
        """Yields the elements of a Spark partition, which holds one range. An empty range opens no
        connection."""
        for wanted, leader in parts:
            sets = range_reader(self.address, self.settings, wanted, leader) if wanted.size else ()
            for fetched in sets:
                for message in fetched.decoded(until_offset=wanted.until_offset):
                    yield self.handle(message)


class KafkaRDD(PipelinedRDD[Any, Any]):
    """The messages of `ranges`, in their order. `count`, `isEmpty` and the share of `take` come
    from the ranges, without a job; offsets that compaction removed count as messages.
    Source: org.apache.spark.streaming.kafka.KafkaRDD 2.4.
    """

    def __init__(self, parts: RDD[Any], ranges: Sequence[Any], read: RangeRead) -> None:
        super().__init__(parts, read)
        self._ranges = list(ranges)

    def offsetRanges(self) -> list[Any]:
        """The ranges as they were given, one per Spark partition."""
        return list(self._ranges)

    def count(self) -> int:
        return sum(of_partition.size for of_partition in self._ranges)

    def isEmpty(self) -> bool:
        return self.count() == 0

    def take(self, num: int) -> list[Any]:
        """The first `num` elements; reads only as many partitions as necessary."""
        taken: list[Any] = []
        for number, of_partition in enumerate(self._ranges):
            left = num - len(taken)
            if left <= 0:
                break
            if of_partition.size:
                taken += self.ctx.runJob(self, partial(_first, left), [number])
        return taken


def _first(count: int, part: Iterable[Any]) -> Iterable[Any]:
    return islice(part, count)


def kafka_rdd(
    sc: SparkContext,
    ranges: Sequence[Any],
    leaders: Mapping[TopicPartition, Broker],
    read: RangeRead,
) -> KafkaRDD:
    """An RDD of `ranges` (OffsetRange or a subclass), in list order; `leaders` as far as known."""
    parts = [(OffsetRange(*r), leaders.get(r.topic_partition)) for r in ranges]
    return KafkaRDD(_located(sc, parts), ranges, read)


def _located(
    sc: SparkContext, parts: Sequence[tuple[OffsetRange, Broker | None]]
) -> RDD[tuple[OffsetRange, Broker | None]]:
    """An RDD with one Spark partition for each of `parts`, which prefers its leader's host. Scala's
    makeRDD has such preferences, Python's parallelize does not."""
    jvm = sc._jvm
    assert jvm is not None
    serializer = CPickleSerializer()
    if not parts:  # makeRDD would have one partition
        return RDD(sc._jsc.emptyRDD(), sc, serializer)
    dumps: Callable[[Any], bytes] = serializer.dumps
    to_seq = jvm.org.apache.spark.api.python.PythonUtils.toSeq
    located = [
        jvm.scala.Tuple2(dumps((wanted, leader)), to_seq([leader.host] if leader else []))
        for wanted, leader in parts
    ]
    tag = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName(BYTE_ARRAY))
    scala_rdd = sc._jsc.sc().makeRDD(to_seq(located), tag)
    java_rdd = jvm.org.apache.spark.api.java.JavaRDD.fromRDD(scala_rdd, tag)
    return RDD(java_rdd, sc, serializer)
