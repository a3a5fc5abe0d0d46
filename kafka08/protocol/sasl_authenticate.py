"""SaslAuthenticate (key 36): the tokens of a SASL mechanism, from 1.0 on. Clients alone use it: no
broker of ours has it. From version 1 on (2.2) the last response has the time after which the broker
wants another login. Error codes: 34, 58. Source: org.apache.kafka.common.requests 2.8.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import (
    Int16,
    Int64,
    NotNullBytes,
    NullableString,
    Request,
    Response,
    Since,
)


@dataclass(slots=True)
class SaslAuthenticateResponse(Response):
    error_code: Int16
    error_message: NullableString
    token: NotNullBytes
    session_lifetime_ms: Annotated[Int64, Since(1)] = 0
    """0: the login has no end."""


@dataclass(slots=True)
class SaslAuthenticateRequest(Request):
    token: NotNullBytes


API = Api(
    36,
    "SaslAuthenticate",
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    (
        ApiVersion(0, SaslAuthenticateRequest, SaslAuthenticateResponse, since=None),
        ApiVersion(1, SaslAuthenticateRequest, SaslAuthenticateResponse, since=None),
    ),
)
