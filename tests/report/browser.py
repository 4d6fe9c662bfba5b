"""A headless Chromium, driven over the DevTools protocol by two pipes: no library, no port, no network."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Self, cast

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from a2a_ledger.events import Json, JsonObject

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE = 20.0  # seconds


def chromium() -> str | None:
    """Return where a Chromium lies on this machine, None if there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser with one page at a time."""

    def __init__(self, program: str) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="a2a-report-", ignore_cleanup_errors=True)
        self._numbers = itertools.count(1)
        self._buffer = b""
        self.events: list[JsonObject] = []
        theirs_in, self._write = os.pipe()
        self._read, theirs_out = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        quiet = ["--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--disable-sync"]
        # The protocol speaks on the descriptors 3 and 4.
        shell = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        profile = [f"--user-data-dir={self._place.name}/profile", f"--crash-dumps-dir={self._place.name}"]
        self._process = subprocess.Popen(
            ["bash", "-c", shell, program, *flags, *quiet, *profile, "--remote-debugging-pipe", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._place.name},
        )
        os.close(theirs_in)
        os.close(theirs_out)
        targets = cast("list[JsonObject]", self.call("Target.getTargets")["targetInfos"])
        page = next(target for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = cast("str", attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError, AssertionError):
            self._send("Browser.close", {}, None)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._place.cleanup()

    def call(self, method: str, **params: Json) -> JsonObject:
        """Ask the browser."""
        return self._answer(self._send(method, params, None))

    def ask(self, method: str, **params: Json) -> JsonObject:
        """Ask the page."""
        return self._answer(self._send(method, params, self._session))

    def run(self, expression: str) -> Json:
        """Return the JSON value of an expression in the page; a promise is waited for."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"the page threw: {json.dumps(answer['exceptionDetails'])[:600]}")
        return cast("JsonObject", answer["result"]).get("value")

    def open(self, page: Path, *, width: int = 1100, height: int = 900, dark: bool = False) -> None:
        """Load a page of this machine; what it says in the console is in `events`."""
        self.events.clear()
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme: Json = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=scheme)
        self.ask("Page.navigate", url=page.as_uri())
        self.until(f"location.href === {json.dumps(page.as_uri())} && document.readyState === 'complete'")

    def until(self, expression: str) -> None:
        """Wait until an expression in the page is true."""
        end = time.monotonic() + _PATIENCE
        while not self.run(f"Boolean({expression})"):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.02)

    def judged(self, trust: str = "") -> JsonObject:
        """Enter what the reader trusts, if anything, and return what the page's table says when it is done."""
        self.until(_DONE)
        if trust:
            self.run(
                "document.documentElement.dataset.state = 'asked';"
                f"document.getElementById('policy').value = {json.dumps(trust)};"
                "document.getElementById('trust-form').requestSubmit()"
            )
            self.until(f"{_DONE} || document.getElementById('trust-problem').textContent")
        return cast("JsonObject", self.run(_READ))

    def choose(self, selector: str, *files: Path) -> None:
        """Put files into a file input, as a reader does."""
        root = cast("JsonObject", self.ask("DOM.getDocument")["root"])
        node = self.ask("DOM.querySelector", nodeId=root["nodeId"], selector=selector)["nodeId"]
        names: list[Json] = [str(file) for file in files]
        self.ask("DOM.setFileInputFiles", nodeId=node, files=names)

    def screenshot(self, out: Path, *, whole: bool = True) -> None:
        """Write a picture of the page."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        out.write_bytes(base64.b64decode(cast("str", shot["data"])))

    def complaints(self) -> list[str]:
        """Return what the console holds of errors, refusals of the page's policy among them, and what was thrown."""
        found: list[str] = []
        for event in self.events:
            params = cast("JsonObject", event.get("params", {}))
            entry = params.get("entry")
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(params)[:600])
            elif event["method"] == "Log.entryAdded" and isinstance(entry, dict) and entry.get("level") != "verbose":
                found.append(str(entry.get("text")))
            elif event["method"] == "Runtime.consoleAPICalled" and params.get("type") in {"error", "warning", "assert"}:
                found.append(json.dumps(params)[:600])
        return found

    def requests(self) -> list[str]:
        """Return every address that the page asked for."""
        sent = [
            cast("JsonObject", event["params"])
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [str(cast("JsonObject", one["request"])["url"]) for one in sent]

    def _send(self, method: str, params: JsonObject, session: str | None) -> int:
        number = next(self._numbers)
        message: JsonObject = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        octets = json.dumps(message).encode() + b"\0"
        while octets:
            octets = octets[os.write(self._write, octets) :]
        return number

    def _answer(self, number: int) -> JsonObject:
        end = time.monotonic() + _PATIENCE
        while True:
            message = self._next(end)
            if message.get("id") == number:
                assert "error" not in message, message["error"]
                return cast("JsonObject", message["result"])
            if "method" in message:
                self.events.append(message)

    def _next(self, end: float) -> JsonObject:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            found = os.read(self._read, 1 << 20)
            assert found, "the browser is gone"
            self._buffer += found
        whole, _, self._buffer = self._buffer.partition(b"\0")
        return cast("JsonObject", json.loads(whole))


_DONE = "document.documentElement.dataset.state === 'done'"

_WATCH = """
window.__refused = [];
addEventListener("securitypolicyviolation", (event) => window.__refused.push(event.violatedDirective));
window.__attacked = 0;
window.alert = () => { window.__attacked += 1; };
"""

_READ = """(() => {
  const rows = [...document.querySelectorAll("#claims tbody tr")];
  const column = (at) => Object.fromEntries(rows.map((row) => [row.cells[0].textContent, row.cells[at].textContent]));
  const text = (id) => document.getElementById(id).textContent;
  const [verdict, title, problem] = ["machine-verdict", "verdict-title", "trust-problem"].map(text);
  const reach = text("reach");
  return {verdict, title, problem, reach, claims: column(2), details: column(3)};
})()"""
