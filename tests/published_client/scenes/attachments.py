"""Files of an intent (RFC-0005)."""

from __future__ import annotations

from typing import Any

from tests.published_client.colours import Client, Colour, refused

ABSENT = "att_01ARZ3NDEKTSV4RRFFQ69G5FAV"
ELSEWHERE = "https://files.example/scans/invoice-7.pdf"


async def play(ana: Client, ben: Client, name: str) -> dict[str, Any]:
    intent = (await ana.create_intent(f"Attach {name}", "")).id
    # The two classes of the client send other names for the same three members.
    if ana.colour is Colour.BLOCKING:
        made = await ana.add_attachment(
            intent, "invoice-7.pdf", "application/pdf", 1_234, ELSEWHERE, metadata={"pages": 2}
        )
    else:
        made = await ana.add_attachment(
            intent, "invoice-7.pdf", "application/pdf", ELSEWHERE, size_bytes=1_234
        )
    return {
        "intent": intent,
        "made": made,
        "listed": await ana.get_attachments(intent),
        "hidden": await refused(ben.get_attachments(intent)),
        "deleted_by_another": await refused(ben.delete_attachment(intent, made.id)),
        "answer": await ana.delete_attachment(intent, made.id),
        "listed_after": await ana.get_attachments(intent),
        "absent": await refused(ana.delete_attachment(intent, ABSENT)),
    }
