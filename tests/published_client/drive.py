"""Plays scenes with the published client and prints what the client saw, as JSON by scene.

Runs in the client's own environment, from the root of the repository, and reads its cast from
standard input: where the server is, and the keys of the agents.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import traceback
from datetime import datetime
from typing import Any

from openintent import OpenIntentError

from tests.published_client.colours import Client, Colour


def main() -> None:
    """Plays in the colour named on the command line the scenes named after it."""
    colour, cast = Colour(sys.argv[1]), json.load(sys.stdin)
    outcomes = {scene: _outcome(scene, colour, cast) for scene in sys.argv[2:]}
    json.dump(outcomes, sys.stdout, default=_plain)


def _outcome(scene: str, colour: Colour, cast: dict[str, Any]) -> dict[str, Any]:
    """What was seen and called, or how it failed, which the other scenes have no part in."""
    try:
        return asyncio.run(_play(scene, colour, cast))
    except Exception:
        return {"failed": traceback.format_exc()}


async def _play(scene: str, colour: Colour, cast: dict[str, Any]) -> dict[str, Any]:
    calls: set[str] = set()
    ana, ben = (
        Client(colour, cast["url"], agent, cast["keys"][agent], calls) for agent in ("ana", "ben")
    )
    try:
        module = importlib.import_module(f"tests.published_client.scenes.{scene}")
        seen = await module.play(ana, ben, f"{scene}-{colour}")
    except OpenIntentError as error:
        # Its message tells the status alone.
        error.add_note(f"the server answered {error.response}")
        raise
    finally:
        await ana.close()
        await ben.close()
    return {"seen": seen, "calls": sorted(calls)}


def _plain(thing: Any) -> Any:
    if isinstance(thing, datetime):
        return thing.isoformat()
    return thing.to_dict()


if __name__ == "__main__":
    main()
