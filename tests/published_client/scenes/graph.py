"""Intents that belong to and wait for others (RFC-0002); the asynchronous client has none of it.

parent -- first                     ready
       -- second (waits for first)  blocked
          -- leaf (waits for first)
       -- third
"""

from __future__ import annotations

from typing import Any

from openintent import Intent, IntentStatus

from tests.published_client.colours import Client, refused

ABSENT = "int_01ARZ3NDEKTSV4RRFFQ69G5FAV"


async def play(ana: Client, ben: Client, name: str) -> dict[str, Any]:
    parent = await ana.create_intent(f"Plan {name}", "The whole")
    first = await ana.create_child_intent(
        parent.id,
        "First",
        "A part",
        constraints={"rules": ["cheap"]},
        initial_state={"phase": "new"},
    )
    second = await ana.create_child_intent(parent.id, "Second", depends_on=[first.id])
    leaf = await ana.create_intent(
        "Leaf", "A part of a part", parent_intent_id=second.id, depends_on=[first.id]
    )
    seen: dict[str, Any] = {
        "made": {"parent": parent, "first": first, "second": second, "leaf": leaf},
        "children": _titles(await ana.get_children(parent.id)),
        "descendants": _titles(await ana.get_descendants(parent.id)),
        "ancestors": [intent.id for intent in await ana.get_ancestors(leaf.id)],
        "dependencies": _titles(await ana.get_dependencies(second.id)),
        "dependents": _titles(await ana.get_dependents(first.id)),
        "ready": _titles(await ana.get_ready_intents(parent.id)),
        "blocked": _titles(await ana.get_blocked_intents(parent.id)),
        "graph": await ana.get_intent_graph(parent.id),
        "childless": await ana.get_children(leaf.id),
        "hidden": await refused(ben.get_intent_graph(parent.id)),
        "hidden_child": await refused(ben.create_child_intent(parent.id, "Stowaway")),
    }
    seen["edges"] = await _change_edges(ana, parent, first)
    await ana.set_status(first.id, first.version, IntentStatus.COMPLETED)
    seen["ready_after"] = _titles(await ana.get_ready_intents(parent.id))
    seen["blocked_after"] = _titles(await ana.get_blocked_intents(parent.id))
    seen["graph_after"] = await ana.get_intent_graph(parent.id)
    return seen


async def _change_edges(ana: Client, parent: Intent, first: Intent) -> dict[str, Any]:
    third = await ana.create_child_intent(parent.id, "Third")
    added = await ana.add_dependency(third.id, first.id, third.version)
    return {
        "third": third,
        "added": added,
        "stale": await refused(ana.add_dependency(third.id, parent.id, third.version)),
        "cycle": await refused(ana.add_dependency(first.id, third.id, first.version)),
        "itself": await refused(ana.add_dependency(first.id, first.id, first.version)),
        "absent": await refused(ana.add_dependency(first.id, ABSENT, first.version)),
        "blocked": _titles(await ana.get_blocked_intents(parent.id)),
        "stale_removal": await refused(ana.remove_dependency(third.id, first.id, third.version)),
        "removed": await ana.remove_dependency(third.id, first.id, added.version),
    }


def _titles(intents: list[Intent]) -> list[str]:
    return sorted(intent.title for intent in intents)
