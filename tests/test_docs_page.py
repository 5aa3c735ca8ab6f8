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

from memorywall.records.principal import Permission
from memorywall.wire.operations import OPERATIONS, Operation
from tests.support.browser import ENVIRONMENT, Browser
from tests.support.process import ServerProcess
from tests.support.service import draft
from tests.support.stage import make_stage

CARDS = {operation.name: operation.group for operation in OPERATIONS} | {"rpc": "JSON-RPC"}
"""The groups of the operations and of JSON-RPC, by their cards."""
_NARROW = 360
_ASSETS = ("docs.css", "docs.js", "elements.js", "requests.js", "schemas.js")
_VISIBLE = "[...document.querySelectorAll('.operation')].filter((one) => one.checkVisibility())"


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
    page.wait_for(f"document.querySelector('#{name} > .content')?.checkVisibility()")


def _open_all(page: Browser) -> None:
    for inner in (".operation", ".operation details"):
        page.evaluate(
            f"document.querySelectorAll('{inner}').forEach((one) => {{ one.open = true; }})"
        )
        page.wait_for(f"document.querySelectorAll('.operation > .content').length === {len(CARDS)}")


def _send(page: Browser, name: str) -> tuple[str, str]:
    """Clicks Send and returns the status line and the body of the reply."""
    page.click(f"#{name} form button")
    page.wait_for(f"document.querySelector('#{name} .status')")
    page.wait_for(f"document.querySelector('#{name} form button').textContent === 'Send'")
    body = f"document.querySelector('#{name} .body')?.textContent ?? ''"
    return _text(page, f"#{name} .status"), page.evaluate(body)


def _request(page: Browser, name: str, fields: dict[str, str]) -> tuple[str, str]:
    """What `_open`, filling fields and `_send` do, without a pointer: hundreds of these take no
    longer than a few of those. The card is closed again."""
    status, body = page.evaluate(
        f"""(async (name, fields) => {{
            const card = document.getElementById(name);
            const until = async (condition) => {{
                while (!condition()) await new Promise((done) => setTimeout(done));
            }};
            card.open = true;
            await until(() => card.querySelector("form button"));
            for (const [field, value] of Object.entries(fields)) {{
                const control = document.getElementById(`${{name}}--${{field}}`);
                control.value = value;
                control.dispatchEvent(new Event("input", {{bubbles: true}}));
            }}
            const button = card.querySelector("form button");
            card.querySelector(".status")?.replaceChildren();
            button.click();
            await until(() => card.querySelector(".status")?.textContent &&
                button.textContent === "Send");
            card.open = false;
            return [card.querySelector(".status"), card.querySelector(".body")].map(
                (one) => one?.textContent ?? "");
        }})({json.dumps(name)}, {json.dumps(fields)})"""
    )
    return status, body


def _put(page: Browser, name: str, fields: dict[str, Any]) -> None:
    page.fill(f"#{name}--body", json.dumps(fields))


def _choose_file(page: Browser, name: str, filename: str, content: str) -> None:
    page.evaluate(
        f"""(() => {{
            const chosen = new DataTransfer();
            chosen.items.add(new File([{json.dumps(content)}], {json.dumps(filename)}));
            const field = document.querySelector("#{name}--body");
            field.files = chosen.files;
            field.dispatchEvent(new Event("input", {{bubbles: true}}));
        }})()"""
    )


def _complaints(page: Browser) -> list[Any]:
    page.settle()
    return [*page.record.complaints, *page.record.failed]


def test_every_operation_of_the_table_has_its_card(page: Browser) -> None:
    shown = page.evaluate("[...document.querySelectorAll('.operation')].map((card) => card.id)")
    assert sorted(shown) == sorted(CARDS)
    _open_all(page)
    controls = page.evaluate(
        """Object.fromEntries([...document.querySelectorAll(".operation")].map((card) => [
            card.id, [...card.querySelector("form").elements].map((control) => control.name)]))"""
    )
    for operation in OPERATIONS:
        _check_card(operation, _text(page, f"#{operation.name}"), controls[operation.name])
    groups = page.evaluate("[...document.querySelectorAll('h2')].map((one) => one.textContent)")
    assert groups == list(dict.fromkeys(CARDS.values()))


def test_a_card_is_filled_when_it_is_opened(page: Browser) -> None:
    """What is not looked at costs nothing, so the page is there at once."""
    assert page.evaluate("document.querySelectorAll('.content').length") == 0
    _open(page, "list_claims")
    assert page.evaluate("document.querySelectorAll('.content').length") == 1
    page.fill("#list_claims--scope", "agent")
    for is_open in (False, True):
        page.click("#list_claims > summary")
        page.wait_for(f"document.querySelector('#list_claims').open === {str(is_open).lower()}")
    page.settle()
    assert page.evaluate("document.querySelector('#list_claims--scope').value") == "agent"
    assert page.evaluate("document.querySelectorAll('.content').length") == 1


def _check_card(operation: Operation, text: str, controls: list[str]) -> None:
    wanted = [
        operation.method,
        operation.path.replace(":path", ""),
        operation.summary,
        operation.source,
        operation.permission or "",
        str(operation.status),
        "204" if operation.empty else "",
        *(error.code for error in operation.errors),
    ]
    for kind in (operation.query, operation.body):
        if kind not in (None, bytes):
            wanted.extend(field.encode_name for field in msgspec.structs.fields(kind))
    for header, is_heeded in (
        ("If-Match", operation.if_match != "none"),
        ("Fencing-Token", operation.fenced),
        ("Idempotency-Key", operation.accepts_idempotency_key),
    ):
        assert (header in controls) is is_heeded, (operation.name, header)
    assert [one for one in wanted if one not in text] == [], operation.name


def test_the_page_is_content_and_asks_nobody_else(page: Browser, server: ServerProcess) -> None:
    _open_all(page)
    for scheme in ("light", "dark"):
        page.prefer(scheme)
    assert _complaints(page) == []
    assert {f"{server.url}/docs/{name}" for name in _ASSETS} <= set(page.record.requests)
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
    _open(page, "get_entry")
    assert page.evaluate(
        "[...document.querySelector('#get_entry--entry_id').list.options].map((one) => one.value)"
    ) == [created["id"]]
    page.fill("#get_entry--entry_id", created["id"])
    status, body = _send(page, "get_entry")
    assert status.startswith("200 OK"), body
    assert json.loads(body) == created
    assert _complaints(page) == []
    with server.client() as client:
        assert client.get(f"/api/v1/memory/{created['id']}").json() == created


def test_every_example_fits_its_operation(page: Browser, server: ServerProcess) -> None:
    """The body a form offers is one the server takes."""
    permissions = [f"--permission={one}" for one in Permission]
    key = server.create_key("billing", *permissions)
    page.fill("#api-key", key)
    with server.client(key) as client:
        stage = make_stage(client, "billing")
        for operation in (one for one in OPERATIONS if one.body is not None):
            if operation.path_parameters:
                stage = make_stage(client, "billing")
            # The example is about the intent that was looked at last.
            looked_at = _request(page, "get_intent", {"intent_id": stage.other_intent})
            assert looked_at[0].startswith("200 ")
            fields = stage.path_of(operation)
            if stage.held_task in fields.values():
                fields["Fencing-Token"] = str(stage.token)
            if operation.if_match == "required":
                fields["If-Match"] = "1"
            if operation.content == "bytes":
                _open(page, operation.name)
                _choose_file(page, operation.name, "file.txt", "content")
            # The entry of an example may exist; that is the only reason for a refusal.
            status, body = _request(page, operation.name, fields)
            is_fine = status.startswith(f"{operation.status} ") or "ENTRY_EXISTS" in body
            is_fine = is_fine or (operation.name == "put_entry" and status.startswith("428 "))
            # The newer entry of the example is none of the stage.
            is_fine = is_fine or (operation.name == "supersede_entry" and "not-found" in body)
            # Nothing is promoted from the tier of the example, which many operations share.
            is_fine = is_fine or (operation.name == "promote_entry" and "`to` must be" in body)
            assert is_fine, (operation.name, status, body)


def test_a_file_is_uploaded_and_saved(page: Browser, server: ServerProcess) -> None:
    page.fill("#api-key", server.dev_key)
    with server.client() as client:
        intent = client.post("/api/v1/intents", json={"title": "files"}).json()["id"]
    _open(page, "add_attachment")
    page.fill("#add_attachment--intent_id", intent)
    name, content = "März, final.txt", "first line\n<b>second</b>"
    _put(page, "add_attachment", {"filename": name, "mime_type": "text/plain"})
    status, body = _send(page, "add_attachment")
    assert status.startswith("201 Created"), body
    ids = {"intent_id": intent, "attachment_id": json.loads(body)["id"]}

    path = f"{server.url}/api/v1/intents/{intent}/attachments/{ids['attachment_id']}/content"
    for operation in ("upload_attachment", "download_attachment"):
        _open(page, operation)
        for parameter, value in ids.items():
            page.fill(f"#{operation}--{parameter}", value)
    assert _shell_arguments(_text(page, "#upload_attachment .curl"))[-2:] == [
        "--data-binary",
        "@FILE",
    ]
    _choose_file(page, "upload_attachment", "it's mine.txt", content)
    assert _shell_arguments(_text(page, "#upload_attachment .curl")) == [
        *("-X", "PUT", path),
        *("-H", "X-API-Key: the-key"),
        *("-H", "Content-Type: application/octet-stream"),
        *("--data-binary", "@it's mine.txt"),
    ]
    status, body = _send(page, "upload_attachment")
    assert status.startswith("200 OK"), body
    assert json.loads(body)["size"] == len(content)

    page.evaluate(
        """(() => {
            const make = URL.createObjectURL;
            URL.createObjectURL = (file) => { window.saved = file; return make.call(URL, file); };
        })()"""
    )
    assert "--remote-header-name" in _text(page, "#download_attachment .curl")
    status, body = _send(page, "download_attachment")
    assert (status[:6], body) == ("200 OK", "")
    link = "document.querySelector('#download_attachment .result a[download]')"
    assert page.evaluate(f"{link}.download") == name
    assert page.evaluate(f"{link}.protocol") == "blob:"
    assert page.evaluate("window.saved.text()") == content
    assert f"({len(content)} bytes)" in _text(page, "#download_attachment .result")
    assert _complaints(page) == []


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
    assert page.evaluate(f"{_VISIBLE}.map((one) => one.id)") == ["update_entry"]
    page.fill("#operation-filter", "remember")
    assert "remember" in page.evaluate(f"{_VISIBLE}.map((one) => one.id)")
    page.fill("#operation-filter", "nothing like it")
    assert page.evaluate(f"{_VISIBLE}.length") == 0
    assert "No operation matches" in _text(page, "#page-status")

    page.fill("#operation-filter", "health")
    page.press("Enter")
    page.wait_for("document.querySelector('#health').open")
    assert page.evaluate("document.activeElement.parentElement.id") == "health"
    page.wait_for("location.hash === '#health'")
    page.fill("#operation-filter", "")
    assert page.evaluate(f"{_VISIBLE}.length") == len(CARDS)


def test_notes_on_fields_stand_apart(page: Browser) -> None:
    _open(page, "create_session")
    notes = (
        "[...document.querySelectorAll('#create_session caption p')].map((one) => one.innerText)"
    )
    shown = [note.partition(":")[0] for note in page.evaluate(notes)]
    assert {"user", "title", "ends_at", "token_budget"} <= {name.strip() for name in shown}


def test_the_contents_lead_to_the_groups(page: Browser) -> None:
    lines = "[...document.querySelectorAll('#contents a')].filter((one) => one.checkVisibility())"
    groups = list(CARDS.values())
    assert page.evaluate(f"{lines}.map((one) => one.textContent)") == [
        f"{group} {groups.count(group)}" for group in dict.fromkeys(groups)
    ]
    page.click("#contents a[href='#group-claims']")
    page.wait_for("document.activeElement.closest('#group-claims')")
    assert page.evaluate("location.hash") == "#group-claims"
    top = "document.querySelector('#group-claims h2').getBoundingClientRect().top"
    toolbar = "document.querySelector('#toolbar').getBoundingClientRect().bottom"
    page.wait_for(f"{top} >= {toolbar} && {top} < innerHeight / 3")

    page.fill("#operation-filter", "attachments post")
    assert page.evaluate(f"{lines}.map((one) => one.textContent)") == ["Attachments 2"]
    page.evaluate("location.hash = '#group-tasks'")
    page.wait_for(f"{_VISIBLE}.length === {len(CARDS)}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_and_fits_a_narrow_window(page: Browser, scheme: str) -> None:
    page.prefer(scheme)
    _open_all(page)
    page.set_width(_NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= _NARROW
    colours = page.evaluate(
        """[".operation .what", ".documentation td", ".curl", ".get", ".post", ".put", ".patch",
            ".delete", ".hint", ".required", ".contents a", ".count"].map((selector) => {
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


def test_no_default_is_shown_as_an_object(page: Browser) -> None:
    _open_all(page)
    assert "[object " not in _text(page, "body")
