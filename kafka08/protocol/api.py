"""Api and ApiVersion: what one API of the protocol is, declared in the module of that API.

A handler and a client meet one message class per API (`Api.request`, `Api.response`), whatever the
version. Each row of `Api.versions` names the layouts of one version. To add a version: a field with
a default for what it brought, a wire form (kafka08.protocol.types) for its layout, and a row.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Final

from kafka08.levels import Level
from kafka08.protocol.types import Request, Response


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """A row: one version of an API, as brokers of some levels serve it.

    version         its number in the request header
    request         the layout of the request body: a message class or one of its wire forms
    response        the layout of the response body
    since           the lowest level that has it
    until           the lowest level above `since` that has it no longer, or in another layout
    listed          whether an ApiVersions response tells of it
    has_client_id   whether the request header has the field client_id
    """

    version: int
    request: type
    response: type
    _: KW_ONLY
    since: Level = Level.V0_8_2
    until: Level | None = None
    listed: bool = True
    has_client_id: bool = True

    def exists_at(self, level: Level) -> bool:
        return self.since <= level and (self.until is None or level < self.until)


@dataclass(frozen=True, slots=True)
class Api:
    """An API: its key and name in Kafka, its message classes, its versions.

    Two rows may have the same version number if no level has both. To declare an Api is to make its
    classes known to the codec, so a program imports the modules of the APIs that it uses;
    `kafka08.protocol.apis` imports all.
    """

    key: int
    name: str
    request: type[Request]
    response: type[Response]
    versions: tuple[ApiVersion, ...]

    def __post_init__(self) -> None:
        DECLARED[self.request] = DECLARED[self.response] = self


DECLARED: Final[dict[type, Api]] = {}
"""Request class, and response class → the API that was declared with it."""


@cache
def row_of(cls: type, version: int) -> ApiVersion | None:
    """The row to encode with, of the API whose request or response class is `cls`: of two with one
    number the older, which every later broker reads as well. None if there is no such version."""
    rows = (row for row in DECLARED[cls].versions if row.version == version)
    return next(rows, None)
