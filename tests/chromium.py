"""A headless Chromium that tests talk to over its DevTools protocol, through a pipe.

https://chromedevtools.github.io/devtools-protocol/ has the methods and events.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECONDS = 90.0


class Browser:
    """One tab.

    Attributes:
        events: all that it told, in order.
    """

    def __init__(self, writes: int, reads: int) -> None:
        self._writes, self._reads = writes, reads
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **given: Any) -> dict[str, Any]:
        """Call a method and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": given}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, address: str) -> None:
        """Go to an address."""
        self.send("Page.navigate", url=address)
        self.until("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; a promise's is waited for."""
        found = self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, expression: str) -> Any:
        """Wait until an expression is true, and return its value."""
        deadline = time.monotonic() + SECONDS
        while not (value := self.evaluate(expression)):
            assert time.monotonic() < deadline, expression
            time.sleep(0.1)
        return value

    def press(self, key: str, *, code: int, text: str = "") -> None:
        """Press and let go of a key."""
        named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        self.send("Input.dispatchKeyEvent", type="keyUp", **named)

    def problems(self) -> list[str]:
        """Return what stands in its console, and what broke."""
        self.evaluate("0")
        bad = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(each["params"]) for each in self.events if each.get("method") in bad]

    def requested(self) -> list[str]:
        """Return the addresses that were asked for; data in the page itself is left out."""
        sent = (e["params"] for e in self.events if e.get("method") == "Network.requestWillBeSent")
        addresses = [each["request"]["url"] for each in sent]
        return [each for each in addresses if not each.startswith(("data:", "blob:", "about:"))]

    def picture(self, path: Path, *, width: int, height: int, dark: bool = False) -> None:
        """Write what can be seen as PNG."""
        import base64

        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        time.sleep(1.5)
        found = self.send("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._reads, 1 << 20)
            assert chunk, "Chromium is gone"
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Start Chromium with a profile of its own; end it."""
    its_reads, writes = os.pipe()
    reads, its_writes = os.pipe()

    def place() -> None:  # it reads from 3 and writes to 4
        high = [os.dup2(its_reads, 100), os.dup2(its_writes, 101)]
        os.dup2(high[0], 3)
        os.dup2(high[1], 4)

    command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(
        command,
        close_fds=False,
        preexec_fn=place,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(its_reads)
    os.close(its_writes)
    try:
        browser = Browser(writes, reads)
        yield browser
        browser._session = None
        browser.send("Browser.close")
    finally:
        os.close(writes)
        os.close(reads)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
