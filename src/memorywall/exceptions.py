"""The exceptions of the client (RFC-0015 "Error Handling").

Server and client share the classes of `memorywall.records.errors`. `MemoryTransportError` means
that the server cannot be reached.
"""

from memorywall.records.errors import (
    AuthenticationError,
    ConfigurationError,
    EntryExistsError,
    ExpressionError,
    FencedError,
    IdempotencyConflictError,
    KeyUnavailableError,
    LeaseHeldError,
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
    ScanLimitError,
    StorageFullError,
    StoreLockedError,
    TransitionError,
    UnavailableError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.sdk.errors import MemoryTransportError

# The earlier name of LeaseHeldError, kept for one release.
HeldError = LeaseHeldError

__all__ = [
    "AuthenticationError",
    "ConfigurationError",
    "EntryExistsError",
    "ExpressionError",
    "FencedError",
    "IdempotencyConflictError",
    "KeyUnavailableError",
    "LeaseHeldError",
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
    "ScanLimitError",
    "StorageFullError",
    "StoreLockedError",
    "TransitionError",
    "UnavailableError",
    "ValidationError",
    "ValueTooLargeError",
]
