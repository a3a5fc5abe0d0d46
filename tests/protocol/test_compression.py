"""The codecs write what 0.8.2.2 reads, read what it wrote, and take no memory for lies."""

from __future__ import annotations

import gzip
import io
import json
import random
import time
import tracemalloc
from pathlib import Path
from struct import pack

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.kernel import UnknownCodec, entries
from kafka08.protocol import compression
from kafka08.protocol.compression import (
    CODECS,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    DecompressionError,
    UnpacksToMore,
    compress,
    decompress,
    decompress_start,
)
from tests.cpu_speed import slowdown

DATA = Path(__file__).parent.parent / "data"
LIMIT = 1 << 20
TEXT = b"".join(b"line %d of some text\n" % (number % 1000) for number in range(10_000))
NOISE = random.Random(8).randbytes(200_000)

each_codec = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4], ids=CODECS.get)


def captured_values(codec: int) -> list[bytes]:
    """Values of the wrappers of that codec which a 0.8.2.2 broker stored."""
    logs = json.loads((DATA / "logs-0.8.2.2.json").read_text())
    return [
        entry.value or b""
        for name in ("gzip", "snappy", "lz4")
        for entry in entries(bytes.fromhex(logs[name]["hex"]))
        if entry.codec == codec
    ]


@each_codec
@pytest.mark.parametrize("data", [b"", b"x", TEXT[: 32 << 10], TEXT[: 64 << 10], TEXT, NOISE])
def test_there_and_back(codec: int, data: bytes) -> None:
    """No bytes, part of a block, exactly one, many, and incompressible data unpack to what was
    compressed."""
    packed = compress(codec, data)
    assert data == decompress(codec, packed, len(data), strict=True)
    assert data == decompress(codec, memoryview(packed), len(data))


@each_codec
@given(data=st.binary(max_size=300))
def test_anything_there_and_back(codec: int, data: bytes) -> None:
    """Compressed data unpacks to the same bytes, also with the strictness of 0.8.2.2."""
    assert data == decompress(codec, compress(codec, memoryview(data)), LIMIT, strict=True)


def test_no_codec() -> None:
    """NONE returns the bytes; more bytes than the limit are an error."""
    assert compress(NONE, b"data") == b"data"
    assert decompress(NONE, b"data", 4) == b"data"
    with pytest.raises(DecompressionError):
        decompress(NONE, b"data", 3)


@pytest.mark.parametrize("codec", [-1, 5, 7])
def test_unknown_codec(codec: int) -> None:
    """Unknown numbers raise UnknownCodec in both directions."""
    with pytest.raises(UnknownCodec):
        compress(codec, b"")
    with pytest.raises(UnknownCodec):
        decompress(codec, b"", LIMIT)


@pytest.mark.parametrize(
    ("name", "codec"),
    [("none", 0), ("gzip", 1), ("Snappy", 2), ("lz4", 3), ("0", 0), (" 1 ", 1), ("3", 3)],
)
def test_names(name: str, codec: int) -> None:
    """compression.codec accepts names and numbers."""
    assert codec == compression.by_name(name)


@pytest.mark.parametrize("name", ["", "zstd", "4", "-1"])
def test_unknown_names(name: str) -> None:
    """The ValueError lists the valid names."""
    with pytest.raises(ValueError, match="none, gzip, snappy, lz4"):
        compression.by_name(name)


ZSTD_DATA = [b"", b"x", TEXT, NOISE]


@pytest.mark.parametrize("data", ZSTD_DATA)
@pytest.mark.parametrize("has_size", [True, False])
def test_zstd_with_and_without_content_size(data: bytes, has_size: bool) -> None:
    """Java and librdkafka write none; one batch may have several frames, some to be skipped."""
    packed = bytes(compress(ZSTD, data))
    if not has_size:
        stream = cramjam.zstd.Compressor(3)
        stream.compress(data)
        packed = bytes(stream.finish())
    assert decompress(ZSTD, packed, len(data)) == data
    skipped = pack("<II", 0x184D2A53, 3) + b"abc"
    assert decompress(ZSTD, packed + skipped + packed, 2 * len(data)) == data + data


def test_zstd_is_for_clients() -> None:
    """Brokers of 0.11 and before do not know it."""
    packed = compress(ZSTD, TEXT)
    for how in ({"strict": True}, {"magic": 0}, {"magic": 1}):
        with pytest.raises(UnknownCodec):
            decompress(ZSTD, packed, LIMIT, **how)


def test_zstd_that_is_damaged_or_too_large() -> None:
    """Any cut and any foreign bytes are an error; no more than the limit is unpacked."""
    packed = bytes(compress(ZSTD, TEXT))
    for size in range(1, len(packed), 7):
        with pytest.raises(DecompressionError):
            decompress(ZSTD, packed[:size], LIMIT)
    with pytest.raises(DecompressionError):
        decompress(ZSTD, packed + b"xyz", LIMIT)
    with pytest.raises(UnpacksToMore):
        decompress(ZSTD, packed, len(TEXT) - 1)
    bomb = compress(ZSTD, bytes(64 << 20))
    tracemalloc.start()
    with pytest.raises(UnpacksToMore):
        decompress(ZSTD, bomb, LIMIT)
    assert tracemalloc.get_traced_memory()[1] < 2 * LIMIT
    tracemalloc.stop()


# ---- what must not be believed ----


@each_codec
@pytest.mark.parametrize("data", [TEXT[:5000], NOISE[:5000]])
def test_cut_anywhere(codec: int, data: bytes) -> None:
    """Data that ends early is an error, except at a boundary between snappy's blocks."""
    packed = bytes(compress(codec, data))
    for size in range(len(packed)):
        if codec == SNAPPY and size in range(16, 20):
            assert decompress(codec, packed[:size], LIMIT) == b""
        else:
            with pytest.raises(DecompressionError):
                decompress(codec, packed[:size], LIMIT)


@each_codec
@pytest.mark.parametrize("data", [TEXT, b"abc", b""])
def test_the_start_alone(codec: int, data: bytes) -> None:
    """The result has the requested number of bytes, or all if there are fewer."""
    assert bytes(decompress_start(codec, compress(codec, data), 12)) == data[:12]


@each_codec
def test_the_start_of_a_bomb_takes_little_memory(codec: int) -> None:
    """Recovery needs the first offset in a wrapper, and used to unpack all of it."""
    bomb = compress(codec, bytes(64 << 20))
    tracemalloc.start()
    try:
        assert bytes(decompress_start(codec, bomb, 12)) == bytes(12)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@each_codec
def test_a_start_that_is_broken_is_an_error(codec: int) -> None:
    """A damaged start raises the same error as the whole."""
    packed = bytearray(compress(codec, TEXT[:2000]))
    packed[:24] = bytes(24)
    with pytest.raises(DecompressionError):
        decompress_start(codec, packed, 12)


@each_codec
def test_flipped_anywhere(codec: int) -> None:
    """Damaged data raises DecompressionError or gives other bytes within the limit."""
    packed = bytes(compress(codec, TEXT[:2000]))
    for position in range(len(packed)):
        for bits in (0x01, 0x80, 0xFF):
            damaged = bytearray(packed)
            damaged[position] ^= bits
            try:
                assert len(decompress(codec, damaged, 4000)) <= 4000
            except DecompressionError:
                pass


@each_codec
@given(data=st.binary(max_size=60))
def test_noise(codec: int, data: bytes) -> None:
    """Any bytes raise DecompressionError or give data within the limit."""
    try:
        assert len(decompress(codec, data, 1000)) <= 1000
    except DecompressionError:
        pass


@each_codec
def test_bombs_are_stopped_at_the_limit(codec: int) -> None:
    """Data of exactly the limit is accepted, one byte more is refused."""
    packed = compress(codec, bytes(1 << 20))
    assert len(decompress(codec, packed, 1 << 20)) == 1 << 20
    with pytest.raises(DecompressionError, match="more than"):
        decompress(codec, packed, (1 << 20) - 1)


def test_snappy_size_that_is_impossible() -> None:
    """A few bytes that declare 100 MB allocate less, although the limit would permit it."""
    with pytest.raises(DecompressionError, match="size"):
        decompress(SNAPPY, b"\x80\xc2\xd7\x2f" + bytes(20), 1 << 30)


# ---- gzip ----


def test_gzip_members_follow_one_another() -> None:
    """All members are read, and the limit applies to their sum."""
    packed = gzip.compress(b"one ") + compress(GZIP, b"two ") + gzip.compress(b"three")
    assert decompress(GZIP, packed, LIMIT) == b"one two three"
    with pytest.raises(DecompressionError):
        decompress(GZIP, packed, 12)


def test_gzip_members_of_any_size() -> None:
    """Members end anywhere in the pieces in which they are read, headers with long names too."""

    chance = random.Random(1)

    def member(data: bytes, name_bytes: int) -> bytes:
        packed = io.BytesIO()
        with gzip.GzipFile("n" * name_bytes, "wb", chance.choice((1, 9)), packed, 0) as file:
            file.write(data)
        return packed.getvalue()

    for _ in range(100):
        parts = [chance.randbytes(chance.randrange(2000)) * chance.randrange(9) for _ in range(5)]
        packed = b"".join(member(part, chance.choice([0, 0, 230, 250, 999])) for part in parts)
        whole = b"".join(parts)
        assert decompress(GZIP, packed + b"\0\0", len(whole)) == whole
        with pytest.raises(DecompressionError, match="more than"):
            decompress(GZIP, packed, len(whole) - 1)
        with pytest.raises(DecompressionError, match="ends within"):
            decompress(GZIP, packed[:-1], len(whole))


def test_gzip_of_many_members_takes_no_time() -> None:
    """A broker reads 64 KB of gzip in its event loop: a thousand small members behind a large one
    must not copy that one, or each other, a thousand times."""
    packed = gzip.compress(bytes(30 << 20)) + gzip.compress(b"x") * 1000
    factor = slowdown()
    began = time.thread_time()
    assert len(decompress(GZIP, packed, 100 << 20)) == (30 << 20) + 1000
    assert (time.thread_time() - began) / factor < 0.25


def test_gzip_ignores_bytes_behind_its_members() -> None:
    """Trailing bytes that are no member are ignored, as by java.util.zip.GZIPInputStream."""
    assert decompress(GZIP, gzip.compress(b"data") + b"\0" * 50, LIMIT) == b"data"


@each_codec
def test_captured_from_the_jvm(codec: int) -> None:
    """Data that a 0.8.2.2 broker compressed has messages with the right CRCs."""
    values = captured_values(codec)
    assert len(values) >= 2
    for value in values:
        inner = decompress(codec, value, LIMIT, strict=True)
        assert len(list(entries(inner, verify_crc=True))) >= 3


def test_others_read_our_gzip() -> None:
    """Python's gzip module reads our data."""
    assert gzip.decompress(compress(GZIP, TEXT)) == TEXT


# ---- snappy ----


def test_snappy_is_written_in_xerials_stream() -> None:
    """The stream has the magic, versions 1 and 1, then blocks of 32 KiB, like snappy-java's
    SnappyOutputStream."""
    packed = compress(SNAPPY, TEXT[:70_000])
    assert packed[:16] == b"\x82SNAPPY\0" + pack(">ii", 1, 1)
    blocks = []
    position = 16
    while position < len(packed):
        size = int.from_bytes(packed[position : position + 4], "big")
        block = bytes(packed[position + 4 : position + 4 + size])
        blocks.append(bytes(cramjam.snappy.decompress_raw(block)))
        position += 4 + size
    assert [len(block) for block in blocks] == [32768, 32768, 70_000 - 65536]
    assert b"".join(blocks) == TEXT[:70_000]


@pytest.mark.parametrize("size", [1, 32768, 32769, 100_000])
def test_snappy_has_room_for_bytes_that_get_no_smaller(size: int) -> None:
    """Blocks of random bytes are larger than their content."""
    data = random.Random(size).randbytes(size)
    packed = compress(SNAPPY, data)
    assert len(packed) > size
    assert data == decompress(SNAPPY, packed, size)


def test_bare_snappy_block() -> None:
    """A raw block, which some producers send, is read too, as by the JVM's SnappyInputStream."""
    packed = bytes(cramjam.snappy.compress_raw(TEXT))
    assert decompress(SNAPPY, packed, LIMIT, strict=True) == TEXT
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(b"abc")), 3) == b"abc"


@pytest.mark.parametrize("size", [0, -1, 5, (1 << 31) - 1])
def test_snappy_block_sizes(size: int) -> None:
    """A block's size is compared with the remaining bytes."""
    stream = b"\x82SNAPPY\0" + pack(">iii", 1, 1, size) + b"\x01\x00x"
    with pytest.raises(DecompressionError):
        decompress(SNAPPY, stream, LIMIT)


def test_snappy_version_0() -> None:
    """A header with version 0 is DecompressionError, since the block format begins with version
    1."""
    with pytest.raises(DecompressionError, match="version"):
        decompress(SNAPPY, b"\x82SNAPPY\0" + pack(">ii", 0, 0), LIMIT)


# ---- lz4 ----


def standard_lz4(data: bytes, **options: bool | int) -> bytes:
    options = {"block_linked": False, "block_size": 4, "store_size": False} | options
    framed: bytes = lz4.frame.compress(data, **options)
    return framed


def test_lz4_is_written_with_08s_header() -> None:
    """The header has FLG 0x60, BD 0x40 and the checksum over magic, FLG and BD: 0x1a, not 0x82."""
    assert compress(LZ4, TEXT)[:7] == bytes.fromhex("04224d18 60 40 1a")
    assert standard_lz4(TEXT)[:7] == bytes.fromhex("04224d18 60 40 82")
    assert compress(LZ4, TEXT)[7:] == standard_lz4(TEXT)[7:]


def test_lz4_standard_checksum_is_refused_where_08_refuses_it() -> None:
    """A broker must respond as 0.8.2.2 does; consumers accept both checksums."""
    framed = standard_lz4(b"data")
    with pytest.raises(DecompressionError, match="header checksum"):
        decompress(LZ4, framed, LIMIT, strict=True)
    assert decompress(LZ4, framed, LIMIT) == b"data"


def test_lz4_of_magic_1_has_the_standard_header() -> None:
    """0.10.2.2 writes and requires the standard checksum in magic 1."""
    assert compress(LZ4, TEXT, 1) == standard_lz4(TEXT)
    assert decompress(LZ4, standard_lz4(TEXT), LIMIT, magic=1) == TEXT
    with pytest.raises(DecompressionError, match=r"header checksum is not the one of 0\.10"):
        decompress(LZ4, compress(LZ4, TEXT), LIMIT, magic=1)


def test_lz4_of_magic_0_has_any_header_checksum_for_0_10() -> None:
    """0.10.2.2 does not check it in magic 0."""
    for checksum in range(256):
        framed = bytearray(standard_lz4(TEXT))
        framed[6] = checksum
        assert decompress(LZ4, framed, LIMIT, magic=0) == TEXT


@pytest.mark.parametrize("magic", [0, 1])
def test_lz4_frames_that_010_reads(magic: int) -> None:
    """Content size, which moves the header checksum, and checksums are accepted; linked blocks are
    not."""
    for options in ({"store_size": True}, {"content_checksum": True}, {"block_checksum": True}):
        framed = standard_lz4(TEXT, **options)
        assert decompress(LZ4, framed, LIMIT, magic=magic) == TEXT
    linked = standard_lz4(TEXT, block_linked=True)
    with pytest.raises(DecompressionError, match=r"flags 0x40 are not read by 0\.10"):
        decompress(LZ4, linked, LIMIT, magic=magic)
    cut_header = standard_lz4(TEXT, store_size=True)[:14]
    with pytest.raises(DecompressionError, match="within its header"):
        decompress(LZ4, cut_header, LIMIT, magic=magic)


@pytest.mark.parametrize(
    "options", [{"content_checksum": True}, {"store_size": True}, {"block_linked": True}]
)
def test_lz4_options_that_08_does_not_read(options: dict[str, bool]) -> None:
    """They are read unless `strict`, which refuses them even with 0.8's checksum."""
    framed = bytearray(standard_lz4(TEXT, **options))
    assert decompress(LZ4, framed, LIMIT) == TEXT
    framed[6] = compression.kafka_header_checksum(framed)
    with pytest.raises(DecompressionError):
        decompress(LZ4, framed, LIMIT, strict=True)


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("block_checksum", [False, True])
def test_lz4_options_that_08_reads(block_size: int, block_checksum: bool) -> None:
    """Every block size, with and without block checksums, passes `strict`."""
    framed = bytearray(standard_lz4(TEXT, block_size=block_size, block_checksum=block_checksum))
    framed[6] = compression.kafka_header_checksum(framed)
    assert decompress(LZ4, framed, LIMIT, strict=True) == TEXT


def test_lz4_checksums_that_were_captured() -> None:
    """0.8.2.2 wrote its own checksum, 0.10.2.2 the standard one in magic 1; consumers accept
    both."""
    assert {0x1A} == {value[6] for value in captured_values(LZ4)}
    log = json.loads((DATA / "logs-0.10.2.2.json").read_text())["g1-1"]
    values = [e.value or b"" for e in entries(bytes.fromhex(log["hex"])) if e.codec == LZ4]
    assert {0x82} == {value[6] for value in values}
    for value in values:
        assert len(list(entries(decompress(LZ4, value, LIMIT)))) == 3


def test_xxh32_of_short_data() -> None:
    """The hash equals published vectors of XXH32 with seed 0."""
    assert compression.xxh32_short(b"") == 0x02CC5D05
    assert compression.xxh32_short(b"a") == 0x550D7456
    assert compression.xxh32_short(b"abc") == 0x32D153FF
    assert compression.xxh32_short(b"abcdefgh12345") == xxh32_reference(b"abcdefgh12345")


def xxh32_reference(data: bytes) -> int:
    """By way of LZ4: the content checksum of a frame is XXH32 of its content, seed 0."""
    return int.from_bytes(standard_lz4(data, content_checksum=True)[-4:], "little")
