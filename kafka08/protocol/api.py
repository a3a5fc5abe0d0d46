"""Api and ApiVersion: the declaration of one API of the protocol, in the module of that API.

Handlers and clients use one message class per API (`Api.request`, `Api.response`) for all versions.
Each row of `Api.versions` is one version. To add one, add a field with a default for each new
value, marked with the version and its place (kafka08.protocol.types.Since), and a row.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from typing import Final

from kafka08.levels import Level
from kafka08.protocol.types import Form, Request, Response


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """A row: one version of an API, at the levels that serve it.

    version         its number in the request header
    request         the layout of the request body: a message class or one of its wire forms
    response        the layout of the response body
    since           the lowest level that has it; None: only clients use it
    until           the lowest level above `since` without it, or with another layout
    listed          whether ApiVersions responses list it
    has_client_id   whether the request header has the field client_id
    is_flexible     whether lengths are compact and records tagged, the headers too; that of the
                    response to ApiVersions is as ever
    request_form, response_form     those layouts in this version
    """

    version: int
    request: type
    response: type
    _: KW_ONLY
    since: Level | None = Level.V0_8_2
    until: Level | None = None
    listed: bool = True
    has_client_id: bool = True
    is_flexible: bool = False
    request_form: Form = field(init=False)
    response_form: Form = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "request_form", Form(self.request, self.version))
        object.__setattr__(self, "response_form", Form(self.response, self.version))

    def exists_at(self, level: Level) -> bool:
        if self.since is None or level < self.since:
            return False
        return self.until is None or level < self.until


@dataclass(frozen=True, slots=True)
class Api:
    """An API: its key and name in Kafka, its message classes, its versions.

    Two rows may have the same version number if no level has both. The declaration registers the
    classes with the codec, so a program imports the modules of the APIs that it uses;
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
"""Request or response class → its API."""


@cache
def row_of(cls: type, version: int) -> ApiVersion | None:
    """The row with which to encode `cls`, a request or response class. Of two rows with one
    number it is the older, which later brokers can decode, too. None without such a version."""
    rows = (row for row in DECLARED[cls].versions if row.version == version)
    return next(rows, None)
