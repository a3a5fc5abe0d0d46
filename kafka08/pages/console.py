"""Console: a WSGI application that serves the pages and their data.

Every request passes the `Guard` first. The state of the cluster (/api/state) is in memory. Requests
that read from the cluster (a group, messages, the doctor, a change) are limited to READERS_MAX at a
time.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

from kafka08.client import ClusterClient
from kafka08.errors import KafkaError, NoBrokersAvailable
from kafka08.pages.changes import change
from kafka08.pages.details import doctor_details, group_details, topic_details
from kafka08.pages.guard import COOKIE, HEADERS, Guard
from kafka08.pages.live import Live
from kafka08.pages.messages import RETRIES, Browser
from kafka08.pages.report import static
from kafka08.pages.search_request import parse_search_request

logger = logging.getLogger(__name__)

READERS_MAX: Final = 4
BODY_BYTES_MAX: Final = 64 * 1024
QUERY_MAX: Final = 60 * 1024
"""Has the positions of a search in 3,000 partitions. The server refuses 64 KiB."""
BROKER_TIMEOUT_MS: Final = 5000
FILES: Final = {
    "/": ("console.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/parts.js": ("parts.js", "text/javascript; charset=utf-8"),
    "/messages.js": ("messages.js", "text/javascript; charset=utf-8"),
    "/changes.js": ("changes.js", "text/javascript; charset=utf-8"),
    "/console.js": ("console.js", "text/javascript; charset=utf-8"),
}
JSON: Final = "application/json"

Query = Mapping[str, str]
StartResponse = Callable[[str, list[tuple[str, str]]], object]


class Response(NamedTuple):
    status: HTTPStatus
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class BadRequest(Exception):
    """A malformed request; the message says why."""


class Console:
    """Thread-safe."""

    def __init__(self, live: Live, guard: Guard) -> None:
        self._live = live
        self._guard = guard
        self._lock = live.runtime.lock()
        self._readers = 0
        self._files = {path: static(name).encode() for path, (name, _) in FILES.items()}
        self._read: dict[str, Callable[[Query], Any]] = {
            "/api/group": self._group,
            "/api/topic": self._topic,
            "/api/messages": self._messages,
            "/api/doctor": self._doctor,
        }

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        response = self._respond(environ)
        headers = [
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(response.body))),
            *HEADERS,
            *response.headers,
        ]
        start_response(f"{response.status.value} {response.status.phrase}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [response.body]

    def _respond(self, environ: Mapping[str, Any]) -> Response:
        method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "/")
        try:
            query = query_of(environ)
        except ValueError as error:
            return said(HTTPStatus.BAD_REQUEST, str(error))
        if path == "/" and self._guard.accepts_token(query.get("token", "")):
            return welcome(query["token"])
        refusal = self._guard.refusal(method, path, headers_of(environ))
        if refusal is not None:
            if path.startswith("/api/"):
                return said(refusal.status, refusal.why)
            return Response(refusal.status, refusal.why.encode(), "text/plain; charset=utf-8")
        try:
            if path in FILES:
                return Response(HTTPStatus.OK, self._files[path], FILES[path][1])
            if path == "/api/state":
                return self._state(query)
            if path in self._read:
                return self._one_reader(lambda: self._read[path](query))
            if path == "/api/change" and method == "POST":
                return self._one_reader(lambda: self._change(environ))
            return said(HTTPStatus.NOT_FOUND, "There is no such page.")
        except (BadRequest, ValueError) as error:
            return said(HTTPStatus.BAD_REQUEST, str(error))
        except KafkaError as error:
            return said(HTTPStatus.BAD_GATEWAY, str(error))
        except Exception:  # the root of a request
            logger.exception("Uncaught error in the response to %s", path)
            return said(
                HTTPStatus.INTERNAL_SERVER_ERROR, "Uncaught error: the console's log has it."
            )

    def _state(self, query: Query) -> Response:
        """The state; an empty response if the page already has it."""
        state = self._live.state
        if query.get("seen") == str(state.number):
            return Response(HTTPStatus.NO_CONTENT, b"")
        return Response(HTTPStatus.OK, state.text, JSON, (("Content-Encoding", "gzip"),))

    def _one_reader(self, read: Callable[[], Any]) -> Response:
        with self._lock:
            if self._readers >= READERS_MAX:
                return said(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    f"{READERS_MAX} requests are under way; repeat this one in a moment.",
                )
            self._readers += 1
        try:
            return Response(HTTPStatus.OK, json.dumps(read()).encode())
        finally:
            with self._lock:
                self._readers -= 1

    def _group(self, query: Query) -> Any:
        return group_details(self._live, wanted(query, "name"))

    def _topic(self, query: Query) -> Any:
        return topic_details(self._live, wanted(query, "name"))

    def _doctor(self, _: Query) -> Any:
        return doctor_details(self._live)

    def _messages(self, query: Query) -> Any:
        request = parse_search_request(query)
        view = self._live.view
        if view is None or not view.brokers:
            raise NoBrokersAvailable("no broker is registered: start one")
        negotiates = view.negotiates or not view.has_zookeeper
        cluster = ClusterClient(
            [(broker.host, broker.port) for broker in view.brokers.values()],
            client_id="kafka08-console",
            timeout_ms=BROKER_TIMEOUT_MS,
            connect_timeout_ms=BROKER_TIMEOUT_MS,
            retry_policy=RETRIES,
            negotiates=negotiates,
            security=self._live.place.security,
            runtime=self._live.runtime,
        )
        try:
            browser = Browser(cluster, self._live.runtime, negotiates=negotiates)
            return browser.search(request)
        finally:
            cluster.close()

    def _change(self, environ: Mapping[str, Any]) -> Any:
        says = change(self._live.place, body_of(environ), self._live.runtime)
        logger.warning("Change from %s: %s", environ.get("REMOTE_ADDR"), says)
        return {"says": says}


def welcome(token: str) -> Response:
    """Move the token from the URL, where others may see it, into a cookie."""
    cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Lax"
    headers = (("Location", "/"), ("Set-Cookie", cookie))
    return Response(HTTPStatus.SEE_OTHER, b"", "text/plain", headers)


def said(status: HTTPStatus, why: str) -> Response:
    return Response(status, json.dumps({"error": why}).encode())


def headers_of(environ: Mapping[str, Any]) -> dict[str, str]:
    """The headers of a request, by lower-case names."""
    found = {
        key[5:].replace("_", "-").lower(): str(value)
        for key, value in environ.items()
        if key.startswith("HTTP_")
    }
    return {**found, "content-type": str(environ.get("CONTENT_TYPE", ""))}


def query_of(environ: Mapping[str, Any]) -> dict[str, str]:
    """The first value of each parameter. ValueError for a query that is too long, or has too many
    of them."""
    text = environ.get("QUERY_STRING", "")
    if len(text) > QUERY_MAX:
        raise ValueError(f"the query is too long: {len(text)} bytes; choose one partition")
    found = parse_qs(text, keep_blank_values=True, max_num_fields=20)
    return {name: values[0] for name, values in found.items()}


def wanted(query: Query, name: str) -> str:
    if name not in query:
        raise BadRequest(f"{name} is missing")
    return query[name]


def body_of(environ: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object in the body. BadRequest if it is not one, is empty, or is too long."""
    length = environ.get("CONTENT_LENGTH") or ""
    if not length.isdecimal() or not 0 < int(length) <= BODY_BYTES_MAX:
        raise BadRequest(f"A change has from 1 to {BODY_BYTES_MAX} bytes.")
    try:
        found = json.loads(environ["wsgi.input"].read(int(length)))
    except RecursionError as error:
        raise BadRequest("A change is a JSON object.") from error
    if not isinstance(found, dict):
        raise BadRequest("A change is a JSON object.")
    return found
