"""Principals of a tenant and their API keys."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memorywall.records.group import is_group
from memorywall.records.session import SessionBinding


class PrincipalKind(StrEnum):
    """The kinds of principals."""

    AGENT = "agent"
    USER = "user"
    SERVICE = "service"


class Permission(StrEnum):
    """The permissions of a key. The rule of the tier applies in addition (RFC-0015 section 6.4)."""

    READ = "memory.read"
    WRITE = "memory.write"
    ADMIN = "memory.admin"
    TENANT_ADMIN = "tenant.admin"
    ACT_AS = "act_as"


class Maintenance(StrEnum):
    """The kinds of work that the server does on its own. Each has a system principal."""

    EXPIRE = "expire"
    END_LEASES = "end_leases"
    JUDGE = "judge"
    EMBED = "embed"
    INDEX = "index"
    RECORD_USE = "record_use"
    ERASE = "erase"
    SEAL = "seal"
    ADMINISTER = "administer"


DEFAULT_PERMISSIONS = frozenset({Permission.READ, Permission.WRITE})
READING_PERMISSIONS = frozenset({Permission.READ, Permission.ACT_AS})
"""The permissions that a read-only key keeps."""
DEFAULT_OVERLAP = "PT24H"
"""How long a rotated key remains valid beside its successor, as an ISO 8601 duration."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """The caller of an operation.

    id: the agent, user or service that the operation runs for
    acting: the key's own principal if the key acts for another principal (`act_as`), else ""
    fencing_token: the token that the request carries, None for none
    said_at: when what the request stores was said, in the stored form; None where it says nothing
    maintenance: the work of a system principal, None for every caller
    limited_to: the people that the key is limited to, as digests; empty for no limit
    only_subject: the only person that the key is limited to, as the text of the key names it; None
        for another key
    subjects: the people that the request is bound to. The request sees no entry about other people,
        and its writes are about these people. None for a request that is not bound.
    subject_forms: the forms in which entries may name these people: their names in NFC, in the
        same order the digests, and then other forms that older entries have, with their digests
    groups: its groups, as grants name them; None before they are loaded
    namespaces: the stored names of the namespaces that the key is limited to. The request reaches
        nothing else. None for no limit
    session: the session that the request is bound to; None for a request outside of sessions
    key: the prefix of the key of the request, "" without one
    key_expires_at: the instant from which that key is refused, None for no expiry
    """

    tenant: str
    id: str
    kind: PrincipalKind
    permissions: frozenset[Permission]
    acting: str = ""
    fencing_token: int | None = None
    said_at: str | None = None
    maintenance: Maintenance | None = None
    limited_to: tuple[str, ...] = ()
    only_subject: str | None = None
    subjects: tuple[str, ...] | None = None
    subject_forms: tuple[str, ...] | None = None
    groups: frozenset[str] | None = None
    namespaces: tuple[str, ...] | None = None
    session: SessionBinding | None = None
    key: str = ""
    key_expires_at: str | None = None

    def is_in(self, grantee: str) -> bool:
        """Whether a grant names a group of the principal. Raises LookupError before the groups are
        loaded, because a grant of `none` must not be overlooked."""
        if not is_group(grantee):
            return False
        if self.groups is None:
            raise LookupError("the groups of the principal are not loaded")
        return grantee in self.groups

    @property
    def is_named(self) -> bool:
        """Whether the request names the principal, and not the record of its key."""
        return self.maintenance is None and (bool(self.acting) or not self.key)

    @property
    def actor(self) -> str:
        """The principal of the key, which events name as their cause."""
        return self.acting or self.id


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiKey:
    """An API key in its stored form: the secret only as a SHA-256 digest.

    prefix: the public part, which identifies the key
    subjects: digests of the people that the key is limited to, empty for no limit
    namespaces: the namespaces that the key is limited to, empty for no limit
    expires_at: the instant from which the key is refused, None for no expiry
    last_used_at: the last use, to within about a minute; None for an unused key
    successor: the prefix of the key that a rotation made in its place, None without one
    """

    prefix: str
    digest: bytes
    tenant: str
    principal: str
    kind: PrincipalKind
    permissions: frozenset[Permission]
    created_at: str
    revoked_at: str | None = None
    subjects: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    expires_at: str | None = None
    last_used_at: str | None = None
    successor: str | None = None

    @property
    def is_read_only(self) -> bool:
        """Whether the key has no permission to change anything."""
        return self.permissions <= READING_PERMISSIONS
