"""Who may take part in an intent (RFC-0011)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from openintent import AccessPolicy, EventType, Permission

from tests.published_client.colours import Client, refused


async def play(ana: Client, ben: Client, name: str) -> dict[str, Any]:
    intent = (await ana.create_intent(f"Guard {name}", "")).id

    async def reads() -> bool:
        return intent in [one.id for one in await ben.list_intents(limit=200)]

    async def writes() -> Any:
        return await ben.log_event(intent, EventType.COMMENT, {"text": "me too"})

    seen: dict[str, Any] = {"intent": intent, "new": await ana.get_acl(intent)}
    seen["outsider"] = [await reads(), await refused(writes())]

    reader = await ana.grant_access(
        intent, "ben", "agent", Permission.READ, reason="to review", expires_at=_tomorrow()
    )
    seen["reader"] = [reader, await reads(), await refused(writes())]
    seen["with_reader"] = await ana.get_acl(intent)
    seen["not_an_admin"] = await refused(ben.grant_access(intent, "carl"))
    await ana.revoke_access(intent, reader.id)
    seen["revoked"] = [await reads(), await refused(ben.get_intent(intent))]
    seen["revoked_again"] = await refused(ana.revoke_access(intent, reader.id))

    seen["opened"] = await ana.set_acl(intent, AccessPolicy.OPEN)
    seen["open"] = [await reads(), await writes()]
    seen["closed"] = await ana.set_acl(
        intent,
        AccessPolicy.CLOSED,
        entries=[{"principal_id": "ben", "principal_type": "agent", "permission": "admin"}],
    )
    seen["admin"] = await ben.get_acl(intent)
    seen["opened_by_default"] = await ben.set_acl(intent)
    return seen


def _tomorrow() -> datetime:
    # With microseconds, which the client does not cut off.
    return datetime.now(UTC).replace(microsecond=123_456) + timedelta(days=1)
