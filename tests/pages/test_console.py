"""The console's application on canned views, and its page in Chromium."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest

from kafka08.cli.http_server import serve_http
from kafka08.errors import ZooKeeperUnreachable
from kafka08.exporter import ClusterView, Watch
from kafka08.observe.place import ClusterPlace
from kafka08.pages.console import BODY_BYTES_MAX, Console
from kafka08.pages.guard import COOKIE, HEADERS, Guard
from kafka08.pages.live import Live
from kafka08.runtime.threads import THREADS
from tests.pages.chromium import Chromium
from tests.pages.clusters import HOSTILE, view
from tests.waiting import until

PAGE = "p" * 32
TOKEN = "t" * 32
SETTINGS = {"page_token": PAGE, "interval_s": 1, "allows_changes": True}


class Canned(Watch):
    """Reads these views, then ZooKeeper is gone."""

    def __init__(self, *views: ClusterView) -> None:
        super().__init__("localhost:2181")
        self._views = list(views)

    def read_view(self) -> ClusterView:
        if not self._views:
            raise ZooKeeperUnreachable("cannot connect to ZooKeeper at localhost:2181")
        return self._views.pop(0)


def console(*views: ClusterView, guard: Guard | None = None) -> tuple[Live, Console]:
    live = Live(ClusterPlace("localhost:2181"), Canned(*views), THREADS, SETTINGS)
    return live, Console(live, guard or Guard(PAGE))


class Got:
    """The console's response to a request."""

    def __init__(self, app: Console, path: str, query: str = "", **environ: Any) -> None:
        def start(status: str, headers: list[tuple[str, str]]) -> None:
            self.status, self.headers = int(status.split(maxsplit=1)[0]), dict(headers)

        request = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": query}
        host = {"HTTP_HOST": "127.0.0.1:9080"}
        self.body = b"".join(app({**request, **host, **environ}, start))

    def json(self) -> Any:
        is_packed = self.headers.get("Content-Encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if is_packed else self.body)


@pytest.mark.parametrize("path", ["/", "/parts.js", "/api/state", "/api/group", "/nowhere"])
def test_every_response_has_the_headers(path: str) -> None:
    """Successful and failed responses have them."""
    _, app = console()
    found = Got(app, path).headers
    assert set(HEADERS) <= set(found.items())


def test_too_many_parameters_are_refused() -> None:
    """As any malformed request, with the headers of every response."""
    _, app = console()
    refused = Got(app, "/api/state", "&".join(f"p{number}=" for number in range(21)))
    assert 400 == refused.status
    assert set(HEADERS) <= set(refused.headers.items())


def test_a_search_goes_on_in_a_thousand_partitions() -> None:
    """The positions of all of them are in its query. A longer query is refused for its length, and
    not as if it lacked a topic."""
    live, app = console(view(1, brokers={}))
    live.look()
    positions = "%2C".join(f"{number}%3A{10**9 + number}" for number in range(1000))
    query = "topic=t0&start=at&at="
    assert "no broker" in Got(app, "/api/messages", query + positions).json()["error"]
    refused = Got(app, "/api/messages", query + 5 * positions)
    assert (400, True) == (refused.status, "too long" in refused.json()["error"])


def test_the_state_is_sent_once() -> None:
    """A client that has it gets nothing until the next look."""
    live, app = console(view(1))
    live.look()
    number = Got(app, "/api/state").json()["number"]
    assert 204 == Got(app, "/api/state", f"seen={number}").status
    live.look()
    assert 200 == Got(app, "/api/state", f"seen={number}").status


def test_a_dead_zookeeper_keeps_the_last_overview() -> None:
    """The state says since when and why, and the last overview remains."""
    live, app = console(view(1), view(2))
    for _ in range(4):
        live.look()
    state = Got(app, "/api/state").json()
    assert "cannot connect to ZooKeeper" in state["fault"]
    assert view(2).now_ms == state["overview"]["now_ms"]


def test_a_token_moves_from_the_address_into_a_cookie() -> None:
    """Scripts cannot read it, and the address shows it no longer."""
    _, app = console(guard=Guard(PAGE, TOKEN))
    assert 401 == Got(app, "/").status
    assert 401 == Got(app, "/", "token=wrong").status
    found = Got(app, "/", f"token={TOKEN}")
    assert (303, "/") == (found.status, found.headers["Location"])
    assert "HttpOnly" in found.headers["Set-Cookie"]
    cookie = f"{COOKIE}={TOKEN}"
    assert found.headers["Set-Cookie"].startswith(f"{cookie};")
    assert 200 == Got(app, "/", HTTP_COOKIE=cookie).status


@pytest.mark.parametrize(
    ("length", "body"),
    [
        ("", b""),
        ("0", b""),
        ("-1", b"{}"),
        ("x", b"{}"),
        (str(BODY_BYTES_MAX + 1), b"{}"),
        ("2", b"[]"),
        ("1", b"{"),
        ("60000", b"[" * 60_000),
        ("3", b"\xff\xfe\xfd"),
    ],
)
def test_an_invalid_change_is_refused(length: str, body: bytes) -> None:
    """The console reads no more bytes than the limit."""
    _, app = console(guard=Guard(PAGE, changes=True))
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "CONTENT_LENGTH": length,
        "CONTENT_TYPE": "application/json",
        "HTTP_X_KAFKA08_PAGE": PAGE,
        "wsgi.input": io.BytesIO(body),
    }
    assert 400 == Got(app, "/api/change", **environ).status


def test_the_page_follows_the_cluster(chromium: Chromium) -> None:
    """10,000 partitions and a group whose name is hostile; then ZooKeeper dies, and a banner says
    so beside what was read last. The page is not loaded again."""
    live, app = console(*(view(n, topics=1000, partitions=10, group=HOSTILE) for n in (10, 20)))
    live.look()
    page = chromium.open(serve_http(app, "127.0.0.1", 0, "--listen"))
    page.until_shown("partitions\n10,000")
    page.evaluate("window.isTheSame = true")
    live.look()
    page.until_shown(HOSTILE)
    assert "Overview – localhost:2181" == page.evaluate("document.title")
    assert 0 == page.evaluate("document.querySelectorAll('main script, main img').length")
    live.look()
    page.until_shown("The cluster has not responded since")
    assert "partitions\n10,000" in page.text
    assert page.evaluate("window.isTheSame")
    assert [] == page.errors


def test_the_page_is_usable_by_keyboard(chromium: Chromium) -> None:
    """Tab reaches a broker's map, in which arrows tell of each replica; a heading sorts, a filter
    takes letters, a link leads on."""
    live, app = console(view(10, topics=12))
    live.look()
    page = chromium.open(serve_http(app, "127.0.0.1", 0, "--listen"))
    page.until_shown("Broker 1")
    page.tab_to("at.closest('.map') && at.localName === 'svg'")
    page.press("ArrowRight")
    page.until_shown("t0 0: leader 1, replicas 1, 2, in sync 1")
    page.tab_to("at.textContent === 'Topics' && at.localName === 'a'")
    page.press("Enter")
    page.until_shown("under-replicated")
    page.tab_to("at.type === 'search'")
    page.type("t1")
    page.until_shown("3 of 12")
    page.tab_to("at.textContent === 'topic'")
    page.press("Enter")
    falling = "[...document.querySelectorAll('td.name')].map(cell => cell.textContent).join()"
    until(lambda: page.evaluate(falling) == "t11,t10,t1")
    page.tab_to("at.textContent === 't11'")
    page.press("Enter")
    page.until_shown("log end")
    assert "t11 – localhost:2181" == page.evaluate("document.title")


def test_the_page_fits_a_phone_in_the_dark(chromium: Chromium) -> None:
    """No page is wider than the screen, and none is white."""
    live, app = console(view(10), view(20))
    live.look()
    live.look()
    address = serve_http(app, "127.0.0.1", 0, "--listen")
    page = chromium.open(address)
    page.until_shown("Broker 1")
    colours = set()
    for place, shown in (
        ("", "Broker 1"),
        ("topics", "under-replicated"),
        ("groups", "verdict"),
        ("topic/t0", "Delete the topic"),
        ("group/readers", "Set its offsets"),
    ):
        for width, scheme in ((1200, "light"), (360, "dark")):
            page.emulate(width=width, scheme=scheme)
            page.send("Page.navigate", url=f"{address}/#/{place}")
            page.until_shown(shown)
            page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            # A script moves the focus to all of the page: no frame is drawn around it.
            until(lambda: "page" == page.evaluate("document.activeElement.id"), "the focus")
            assert "none" == page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            colours.add((scheme, ground))
    assert {("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 23, 26)")} == colours
