"""What a client raises (RFC-0015 "Error Handling").

The classes are those of `memorywall.records.errors`, one tree for both ends of the wire;
`MemoryTransportError` stands for a server that cannot be reached.
"""

from memorywall.records.errors import (
    AuthenticationError,
    ConfigurationError,
    EntryExistsError,
    FencedError,
    HeldError,
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
    ResourceConflictError,
    ResourceNotFoundError,
    StorageFullError,
    StoreLockedError,
    TransitionError,
    UnavailableError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.sdk.problems import MemoryTransportError

__all__ = [
    "AuthenticationError",
    "ConfigurationError",
    "EntryExistsError",
    "FencedError",
    "HeldError",
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
    "ResourceConflictError",
    "ResourceNotFoundError",
    "StorageFullError",
    "StoreLockedError",
    "TransitionError",
    "UnavailableError",
    "ValidationError",
    "ValueTooLargeError",
]
