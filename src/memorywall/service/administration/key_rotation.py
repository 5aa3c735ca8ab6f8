"""Replacement of the key-encryption key, and of data keys, while servers run.

The rows of the data keys contain the whole state: each names the key that wraps it. An interrupted
rotation therefore continues where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass

from memorywall.records.identifiers import name_forms
from memorywall.records.principal import Maintenance
from memorywall.service.administration.tenants import known_tenant, list_tenants, require_tenant
from memorywall.service.encryption.ledger_key import needs_older_key
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import maintain
from memorywall.storage.port import REGISTRY, Transaction

_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class MasterKeyStatus:
    """The data keys of all tenants by their key-encryption key.

    newest: the id of the key-encryption key that wraps new data keys
    done: the number of data keys that it wraps
    left: the number of data keys that an older key wraps
    ledger_left: whether an older key wraps the secret of the suppression ledger
    """

    newest: str
    done: int
    left: int
    ledger_left: bool


async def master_key_status(service: SharedServices) -> MasterKeyStatus:
    """Counts the data keys of all tenants by their key-encryption key, and looks at the suppression
    ledger."""

    async def script(transaction: Transaction) -> dict[str, int]:
        return await transaction.data_keys.wrappers()

    master_keys, ledger = service.cipher.master_keys, service.ledger
    newest = master_keys.newest
    wrappers = await service.store.read(REGISTRY, script)
    done = wrappers.pop(newest, 0)
    ledger_left = ledger is not None and needs_older_key(ledger, master_keys)
    return MasterKeyStatus(newest, done, sum(wrappers.values()), ledger_left)


async def rewrap_data_keys(service: SharedServices) -> int:
    """Wraps every data key of every tenant under the newest key-encryption key, in small
    transactions; returns the number of data keys that were wrapped anew. May be repeated."""
    rewrapped = 0
    for tenant in await list_tenants(service):
        after = ""
        while True:
            count, after = await _rewrap_some(service, tenant, after)
            rewrapped += count
            if count < _AT_ONCE:
                break
    return rewrapped


async def _rewrap_some(service: SharedServices, tenant: str, after: str) -> tuple[int, str]:
    """Wraps some data keys after an id; returns their number and the last id."""
    master_keys = service.cipher.master_keys

    async def function(context: OperationContext) -> tuple[int, str]:
        data_keys = context.transaction.data_keys
        found = await data_keys.wrapped_otherwise(master_keys.newest, after, _AT_ONCE)
        for data_key in found:
            await data_keys.replace(master_keys.rewrap(data_key))
        return len(found), found[-1].id if found else after

    return await maintain(service, tenant, Maintenance.ADMINISTER, function)


async def rotate_data_key(service: SharedServices, tenant: str, owner: str) -> bool:
    """Replaces the data key of an agent, or of the tenant for "". New content is sealed with the
    new key at once; the job `reseal` seals earlier content anew and destroys the old key. Returns
    False if there is no data key yet. Raises ConfigurationError for an unknown tenant."""
    tenant = await known_tenant(service, tenant)

    async def function(context: OperationContext) -> bool:
        await require_tenant(context.transaction, tenant)
        cipher = context.service.cipher
        rotated = [
            await cipher.rotate_data_key(context.transaction, form, context.now)
            for form in name_forms(owner)
        ]
        return any(one is not None for one in rotated)

    return await maintain(service, tenant, Maintenance.ADMINISTER, function)
