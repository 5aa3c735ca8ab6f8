"""What the server says of itself."""

from __future__ import annotations

from typing import Any

from tests.published_client.colours import Client


async def play(ana: Client, ben: Client, name: str) -> Any:
    return await ana.discover()
