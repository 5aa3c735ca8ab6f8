"""The schemas of namespaces in compiled form.

The digest of its schemas is a field of a namespace, which every write reads anyway. Without schemas
a write therefore costs no statement. With schemas, the cache finds their compiled form by the
digest, so that a change of another process takes effect at once.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from threading import Lock
from typing import Any

import msgspec

from memorywall.kinds.json_schema import CompiledSchema, Misfit, SchemaError, ValidatorMissingError
from memorywall.records.entry import Entry
from memorywall.records.errors import UnavailableError
from memorywall.records.namespace import Namespace
from memorywall.records.value_schema import ValueSchema
from memorywall.storage.port import Transaction
from memorywall.storage.sql.record_table import VALUE_SCHEMAS

VALIDATOR_MISSING = (
    "this server cannot check schemas; install the extra `schemas`: pip install '.[schemas]' in a"
    " clone of memorywall"
)
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


class LoadedSchema:
    """One major version of a schema, compiled when a value is checked first."""

    def __init__(self, record: ValueSchema) -> None:
        self.record = record
        self.version = record.semantic_version

    @cached_property
    def _compiled(self) -> CompiledSchema:
        try:
            return CompiledSchema(_decode(self.record.document))
        except ValidatorMissingError:
            raise UnavailableError(VALIDATOR_MISSING) from None
        except SchemaError:
            raise UnavailableError("a stored schema is invalid; put a new version") from None

    def applies_to(self, key: str) -> bool:
        """Whether the schema is for entries with this key."""
        pattern = self.record.key_pattern
        return pattern is None or fnmatchcase(key, pattern)

    def misfit(self, value: Any) -> Misfit | None:
        """The first place where a value does not fit. Raises UnavailableError."""
        return self._compiled.misfit(value)


class LoadedSchemas:
    """The schemas of one namespace.

    newest: the newest version of each schema, which writes are checked against
    """

    def __init__(self, records: Iterable[ValueSchema]) -> None:
        self.all = [LoadedSchema(one) for one in records]
        newest: dict[str, LoadedSchema] = {}
        for one in sorted(self.all, key=lambda one: one.version):
            newest[one.record.name] = one
        self.newest = tuple(newest.values())

    def misfits(self, entry: Entry) -> list[tuple[ValueSchema, Misfit]]:
        """The first place in each schema that an opened entry does not fit."""
        applying = [one for one in self.newest if one.applies_to(entry.key)]
        if not applying:
            return []
        value = _decode(entry.value)
        found = ((one.record, one.misfit(value)) for one in applying)
        return [(record, misfit) for record, misfit in found if misfit is not None]

    def fits_major(self, entry: Entry, major: int) -> bool:
        """Whether schemas of this major version apply to an opened entry and it fits them all."""
        applying = [
            one for one in self.all if one.version.major == major and one.applies_to(entry.key)
        ]
        value = _decode(entry.value) if applying else None
        return bool(applying) and all(one.misfit(value) is None for one in applying)


class SchemaCache:
    """Keeps the schemas of the namespaces that were used last, by their digest.

    size: the most namespaces
    """

    def __init__(self, size: int = 256) -> None:
        self._size = size
        self._known: OrderedDict[tuple[str, str], LoadedSchemas] = OrderedDict()
        # Writes may run in another thread than reads.
        self._lock = Lock()

    async def load(self, transaction: Transaction, namespace: Namespace) -> LoadedSchemas:
        """The schemas of a namespace that was read in this transaction."""
        if namespace.schemas is None:
            return LoadedSchemas(())
        key = (namespace.tenant, namespace.schemas)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        records = await read_schemas(transaction, namespace.name)
        loaded = LoadedSchemas(records)
        if digest_schemas(records) == namespace.schemas:
            with self._lock:
                self._known[key] = loaded
                while len(self._known) > self._size:
                    self._known.popitem(last=False)
        return loaded


async def read_schemas(transaction: Transaction, namespace: str) -> Sequence[ValueSchema]:
    """The stored schemas of a namespace, by name and major version."""
    return await transaction.records(VALUE_SCHEMAS).page(parent=("namespace", namespace))


def digest_schemas(records: Iterable[ValueSchema]) -> str | None:
    """Identifies the content of the schemas of a namespace; None without schemas."""
    parts = sorted((one.id, one.version, one.key_pattern or "", one.document) for one in records)
    return hashlib.sha256(_encode(parts)).hexdigest() if parts else None
