"""`kafka08 fault`, and a cluster with a control server, as users type them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from kafka08.network.connection import Connection
from kafka08.protocol.metadata import MetadataRequest, MetadataResponse
from tests.cli.test_up import Commands


@pytest.fixture(scope="module")
def kafka08(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    commands = Commands(tmp_path_factory.mktemp("state"))
    options = ("--brokers", "1", "--control", "127.0.0.1:0", "--cuttable")
    commands("up", "--detach", *options)
    yield commands
    commands("down")


def metadata_error(kafka08: Commands) -> int:
    """The error code of a topic's metadata, as broker 0 responds it."""
    host, _, port = json.loads(kafka08("status", "--json").stdout)["bootstrap"].rpartition(":")
    with Connection(host, int(port), client_id="a test") as connection:
        response = connection.send(MetadataRequest(["t"]))
    assert isinstance(response, MetadataResponse)
    return response.topics[0].error_code


def test_a_rule_by_commands(kafka08: Commands) -> None:
    """It is added, hits, is waited for, and removed."""
    rule = ("--api", "Metadata", "--topic", "t", "--error", "LEADER_NOT_AVAILABLE", "--times", "1")
    [added] = json.loads(kafka08("fault", "add", *rule, "--client-id", "a test", "--json").stdout)
    number = str(added["number"])
    assert metadata_error(kafka08) == 5
    [waited] = json.loads(kafka08("fault", "wait", number, "--json").stdout)
    assert waited["hits"] == 1
    assert "error=LEADER_NOT_AVAILABLE" in kafka08("fault", "list").stdout
    assert kafka08("fault", "remove", number).stdout.splitlines()[1].split()[:2] == [number, "1"]
    assert kafka08("fault", "list").stderr == "There are no fault rules.\n"


def test_wrong_rules_change_nothing(kafka08: Commands) -> None:
    """The error names the key and what was probably meant."""
    for options, text in (
        (["--api", "Produze", "--drop"], "there is no API 'Produze'; did you mean Produce?"),
        (["--api", "Fetch"], "a rule does one thing"),
        (["--api", "Metadata", "--address", "0"], "'0' is not ID=HOST:PORT"),
        (["--broker", "4", "--drop"], "broker: 4 is none of 0"),
    ):
        assert (
            text
            in kafka08("fault", "add", *options, code=2 if "--address" in options else 1).stderr
        )
    assert "there is no rule 77" in kafka08("fault", "wait", "77", code=1).stderr
    assert kafka08("fault", "list", "--json").stdout == "[]\n"


def test_brokers_and_networks(kafka08: Commands) -> None:
    """A broker that is paused, cut and killed runs again after heal."""
    for verb, condition in (("pause", "paused"), ("resume", "running"), ("cut", "running"),
                            ("kill", "killed")):  # fmt: skip
        assert kafka08("fault", verb, "0").stdout == f"broker 0 is {condition}\n"
    assert "Broker 0 runs at" in kafka08("fault", "heal").stdout
    assert metadata_error(kafka08) in (0, 5)


def test_other_programs_need_the_token(kafka08: Commands) -> None:
    """status --env says where the server is, and which file has the token."""
    lines = kafka08("status", "--env").stdout.splitlines()
    environ = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    token = Path(environ["KAFKA08_CONTROL_TOKEN_FILE"]).read_text().strip()
    request = Request(environ["KAFKA08_CONTROL"] + "/cluster")
    request.add_header("Authorization", f"Bearer {token}")
    with urlopen(request) as response:
        found = json.load(response)
    assert found["bootstrap"] == environ["KAFKA08_BOOTSTRAP"]
    assert [broker["condition"] for broker in found["brokers"]] == ["running"]


def test_others_cannot_reach_the_control_server(kafka08: Commands) -> None:
    """It listens on loopback alone."""
    for address in ("0.0.0.0:9000", "192.0.2.1:9000", "localhost", "127.0.0.1:99999"):
        said = kafka08("up", "--control", address, code=2).stderr
        assert "is not host:port of this machine alone" in said
