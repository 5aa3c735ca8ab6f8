"""The API page at /docs, used in a real browser the way a person uses it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memorywall.wire.operations import OPERATIONS, Operation
from tests.support.browser import ENVIRONMENT, Browser
from tests.support.house import draft
from tests.support.process import ServerProcess

_NARROW = 360


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("docs")) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as running:
        yield running


@pytest.fixture
def page(server: ServerProcess, browser: Browser) -> Browser:
    """The page, freshly loaded and with an empty record."""
    browser.navigate("about:blank")
    browser.set_width(1280)
    browser.prefer("light")
    browser.record.complaints.clear()
    browser.record.requests.clear()
    browser.record.failed.clear()
    browser.navigate(server.url + "/docs")
    browser.wait_for("document.querySelectorAll('.operation').length")
    return browser


def _text(page: Browser, selector: str) -> str:
    """All text of an element, folded parts too."""
    text: str = page.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")
    return text


def _open(page: Browser, name: str) -> None:
    page.click(f"#{name} > summary")
    page.wait_for(f"document.querySelector('#{name}').open")


def _send(page: Browser, name: str) -> tuple[str, str]:
    """Clicks Send and returns the status line and the body of the reply."""
    page.click(f"#{name} form button")
    page.wait_for(f"document.querySelector('#{name} .status')")
    page.wait_for(f"document.querySelector('#{name} form button').textContent === 'Send'")
    body = f"document.querySelector('#{name} .body')?.textContent ?? ''"
    return _text(page, f"#{name} .status"), page.evaluate(body)


def _put(page: Browser, name: str, fields: dict[str, Any]) -> None:
    page.fill(f"#{name}--body", json.dumps(fields))


def _complaints(page: Browser) -> list[Any]:
    page.settle()
    return [*page.record.complaints, *page.record.failed]


def test_every_operation_of_the_table_has_its_card(page: Browser) -> None:
    shown = page.evaluate("[...document.querySelectorAll('.operation')].map((card) => card.id)")
    assert sorted(shown) == sorted(operation.name for operation in OPERATIONS)
    for operation in OPERATIONS:
        _check_card(operation, _text(page, f"#{operation.name}"))
    groups = page.evaluate("[...document.querySelectorAll('h2')].map((one) => one.textContent)")
    assert groups == list(dict.fromkeys(operation.group for operation in OPERATIONS))


def _check_card(operation: Operation, text: str) -> None:
    wanted = [
        operation.method,
        operation.path.replace(":path", ""),
        operation.summary,
        operation.source,
        operation.permission or "",
        str(operation.status),
        *(error.code for error in operation.errors),
    ]
    for kind in (operation.query, operation.body):
        if kind is not None:
            wanted.extend(field.encode_name for field in msgspec.structs.fields(kind))
    if operation.if_match != "none":
        wanted.append("If-Match")
    assert [one for one in wanted if one not in text] == [], operation.name


def test_the_page_is_content_and_asks_nobody_else(page: Browser, server: ServerProcess) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    for scheme in ("light", "dark"):
        page.prefer(scheme)
    assert _complaints(page) == []
    assert {server.url + path for path in ("/docs", "/docs/docs.js", "/docs/docs.css")} <= set(
        page.record.requests
    )
    foreign = [url for url in page.record.requests if not url.startswith((server.url, "data:"))]
    assert foreign == []


def test_the_policy_stops_inline_scripts_and_other_origins(page: Browser) -> None:
    page.evaluate(
        """(() => {
            const script = document.createElement("script");
            script.textContent = "window.inlineRan = true";
            document.head.append(script);
            return fetch("http://127.0.0.1:9/").catch(() => null);
        })()"""
    )
    assert page.evaluate("window.inlineRan ?? false") is False
    page.settle()
    refused = [one.text for one in page.record.complaints if one.source == "security"]
    assert any("script-src" in text for text in refused), page.record
    assert any("connect-src" in text for text in refused), page.record


def test_an_entry_is_created_and_read_back(page: Browser, server: ServerProcess) -> None:
    page.fill("#api-key", server.dev_key)
    _open(page, "create_entry")
    status, body = _send(page, "create_entry")
    assert status.startswith("201 Created"), body
    created = json.loads(body)
    assert created["value"] == {"completed": 23, "total": 100}
    headers = _text(page, "#create_entry .result dl")
    assert 'etag"1"' in headers
    assert f"location/api/v1/memory/{created['id']}" in headers
    seen = page.evaluate(
        "[...document.querySelectorAll('#seen-entries option')].map((o) => o.value)"
    )
    assert seen == [created["id"]]

    _open(page, "get_entry")
    page.fill("#get_entry--entry_id", created["id"])
    status, body = _send(page, "get_entry")
    assert status.startswith("200 OK"), body
    assert json.loads(body) == created
    assert _complaints(page) == []
    with server.client() as client:
        assert client.get(f"/api/v1/memory/{created['id']}").json() == created


def test_every_example_fits_its_operation(page: Browser, server: ServerProcess) -> None:
    """The body a form offers is one the server takes."""
    page.fill("#api-key", server.dev_key)
    with server.client() as client:
        entry = client.post("/api/v1/memory", json=draft("example")).json()
    paths = {"entry_id": entry["id"], "namespace": "examples"}
    for operation in (one for one in OPERATIONS if one.body is not None):
        _open(page, operation.name)
        for parameter in re.findall(r"{(\w+)", operation.path):
            page.fill(f"#{operation.name}--{parameter}", paths[parameter])
        if operation.if_match == "required":
            page.fill(f"#{operation.name}--If-Match", "1")
        # What an example makes may be there already; that is the only refusal it may meet.
        status, body = _send(page, operation.name)
        assert status.startswith(f"{operation.status} ") or "ENTRY_EXISTS" in body, body


def test_a_wrong_key_shows_the_problem(page: Browser, server: ServerProcess) -> None:
    page.fill("#api-key", server.dev_key[:-4] + "AAAA")
    _open(page, "list_namespaces")
    status, body = _send(page, "list_namespaces")
    assert status.startswith("401 "), body
    assert json.loads(body)["error"] == "UNAUTHENTICATED"
    assert "application/problem+json" in _text(page, "#list_namespaces .result")


def test_the_secret_is_kept_nowhere(page: Browser, server: ServerProcess) -> None:
    page.fill("#api-key", server.dev_key)
    for name in ("list_namespaces", "query_entries"):
        _open(page, name)
        assert _send(page, name)[0].startswith("200 OK")
    kept = page.evaluate(
        """[document.documentElement.outerHTML, document.cookie, location.href,
            JSON.stringify(localStorage), JSON.stringify(sessionStorage),
            JSON.stringify(history.state)].join(" ")"""
    )
    secret = server.dev_key.partition(".")[2]
    assert len(secret) >= 32
    assert secret not in kept
    assert secret not in " ".join(page.record.requests)
    assert "$MEMORYWALL_API_KEY" in kept
    page.navigate(server.url + "/docs")
    assert page.evaluate("document.querySelector('#api-key').value") == ""


def test_the_curl_command_is_the_same_request(page: Browser, server: ServerProcess) -> None:
    fields = draft("it's", value={"quote": "'\\''", "dollar": "$HOME `id`"})
    page.fill("#api-key", server.dev_key)
    page.fill("#agent-id", "ägent")
    _open(page, "create_entry")
    _put(page, "create_entry", fields)
    page.fill("#create_entry--Idempotency-Key", "once")
    arguments = _shell_arguments(_text(page, "#create_entry .curl"))
    assert arguments == [
        *("-X", "POST", f"{server.url}/api/v1/memory"),
        *("-H", "X-API-Key: the-key"),
        *("-H", "X-Agent-ID: ägent"),
        *("-H", "Idempotency-Key: once"),
        *("-H", "Content-Type: application/json"),
        *("--data-raw", json.dumps(fields)),
    ]
    status, body = _send(page, "create_entry")
    assert status.startswith("201 Created"), body
    assert json.loads(body)["agent_id"] == "ägent"
    assert json.loads(body)["value"] == fields["value"]

    _open(page, "get_namespace")
    page.fill("#get_namespace--namespace", "a/b c")
    assert _shell_arguments(_text(page, "#get_namespace .curl"))[2] == (
        f"{server.url}/api/v1/memory/namespaces/a%2Fb%20c"
    )


def test_a_missing_browser_is_a_failure_that_says_what_to_install() -> None:
    script = Path(__file__).parent / "support" / "browser.py"
    environment = {**os.environ, ENVIRONMENT: "/nowhere/chromium"}
    ended = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True
    )
    assert ended.returncode != 0
    assert "apt-get install chromium" in ended.stderr
    assert ENVIRONMENT in ended.stderr


def _shell_arguments(command: str) -> list[str]:
    """What a shell would give curl."""
    script = "curl() { printf '%s\\0' \"$@\"; }\n" + command
    environment = {**os.environ, "MEMORYWALL_API_KEY": "the-key"}
    printed = subprocess.run(
        ["/bin/sh", "-c", script], env=environment, capture_output=True, check=True
    )
    return printed.stdout.decode().split("\0")[:-1]


def test_values_are_shown_as_they_are(page: Browser, server: ServerProcess) -> None:
    value = {
        "markup": "<img src=x onerror=\"document.body.dataset.harmed = 'yes'\"><b>bold</b>",
        "large": 12345678901234567,
        "empty": [{}, []],
        "quoted": 'a "b" {c}, [d]: \\',
    }
    page.fill("#api-key", server.dev_key)
    _open(page, "create_entry")
    _put(page, "create_entry", draft("shown", value=value))
    status, body = _send(page, "create_entry")
    assert status.startswith("201 Created"), body
    assert json.loads(body)["value"] == value
    assert '\n    "empty": [\n      {},\n      []\n    ]' in body
    assert page.evaluate("document.querySelectorAll('.result img, .result b').length") == 0
    assert page.evaluate("document.body.dataset.harmed ?? ''") == ""
    assert _complaints(page) == []


def test_an_event_stream_is_followed_until_it_is_stopped(
    page: Browser, server: ServerProcess
) -> None:
    page.fill("#api-key", server.dev_key)
    _open(page, "list_events")
    page.fill("#agent-id", "follower")
    page.fill("#list_events--agent_id", "follower")
    page.evaluate(
        """(() => {
            const accept = document.querySelector("#list_events--accept");
            accept.value = "text/event-stream";
            accept.dispatchEvent(new Event("input", {bubbles: true}));
        })()"""
    )
    assert "Accept: text/event-stream" in _text(page, "#list_events .curl")
    page.click("#list_events form button")
    page.wait_for("document.querySelector('#list_events .status')")
    with server.client(agent="follower") as client:
        assert client.post("/api/v1/memory", json=draft("followed")).status_code == 201
    page.wait_for("document.querySelector('#list_events .body').textContent.includes('followed')")
    assert _text(page, "#list_events form button") == "Stop"
    page.click("#list_events form button")
    page.wait_for("document.querySelector('#list_events form button').textContent === 'Send'")
    assert "Stopped." in _text(page, "#list_events .result")
    assert "event: memory.created" in _text(page, "#list_events .body")


def test_addresses_filter_and_keys_lead_to_operations(page: Browser, server: ServerProcess) -> None:
    page.navigate("about:blank")
    page.navigate(server.url + "/docs#ready")
    page.wait_for("document.querySelector('#ready')?.open")
    assert page.evaluate("document.activeElement.parentElement.id") == "ready"
    assert page.evaluate("document.activeElement.getBoundingClientRect().top < innerHeight")

    page.press("/")
    assert page.evaluate("document.activeElement.id") == "operation-filter"
    page.fill("#operation-filter", "PATCH entry")
    visible = "[...document.querySelectorAll('.operation')].filter((one) => one.checkVisibility())"
    assert page.evaluate(f"{visible}.map((one) => one.id)") == ["update_entry"]
    page.fill("#operation-filter", "nothing like it")
    assert page.evaluate(f"{visible}.length") == 0
    assert "No operation matches" in _text(page, "#page-status")

    page.fill("#operation-filter", "health")
    page.press("Tab")
    page.press("Enter")
    page.wait_for("document.querySelector('#health').open")
    page.wait_for("location.hash === '#health'")
    page.fill("#operation-filter", "")
    assert page.evaluate(f"{visible}.length") == len(OPERATIONS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_and_fits_a_narrow_window(page: Browser, scheme: str) -> None:
    page.prefer(scheme)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.set_width(_NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= _NARROW
    colours = page.evaluate(
        """[".operation .what", ".documentation td", ".curl", ".get", ".post", ".patch", ".delete",
            ".hint", ".required"].map((selector) => {
            const element = document.querySelector(selector);
            let ground = element;
            const colour = (one) => getComputedStyle(one).backgroundColor;
            while (colour(ground) === "rgba(0, 0, 0, 0)") ground = ground.parentElement;
            return [selector, getComputedStyle(element).color, colour(ground)];
        })"""
    )
    faint = [one for one in colours if _contrast(one[1], one[2]) < 4.5]
    assert faint == [], "text needs a contrast of 4.5 to 1"
    dark = _luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) < 0.5
    assert dark == (scheme == "dark")


def _luminance(colour: str) -> float:
    """The relative luminance of a CSS `rgb()`, as WCAG 2 defines it."""
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (red, green, blue)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)
