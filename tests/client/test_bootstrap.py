"""parse_bootstrap: what users write, and the errors for what is wrong."""

from __future__ import annotations

import pytest

from kafka08.client.bootstrap import parse_bootstrap
from kafka08.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a:1", [("a", 1)]),
        (" b:9092 , a:65535,", [("b", 9092), ("a", 65535)]),
        ("a:1,b:2,a:1", [("a", 1), ("b", 2)]),
        ("[::1]:9092,10.0.0.1:1", [("::1", 9092), ("10.0.0.1", 1)]),
    ],
)
def test_addresses_keep_their_order(text: str, addresses: list[tuple[str, int]]) -> None:
    """Blanks, empty parts and repetitions do not matter."""
    assert parse_bootstrap(text) == addresses


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no broker"),
        (" , ", "has no broker"),
        ("host", "not of the form host:port"),
        (":9092", "not of the form host:port"),
        ("host:", "a number from 1 to 65535"),
        ("host:0", "a number from 1 to 65535"),
        ("host:65536", "a number from 1 to 65535"),
        ("host:9o92", "a number from 1 to 65535"),
        ("::1:9092", "brackets"),
        ("a..b:9092", "cannot be the name of a host"),
    ],
)
def test_errors_name_the_key(text: str, complaint: str) -> None:
    """ConfigError says which key it was and what is wrong with which part."""
    with pytest.raises(ConfigError, match="metadata.broker.list: .*" + complaint):
        parse_bootstrap(text, "metadata.broker.list")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("PLAINTEXT://h:9092", "leave out PLAINTEXT://, as in h:9092"),
        ("h:1 h:2", "separate addresses by commas"),
        ("h:1;h:2", "separate addresses by commas"),
    ],
)
def test_an_address_of_another_form_says_what_to_change(text: str, advice: str) -> None:
    """These are what listeners, other libraries and shells write."""
    with pytest.raises(ConfigError, match=advice):
        parse_bootstrap(text)
