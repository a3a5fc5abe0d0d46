"""Negotiation: which versions the broker of a new connection serves. No socket here.

    request       0.8                        0.9              0.10 and later
    Offsets       responds                   responds         responds
    ApiVersions   closes the connection      no response      responds
    ListGroups    -                          responds         responds

The first request is optional. It tells a broker of 0.8 from one that is starting or gone: only the
former responds, and then closes the connection.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka08.errors import ProtocolError
from kafka08.protocol import codec
from kafka08.protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka08.protocol.list_groups import ListGroupsRequest
from kafka08.protocol.offsets import OffsetsRequest
from kafka08.protocol.types import Buffer, Request
from kafka08.protocol.version_ranges import OF_0_9, VersionRanges
from kafka08.structs import ORDINARY_CONSUMER


class Negotiation:
    """Send `requests` with `correlation_ids`, in order, and pass each response to `take` until
    `versions` is set.

    versions   None until the last response
    is_of_0_8  it has responded to the first request alone. If it closes the connection now, it
               is of 0.8
    """

    def __init__(self, correlation_ids: Sequence[int], *, recognizes_0_8: bool = False) -> None:
        self.requests: list[Request] = [ApiVersionsRequest(), ListGroupsRequest()]
        if recognizes_0_8:
            self.requests.insert(0, OffsetsRequest(ORDINARY_CONSUMER, []))
        assert len(self.requests) == len(correlation_ids)
        self.versions: VersionRanges | None = None
        self.is_of_0_8 = False
        *first, self._asked_versions, self._asked_last = correlation_ids
        self._first = first[0] if first else None
        self._told = OF_0_9

    def take(self, payload: Buffer) -> None:
        """A response. ProtocolError if it is malformed or belongs to no open request."""
        number = codec.correlation_id_of(payload)
        if self._first is not None:
            if number != self._first:
                raise ProtocolError(f"response {number}, but the next is to request {self._first}")
            self._first = None
            self.is_of_0_8 = True
            return
        self.is_of_0_8 = False
        if number == self._asked_last:
            self.versions = self._told
        elif number == self._asked_versions and self._told is OF_0_9:
            _, response = codec.decode_response(ApiVersionsRequest, payload)
            assert isinstance(response, ApiVersionsResponse)
            self._told = VersionRanges(response.apis)
        else:
            raise ProtocolError(f"response {number} is to no request")
