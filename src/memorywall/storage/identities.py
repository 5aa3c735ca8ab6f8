"""Tenants, principals, API keys and limits of agents: a part of the contract in
`storage/port.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from memorywall.records.principal import ApiKey, PrincipalKind
from memorywall.records.usage import AgentLimits


class IdentityRepository(Protocol):
    """Tenants, principals and their keys, and the limits of agents."""

    async def add_tenant(self, name: str, now: str) -> bool:
        """Adds a tenant. Returns False if it exists."""
        ...

    async def tenants(self) -> list[str]:
        """Returns all tenants' names, sorted."""
        ...

    async def ensure_principal(
        self, principal: str, kind: PrincipalKind, now: str
    ) -> PrincipalKind:
        """Adds the principal unless it exists; returns the stored kind."""
        ...

    async def add_key(self, key: ApiKey) -> None:
        """Adds a key under a new prefix."""
        ...

    async def find_key(self, prefix: str) -> ApiKey | None:
        """Returns the key with this prefix, revoked or not, or None."""
        ...

    async def keys(self, tenant: str | None) -> list[ApiKey]:
        """Returns the keys of a tenant, or of all tenants, in the order of creation."""
        ...

    async def revoke_key(self, prefix: str, now: str) -> bool:
        """Revokes a key; a repeat keeps the first instant. Returns False if the key is absent."""
        ...

    async def end_key(self, prefix: str, successor: str, expires_at: str) -> bool:
        """Stores the successor of a key, which is refused from an instant on; an earlier expiry
        stays. Returns False if the key is absent or has a successor."""
        ...

    async def touch_keys(self, uses: Mapping[str, str]) -> None:
        """Stores last uses of the tenant's keys, prefix to instant; see `EntryRepository.touch`."""
        ...

    async def limits(self, agent: str) -> AgentLimits:
        """Returns the limits of an agent; an unknown agent has no limits."""
        ...

    async def set_limits(self, agent: str, limits: AgentLimits) -> None:
        """Replaces the limits of an agent."""
        ...
