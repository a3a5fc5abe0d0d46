"""Which version a client takes, of what a broker says it serves."""

from __future__ import annotations

import pytest

from kafka08.errors import UnsupportedVersion
from kafka08.levels import Level
from kafka08.protocol.api_versions import ApiVersionRange
from kafka08.protocol.fetch import FetchRequest
from kafka08.protocol.join_group import JoinGroupRequest
from kafka08.protocol.offsets import OffsetsRequest
from kafka08.protocol.produce import ProduceRequest
from kafka08.protocol.served import SERVED, listed_ranges
from kafka08.protocol.version_ranges import OF_0_8, OF_0_9, VersionRanges

PRODUCE, FETCH = 0, 1


def test_the_highest_common_version_is_used() -> None:
    """It is used whether the client or the broker is newer."""
    for last, expected in ((2, 2), (3, 3), (11, 3)):
        ranges = VersionRanges([ApiVersionRange(FETCH, 0, last)])
        assert ranges.highest(FetchRequest, 0, 3) == expected


def test_a_broker_may_serve_more_than_the_client_knows() -> None:
    """A later version than the given one, if the broker serves the API at all."""
    later = VersionRanges([ApiVersionRange(FETCH, 0, 3)])
    assert [later.serves_beyond(FetchRequest, version) for version in (2, 3)] == [True, False]
    assert not VersionRanges([]).serves_beyond(FetchRequest, 0)
    assert OF_0_9.serves_beyond(FetchRequest, 0)
    assert not OF_0_8.serves_beyond(FetchRequest, 0)


@pytest.mark.parametrize("ranges", [[], [ApiVersionRange(FETCH, 4, 11)]])
def test_no_common_version_is_an_error(ranges: list[ApiVersionRange]) -> None:
    """A broker without the API, or with newer versions only, is an error."""
    with pytest.raises(UnsupportedVersion, match="versions 0 to 3"):
        VersionRanges(ranges).highest(FetchRequest, 0, 3)


def test_the_lowest_common_version() -> None:
    """A request whose first version says most keeps it until a broker has dropped it."""
    for first, expected in ((0, 0), (1, 1)):
        ranges = VersionRanges([ApiVersionRange(2, first, 11)])
        assert ranges.lowest(OffsetsRequest, 0, 2) == expected
    with pytest.raises(UnsupportedVersion):
        VersionRanges([ApiVersionRange(2, 3, 11)]).lowest(OffsetsRequest, 0, 2)


def test_ranges_of_0_9_are_those_of_its_level() -> None:
    """They have Fetch 1 and JoinGroup 0, and no offset lookup by time."""
    assert OF_0_9.highest(FetchRequest, 0, 3) == 1
    assert OF_0_9.highest(JoinGroupRequest, 0, 1) == 0
    with pytest.raises(UnsupportedVersion):
        OF_0_9.highest(OffsetsRequest, 1, 1)
    listed = {one.key: one.max_version for one in listed_ranges(SERVED[Level.V0_9_0])}
    assert listed[FETCH] == 1


def test_a_version_that_4_0_closes_on_is_not_used_although_it_is_listed() -> None:
    """It lists Produce 0 to 13, and serves 3 to 13. An older broker serves what it lists."""
    listed = [ApiVersionRange(PRODUCE, 0, 13)]
    assert (
        VersionRanges([*listed, ApiVersionRange(FETCH, 0, 17)]).highest(ProduceRequest, 0, 2) == 2
    )
    of_4_0 = VersionRanges([*listed, ApiVersionRange(FETCH, 4, 18)])
    with pytest.raises(UnsupportedVersion, match="the broker serves versions 3 to 13"):
        of_4_0.highest(ProduceRequest, 0, 2)
    with pytest.raises(UnsupportedVersion, match="this client speaks version 0"):
        of_4_0.check(FetchRequest(-1, 0, 0, []))
    OF_0_9.check(FetchRequest(-1, 0, 0, [], version=3))  # it does not close
