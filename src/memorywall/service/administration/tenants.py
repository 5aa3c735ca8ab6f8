"""Administration of tenants, API keys and capacities by an operator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memorywall.records.errors import ConfigurationError
from memorywall.records.identifiers import name_forms, normalize_name
from memorywall.records.principal import ApiKey, Maintenance, Permission, PrincipalKind
from memorywall.records.quota import Quota, QuotaSource
from memorywall.records.usage import Usage
from memorywall.service.access.key_records import KeyRotation, NewKey, add_key, replace_key
from memorywall.service.access.known_names import known_agent
from memorywall.service.entries.capacity import episodic_capacity
from memorywall.service.entries.quotas import store_quota
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.requests.validation import check_name
from memorywall.service.runner.maintenance import inspect, maintain
from memorywall.storage.port import REGISTRY, Transaction


async def create_tenant(service: SharedServices, name: str) -> bool:
    """Creates a tenant. Returns False if it exists.

    name: at most 64 printable characters without `/`
    """
    name = await known_tenant(service, check_name("tenant", name, longest=64, without="/"))
    now = service.now()

    async def script(transaction: Transaction) -> bool:
        return await transaction.identities.add_tenant(name, now)

    return await service.store.write(name, script)


async def list_tenants(service: SharedServices) -> list[str]:
    """The names of all tenants, sorted."""

    async def script(transaction: Transaction) -> list[str]:
        return await transaction.identities.tenants()

    return await service.store.read(REGISTRY, script)


async def create_key(
    service: SharedServices,
    tenant: str,
    principal: str,
    kind: PrincipalKind,
    permissions: Iterable[Permission],
    subjects: Iterable[str] = (),
    *,
    namespaces: Iterable[str] = (),
    expires_at: str | None = None,
    read_only: bool = False,
) -> tuple[str, ApiKey]:
    """Creates a key for a principal, and the principal if it is new. The key's text cannot be read
    again. See `NewKey` about the arguments. Raises ConfigurationError for an unknown tenant,
    ValidationError."""
    tenant = await known_tenant(service, tenant)
    wanted = NewKey(
        principal=principal,
        kind=kind,
        permissions=frozenset(permissions),
        subjects=tuple(subjects),
        namespaces=tuple(namespaces),
        expires_at=expires_at,
        read_only=read_only,
    )

    async def function(context: OperationContext) -> tuple[str, ApiKey]:
        await require_tenant(context.transaction, tenant)
        return await add_key(context, wanted)

    return await maintain(service, tenant, Maintenance.ADMINISTER, function)


async def list_keys(service: SharedServices, tenant: str | None) -> list[ApiKey]:
    """The API keys of one tenant, or of all tenants for None; secrets are not stored."""
    if tenant is not None:
        tenant = await known_tenant(service, tenant)

    async def script(transaction: Transaction) -> list[ApiKey]:
        return await transaction.identities.keys(tenant)

    return await service.store.read(REGISTRY, script)


async def revoke_key(service: SharedServices, prefix: str) -> bool:
    """Revokes a key, which is refused from its next request on. Returns False for an unknown
    prefix."""
    now = service.now()

    async def script(transaction: Transaction) -> bool:
        return await transaction.identities.revoke_key(prefix, now)

    key = await _find_key(service, prefix)
    return key is not None and await service.store.write(key.tenant, script)


async def rotate_key(
    service: SharedServices, prefix: str, rotation: KeyRotation
) -> tuple[str, ApiKey] | None:
    """Replaces a key by one with the same rights. Returns the text of the successor, which cannot
    be read again, and its record; None for an unknown prefix. Raises ValidationError,
    ResourceConflictError."""

    async def function(context: OperationContext) -> tuple[str, ApiKey] | None:
        key = await context.transaction.identities.find_key(prefix)
        return None if key is None else await replace_key(context, key, rotation)

    key = await _find_key(service, prefix)
    if key is None:
        return None
    return await maintain(service, key.tenant, Maintenance.ADMINISTER, function)


async def _find_key(service: SharedServices, prefix: str) -> ApiKey | None:
    """The key with this prefix in any tenant."""

    async def find(transaction: Transaction) -> ApiKey | None:
        return await transaction.identities.find_key(prefix)

    return await service.store.read(REGISTRY, find)


async def set_capacity(
    service: SharedServices, tenant: str, agent: str, capacity: int | None
) -> None:
    """Sets the episodic capacity of an agent, in entries; None for the default."""
    tenant = await known_tenant(service, tenant)

    async def function(context: OperationContext) -> None:
        identities = context.transaction.identities
        await require_tenant(context.transaction, tenant)
        known = await known_agent(context, "agent", agent)
        limits = replace(await identities.limits(known), episodic_capacity=capacity)
        await identities.set_limits(known, limits)

    await maintain(service, tenant, Maintenance.ADMINISTER, function)


async def get_capacity(service: SharedServices, tenant: str, agent: str) -> int:
    """The episodic capacity of an agent, in entries: its own setting or the default."""
    tenant = await known_tenant(service, tenant)

    async def function(context: OperationContext) -> int:
        await require_tenant(context.transaction, tenant)
        return await episodic_capacity(context, await known_agent(context, "agent", agent))

    return await inspect(service, tenant, Maintenance.ADMINISTER, function)


async def set_quota(service: SharedServices, tenant: str, quota: Quota) -> None:
    """Sets the operator's quota of a tenant. An empty quota removes it."""
    tenant = await known_tenant(service, tenant)

    async def function(context: OperationContext) -> None:
        await require_tenant(context.transaction, tenant)
        await store_quota(context, QuotaSource.OPERATOR, quota)

    await maintain(service, tenant, Maintenance.ADMINISTER, function)
    service.tiers.forget(tenant)


async def get_quota(service: SharedServices, tenant: str) -> tuple[Quota, Usage]:
    """The quota of a tenant that applies, and its usage."""
    tenant = await known_tenant(service, tenant)

    async def function(context: OperationContext) -> tuple[Quota, Usage]:
        await require_tenant(context.transaction, tenant)
        quota = (await context.load_tiers()).quota or Quota()
        return quota, await context.transaction.entries.tenant_usage(context.now)

    return await inspect(service, tenant, Maintenance.ADMINISTER, function)


async def known_tenant(service: SharedServices, name: str) -> str:
    """The name of a tenant in the form in which it is stored; that of no tenant in NFC."""
    if name.isascii():
        return name
    tenants = await list_tenants(service)
    known = (form for form in name_forms(name) if form in tenants)
    return next(known, normalize_name(name))


async def require_tenant(transaction: Transaction, tenant: str) -> None:
    """Raises ConfigurationError for an unknown tenant."""
    if tenant not in await transaction.identities.tenants():
        raise ConfigurationError("tenant not found; create it with `memorywall tenants create`")
