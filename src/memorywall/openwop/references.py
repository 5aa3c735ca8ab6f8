"""References to memory: their form, and the namespaces that they stand for.

A reference is a name within a tenant. Another tenant's reference names a namespace of the caller's
own tenant, in which nothing is, by the same statements (CTI-1).
"""

from __future__ import annotations

from urllib.parse import unquote

from memorywall.records.identifiers import clean_name

LONGEST_REFERENCE = 256
LONGEST_ID = 1_500
MALFORMED = (
    f"`memoryRef` must have 1 to {LONGEST_REFERENCE} characters, without `*`, control characters,"
    " and the segments `.` and `..`"
)
_PREFIX = "openwop/"


def namespace_of(memory_ref: str) -> str | None:
    """Returns the namespace of a memory; None for a malformed reference: empty, too long, with
    control characters, `*`, or a segment `.` or `..`, percent-encoded or not."""
    if "*" in memory_ref or clean_name(memory_ref, LONGEST_REFERENCE) != memory_ref:
        return None
    plain = unquote(memory_ref).replace("\\", "/")
    if "\0" in plain or not {".", ".."}.isdisjoint(plain.split("/")):
        return None
    return _PREFIX + memory_ref


def reference_of(namespace: str) -> str:
    """Returns the reference of a memory by its namespace."""
    return namespace.removeprefix(_PREFIX)
