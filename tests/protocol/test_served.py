"""Each level serves and refuses what real brokers of that release listed, answered and refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from kafka08.errors import NO_ERROR
from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.codec import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from kafka08.protocol.frame import SIZE
from kafka08.protocol.layout import layout_of
from kafka08.protocol.served import (
    SERVED,
    Served,
    UnknownApi,
    UnservedVersion,
    api_versions,
    listed_ranges,
)
from kafka08.protocol.types import Form, Int16, Int32, Request, Response, Since


def recorded(file: str) -> dict[str, dict[str, Any]]:
    """name → entry of a recording."""
    path = Path(__file__).parents[1] / "data" / file
    return {entry["name"]: entry for entry in json.loads(path.read_text(encoding="utf-8"))}


ADMIN = recorded("0.10-api-admin.json")
ADMIN_0_11 = recorded("0.11-api-admin.json")
ZERO_ALONE = {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12}


def test_0_8_2_serves_the_versions_of_0_8_2_2() -> None:
    """It serves fifteen pairs: version 0 of keys 0 to 12, and version 1 of both offset APIs."""
    pairs = {(key, 0) for key in ZERO_ALONE | {8, 9}} | {(8, 1), (9, 1)}
    assert pairs == SERVED[Level.V0_8_2].rows.keys()


def test_0_9_0_serves_the_schemas_of_0_9_0_1() -> None:
    """It serves Protocol.REQUESTS of 0.9.0.1, and ControlledShutdown 0, which the schemas leave
    out."""
    highest = {0: 1, 1: 1, 6: 1, 7: 1, 8: 2, 9: 1}
    pairs = {(key, v) for key in range(17) for v in range(highest.get(key, 0) + 1)}
    assert pairs == SERVED[Level.V0_9_0].rows.keys()


@pytest.mark.parametrize("name", [name for name in ADMIN if name.startswith("apiversions")])
def test_api_versions_is_the_captured_response(name: str) -> None:
    """Version 0 has the captured list, any other version error 35 in the same layout, byte for
    byte."""
    request = bytes.fromhex(ADMIN[name]["request_hex"])[SIZE.size :]
    served = SERVED[Level.V0_10_2]
    header, _ = decode_request(request, served)
    response = encode_response(api_versions(served, header.version), header.correlation_id)
    assert ADMIN[name]["response_hex"] == response.hex()


@pytest.mark.parametrize("name", [name for name in ADMIN_0_11 if name.startswith("apiversions")])
def test_api_versions_of_0_11_is_the_captured_response(name: str) -> None:
    """All rows together are the list of 0.11.0.3. An unknown version has error 35 in the layout of
    version 0, without the throttle time."""
    request = bytes.fromhex(ADMIN_0_11[name]["request_hex"])[SIZE.size :]
    served = SERVED[Level.V0_11_0]
    header, body = decode_request(request, served)
    response = api_versions(served, header.version)
    frame = encode_response(response, header.correlation_id, body.version)
    assert ADMIN_0_11[name]["response_hex"] == frame.hex()


@dataclass(slots=True)
class ToyResponse(Response):
    error_code: Int16


@dataclass(slots=True)
class ToyRequest(Request):
    number: Int16
    flavor: Annotated[Int16, Since(1, before="number")] = -1
    size: Annotated[Int32, Since(0, until=1)] = 1


@dataclass(slots=True)
class MisplacedRequest(Request):
    flavor: Annotated[Int16, Since(1, before="numbre")] = -1


def test_one_row_adds_a_version() -> None:
    """A row is all that a version needs, and a mark for a field that it has and others have not: it
    is read, answered and listed at its level, and at no older one."""
    since_0_9 = ApiVersion(0, ToyRequest, ToyResponse, since=Level.V0_9_0)
    added = ApiVersion(1, ToyRequest, ToyResponse, since=Level.V0_11_0)
    toy = Api(99, "Toy", ToyRequest, ToyResponse, (since_0_9, added))
    newest = {}
    for level in Level:
        served = Served(level, [toy])
        newest[level] = [(one.min_version, one.max_version) for one in listed_ranges(served)]
    assert newest == {
        Level.V0_8_2: [],
        Level.V0_9_0: [(0, 0)],
        Level.V0_10_2: [(0, 0)],
        Level.V0_11_0: [(0, 1)],
    }
    for sent, body in (
        (ToyRequest(7, size=3), "0007 00000003"),
        (ToyRequest(7, flavor=2, version=1), "0002 0007"),
    ):
        frame = encode_request(sent, 5, "c")
        assert frame.endswith(bytes.fromhex("0001" + b"c".hex() + body))
        header, request = decode_request(frame[SIZE.size :], Served(Level.V0_11_0, [toy]))
        assert request == sent
    response = encode_response(ToyResponse(NO_ERROR), header.correlation_id, request.version)
    assert decode_response(ToyRequest, response[SIZE.size :], 1) == (5, ToyResponse(NO_ERROR))


def test_a_field_before_one_that_does_not_exist_is_refused() -> None:
    """Such a mark is an error at the first use of the layout, with the names of both fields."""
    assert layout_of(Form(MisplacedRequest, 0)).fields == ()
    with pytest.raises(TypeError, match=r"MisplacedRequest\.flavor: .* numbre in version 1"):
        layout_of(Form(MisplacedRequest, 1))


def test_several_versions_were_captured() -> None:
    """The captures have several versions, without which the test above would compare nothing."""
    assert len([name for name in ADMIN if name.startswith("apiversions")]) >= 3


@pytest.mark.parametrize("level", Level, ids=str)
def test_unserved_requests_are_refused_by_kind(level: Level) -> None:
    """An unknown key is UnknownApi, and an unknown version of OffsetCommit is UnservedVersion; the
    text has level and versions."""
    for key in (-1, 34, 99):
        with pytest.raises(UnknownApi, match=f"key {key} .*{level}"):
            SERVED[level].row(key, 0)
    with pytest.raises(UnservedVersion, match=rf"OffsetCommit version 9 .*{level}, .* 0, 1"):
        SERVED[level].row(8, 9)


def test_only_0_9_0_sends_no_response_to_an_unserved_request() -> None:
    """As captured, 0.9.0.1 neither responds nor closes the connection; the others close it."""
    silent = [level for level in Level if not SERVED[level].closes_on_unsupported]
    assert [Level.V0_9_0] == silent


@pytest.mark.parametrize(
    ("level", "key", "asked", "read"),
    [
        (Level.V0_8_2, 0, 1, 0),
        (Level.V0_8_2, 9, -1, 1),
        (Level.V0_9_0, 0, 7, 1),
        (Level.V0_9_0, 3, 30, 0),
        (Level.V0_9_0, 6, 3, 1),
        (Level.V0_9_0, 9, 2, 1),
        (Level.V0_10_2, 7, 5, 1),
        (Level.V0_10_2, 7, -1, 0),
        (Level.V0_10_2, 18, 3, 0),
        (Level.V0_11_0, 7, 5, 1),
        (Level.V0_11_0, 18, 3, 0),
    ],
)
def test_an_unchecked_version_decodes_as_the_nearest(
    level: Level, key: int, asked: int, read: int
) -> None:
    """An unknown version decodes as the nearest known one where the broker of that release does not
    check it."""
    assert read == SERVED[level].row(key, asked).version


@pytest.mark.parametrize("key", [key for key in range(21) if key not in {7, 18}])
def test_0_10_2_checks_every_version(key: int) -> None:
    """One below and one above the range are refused."""
    served = SERVED[Level.V0_10_2]
    highest = max(version for of, version in served.rows if of == key)
    for version in (-1, highest + 1):
        with pytest.raises(UnservedVersion):
            served.row(key, version)
