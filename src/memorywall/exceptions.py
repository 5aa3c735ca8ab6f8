"""What a client raises (RFC-0015 "Error Handling").

The classes are those of `memorywall.records.errors`, one tree for both ends of the wire;
`MemoryTransportError` stands for a server that cannot be reached.
"""

from memorywall.records.errors import (
    AuthenticationError,
    ConfigurationError,
    EntryExistsError,
    IdempotencyConflictError,
    KeyUnavailableError,
    MemoryAccessError,
    MemoryCapacityError,
    MemoryConflictError,
    MemoryNotFoundError,
    MemorywallError,
    PreconditionError,
    ReplyErasedError,
    RequestError,
    StorageFullError,
    StoreLockedError,
    UnavailableError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.sdk.problems import MemoryTransportError

__all__ = [
    "AuthenticationError",
    "ConfigurationError",
    "EntryExistsError",
    "IdempotencyConflictError",
    "KeyUnavailableError",
    "MemoryAccessError",
    "MemoryCapacityError",
    "MemoryConflictError",
    "MemoryNotFoundError",
    "MemoryTransportError",
    "MemorywallError",
    "PreconditionError",
    "ReplyErasedError",
    "RequestError",
    "StorageFullError",
    "StoreLockedError",
    "UnavailableError",
    "ValidationError",
    "ValueTooLargeError",
]
