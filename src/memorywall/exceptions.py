"""The exceptions of the client (RFC-0015 "Error Handling").

Server and client share the classes of `memorywall.records.errors`. `MemoryTransportError` means
that the server cannot be reached.
"""

from memorywall.records.errors import (
    AuthenticationError,
    ConfigurationError,
    CursorLostError,
    EntryExistsError,
    EntryNotIndexedError,
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
    RateLimitedError,
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
from memorywall.records.feature_errors import (
    BreakingSchemaError,
    ContextBudgetError,
    DecompositionRequiredError,
    ExpressionError,
    ScanLimitError,
    SchemaVersionError,
    SchemaViolationError,
    SessionClosedError,
    SessionQuarantinedError,
)
from memorywall.sdk.errors import MemoryTransportError

# The earlier name of LeaseHeldError, kept for one release.
HeldError = LeaseHeldError

__all__ = [
    "AuthenticationError",
    "BreakingSchemaError",
    "ConfigurationError",
    "ContextBudgetError",
    "CursorLostError",
    "DecompositionRequiredError",
    "EntryExistsError",
    "EntryNotIndexedError",
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
    "RateLimitedError",
    "ReplyErasedError",
    "RequestError",
    "ResourceConflictError",
    "ResourceNotFoundError",
    "ScanLimitError",
    "SchemaVersionError",
    "SchemaViolationError",
    "SessionClosedError",
    "SessionQuarantinedError",
    "StorageFullError",
    "StoreLockedError",
    "TransitionError",
    "UnavailableError",
    "ValidationError",
    "ValueTooLargeError",
]
