"""Drives a headless Chromium over the DevTools protocol, with nothing but the standard library.

Run as a script it makes sure that there is a Chromium, so that no test has to do without one.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

ENVIRONMENT = "MEMORYWALL_TEST_CHROMIUM"
NAMES = ("chromium", "chromium-browser")
LIMIT = 30.0
_MISSING = (
    "The tests of the API page need Chromium. Install it (Debian and Ubuntu:"
    f" `apt-get install chromium`) or name its executable in {ENVIRONMENT}."
)
_FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)
_KEYS: dict[str, dict[str, Any]] = {
    "Enter": {"windowsVirtualKeyCode": 13, "text": "\r"},
    "Tab": {"windowsVirtualKeyCode": 9},
    "/": {"windowsVirtualKeyCode": 191, "text": "/"},
}


def find_chromium() -> str | None:
    """The path of a Chromium, or None."""
    if named := os.environ.get(ENVIRONMENT):
        return shutil.which(named)
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass(frozen=True, slots=True)
class Complaint:
    """Something the page did wrong. `source` is DevTools' word for where it was noticed."""

    source: str
    text: str


@dataclass(slots=True)
class Record:
    """The events of the page since it was opened or the record was cleared."""

    complaints: list[Complaint] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


class Pipe:
    """DevTools messages over two file descriptors, each a JSON text with a NUL behind it."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._buffer = b""

    def send(self, message: dict[str, Any]) -> None:
        content = json.dumps(message).encode() + b"\0"
        while content:
            content = content[os.write(self._writing, content) :]

    def receive(self, deadline: float) -> dict[str, Any] | None:
        """The next message, or None where there is none before the deadline."""
        while b"\0" not in self._buffer:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._reading], [], [], left)[0]:
                return None
            piece = os.read(self._reading, 1 << 20)
            if not piece:
                raise ConnectionError("the browser has gone away")
            self._buffer += piece
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def close(self) -> None:
        os.close(self._reading)
        os.close(self._writing)


class Browser:
    """One headless Chromium with one page and an empty profile. A context manager.

    Methods that look into the page run JavaScript there; those that act on it send the events of
    a real mouse and keyboard, so that what they do is what a person could do.
    """

    def __init__(self) -> None:
        executable = find_chromium()
        if executable is None:
            raise AssertionError(_MISSING)
        self.record = Record()
        self._number = 0
        self._session: str | None = None
        self._profile = Path(tempfile.mkdtemp(prefix="memorywall-browser-"))
        self._process, self._pipe = _start(executable, self._profile)
        try:
            self._open_page()
        except BaseException:
            self.close()
            raise

    def _open_page(self) -> None:
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")
        self.set_width(1280)

    def navigate(self, url: str) -> None:
        """Goes to an address and waits until it is loaded."""
        problem = self._call("Page.navigate", url=url).get("errorText")
        assert not problem, f"{url} cannot be opened: {problem}"
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression as JSON, after its promise is settled."""
        reply = self._call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in reply:
            raise AssertionError(f"`{expression}`: {_exception(reply['exceptionDetails'])}")
        return reply["result"].get("value")

    def wait_for(self, expression: str, limit: float = LIMIT) -> None:
        """Waits until an expression is truthy. Fails after `limit` seconds."""
        deadline = time.monotonic() + limit
        while True:
            if self.evaluate(f"Boolean({expression})"):
                return
            if time.monotonic() > deadline:
                shown = self.evaluate("document.body.innerText")
                raise AssertionError(f"`{expression}` did not come true; the page says:\n{shown}")
            # Events that come in meanwhile are noted while waiting for the next look.
            self._note_until(min(deadline, time.monotonic() + 0.02))

    def click(self, selector: str) -> None:
        """Clicks into the middle of an element, which must be what is seen there."""
        quoted = json.dumps(selector)
        point = self.evaluate(
            f"""(() => {{
                const element = document.querySelector({quoted});
                element.scrollIntoView({{block: "center", behavior: "instant"}});
                const box = element.getBoundingClientRect();
                const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
                const seen = document.elementFromPoint(x, y);
                return {{x, y, reached: element === seen || element.contains(seen)}};
            }})()"""
        )
        assert point["reached"], f"`{selector}` is hidden or covered"
        place = {"x": point["x"], "y": point["y"], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, **place)

    def fill(self, selector: str, text: str) -> None:
        """Clicks into a field and types `text` in place of what is there."""
        self.click(selector)
        self.evaluate("document.activeElement.select()")
        self._call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Presses one key: Enter, Tab or /."""
        described = {"key": key, "code": {"/": "Slash"}.get(key, key), **_KEYS[key]}
        self._call("Input.dispatchKeyEvent", type="keyDown", **described)
        described.pop("text", None)
        self._call("Input.dispatchKeyEvent", type="keyUp", **described)

    def set_width(self, width: int, height: int = 900) -> None:
        """The size of the window in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, scheme: str) -> None:
        """The colour scheme the system asks for: light or dark."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self._call("Emulation.setEmulatedMedia", features=[feature])

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Writes a PNG of the window, or of the whole page."""
        reply = self._call(
            "Page.captureScreenshot", captureBeyondViewport=whole, **self._clip(whole)
        )
        path.write_bytes(base64.b64decode(reply["data"]))

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {**size, "scale": 1}}

    def settle(self) -> None:
        """Notes every event that the page has caused so far."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        self._note_until(time.monotonic())

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._pipe.send(message)
        deadline = time.monotonic() + LIMIT
        while (reply := self._pipe.receive(deadline)) is not None:
            if reply.get("id") == self._number:
                if "error" in reply:
                    raise AssertionError(f"{method}: {reply['error']}")
                result: dict[str, Any] = reply["result"]
                return result
            self._note(reply)
        raise AssertionError(f"{method} was not answered within {LIMIT:.0f} s")

    def _note_until(self, deadline: float) -> None:
        while (message := self._pipe.receive(deadline)) is not None:
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        event = message.get("params", {})
        complaints = self.record.complaints
        match message.get("method"):
            case "Runtime.exceptionThrown":
                complaints.append(Complaint("exception", _exception(event["exceptionDetails"])))
            case "Runtime.consoleAPICalled" if event["type"] in ("error", "warning", "assert"):
                said = [str(one.get("value", one.get("description"))) for one in event["args"]]
                complaints.append(Complaint("console", " ".join(said)))
            case "Log.entryAdded" if event["entry"]["level"] in ("error", "warning"):
                entry = event["entry"]
                complaints.append(Complaint(entry["source"], f"{entry['text']} {entry.get('url')}"))
            case "Network.requestWillBeSent":
                self.record.requests.append(event["request"]["url"])
            case "Network.loadingFailed" if not event.get("canceled"):
                self.record.failed.append(event["errorText"])

    def close(self) -> None:
        """Ends the browser with all its processes and removes its profile."""
        self._pipe.close()
        deadline = time.monotonic() + 10
        while os.waitpid(self._process, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.killpg(self._process, signal.SIGKILL)
                os.waitpid(self._process, 0)
                break
            time.sleep(0.01)
        # Its helpers go a moment after it and may still write.
        shutil.rmtree(self._profile, ignore_errors=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _start(executable: str, profile: Path) -> tuple[int, Pipe]:
    """Starts Chromium, which reads messages from its descriptor 3 and writes them to 4.

    subprocess cannot put a pipe at a chosen descriptor; posix_spawn can.
    """
    theirs_in, ours_out = _pipe()
    ours_in, theirs_out = _pipe()
    log = str(profile / "log.txt")
    arguments = [executable, *_FLAGS, f"--user-data-dir={profile}"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")
    process = os.posix_spawn(
        executable,
        [*arguments, "about:blank"],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            (os.POSIX_SPAWN_DUP2, theirs_in, 3),
            (os.POSIX_SPAWN_DUP2, theirs_out, 4),
        ],
        setpgroup=0,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    return process, Pipe(ours_in, ours_out)


def _pipe() -> tuple[int, int]:
    """A pipe whose descriptors are out of the way of 3 and 4 and are not inherited."""
    low = os.pipe()
    high = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in low]
    for one in low:
        os.close(one)
    return high[0], high[1]


def _exception(details: dict[str, Any]) -> str:
    description = details.get("exception", {}).get("description")
    return str(description or details.get("text"))


def install() -> None:
    """Installs Chromium where that is possible, and says how to where it is not."""
    if find_chromium() is not None:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None or os.environ.get(ENVIRONMENT):
        raise SystemExit(_MISSING)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update"],
        ["apt-get", "install", "-y", "--no-install-recommends", "chromium"],
    ):
        if subprocess.run(command, env=quiet, check=False).returncode != 0:
            raise SystemExit(f"`{' '.join(command)}` failed. {_MISSING}")
    if find_chromium() is None:
        raise SystemExit(_MISSING)


if __name__ == "__main__":
    install()
    print(f"tests: the browser is {find_chromium()}", file=sys.stderr)
