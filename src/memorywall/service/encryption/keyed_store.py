"""A store whose writing transactions can append to the log."""

from __future__ import annotations

from memorywall.service.encryption.cipher import EnvelopeCipher
from memorywall.storage.port import Result, Store, Transaction, TransactionFunction


class KeyedStore:
    """Wraps a store and binds the cipher to each writing transaction, which then digests the events
    that it appends.

    unkeyed: the wrapped store
    """

    def __init__(self, store: Store, cipher: EnvelopeCipher) -> None:
        self.unkeyed = store
        self._cipher = cipher
        self.read = store.read
        self.compute = store.compute
        self.check_room = store.check_room
        self.generation = store.generation
        self.count_removals = store.count_removals
        self.is_erasure_complete = store.is_erasure_complete
        self.watch = store.watch
        self.describe = store.describe
        self.close = store.close

    async def write(
        self, tenant: str, script: TransactionFunction[Result], *, long: bool = False
    ) -> Result:
        """See `port.Store.write`."""
        cipher = self._cipher
        if not cipher.has_digest_key(tenant):
            await cipher.load_digest_key(self.unkeyed, tenant)

        async def keyed(transaction: Transaction) -> Result:
            transaction.digest_keys = cipher
            return await script(transaction)

        return await self.unkeyed.write(tenant, keyed, long=long)
