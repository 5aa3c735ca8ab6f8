"""The redaction step, which runs on each request before its transaction begins.

There are no rules yet. Rules for secrets and personal data belong here and nowhere else, so that
every surface and every operation inherits them.
"""

from __future__ import annotations

from memorywall.records.entry import Entry
from memorywall.service.operation_context import OperationCall


def redact_request(call: OperationCall) -> OperationCall:
    """The call without content that must not be stored."""
    return call


def redact_entry(entry: Entry) -> Entry:
    """The entry without derived content that must not be stored."""
    return entry
