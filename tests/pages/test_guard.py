"""The requests that the console serves."""

from __future__ import annotations

import time
from http import HTTPStatus

import pytest

from kafka08.pages.guard import COOKIE, Guard
from tests.cpu_speed import slowdown

PAGE = "p" * 32
TOKEN = "t" * 32
LOCAL = Guard(PAGE, changes=True)
REMOTE = Guard(PAGE, TOKEN, frozenset({"kafka.example"}))
CHANGE = {
    "host": "127.0.0.1:9080",
    "origin": "http://127.0.0.1:9080",
    "content-type": "application/json",
    "x-kafka08-page": PAGE,
}


def status(guard: Guard, method: str, path: str, **headers: str) -> HTTPStatus | None:
    """Underscores in names stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    refusal = guard.refusal(method, path, named)
    return None if refusal is None else refusal.status


@pytest.mark.parametrize("host", ["localhost:9080", "LOCALHOST", "127.0.0.1:1", "[::1]:9080"])
def test_localhost_and_addresses_are_known(host: str) -> None:
    """Also behind a tunnel, which has another port."""
    assert status(LOCAL, "GET", "/", host=host) is None


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:9080", "127.0.0.1.evil.example", "[evil]:80"]
)
def test_a_rebound_name_is_refused(host: str) -> None:
    """DNS rebinding would make the browser treat the console as part of another site."""
    assert HTTPStatus.MISDIRECTED_REQUEST == status(LOCAL, "GET", "/api/state", host=host)


def test_a_configured_name_is_accepted() -> None:
    """The name may have any case."""
    bearer = f"Bearer {TOKEN}"
    assert status(REMOTE, "GET", "/", host="Kafka.Example", authorization=bearer) is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, HTTPStatus.UNAUTHORIZED),
        ({"authorization": "Bearer wrong"}, HTTPStatus.UNAUTHORIZED),
        ({"authorization": f"Basic {TOKEN}"}, HTTPStatus.UNAUTHORIZED),
        ({"cookie": f"{COOKIE}={TOKEN[:-1]}"}, HTTPStatus.UNAUTHORIZED),
        ({"cookie": "=;;\x00="}, HTTPStatus.UNAUTHORIZED),
        ({"cookie": f"a=b; {COOKIE}={TOKEN}"}, None),
        ({"authorization": f"Bearer {TOKEN}"}, None),
    ],
)
def test_a_token_is_asked_for(headers: dict[str, str], expected: HTTPStatus | None) -> None:
    """Every path needs the token, the page's files too."""
    for path in ("/", "/parts.js", "/api/state"):
        assert expected == status(REMOTE, "GET", path, host="10.0.0.1", **headers)


def test_another_site_cannot_ask_for_data() -> None:
    """It could not read the response, but make the console work; a link to the page is fine."""
    cross = {"host": "localhost", "sec_fetch_site": "cross-site"}
    assert HTTPStatus.FORBIDDEN == status(LOCAL, "GET", "/api/messages", **cross)
    assert status(LOCAL, "GET", "/", **cross) is None
    typed = {**cross, "sec_fetch_site": "none"}
    assert status(LOCAL, "GET", "/api/messages", **typed) is None


def test_the_page_may_send_its_changes() -> None:
    """A request with all headers of the browser and the page is accepted."""
    assert status(LOCAL, "POST", "/api/change", **CHANGE) is None


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("x-kafka08-page", "", HTTPStatus.FORBIDDEN),
        ("x-kafka08-page", TOKEN, HTTPStatus.FORBIDDEN),
        ("origin", "http://evil.example", HTTPStatus.FORBIDDEN),
        ("origin", "null", HTTPStatus.FORBIDDEN),
        ("origin", "http://127.0.0.1:80", HTTPStatus.FORBIDDEN),
        ("content-type", "text/plain", HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
        ("content-type", "application/x-www-form-urlencoded", HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    ],
)
def test_another_page_cannot_change_anything(name: str, value: str, expected: HTTPStatus) -> None:
    """A form cannot send JSON, a script of another origin cannot send our header, and only our page
    has its token."""
    assert expected == status(LOCAL, "POST", "/api/change", **{**CHANGE, name: value})


def test_a_console_that_only_reads_changes_nothing() -> None:
    """It refuses every change of the page, and has no other methods."""
    assert HTTPStatus.FORBIDDEN == status(Guard(PAGE), "POST", "/api/change", **CHANGE)
    assert HTTPStatus.METHOD_NOT_ALLOWED == status(LOCAL, "DELETE", "/", **CHANGE)


@pytest.mark.parametrize(
    "cookie", ['"' + "\\" * 60_000, ";" * 60_000, f'{COOKIE}="' + "\\1" * 30_000]
)
def test_no_cookie_takes_long(cookie: str) -> None:
    """Anybody can send one: http.cookies took 17 s for 60,000 backslashes."""
    guard = Guard("page", TOKEN)
    began = time.process_time()
    assert guard.refusal("GET", "/", {"host": "localhost", "cookie": cookie}) is not None
    assert time.process_time() - began < 0.1 * slowdown()
