"""Fetch 0 and 1 at level 0.10.2: what consumers of magic 0 get from logs with magic 1."""

from __future__ import annotations

import json
import random
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.broker.requests import converted_set, fetch_call
from kafka08.broker.requests.converted_set import PIECE_BYTES, DownConvertedResponse
from kafka08.errors import InvalidMessage
from kafka08.kernel import build_set, entries, wrap
from kafka08.log.slices import LogSlice
from kafka08.protocol import compression, message_set
from kafka08.protocol.codec import decode_response, encode_request
from kafka08.protocol.compression import GZIP, LZ4, SNAPPY
from kafka08.protocol.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka08.protocol.types import Request
from kafka08.runtime.disk import OpenMode
from kafka08.runtime.system_disk import SYSTEM_DISK
from kafka08.structs import TopicPartition
from tests.broker.fake_runtime import FakeRuntime
from tests.broker.world import World, generated_bytes, piece_bytes
from tests.format.captures import LOGS as LOGS_0_11

DATA = Path(__file__).parents[2] / "data"
TP = TopicPartition("t", 0)
LARGE = 1 << 20
FETCHES = {
    exchange["name"]: exchange
    for exchange in json.loads((DATA / "0.10-api-data.json").read_text())
    if exchange["name"].startswith(("fetch-v0-", "fetch-v1-"))
}
LOGS = json.loads((DATA / "0.10-logs.json").read_text())


def world_of(tmp_path: Path, log: bytes, **keys: Any) -> World:
    """A broker of level 0.10.2 that leads a partition with these entries."""
    world = World(tmp_path, api_level="0.10.2", **keys)
    world.lead("t")
    append(world, log)
    return world


def append(world: World, log: bytes) -> None:
    partition = world.partition("t")
    partition.log.append_as_follower(log)
    partition.maybe_raise_high_watermark()


def fetch(world: World, offset: int = 0, max_bytes: int = LARGE, version: int = 0) -> Any:
    topics = [FetchTopic("t", [FetchPartition(0, offset, max_bytes)])]
    response = world.client.call(FetchRequest(-1, 0, 0, topics, version=version))
    return response.topics[0].partitions[0]


def rows(data: bytes) -> list[Any]:
    return [(m.offset, m.key, m.value, m.timestamp) for m in message_set.decode(data)]


def plain(count: int, base: int = 0, magic: int = 1, value: bytes = b"value") -> bytes:
    messages = [(b"k", value)] * count
    stamps = [7] * count if magic else None
    return bytes(build_set(messages, base, magic=magic, timestamps=stamps))


def packed(codec: int, count: int, base: int = 0, value: bytes = b"value") -> bytes:
    return message_set.encode([(b"k", value)] * count, codec, base, magic=1, timestamps=[7] * count)


@pytest.mark.parametrize("name", FETCHES)
def test_consumers_get_the_messages_of_0_10_2_2(tmp_path: Path, name: str) -> None:
    """Uncompressed messages and sets without conversion are equal byte for byte; others have the
    same messages."""
    exchange = FETCHES[name]
    (topic,) = exchange["request"]["body"]["topics"]
    (asked,) = topic["parts"]
    (sent,) = exchange["response"]["body"]["topics"][0]["parts"]
    expected = bytes.fromhex(sent["set"]["hex"])
    world = world_of(tmp_path, bytes.fromhex(LOGS[f"{topic['topic']}-0"]["hex"]))
    found = fetch(world, asked["offset"], asked["max"], int(name[7])).message_set
    if name in {"fetch-v0-b-plain", "fetch-v0-b-m0", "fetch-v0-first-cut", "fetch-v0-second-cut"}:
        assert expected == found
    else:
        assert rows(expected) == rows(found)
        assert {0} == {entry.magic for entry in entries(found, verify_crc=True)}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_versions_up_to_1_get_magic_0(tmp_path: Path, version: int) -> None:
    """Fetch 0 and 1 get magic 0. Fetch 2 gets the log's messages unchanged."""
    world = world_of(tmp_path, plain(3))
    found = fetch(world, version=version).message_set
    assert {int(version > 1)} == {entry.magic for entry in entries(found)}
    assert (found == plain(3)) == (version > 1)


@pytest.mark.parametrize("small_bytes", [0, 1000])
def test_sent_bytes_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_bytes: int
) -> None:
    """bytesout counts the bytes sent, not those in the log, as KafkaApis.handleFetchRequest of
    0.10.2.2."""
    monkeypatch.setattr(converted_set, "SMALL_BYTES", small_bytes)
    world = world_of(tmp_path, plain(3) + packed(GZIP, 30, 3))
    partition = world.partition("t")
    for offset in (0, 1, 3):
        before = partition.bytes_out
        assert len(fetch(world, offset).message_set) == partition.bytes_out - before
    before = partition.bytes_out
    assert plain(3, magic=0) == fetch(world, max_bytes=len(plain(3))).message_set
    assert len(plain(3, magic=0)) == partition.bytes_out - before


def test_magic_0_is_sent_from_its_file(tmp_path: Path) -> None:
    """A set of magic 0 is sent from its file, with the head of the message that the limit cuts."""
    log = plain(3, magic=0)
    world = world_of(tmp_path, log)
    assert log[:-1] == fetch(world, max_bytes=len(log) - 1).message_set


def test_parked_fetches_get_magic_0(tmp_path: Path) -> None:
    """Messages that arrive while a Fetch is parked are converted too."""
    world = world_of(tmp_path, plain(1))
    topics = [FetchTopic("t", [FetchPartition(0, 0, LARGE)])]
    world.client.send(request_bytes(FetchRequest(-1, 1000, 1000, topics)))
    assert [] == world.client.frames()
    append(world, plain(50, base=1))
    world.replica_manager.purgatories.wake(TP)
    (frame,) = world.client.frames()
    assert plain(51, magic=0) in frame


def request_bytes(request: Request) -> bytes:
    return encode_request(request, 1, "test")


def slice_of(directory: Path, data: bytes, size: int | None = None) -> LogSlice:
    path = directory / "segment"
    path.write_bytes(data)
    file = SYSTEM_DISK.open(path, OpenMode.READ)
    return LogSlice(0, 0, file, 0, len(data) if size is None else size)


def old_response(*found: LogSlice, runtime: FakeRuntime | None = None) -> Any:
    """The response with the sizes of all sets."""
    reads = dict(enumerate(found))
    old = DownConvertedResponse(reads, runtime or FakeRuntime(), "peer", 0)
    old.convert(reads)
    old.find_sizes(lambda: None)
    return old


def sent(found: LogSlice, runtime: FakeRuntime | None = None) -> bytes:
    """The bytes sent for one slice. Their number must equal the announced size."""
    old = old_response(found, runtime=runtime)
    assert {} == old.errors
    size = old.sets[0].size
    out = bytes(piece_bytes(old.sets[0]))
    assert size == len(out)
    return out


MIXED = b"".join(
    (
        plain(2),
        packed(GZIP, 3, 2),
        plain(1, 5, magic=0),
        packed(SNAPPY, 4, 6),
        packed(LZ4, 5, 10),
        plain(3, 15),
    )
)


PLAIN = plain(2) + plain(1, 2, magic=0) + plain(3, 3)


@given(size=st.integers(1, len(MIXED)), piece=st.integers(40, 400))
def test_whole_messages_come_in_order_and_once(
    tmp_path_factory: pytest.TempPathFactory, size: int, piece: int
) -> None:
    """For any end of the slice and any size of reads, the bytes sent are whole messages from the
    start of the log's range, each once, and at least one if the slice has a whole one."""
    directory = tmp_path_factory.mktemp("log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(converted_set, "PIECE_BYTES", piece)
        found = rows(sent(slice_of(directory, MIXED, size)))
    expected = [(offset, key, value, -1) for offset, key, value, _ in rows(MIXED[:size])]
    if expected and MIXED[:size][16]:
        assert found
        assert found == expected[: len(found)]


@given(size=st.integers(1, len(PLAIN)))
def test_small_sets_are_converted_at_once(
    tmp_path_factory: pytest.TempPathFactory, size: int
) -> None:
    """Small sets are converted at once, to the messages that a conversion while sending would give,
    without padding."""
    found = slice_of(tmp_path_factory.mktemp("log"), PLAIN, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(converted_set, "SMALL_BYTES", 0)
        made = sent(found)
    now = sent(found)
    assert rows(made) == rows(now)
    response = old_response(found)
    assert isinstance(response.sets[0], bytes) == (size >= len(plain(1)))


def test_few_small_sets_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a few converted small sets are kept. The others are converted while they are sent."""
    monkeypatch.setattr(converted_set, "KEPT_BYTES_MAX", len(plain(2)))
    old = old_response(*(slice_of(tmp_path, plain(1)) for _ in range(5)))
    sets = list(old.sets.values())
    assert [True, True, False, False, False] == [isinstance(one, bytes) for one in sets]
    assert [plain(1, magic=0)] * 5 == [bytes(piece_bytes(one)) for one in sets]


def packed_well(base: int) -> bytes:
    """200 messages, compressed better than our codec does."""
    chance = random.Random(base)
    words = [chance.randbytes(5).hex().encode() for _ in range(40)]
    text = [(None, b" ".join(chance.choices(words, k=30))) for _ in range(200)]
    inner = bytes(build_set(text, 0, magic=1, timestamps=[7] * 200))
    best = zlib.compressobj(9, wbits=31)
    return bytes(wrap(best.compress(inner) + best.flush(), base + 199, GZIP, 1, 7))


def test_a_compressed_message_that_grows_comes_whole(tmp_path: Path) -> None:
    """A compressed message that grows is sent whole, in a set as large as the consumer needs."""
    wrapper = packed_well(0)
    out = sent(slice_of(tmp_path, wrapper))
    assert len(out) > len(wrapper)
    assert 200 == len(rows(out))


def test_messages_that_outgrow_their_set_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the messages outgrow their set, the last one is cut, and the consumer fetches it again."""
    wrappers = [packed_well(base) for base in (0, 200, 400)]
    monkeypatch.setattr(converted_set, "PIECE_BYTES", len(wrappers[0]))
    log = b"".join(wrappers)
    out = sent(slice_of(tmp_path, log))
    assert len(log) == len(out)
    assert 400 == len(rows(out))


def test_room_that_is_left_holds_no_message(tmp_path: Path) -> None:
    """Padding looks like the start of a message that is cut by the end of the set."""
    log = packed(SNAPPY, 500, value=b"v" * 9)
    out = sent(slice_of(tmp_path, log))
    assert len(log) == len(out)
    assert 500 == len(rows(out))
    assert 1 == len(list(entries(out)))


def test_pieces_are_small(tmp_path: Path) -> None:
    """A set of any size is read and converted piece by piece."""
    log = plain(60_000, value=b"v" * 100)
    old = old_response(slice_of(tmp_path, log))
    converted = old.sets[0]
    pieces = []
    while converted.size:
        pieces.append(converted.make(lambda data, error: None))
    assert PIECE_BYTES >= max(map(len, pieces))
    assert plain(60_000, magic=0, value=b"v" * 100) == b"".join(pieces)


def test_a_large_message_is_converted_in_a_thread(tmp_path: Path) -> None:
    """Its conversion would hold the hub; the size of the set stays the known one."""
    log = plain(1, value=bytes(2 << 20))
    old = old_response(slice_of(tmp_path, log))
    assert old.sets[0].in_thread
    assert plain(1, magic=0, value=bytes(2 << 20)) == generated_bytes(old.sets[0])


class CountingFile:
    """Counts the bytes that are read from a file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.bytes = 0

    def pread(self, size: int, position: int) -> bytes:
        data: bytes = self._file.pread(size, position)
        self.bytes += len(data)
        return data


def test_a_large_message_is_read_for_its_size_and_for_its_bytes(tmp_path: Path) -> None:
    """And not in pieces of twice the size each until it is whole, nor converted to see a size that
    is known: 16 MB took 100 ms of the broker."""
    found = slice_of(tmp_path, plain(1, value=bytes(8 << 20)))
    file = CountingFile(found.file)
    found.file = file  # type: ignore[assignment]
    old = old_response(found)
    assert plain(1, magic=0, value=bytes(8 << 20)) == generated_bytes(old.sets[0])
    assert file.bytes < 2.1 * found.size


def test_the_size_of_converted_records_is_not_guessed(tmp_path: Path) -> None:
    """A plain batch of records becomes messages whose sizes only their conversion tells."""
    log, _ = LOGS_0_11["v-plain-0/00000000000000000000.log"]
    out = sent(slice_of(tmp_path, log))
    assert [0, 1, 2, 3, 4, 5, 6] == [message.offset for message in message_set.decode(out)]


def test_first_parts_are_not_all_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sets of unknown size only some first parts are kept. The others are converted again."""
    monkeypatch.setattr(converted_set, "KEPT_BYTES_MAX", 1000)
    reads = []
    for number in range(5):
        (tmp_path / str(number)).mkdir()
        reads.append(slice_of(tmp_path / str(number), packed(compression.GZIP, 10)))
    log = packed(compression.GZIP, 2000, value=bytes(range(256)))
    (tmp_path / "large").mkdir()
    old = old_response(*reads, slice_of(tmp_path / "large", log))
    *small, large = old.sets.values()
    assert 0 == large.kept_bytes
    assert all(one.kept_bytes for one in small)
    assert 2000 == len(rows(generated_bytes(large)))


def test_large_sets_are_looked_at_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A native thread checks large sets, because a consumer may request gigabytes at once. The
    response is the same."""
    world = world_of(tmp_path, plain(100) + packed(GZIP, 50, 100))
    looked: list[Any] = []
    run_native = world.runtime.run_native

    def note(call: Any, *args: Any) -> Any:
        looked.append(call)
        return run_native(call, *args)

    monkeypatch.setattr(world.runtime, "run_native", note)
    before = fetch(world).message_set
    assert [] == looked
    monkeypatch.setattr(fetch_call, "LOOKED_AT_AT_ONCE_BYTES", 1000)
    assert before == fetch(world).message_set
    assert 1 == len(looked)
    assert 150 == len(rows(before))


class TestInThreads:
    """Compressed sets are converted in native threads."""

    LOG = packed(GZIP, 900, value=bytes(100))

    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        return world_of(tmp_path, self.LOG, native_inline=False)

    def ask(self, world: World) -> None:
        topics = [FetchTopic("t", [FetchPartition(0, 0, LARGE)])]
        world.client.send(request_bytes(FetchRequest(-1, 0, 0, topics)))

    def test_the_response_comes_after_the_first_part(self, world: World) -> None:
        """The response begins after the first part, and the hub continues meanwhile."""
        assert 10_000 > len(self.LOG)
        self.ask(world)
        assert [] == world.client.frames()
        world.runtime.run_native_jobs()
        world.runtime.native_inline = True
        (frame,) = world.client.frames()
        _, response = decode_response(FetchRequest, frame, 0)
        assert 900 == len(rows(response.topics[0].partitions[0].message_set))

    def test_a_client_that_leaves_is_no_trouble(self, world: World) -> None:
        """If the client disconnects, its set is dropped."""
        self.ask(world)
        world.client.close()
        world.runtime.run_native_jobs()
        assert [] == world.client.outbox


class TestBrokenLogs:
    def test_an_entry_that_cannot_be_converted(self, tmp_path: Path) -> None:
        """An entry that cannot be converted is error 2: with a new CRC the damage would be
        hidden."""
        world = world_of(tmp_path, plain(1))
        (segment,) = tmp_path.rglob("*.log")
        segment.write_bytes(segment.read_bytes()[:-1] + b"?")
        found = fetch(world)
        assert (InvalidMessage.code, -1) == (found.error_code, found.high_watermark)
        assert not found.message_set

    def test_messages_before_damage_are_sent(self, tmp_path: Path) -> None:
        """The messages before a damaged entry are sent. The next Fetch begins at the entry."""
        log = bytearray(plain(3) + packed(GZIP, 2, 3))
        log[-1] ^= 1
        assert [0, 1, 2] == [row[0] for row in rows(sent(slice_of(tmp_path, bytes(log))))]

    def test_a_log_that_was_cut_meanwhile(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If the log is truncated meanwhile, the response still has the announced size."""
        monkeypatch.setattr(converted_set, "SMALL_BYTES", 0)
        log = plain(3)
        found = slice_of(tmp_path, log)
        old = old_response(found)
        size = old.sets[0].size
        (tmp_path / "segment").write_bytes(log[: len(log) // 2])
        out = generated_bytes(old.sets[0])
        assert size == len(out)
        assert 1 == len(rows(out))
