"""SaslHandshake (key 17): a client requests a SASL mechanism.

A PLAINTEXT listener responds with error 34 and the enabled mechanisms, and keeps the connection.
After version 1 (from 1.0 on) the tokens of the mechanism are in SaslAuthenticate requests.
Error codes: 33, 34. Source: kafka.server.KafkaApis 0.10.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.types import Int16, Request, Response, String


@dataclass(slots=True)
class SaslHandshakeResponse(Response):
    error_code: Int16
    mechanisms: list[String]


@dataclass(slots=True)
class SaslHandshakeRequest(Request):
    mechanism: String


API = Api(
    17,
    "SaslHandshake",
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    (
        ApiVersion(0, SaslHandshakeRequest, SaslHandshakeResponse, since=Level.V0_10_2),
        ApiVersion(1, SaslHandshakeRequest, SaslHandshakeResponse, since=None),
    ),
)
