"""A real Chromium without a window, driven through a pipe by its DevTools protocol.

Skipped where there is none, unless CI=true: scripts/ci-setup installs Debian's.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Final

import pytest

from kafka08.lifecycle import Closeable
from tests.waiting import until

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
DEADLINE_S: Final = 100.0
KEYS: Final = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowDown": 40}
"""Keys that `press` knows, and Windows' number for each."""


def find_chromium() -> str:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        if os.environ.get("CI") == "true":
            raise AssertionError("there is no Chromium: scripts/ci-setup installs it")
        pytest.skip("there is no Chromium")
    return program


class Chromium(Closeable):
    """Usable in a `with` statement; ends the browser."""

    def __init__(self, profile: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        self._rest = b""
        self._number = 0
        self._pages: dict[str, Page] = {}
        with (profile / "chromium.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    # The pipe has to be at 3 and 4; sh knows no numbers of two digits.
                    *("bash", "-c", f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'),
                    *(find_chromium(), "--headless", "--no-sandbox", "--disable-gpu"),
                    *("--disable-dev-shm-usage", "--disable-background-networking"),
                    *("--no-first-run", "--no-proxy-server", "--remote-debugging-pipe"),
                    f"--user-data-dir={profile}",
                ],
                pass_fds=(to_browser, from_browser),
                stdout=log,
                stderr=log,
            )
        os.close(to_browser)
        os.close(from_browser)

    def close(self) -> None:
        self._process.kill()
        self._process.wait(DEADLINE_S)
        os.close(self._in)
        os.close(self._out)

    def open(self, address: str) -> Page:
        """A new page whose scripts have begun."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log"):
            page.send(f"{domain}.enable")
        page.send("Page.navigate", url=address)
        until(page.is_loaded, f"{address} is loaded")
        return page

    def send(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        """The result of a command; AssertionError with the browser's words if it fails."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            command["sessionId"] = session
        os.write(self._out, json.dumps(command).encode() + b"\0")
        end = time.monotonic() + DEADLINE_S
        while True:
            said = self._receive(end)
            if said.get("id") == self._number:
                assert "error" not in said, f"{method}: {said['error']}"
                return said["result"]
            if said.get("sessionId") in self._pages:
                self._pages[said["sessionId"]].note(said)

    def _receive(self, end: float) -> Any:
        while b"\0" not in self._rest:
            assert select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0], (
                "Chromium does not respond"
            )
            read = os.read(self._in, 1 << 20)
            assert read, f"Chromium ended with {self._process.wait(DEADLINE_S)}"
            self._rest += read
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)


class Page:
    """One tab. `errors` are what its console shows as errors: exceptions, refused scripts."""

    def __init__(self, chromium: Chromium, session: str) -> None:
        self._chromium = chromium
        self._session = session
        self.errors: list[str] = []

    def send(self, method: str, **parameters: Any) -> Any:
        return self._chromium.send(method, self._session, **parameters)

    def note(self, event: Any) -> None:
        """An event of this page."""
        parameters = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"]))
        elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(f"{parameters['entry']['text']} {parameters['entry'].get('url')}")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, f"{expression}: {found['exceptionDetails']}"
        return found["result"].get("value")

    def is_loaded(self) -> bool:
        """False also between two documents, when nothing can be evaluated."""
        try:
            at, state = self.evaluate("[location.href, document.readyState]")
        except AssertionError:
            return False
        return bool(at != "about:blank" and state == "complete")

    @property
    def text(self) -> str:
        """As it is shown."""
        found: str = self.evaluate("document.body.innerText")
        return found

    def until_shown(self, text: str) -> None:
        until(lambda: text in self.text, f"the page shows {text!r}", explain=lambda: self.text)

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            typed = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            number = KEYS[key]
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=number,
                **typed,
            )

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def tab_to(self, what: str) -> None:
        """Press Tab until `what`, an expression about `at`, the focused element, is true."""
        for _ in range(200):
            self.press("Tab")
            if self.evaluate(f"(at => Boolean({what}))(document.activeElement)"):
                return
        raise AssertionError(f"Tab never reaches {what}")

    def emulate(self, *, width: int, scheme: str) -> None:
        """A screen of that width, and light or dark."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[feature])
