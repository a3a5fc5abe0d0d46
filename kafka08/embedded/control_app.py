"""ControlApp: the verbs of a cluster over HTTP, for tests in any language. A WSGI application.

    GET /openapi.json             the description of all of it
    POST /faults                  {"api": "Produce", "error": "NOT_LEADER_FOR_PARTITION"}
    POST /brokers/1/kill          {}

Requests and responses are JSON; an error is {"error": "…"} with status 400 (the request is wrong),
409 (it cannot be done) or 404. Whoever may send requests may break the cluster and fill its disk:
each needs the token in a file of the cluster that only its owner can read, and pages of browsers
are refused by their Origin and by the name in Host.
"""

from __future__ import annotations

import hmac
import inspect
import json
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from kafka08.embedded.cluster_control import VERBS, ClusterControl, Verb
from kafka08.embedded.own_files import open_own
from kafka08.errors import ConfigError, KafkaError
from kafka08.structs import split_host_port

logger = logging.getLogger(__name__)

TOKEN_FILE: Final = "control-token"
BODY_BYTES_MAX: Final = 64 * 1024
HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
SCHEMAS: Final[Mapping[type, str]] = {
    int: "integer",
    float: "number",
    str: "string",
    bool: "boolean",
    dict: "object",
}
NAME_OR_NUMBER: Final = ("api", "error")
"""Keys of a rule that are given by name or number."""
StartResponse = Callable[[str, list[tuple[str, str]]], object]


class ControlApp:
    """The application for one cluster. token: of the requests' header Authorization: Bearer."""

    def __init__(self, control: ClusterControl, token: str) -> None:
        self._control = control
        self._token = token

    def __call__(
        self, environ: Mapping[str, Any], start_response: StartResponse
    ) -> Iterable[bytes]:
        status, content = self._respond(environ)
        body = json.dumps(content).encode() + b"\n"
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
        ]
        start_response(f"{status.value} {status.phrase}", headers)
        return [body]

    def _respond(self, environ: Mapping[str, Any]) -> tuple[HTTPStatus, Any]:
        if (refused := self._refusal(environ)) is not None:
            return refused
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if (method, path) == ("GET", "/openapi.json"):
            return HTTPStatus.OK, description()
        found = verb_of(method, path)
        if found is None:
            return HTTPStatus.NOT_FOUND, _error(f"there is no {method} {path}; see /openapi.json")
        verb, parameters = found
        try:
            body = _body(environ)
        except ValueError as error:
            return HTTPStatus.BAD_REQUEST, _error(f"the body is not a JSON object: {error}")
        try:
            return HTTPStatus.OK, self._control.execute(verb.name, {**body, **parameters})
        except ConfigError as error:
            return HTTPStatus.BAD_REQUEST, _error(error)
        except (KafkaError, OSError) as error:
            return HTTPStatus.CONFLICT, _error(error)

    def _refusal(self, environ: Mapping[str, Any]) -> tuple[HTTPStatus, Any] | None:
        host = environ.get("HTTP_HOST", "")
        if split_host_port(host)[0].lower() not in HOSTS:
            return HTTPStatus.MISDIRECTED_REQUEST, _error(f"not the host of this server: {host!r}")
        if "HTTP_ORIGIN" in environ:
            return HTTPStatus.FORBIDDEN, _error("pages of browsers must not control a cluster")
        scheme, _, token = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(
            token.strip().encode(), self._token.encode()
        ):
            return HTTPStatus.UNAUTHORIZED, _error(
                f"give the content of the file {TOKEN_FILE} in the cluster's directory, as header "
                "Authorization: Bearer TOKEN"
            )
        return None


def verb_of(method: str, path: str) -> tuple[Verb, dict[str, int]] | None:
    """The verb of a request, and the parameters in its path; None if there is none."""
    for verb in VERBS.values():
        if verb.method == method and (parts := verb.pattern.fullmatch(path)) is not None:
            return verb, {name: int(value) for name, value in parts.groupdict().items()}
    return None


def write_token(directory: Path) -> str:
    """A new token, in a file of the cluster's directory that only its owner can read."""
    token = secrets.token_hex(16)
    (directory / TOKEN_FILE).unlink(missing_ok=True)
    with open_own(directory / TOKEN_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as file:
        file.write(token + "\n")
    return token


def description() -> dict[str, Any]:
    """The OpenAPI description of all verbs."""
    paths: dict[str, Any] = {}
    for verb in VERBS.values():
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                name: {"type": _schema(verb, name, of)}
                for name, (of, _) in verb.parameters.items()
                if name not in verb.in_path
            },
            "required": [
                name
                for name, (_, default) in verb.parameters.items()
                if default is inspect.Parameter.empty and name not in verb.in_path
            ],
            "additionalProperties": False,
        }
        operation: dict[str, Any] = {
            "operationId": verb.name,
            "summary": verb.summary,
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "integer"}}
                for name in sorted(verb.in_path)
            ],
            "responses": {
                "200": {"description": "done", "content": {"application/json": {}}},
                "400": {"description": "the request is not legal"},
                "409": {"description": "it cannot be done"},
            },
        }
        if schema["properties"]:
            operation["requestBody"] = {
                "required": bool(schema["required"]),
                "content": {"application/json": {"schema": schema}},
            }
        paths.setdefault(verb.path, {})[verb.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "kafka08 cluster control", "version": "1"},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": paths,
    }


def _schema(verb: Verb, name: str, of: type) -> Any:
    if not verb.is_checked and name in NAME_OR_NUMBER:
        return ["string", "integer"]
    return SCHEMAS[of]


def _body(environ: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object in the request's body; an empty one without a body, or for null, which some
    libraries send then. ValueError."""
    size = int(environ.get("CONTENT_LENGTH") or 0)
    if not 0 <= size <= BODY_BYTES_MAX:
        raise ValueError(f"it has {size} bytes, and {BODY_BYTES_MAX} are the most")
    if size == 0:
        return {}
    try:
        body = json.loads(environ["wsgi.input"].read(size))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise ValueError(f"it is {type(body).__name__}")
    return body


def _error(error: object) -> dict[str, str]:
    return {"error": str(error)}
