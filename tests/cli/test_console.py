"""`kafka08 console` on the session's cluster: what it shows, what it changes, how it ends."""

from __future__ import annotations

import base64
import gzip
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from kafka08.embedded import EmbeddedCluster
from kafka08.producer import KafkaProducer, KafkaProducerConfig, ProducerRecord
from tests.cli.conftest import Commands, Inspector, Running
from tests.pages.chromium import Chromium
from tests.pages.clusters import HOSTILE
from tests.waiting import until


class Served:
    """A running console."""

    def __init__(self, running: Running) -> None:
        self.running = running
        told = until(
            lambda: re.search(r"The console is at (http://\S+)\n", running.err),
            explain=lambda: running.err,
        )
        self.address = told[1]

    def get(self, path: str, **query: object) -> Any:
        return self._response(urllib.request.Request(f"{self.address}{path}?{urlencode(query)}"))

    def post(self, page_token: str, **change: object) -> Any:
        return self._response(
            urllib.request.Request(
                f"{self.address}/api/change",
                json.dumps(change).encode(),
                {"Content-Type": "application/json", "X-Kafka08-Page": page_token},
            )
        )

    def state(self) -> Any:
        """The state, once the console has read the cluster."""
        return until(lambda: (state := self.get("/api/state"))["overview"] and state)

    @staticmethod
    def _response(request: urllib.request.Request) -> Any:
        with urllib.request.urlopen(request, timeout=60) as response:
            body = response.read()
            packed = response.headers.get("Content-Encoding") == "gzip"
        return json.loads(gzip.decompress(body) if packed else body)


@pytest.fixture(scope="module")
def served(
    kafka08_cluster: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """One console for all tests here."""
    commands = Commands(kafka08_cluster, tmp_path_factory.mktemp("console"))
    arguments = ("--listen", 0, "--interval", 0.5, "--allow-changes")
    running = commands.start("console", *arguments)
    try:
        yield Served(running)
    finally:
        running.popen.kill()
        running.popen.wait()


def fill(kafka08: Commands, topic: str, *records: tuple[bytes | None, bytes | None]) -> None:
    """Sends (key, value) pairs to partition 0."""
    config = KafkaProducerConfig(bootstrap_servers=kafka08.environ["KAFKA08_BOOTSTRAP"])
    with KafkaProducer(config) as producer:
        for key, value in records:
            record = ProducerRecord(topic, value, key=key, partition=0)
            producer.send(record).result(60)


def values(response: Any) -> list[bytes | None]:
    parts = [message["value"] for message in response["messages"]]
    return [None if part is None else base64.b64decode(part["data"]) for part in parts]


def test_messages_are_found_and_shown_as_text(
    kafka08: Commands, inspect: Inspector, served: Served, chromium: Chromium
) -> None:
    """Messages are found from either end, from an offset, by key and by text, and from where the
    last response stopped. Chromium shows a hostile message as text."""
    topic = inspect.create_topic("browsed")
    hostile = HOSTILE.encode()
    fill(kafka08, topic, (b"a", b"one"), (b"b", b"two"), (None, hostile), (b"a", None))
    served.state()

    def ask(**query: object) -> Any:
        return served.get("/api/messages", topic=topic, **query)

    assert [b"one", b"two", hostile, None] == values(ask())
    assert [None] == values(ask(limit=1))
    assert [b"two"] == values(ask(start="offset", number=1, limit=1))
    assert [b"one", None] == values(ask(key="a"))
    assert [hostile] == values(ask(text="<script>", start="earliest"))
    first = ask(start="earliest", limit=3)
    assert ([], {"0": 3}) == (first["ended"], first["next"])
    rest = ask(start="at", at="0:3")
    assert ([None], [0]) == (values(rest), rest["ended"])
    page = chromium.open(f"{served.address}/#/messages/{topic}")
    page.until_shown("4 messages; the end of the log is reached.")
    assert HOSTILE in page.text
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.until_shown("Value: null")
    wholes = page.evaluate("[...document.querySelectorAll('pre')].map(one => one.textContent)")
    assert ["a", "one", "b", "two", HOSTILE, "a"] == wholes
    assert 0 == page.evaluate("document.querySelectorAll('main script, main img').length")
    assert f"Messages of {topic} – {served.state()['connect']}" == page.evaluate("document.title")
    assert [] == page.errors


def test_what_is_shown_can_be_saved(
    kafka08: Commands, inspect: Inspector, served: Served, chromium: Chromium
) -> None:
    """The lines are those of `consume --format json`, also of bytes that are no text."""
    topic = inspect.create_topic("saved")
    fill(kafka08, topic, (b"a", "ä\n".encode()), (None, b"\xff"), (None, None))
    served.state()
    page = chromium.open(f"{served.address}/#/messages/{topic}")
    page.until_shown("Save these as JSON lines")
    page.evaluate(
        "parts.real = URL.createObjectURL; URL.createObjectURL = blob => {"
        " blob.text().then(text => { window.saved = text; }); return parts.real.call(URL, blob); };"
        "[...document.querySelectorAll('button')].find(one => /Save/.test(one.textContent)).click()"
    )
    until(lambda: page.evaluate("window.saved"))
    read = ("--partition", 0, "--format", "json", "--no-wait-at-logend")
    printed = kafka08("consume", topic, *read).out.splitlines()
    assert [json.loads(line) for line in printed] == [
        json.loads(line) for line in page.evaluate("window.saved").splitlines()
    ]
    assert [] == page.errors


def test_a_topic_that_is_not_there_is_not_made_by_looking(
    served: Served, inspect: Inspector
) -> None:
    """Looking for a missing topic does not create it, although the cluster creates topics on
    request."""
    served.state()
    for path, name in (("/api/messages", "topic"), ("/api/topic", "name")):
        with pytest.raises(urllib.error.HTTPError) as refused:
            served.get(path, **{name: "imagined"})
        with refused.value:
            assert "does not exist" in json.load(refused.value)["error"]
    assert "imagined" not in inspect.store.topics()


def test_a_change_is_checked_then_made(served: Served, inspect: Inspector) -> None:
    """A dry run changes nothing, and a change needs the page's token. Then the topic exists."""
    token = served.state()["page_token"]
    change = {
        "verb": "create_topic",
        "topic": "from-console",
        "partitions": 2,
        "replication_factor": 1,
        "config": {"retention.ms": "1000"},
    }
    checked = served.post(token, **change, dry_run=True)
    assert "Would create topic from-console with 2 partitions." == checked["says"]
    with pytest.raises(urllib.error.HTTPError, match="403") as refused:
        served.post("guessed", **change, dry_run=False)
    refused.value.close()
    assert "from-console" not in inspect.store.topics()
    served.post(token, **change, dry_run=False)
    found = served.get("/api/topic", name="from-console")
    assert (2, {"retention.ms": "1000"}) == (len(found["partitions"]), found["config"])


def test_a_change_is_made_from_the_page(
    served: Served, inspect: Inspector, chromium: Chromium
) -> None:
    """In the page a change is checked and then confirmed; the keyboard is enough."""
    page = chromium.open(f"{served.address}/#/")
    page.until_shown("Create a topic")
    page.tab_to("at.textContent === 'Create a topic'")
    page.press("Enter")
    page.press("Tab")
    page.type("from-page")
    page.press("Enter")
    page.until_shown("Would create topic from-page with 1 partition.")
    assert "from-page" not in inspect.store.topics()
    page.press("Enter")  # "Do it" has the focus
    page.until_shown("Created topic from-page with 1 partition.")
    assert "from-page" in inspect.store.topics()
    assert [] == page.errors


def test_the_offsets_of_a_group_are_set(
    kafka08: Commands, inspect: Inspector, served: Served
) -> None:
    """Checked first, as any change; refused with the reason for what cannot be, and for a group
    with members."""
    topic = inspect.create_topic("rewound")
    fill(kafka08, topic, *[(None, b"v")] * 5)
    kafka08("consume", topic, "--group", "rewinders", "--from-beginning", "--max-messages", 5)
    token = served.state()["page_token"]
    wanted = {"verb": "reset_offsets", "group": "rewinders", "to": "offset", "topic": topic}
    checked = served.post(token, **wanted, number=2, dry_run=True)["says"]
    assert "Would set the offsets of rewinders in zookeeper: [rewound,0]." == checked
    assert {0: 5} == inspect.committed("rewinders")
    with pytest.raises(urllib.error.HTTPError) as refused:
        served.post(token, **wanted, number=9, dry_run=False)
    with refused.value:
        assert "out of the range 0 to 5" in json.load(refused.value)["error"]
    served.post(token, **wanted, number=2, dry_run=False)
    assert {0: 2} == inspect.committed("rewinders")
    until(lambda: served.get("/api/topic", name=topic)["groups"])


def test_a_group_is_shown_with_owners(kafka08: Commands, served: Served) -> None:
    """A group is shown with its members, and the owner of each partition."""
    kafka08("topic", "create", "watched", "--partitions", 2)
    kafka08.start("consume", "watched", "--group", "watchers")

    def has_owners() -> bool:
        kinds = served.get("/api/group", name="watchers")["kinds"]
        owners = [row["owner"] for kind in kinds for row in kind["partitions"]]
        return len(owners) == 2 and all(str(owner).startswith("watchers_") for owner in owners)

    until(has_owners)


def test_another_address_asks_for_a_token(kafka08: Commands) -> None:
    """On another address the console draws a token and prints it. A request without it gets
    nothing, with it the page. SIGTERM ends the console."""
    running = kafka08.start("console", "--host", "0.0.0.0", "--listen", 0)
    address = Served(running).address
    base, _, query = address.partition("/?")
    port = base.rpartition(":")[2]
    assert re.fullmatch(r"token=[0-9a-f]{32}", query)
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60)
    refused.value.close()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(f"http://127.0.0.1:{port}/?{query}", timeout=60) as page:
        assert b"<title>Kafka console</title>" in page.read()
        assert f"http://127.0.0.1:{port}/" == page.url
    assert 0 == running.stop().code
