"""Every layout of level 0.10.2 against the schemas of Kafka's own client library of 0.10.2.2."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.levels import Level
from kafka08.protocol.api import Api, ApiVersion
from kafka08.protocol.apis import APIS
from kafka08.protocol.codec import encode_body
from tests.interop.layout_oracle import LayoutOracle
from tests.strategies import messages

CONTROLLED_SHUTDOWN_KEY = 7
"""The library has no schema of its version 0, whose header is another."""
ROWS = [
    (api, row)
    for api in APIS
    for row in api.versions
    if row.exists_at(Level.V0_10_2) and (api.key, row.version) != (CONTROLLED_SHUTDOWN_KEY, 0)
]


@pytest.fixture(scope="module")
def oracle() -> Iterator[LayoutOracle]:
    with LayoutOracle() as oracle:
        yield oracle


@pytest.mark.parametrize(
    ("api", "row"), ROWS, ids=[f"{api.name}-{row.version}" for api, row in ROWS]
)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_library_reads_and_writes_our_bytes(
    oracle: LayoutOracle, api: Api, row: ApiVersion, data: st.DataObject
) -> None:
    """The Java library decodes our bytes of any request and response and encodes them to the same
    bytes."""
    request = data.draw(messages(row.request_form, null_names=False))
    body = encode_body(request, row.request_form)
    assert body == oracle.rewritten("request", api.key, row.version, body)
    body = encode_body(data.draw(messages(row.response_form, null_names=False)), row.response_form)
    assert body == oracle.rewritten("response", api.key, row.version, body)
