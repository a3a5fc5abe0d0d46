"""SaslHandshake: refused, since every listener is PLAINTEXT. The connection stays usable.

34, with the value of sasl.enabled.mechanisms. Source: KafkaApis.handleSaslHandshakeRequest
0.10.2.2.
"""

from __future__ import annotations

from kafka08.broker.call import Call
from kafka08.broker.context import BrokerContext
from kafka08.errors import IllegalSaslState
from kafka08.protocol.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(
    broker: BrokerContext, request: SaslHandshakeRequest, call: Call
) -> SaslHandshakeResponse:
    mechanisms = [name.strip() for name in broker.config.sasl_enabled_mechanisms.split(",")]
    return SaslHandshakeResponse(IllegalSaslState.code, mechanisms)


def refuse(request: SaslHandshakeRequest, code: int) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(code, [])
