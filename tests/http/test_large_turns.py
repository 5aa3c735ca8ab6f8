"""Turns and parts that are larger than an entry: they go to attachments by themselves."""

from __future__ import annotations

import random
from base64 import b64encode
from typing import Any

import httpx
import pytest

from tests.http.checks import MEMORY, assert_problem
from tests.http.test_contexts import compiled
from tests.http.test_sessions import Talk, begin
from tests.support.service import RunningService
from tests.support.stored import rows

pytestmark = pytest.mark.anyio

PHOTO = random.Random(7).randbytes(200_000)
"""The bytes of an image as a phone makes it."""
ENCODED = b64encode(PHOTO).decode()
IMAGES: dict[str, dict[str, Any]] = {
    "openai": {"type": "image_url",
               "image_url": {"url": f"data:image/jpeg;base64,{ENCODED}", "detail": "low"}},
    "anthropic": {"type": "image",
                  "source": {"type": "base64", "media_type": "image/jpeg", "data": ENCODED}},
}  # fmt: skip
PAGE = "Opening hours of the museum. " + "Nothing to see here. " * 4_000 + "The end."
QUESTION = {"type": "text", "text": "What is in the picture?"}


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def ask(talk: Talk, content: Any, **fields: Any) -> dict[str, Any]:
    turn = {"role": "user", "content": content, **fields}
    (added,) = (await talk.do("POST", "/turns", turns=[turn]))["turns"]
    return dict(added)


@pytest.mark.parametrize("form", ["openai", "anthropic"])
async def test_an_image_goes_to_an_attachment(
    service: RunningService, ada: httpx.AsyncClient, form: str
) -> None:
    talk = await begin(ada, subject="ann")
    turn = await ask(talk, [QUESTION, IMAGES[form]], client_id="photo")
    (file,) = turn["attachments"]
    assert (file["at"], file["mime_type"], file["size"]) == (1, "image/jpeg", len(PHOTO))
    stored = await ada.get(file["uri"])
    assert (stored.content, stored.headers["content-type"]) == (PHOTO, "image/jpeg")
    reference = f"[image/jpeg, 200000 bytes: {file['uri']}]"
    assert turn["content"] == [QUESTION, {"type": "text", "text": reference}]
    assert 1_000 < turn["tokens"] < 1_100
    assert (await talk.do("GET", "/turns"))["turns"] == [turn]
    (whole,) = (await talk.do("GET", "/turns?whole=true&limit=10"))["turns"]
    assert (whole["content"], "attachments" in whole) == ([QUESTION, IMAGES[form]], False)
    assert "limit" in assert_problem(await talk.ask("GET", "/turns?whole=true"), 422)["detail"]
    # A repeat adds nothing, and other content is refused.
    assert await ask(talk, [QUESTION, IMAGES[form]], client_id="photo") == turn
    other = {"role": "user", "content": [QUESTION], "client_id": "photo"}
    assert_problem(await talk.ask("POST", "/turns", turns=[other]), 409)
    for provider, image in IMAGES.items():
        shown = await compiled(ada, session_id=talk.id, format=provider, window=8_000)
        (message,) = shown["messages"]
        assert [one["type"] for one in message["content"]] == ["text", "text"]
        assert reference in message["content"][1]["text"]
        whole = await compiled(
            ada, session_id=talk.id, format=provider, window=8_000, parts="whole"
        )
        (message,) = whole["messages"]
        if provider == form:
            part = {**message["content"][1]}
            part.pop("cache_control", None)
            assert part == image
        assert ENCODED in str(message["content"][1])
        assert 1_000 < whole["tokens"] < 2_000
    again = await ada.get(f"/api/v1/context/{whole['id']}", params={"format": "anthropic"})
    assert again.json()["messages"] == whole["messages"]
    made = await talk.do("POST", "/fork", title="x")
    fork = Talk(ada, made["id"])
    (copied,) = (await fork.do("GET", "/turns"))["turns"]
    assert copied["attachments"][0]["uri"] != file["uri"]
    await talk.do("DELETE")
    assert_problem(await ada.get(file["uri"]), 404)
    assert (await ada.get(copied["attachments"][0]["uri"])).content == PHOTO
    await fork.do("DELETE")
    assert rows(service, "SELECT count(*) FROM attachments") == [(0,)]


async def test_a_long_text_is_counted_and_found(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    await ask(talk, "When does the museum open?")
    call = {"id": "c1", "name": "fetch", "arguments": {}}
    await ask(talk, "", role="assistant", tool_calls=[call])
    page = await ask(talk, PAGE, role="tool", tool_call_id="c1", trusted=False)
    (file,) = page["attachments"]
    assert (file.get("at"), file["mime_type"]) == (None, "text/plain")
    assert (await ada.get(file["uri"])).text == PAGE
    assert page["content"].startswith(PAGE[:2_000])
    assert page["content"].endswith(f"{file['uri']}]")
    assert len(page["content"]) < 2_300
    assert page["tokens"] > 15_000
    # The text behind the beginning is found, as far as it is indexed.
    found = await ada.post(f"{MEMORY}/search", json={"query": "museum opening hours"})
    assert page["id"] in {hit["entry"]["id"] for hit in found.json()["results"]}
    middle = PAGE[:20_000] + " zebra " + PAGE[20_000:]
    second = await ask(talk, middle, role="assistant")
    found = await ada.post(f"{MEMORY}/search", json={"query": "zebra"})
    assert found.json()["results"][0]["entry"]["id"] == second["id"]
    shown = await compiled(ada, session_id=talk.id, window=4_000, user="And?")
    assert shown["tokens"] <= 4_000
    assert page["id"] in str(shown["segments"])
    whole = await compiled(
        ada, session_id=talk.id, window=100_000, user="And?", parts="whole", format="openai"
    )
    assert any(message["content"] == PAGE for message in whole["messages"])
    assert whole["tokens"] > 30_000


async def test_personal_data_is_masked_before_a_part_is_moved(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada, policy={"personal_data": "mask"})
    text = "x" * 50_000 + " bob@example.com " + "y" * 20_000
    turn = await ask(talk, [{"type": "text", "text": text}, IMAGES["openai"]], client_id="m")
    page, image = turn["attachments"]
    assert turn["personal_data"] == ["email"]
    assert "bob@example.com" not in (await ada.get(page["uri"])).text
    assert (await ada.get(image["uri"])).content == PHOTO
    again = await ask(talk, [{"type": "text", "text": text}, IMAGES["openai"]], client_id="m")
    assert again == turn


@pytest.mark.parametrize(
    "part",
    [
        {"type": "document", "source": {"type": "text", "data": PAGE}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,no " + "!" * 70_000}},
        {"type": "input_audio", "input_audio": {"data": ENCODED, "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": ENCODED}},
        {"type": "unknown", "deep": [{"a": ["x" * 70_000]}]},
    ],
    ids=["document", "no base64", "audio", "file", "unknown"],
)  # fmt: skip
async def test_any_part_comes_back_as_it_was_sent(
    ada: httpx.AsyncClient, part: dict[str, Any]
) -> None:
    talk = await begin(ada)
    turn = await ask(talk, [part, QUESTION, part])
    assert [one["at"] for one in turn["attachments"]] == [0, 2]
    shown = await compiled(ada, session_id=talk.id, window=120_000, parts="whole")
    (item,) = [one for part in shown["segments"] for one in part["items"]]
    assert item["content"] == [part, QUESTION, part]
