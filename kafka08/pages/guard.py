"""Guard: decides which requests the console accepts. Pure.

Pages of other origins must not reach the console through a user's browser: not by DNS rebinding
(a foreign Host is refused), not by forms or scripts (a change needs a header that only the
console's own page can send), and not in a frame. Every client needs a token, unless the console
listens only on loopback.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, NamedTuple

from kafka08.structs import split_host_port

COOKIE: Final = "kafka08_console"
COOKIES_MAX: Final = 100
"""Those that are looked at. Browsers have a limit of 50 to 180 for a host."""
PAGE_TOKEN: Final = "X-Kafka08-Page"
"""The header of a change: the token that the page got with its state."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final = (
    (
        "Content-Security-Policy",
        POLICY,
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
"""Headers of every response."""


class Refusal(NamedTuple):
    """The response to a refused request."""

    status: HTTPStatus
    why: str


@dataclass(frozen=True, slots=True)
class Guard:
    """page_token   required for changes
    token        required for every request; None: not required
    names        host names of the console, besides localhost and any IP address
    changes      whether changes are allowed at all
    """

    page_token: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    names: frozenset[str] = frozenset()
    changes: bool = False

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> Refusal | None:
        """The refusal of a request; None if it is accepted. `headers` by lower-case names."""
        host = headers.get("host", "")
        if not self._knows(host):
            return Refusal(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"The console does not know the name {host!r}. Ask for it by address, or start it "
                "with --name NAME.",
            )
        if self.token is not None and not self._has_token(headers):
            return Refusal(
                HTTPStatus.UNAUTHORIZED,
                "Open the address that the console printed: it has a token.",
            )
        from_page = headers.get("sec-fetch-site", "none") in {"same-origin", "none"}
        if path.startswith("/api/") and not from_page:
            return Refusal(HTTPStatus.FORBIDDEN, "Only the console's own page may ask for this.")
        if method in {"GET", "HEAD"}:
            return None
        if method != "POST":
            return Refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{method} is not allowed.")
        return self._refusal_of_change(host, headers)

    def accepts_token(self, token: str) -> bool:
        """Whether `token` is the console's. Compares in constant time."""
        return self.token is not None and same(token, self.token)

    def _knows(self, host: str) -> bool:
        name = split_host_port(host)[0].lower()
        return name == "localhost" or name in self.names or is_address(name)

    def _has_token(self, headers: Mapping[str, str]) -> bool:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.accepts_token(bearer.strip()):
            return True
        # Not by http.cookies: its search for quoted values takes quadratic time.
        pairs = (pair.partition("=") for pair in headers.get("cookie", "").split(";", COOKIES_MAX))
        return any(
            name.strip() == COOKIE and self.accepts_token(value.strip()) for name, _, value in pairs
        )

    def _refusal_of_change(self, host: str, headers: Mapping[str, str]) -> Refusal | None:
        if not self.changes:
            return Refusal(
                HTTPStatus.FORBIDDEN, "This console only reads. Start it with --allow-changes."
            )
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "A change is JSON.")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return Refusal(HTTPStatus.FORBIDDEN, "Only the console's own page may change anything.")
        if not same(headers.get(PAGE_TOKEN.lower(), ""), self.page_token):
            return Refusal(
                HTTPStatus.FORBIDDEN,
                "The console was restarted: reload the page, then repeat.",
            )
        return None


def is_address(name: str) -> bool:
    """Whether a host is an IP address: unlike a name, that cannot be rebound to this machine."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())
