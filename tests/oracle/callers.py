"""The people of the two tenants, who bear the same names in both, and their keys."""

from __future__ import annotations

from dataclasses import dataclass

from memorywall.records.principal import Permission, PrincipalKind
from memorywall.service.administration.tenants import create_key, create_tenant
from memorywall.service.requests.services import SharedServices
from tests.oracle.world import Caller

TENANTS = ("north", "south")
AGENTS = ("ada", "bob", "carol", "dora", "desk", "chief", "clerk", "nil")

_READ, _WRITE, _ADMIN = "memory.read", "memory.write", "memory.admin"


@dataclass(frozen=True)
class Slot:
    """A key of a tenant: whose it is, what it may do, and whom it speaks for."""

    name: str
    principal: str
    kind: str
    permissions: tuple[str, ...]
    speaks_for: tuple[str, ...] = ()


_SLOTS = (
    Slot("ada", "ada", "agent", (_READ, _WRITE)),
    Slot("ada-reads", "ada", "agent", (_READ,)),
    Slot("bob", "bob", "agent", (_READ, _WRITE)),
    Slot("bob-writes", "bob", "agent", (_WRITE,)),
    Slot("carol", "carol", "user", (_READ, _WRITE, _ADMIN)),
    Slot("dora", "dora", "agent", (_READ, _ADMIN)),
    Slot("desk", "desk", "service", (_READ, _WRITE, "act_as"), ("ada", "bob")),
    Slot(
        "chief",
        "chief",
        "service",
        (_READ, _WRITE, _ADMIN, "tenant.admin", "act_as"),
        ("ada",),
    ),
    Slot("clerk", "clerk", "service", ("tenant.admin",)),
    Slot("nil", "nil", "agent", ()),
)
SLOTS = {slot.name: slot for slot in _SLOTS}


def _callers() -> tuple[Caller, ...]:
    everyone = []
    for tenant in TENANTS:
        for slot in SLOTS.values():
            for agent in (slot.principal, *slot.speaks_for):
                acting = agent != slot.principal
                allowed = [name for name in slot.permissions if not acting or "memory." in name]
                everyone.append(
                    Caller(
                        label=f"{tenant}/{slot.name}" + (f" as {agent}" if acting else ""),
                        tenant=tenant,
                        id=agent,
                        actor=slot.principal,
                        kind="agent" if acting else slot.kind,
                        slot=slot.name,
                        permissions=frozenset(allowed),
                    )
                )
    return tuple(everyone)


CALLERS = {caller.label: caller for caller in _callers()}


async def give_key(service: SharedServices, tenant: str, slot: Slot) -> str:
    """A new key for a slot."""
    text, _ = await create_key(
        service,
        tenant,
        slot.principal,
        PrincipalKind(slot.kind),
        [Permission(name) for name in slot.permissions],
    )
    return text


async def give_keys(service: SharedServices) -> dict[tuple[str, str], str]:
    """Both tenants, and a key for every slot."""
    keys = {}
    for tenant in TENANTS:
        await create_tenant(service, tenant)
        for slot in SLOTS.values():
            keys[tenant, slot.name] = await give_key(service, tenant, slot)
    return keys
