"""Tenants, keys and limits: what an operator sets, the first two only at the machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memorywall.records.decision import Verb
from memorywall.records.errors import ConfigurationError, ValidationError
from memorywall.records.principal import ApiKey, Permission, Principal, PrincipalKind
from memorywall.records.usage import AgentLimits
from memorywall.storage.port import REGISTRY, Script, Transaction
from memorywall.wall.capacity import episodic_capacity
from memorywall.wall.door import Door, authorize, owner_target
from memorywall.wall.fencing import held_lease
from memorywall.wall.keyring import make_key
from memorywall.wall.limits import check_agent, check_name, check_namespace

MOST_PINNED = 64


async def create_tenant(door: Door, name: str) -> bool:
    """Adds a tenant. False when it exists."""
    check_name("tenant", name, longest=64, without="/")
    now = door.now()

    async def script(transaction: Transaction) -> bool:
        return await transaction.identities.add_tenant(name, now)

    return await door.store.write(name, script)


async def list_tenants(door: Door) -> list[str]:
    """All tenants' names."""

    async def script(transaction: Transaction) -> list[str]:
        return await transaction.identities.tenants()

    return await door.store.read(REGISTRY, script)


async def create_key(
    door: Door,
    tenant: str,
    principal: str,
    kind: PrincipalKind,
    permissions: Iterable[Permission],
) -> tuple[str, ApiKey]:
    """A new key for a principal, which is made if it is new. The text cannot be had again."""
    check_agent("agent", principal)
    now = door.now()
    text, key = make_key(tenant, principal, kind, permissions, now)

    async def script(transaction: Transaction) -> None:
        await require_tenant(transaction, tenant)
        known = await transaction.identities.ensure_principal(tenant, principal, kind, now)
        if known is not kind:
            raise ConfigurationError(f"this principal is known as {known.value}, not {kind.value}")
        await transaction.identities.add_key(key)

    await door.store.write(tenant, script)
    return text, key


async def list_keys(door: Door, tenant: str | None) -> list[ApiKey]:
    """Keys of one tenant or of all; never their secrets, which are not kept."""

    async def script(transaction: Transaction) -> list[ApiKey]:
        return await transaction.identities.keys(tenant)

    return await door.store.read(REGISTRY, script)


async def revoke_key(door: Door, prefix: str) -> bool:
    """Makes a key useless from its next request on. False when there is none with this prefix."""
    now = door.now()

    async def look(transaction: Transaction) -> ApiKey | None:
        return await transaction.identities.find_key(prefix)

    async def script(transaction: Transaction) -> bool:
        return await transaction.identities.revoke_key(prefix, now)

    key = await door.store.read(REGISTRY, look)
    return key is not None and await door.store.write(key.tenant, script)


async def set_capacity(door: Door, tenant: str, agent: str, capacity: int | None) -> None:
    """Sets how many episodic entries an agent may have; None for the default again."""
    check_agent("agent", agent)

    async def script(transaction: Transaction) -> None:
        await require_tenant(transaction, tenant)
        limits = await transaction.identities.limits(tenant, agent)
        await transaction.identities.set_limits(
            tenant, agent, replace(limits, episodic_capacity=capacity)
        )

    await door.store.write(tenant, script)


async def get_capacity(door: Door, tenant: str, agent: str) -> int:
    """How many episodic entries an agent may have: its own setting or the default."""
    now = door.now()

    async def script(transaction: Transaction) -> int:
        await require_tenant(transaction, tenant)
        capacity, _ = await episodic_capacity(door, transaction, tenant, agent, now)
        return capacity

    return await door.store.read(tenant, script)


async def set_limits(
    door: Door, principal: Principal, agent: str, limits: AgentLimits
) -> Script[AgentLimits]:
    """A script that sets what holds for one agent apart from the defaults.

    Raises ValidationError, and MemoryAccessError for who does not administer the tenant.
    """
    check_agent("agent_id", agent)
    if len(limits.pinned_namespaces) > MOST_PINNED:
        raise ValidationError(f"`pinned_namespaces` may have at most {MOST_PINNED} names")
    for name in limits.pinned_namespaces:
        check_namespace(name)
    authorize(principal, Verb.ADMINISTER, owner_target(principal.tenant, agent))

    now = door.now()

    async def script(transaction: Transaction) -> AgentLimits:
        await held_lease(transaction, principal, now)
        await transaction.identities.set_limits(principal.tenant, agent, limits)
        return limits

    return script


async def require_tenant(transaction: Transaction, tenant: str) -> None:
    """Raises ConfigurationError for a tenant that is not there."""
    if tenant not in await transaction.identities.tenants():
        raise ConfigurationError("no such tenant; make it with `memorywall tenants create`")
