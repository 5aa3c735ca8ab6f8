"""Who may create which API keys, as a pure function."""

from __future__ import annotations

from collections.abc import Iterable

from memorywall.records.decision import Decision
from memorywall.records.principal import Permission, Principal

_ISSUED = Decision(True, "the key allows no more than the key of its creator")
_FOR_OTHERS = Decision(False, "a key for another principal requires `act_as`")
_EXCESSIVE = Decision(False, "the new key would have permissions that this key lacks")


def decide_new_key(principal: Principal, owner: str, permissions: Iterable[Permission]) -> Decision:
    """Whether an administrator of the tenant may create a key with these permissions.

    A key never creates a key that allows more: administration of a tenant does not allow reading
    the memory of its agents.

    owner: the principal of the new key
    """
    if owner != principal.id and Permission.ACT_AS not in principal.permissions:
        return _FOR_OTHERS
    return _ISSUED if frozenset(permissions) <= principal.permissions else _EXCESSIVE
