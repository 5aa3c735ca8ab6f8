"""Intents with files, for the tests of attachments."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.service import RunningService
from tests.support.stored import rows

INTENTS = "/api/v1/intents"


async def make_intent(client: httpx.AsyncClient) -> str:
    """The path of the attachments of a new intent."""
    made = await client.post(INTENTS, json={"title": "Pay the bills"})
    assert made.status_code == 201, made.text
    return f"{INTENTS}/{made.json()['id']}/attachments"


async def attach(client: httpx.AsyncClient, files: str, **fields: Any) -> dict[str, Any]:
    """Attaches a file without content yet and returns its view."""
    body = {"filename": "scan.pdf", "mime_type": "application/pdf", **fields}
    made = await client.post(files, json=body)
    assert made.status_code == 201, made.text
    view: dict[str, Any] = made.json()
    return view


async def stored(client: httpx.AsyncClient, files: str, content: bytes, **fields: Any) -> str:
    """The path of the content of a new file that has it."""
    path = f"{files}/{(await attach(client, files, **fields))['id']}/content"
    put = await client.put(path, content=content)
    assert put.status_code == 200, put.text
    return path


def pieces_in_database(service: RunningService) -> list[tuple[str, int, int]]:
    """Every piece of content: its attachment, its place and how many bytes it has."""
    statement = "SELECT attachment_id, place, length(content) FROM attachment_pieces"
    return [(one, place, size) for one, place, size in rows(service, f"{statement} ORDER BY 1, 2")]
