"""The control of a cluster over HTTP: who is let in, and what is described is what is there."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafka08.embedded.cluster import EmbeddedCluster
from kafka08.embedded.cluster_control import VERBS, ClusterControl
from kafka08.embedded.control_app import ControlApp, description, verb_of, write_token
from kafka08.errors import ConfigError, KafkaError
from kafka08.faults.rule import CHECKS
from tests.in_turn import in_turn

TOKEN = "secret"


class Asked(ClusterControl):
    """Notes what is executed."""

    def __init__(self) -> None:
        super().__init__(cast(EmbeddedCluster, SimpleNamespace()))
        self.done: list[tuple[str, Any]] = []

    def execute(self, name: str, parameters: Any) -> Any:
        self.done.append((name, VERBS[name].checked(parameters)))
        if name == "heal":
            raise KafkaError("it does not heal")
        return {"done": name}


def ask(
    app: ControlApp, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, Any]:
    """The status and the JSON of a response."""
    environ = {
        "REQUEST_METHOD": method, "PATH_INFO": path, "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body), "HTTP_HOST": "127.0.0.1:9000",
        "HTTP_AUTHORIZATION": f"Bearer {TOKEN}", **headers,
    }  # fmt: skip
    said: list[str] = []
    found = b"".join(app(environ, lambda status, _: said.append(status)))
    return int(said[0].split()[0]), json.loads(found)


def test_a_request_is_executed() -> None:
    """With the parameters of its path and of its body."""
    control = Asked()
    app = ControlApp(control, TOKEN)
    assert ask(app, "POST", "/brokers/1/kill", b'{"expire": true}') == (200, {"done": "kill"})
    assert ask(app, "GET", "/faults/3", b"null") == (200, {"done": "fault"})
    assert control.done == [("kill", {"expire": True, "broker": 1}), ("fault", {"number": 3})]


REFUSED: list[tuple[dict[str, str], int]] = [
    ({"HTTP_HOST": "evil.example:9000"}, 421),
    ({"HTTP_HOST": "127.0.0.1.evil.example"}, 421),
    ({"HTTP_HOST": ""}, 421),
    ({"HTTP_ORIGIN": "http://127.0.0.1:9000"}, 403),
    ({"HTTP_AUTHORIZATION": ""}, 401),
    ({"HTTP_AUTHORIZATION": "Bearer secre"}, 401),
    ({"HTTP_AUTHORIZATION": "Basic secret"}, 401),
]


@in_turn("case", REFUSED)
def test_others_are_refused(case: tuple[dict[str, str], int]) -> None:
    """A page of a browser, a rebound name, and whoever has not the token change nothing."""
    headers, status = case
    control = Asked()
    assert ask(ControlApp(control, TOKEN), "POST", "/heal", b"", **headers)[0] == status
    assert control.done == []


WRONG: list[tuple[str, str, bytes, int, str]] = [
    ("GET", "/nowhere", b"", 404, "there is no GET /nowhere"),
    ("GET", "/heal", b"", 404, "there is no GET /heal"),
    ("POST", "/brokers/x/kill", b"", 404, "there is no POST"),
    ("POST", "/brokers/1/kill", b"{", 400, "the body is not a JSON object"),
    ("POST", "/brokers/1/kill", b"[]", 400, "the body is not a JSON object: it is list"),
    ("POST", "/brokers/1/kill", b"[" * 60_000, 400, "nested too deeply"),
    ("POST", "/brokers/1/kill", b" " * 70_000, 400, "65536 are the most"),
    ("POST", "/brokers/1/kill", b'{"expires": true}', 400, "did you mean expire?"),
    ("POST", "/brokers/1/kill", b'{"expire": 1}', 400, "expire: 1 is not of type bool"),
    ("POST", "/wait/isr", b"{}", 400, "topic: wait_isr needs it"),
    ("POST", "/heal", b"", 409, "it does not heal"),
]


@in_turn("case", WRONG)
def test_a_wrong_request_is_an_error(case: tuple[str, str, bytes, int, str]) -> None:
    """The error says what is wrong."""
    method, path, body, status, text = case
    found = ask(ControlApp(Asked(), TOKEN), method, path, body)
    assert found[0] == status
    assert text in found[1]["error"]


def test_the_description_is_that_of_the_verbs() -> None:
    """Each operation leads to its verb, and each parameter that it describes is one."""
    paths = ask(ControlApp(Asked(), TOKEN), "GET", "/openapi.json")[1]["paths"]
    operations = {
        (method.upper(), path): operation
        for path, methods in paths.items()
        for method, operation in methods.items()
    }
    assert len(operations) == len(VERBS)
    for (method, path), operation in operations.items():
        found = verb_of(method, path.replace("{broker}", "1").replace("{number}", "1"))
        assert found is not None
        assert found[0].name == operation["operationId"]
        in_body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        named = {one["name"] for one in operation["parameters"]}
        named |= set(in_body.get("schema", {}).get("properties", {}))
        assert named == set(found[0].parameters)


def test_the_description_has_the_keys_of_a_rule() -> None:
    """What a rule may have, with the types of JSON."""
    body = description()["paths"]["/faults"]["post"]["requestBody"]
    properties = body["content"]["application/json"]["schema"]["properties"]
    assert set(properties) == set(CHECKS)
    assert properties["error"] == {"type": ["string", "integer"]}
    assert properties["drop"] == {"type": "boolean"}
    assert properties["addresses"] == {"type": "object"}


def test_the_owner_alone_can_read_the_token(tmp_path: Path) -> None:
    """Each start draws another one."""
    token = write_token(tmp_path)
    file = tmp_path / "control-token"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() == token + "\n"
    assert write_token(tmp_path) != token


def test_an_unknown_verb_is_refused() -> None:
    """Whoever asks by name, as commands do, gets the name that was probably meant."""
    control = ClusterControl(cast(EmbeddedCluster, SimpleNamespace()))
    with pytest.raises(ConfigError, match="there is no verb 'heel'; did you mean heal"):
        control.execute("heel", {})
