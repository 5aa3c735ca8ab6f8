"""Who asks: a principal of a tenant, known by an API key."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PrincipalKind(StrEnum):
    """What stands behind a key."""

    AGENT = "agent"
    USER = "user"
    SERVICE = "service"


class Permission(StrEnum):
    """What a key may do at all; a tier's own rule applies besides (RFC-0015 section 6.4)."""

    READ = "memory.read"
    WRITE = "memory.write"
    ADMIN = "memory.admin"
    TENANT_ADMIN = "tenant.admin"
    ACT_AS = "act_as"


DEFAULT_PERMISSIONS = frozenset({Permission.READ, Permission.WRITE})


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """The caller of an operation.

    id: the agent, user or service the operation is done for
    acting: the key's own principal where it speaks for another (`act_as`), else ""
    fencing_token: the lease or claim it says it writes under, None where it names none
    """

    tenant: str
    id: str
    kind: PrincipalKind
    permissions: frozenset[Permission]
    acting: str = ""
    fencing_token: int | None = None

    @property
    def actor(self) -> str:
        """Whose key it was: the name that stands in events as the one who caused them."""
        return self.acting or self.id


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiKey:
    """A key as it is kept: its secret only as a SHA-256 digest."""

    prefix: str
    digest: bytes
    tenant: str
    principal: str
    kind: PrincipalKind
    permissions: frozenset[Permission]
    created_at: str
    revoked_at: str | None = None
