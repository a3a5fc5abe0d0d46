"""SaslHandshake: refused, since every listener is PLAINTEXT. The connection stays usable.

34, with the value of sasl.enabled.mechanisms. Source: KafkaApis.handleSaslHandshakeRequest
0.10.2.2.
"""

from __future__ import annotations

import logging

from kafka08.broker.requests.call import Call
from kafka08.broker.requests.context import BrokerContext
from kafka08.errors import IllegalSaslState
from kafka08.protocol.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

logger = logging.getLogger(__name__)


def handle(
    broker: BrokerContext, request: SaslHandshakeRequest, call: Call
) -> SaslHandshakeResponse:
    mechanisms = [name.strip() for name in broker.config.sasl_enabled_mechanisms.split(",")]
    logger.info(
        "Refused SASL %s of client %s at %s: listener %s is PLAINTEXT (security.protocol)",
        request.mechanism,
        call.header.client_id,
        call.peer,
        broker.listener,
        extra=call.cause,
    )
    return SaslHandshakeResponse(IllegalSaslState.code, mechanisms)


def refuse(request: SaslHandshakeRequest, code: int) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(code, [])
