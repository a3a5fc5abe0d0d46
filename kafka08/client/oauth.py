"""Tokens for SASL OAUTHBEARER: of a function of yours, of an OAuth server by its client credentials
grant (RFC 6749), or unsecured ones for tests. Source: KIP-255, KIP-768, and the classes of
org.apache.kafka.common.security.oauthbearer 3.9.1."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from math import inf
from typing import Any, Final, TypeAlias
from urllib import error as url_errors
from urllib import parse, request

from kafka08.client.key_stores import read_store
from kafka08.clock import SYSTEM_CLOCK, Clock
from kafka08.errors import AuthenticationFailed, ConfigError, ConnectionFailed

TokenSource: TypeAlias = Callable[[], str]

RESPONSE_BYTES_MAX: Final = 1 << 20
RENEWED_AT: Final = 0.8
"""The part of a token's life after which the next login gets another one, as in Java."""
UNSECURED_S: Final = 3600
CLAIM: Final = "unsecuredLoginStringClaim_"


def unsecured_tokens(options: Mapping[str, str], clock: Clock = SYSTEM_CLOCK) -> TokenSource:
    """Makes tokens that nobody has signed, for brokers of tests, from the options of the login
    module. ConfigError without a `sub`, the name of the user."""
    claims = {n.removeprefix(CLAIM): v for n, v in options.items() if n.startswith(CLAIM)}
    if not claims.get("sub"):
        raise ConfigError(
            "sasl.jaas.config: OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url with clientId "
            "and clientSecret here, or sasl.login.callback.handler.class; without security, for "
            f'tests, {CLAIM}sub="NAME"'
        )

    def token() -> str:
        now_s = clock.time_ms() // 1000
        whole = {**claims, "iat": now_s, "exp": now_s + UNSECURED_S}
        return f"{_part({'alg': 'none'})}.{_part(whole)}."

    return token


def _part(content: Mapping[str, object]) -> str:
    """A part of a JSON Web Token."""
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


@dataclass
class ClientCredentials:
    """Gets tokens from an OAuth server, each for the larger part of its life. Any thread.

    url                     of its token endpoint
    truststore              path of the authorities that have signed its certificate; "": the
                            system's
    truststore_password     of a PKCS12 store
    timeout_s               the longest wait for its response, or a part of it
    """

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    truststore: str = ""
    truststore_password: str = field(default="", repr=False)
    timeout_s: float = 10.0
    clock: Clock = SYSTEM_CLOCK

    def __post_init__(self) -> None:
        if parse.urlsplit(self.url).scheme not in {"http", "https"}:
            raise ConfigError(
                f"sasl.oauthbearer.token.endpoint.url: {self.url!r} does not begin with https://"
            )
        context = ssl.create_default_context()
        if self.truststore:
            name = "ssl.truststore.location in sasl.jaas.config"
            store = read_store(self.truststore, name, self.truststore_password)
            try:
                context.load_verify_locations(cadata=store.text.encode("ascii", "ignore").decode())
            except (OSError, ValueError) as error:
                raise ConfigError(f"{name}: it has no certificate that can be read") from error
        self._opener = request.build_opener(request.HTTPSHandler(context=context), _NoRedirect())
        self._token: tuple[str, float] = "", -inf

    def __call__(self) -> str:
        """A token. AuthenticationFailed if the server refuses it, ConnectionFailed if it does not
        respond as such a server does."""
        token, renew_at = self._token
        if self.clock.monotonic() < renew_at:
            return token
        response = self._requested()
        found, life_s = response.get("access_token"), response.get("expires_in", 0)
        if not isinstance(found, str):
            raise ConnectionFailed(f"{self.url} responded without an access_token")
        if not isinstance(life_s, int | float) or not 0 <= life_s < inf:
            life_s = 0
        self._token = found, self.clock.monotonic() + life_s * RENEWED_AT
        return found

    def _requested(self) -> Mapping[str, Any]:
        pair = f"{self.client_id}:{self.client_secret}".encode()
        form = {"grant_type": "client_credentials"}
        if self.scope:
            form["scope"] = self.scope
        asked = request.Request(
            self.url,
            parse.urlencode(form).encode(),
            {
                "Authorization": f"Basic {base64.b64encode(pair).decode()}",
                "Accept": "application/json",
            },
        )
        try:
            with self._opener.open(asked, timeout=self.timeout_s) as answer:
                body = answer.read(RESPONSE_BYTES_MAX)
        except url_errors.HTTPError as error:
            with error:
                text = error.read(300).decode("utf-8", "replace")
            why = f"{self.url} responded with {error.code} {error.reason}: {text!r}"
            if error.code in {400, 401, 403}:
                raise AuthenticationFailed(
                    f"{why} (clientId, clientSecret and scope of sasl.jaas.config)"
                ) from error
            raise ConnectionFailed(why) from error
        except (OSError, ValueError, HTTPException) as error:
            raise ConnectionFailed(f"no token from {self.url}: {error}") from error
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ConnectionFailed(f"{self.url} responded with something other than a JSON object")
        return found


class _NoRedirect(request.HTTPRedirectHandler):
    """Sends the secret nowhere else."""

    def redirect_request(self, *_: object) -> None:
        return None
