"""A page in a Chromium without a window, through its DevTools protocol over two pipes: nothing else is needed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions"),
    *("--remote-debugging-pipe", "--disable-background-networking", "--disable-component-update"),
)
_KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27, "Enter": 13, "Tab": 9}


class Page:
    """A page that is open, and what it has asked the network for."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = os.fdopen(commands, "wb", 0), os.fdopen(answers, "rb")
        self._number = 0
        self._session: str | None = None
        self._asked: dict[str, str] = {}
        self.errors: list[str] = []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self(f"{domain}.enable")

    def __call__(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol, and note what happens meanwhile."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        text = bytearray()
        while not text.endswith(b"\0"):
            byte = self._answers.read(1)
            assert byte, "Chromium has ended"
            text += byte
        return json.loads(text[:-1])

    def _note(self, event: dict[str, Any]) -> None:
        own = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self._asked[own["requestId"]] = own["request"]["url"]
        elif event.get("method") == "Network.loadingFailed" and own.get("blockedReason") == "csp":
            self._asked.pop(own["requestId"])  # it never left
        elif event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(own))
        elif event.get("method") == "Log.entryAdded" and own["entry"]["level"] == "error":
            self.errors.append(own["entry"]["text"])

    def open(
        self, path: Path, fragment: str = "", *, width: int = 1280, scheme: str = "light", script: bool = True
    ) -> None:
        """Open a file, and wait until it is loaded."""
        self("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self("Emulation.setScriptExecutionDisabled", value=not script)
        self("Page.navigate", url="about:blank")
        self._asked.clear()
        self.errors.clear()
        self("Page.navigate", url=path.as_uri() + fragment)
        while (event := self._next()).get("method") != "Page.loadEventFired" or not self._asked:
            self._note(event)

    @property
    def requests(self) -> list[str]:
        """What was asked for, but for what the policy of the page did not let through."""
        return list(self._asked.values())

    def run(self, expression: str) -> Any:
        """What an expression of JavaScript gives."""
        done = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            own = {"key": key, "windowsVirtualKeyCode": _KEYS.get(key, ord(key[0].upper()))}
            text = {"text": key} if len(key) == 1 else {}
            self("Input.dispatchKeyEvent", type="keyDown", **own, **text)
            self("Input.dispatchKeyEvent", type="keyUp", **own)

    def click(self, selector: str) -> None:
        """Click in the middle of an element."""
        x, y = self.run(
            f"(() => {{ const own = document.querySelector({json.dumps(selector)});"
            "own.scrollIntoView({ block: 'center', behavior: 'instant' });"
            "const box = own.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write what is seen as a PNG, or the whole page."""
        shown = self("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shown["data"]))


@contextmanager
def chromium(folder: Path) -> Generator[Page]:
    """A Chromium with one page, which keeps its files in a folder."""
    assert PROGRAM is not None
    ours, theirs = os.pipe(), os.pipe()

    def pipes() -> None:
        # It reads from 3 and writes to 4.
        read, write = os.dup(ours[0]), os.dup(theirs[1])
        os.dup2(read, 3)
        os.dup2(write, 4)

    process = subprocess.Popen(
        [PROGRAM, *_FLAGS, f"--user-data-dir={folder}", "about:blank"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=pipes,
        pass_fds=(3, 4),
    )
    os.close(ours[0])
    os.close(theirs[1])
    try:
        page = Page(ours[1], theirs[0])
        yield page
        page("Browser.close")
    except BaseException:
        process.kill()
        raise
    finally:
        process.wait(60)
