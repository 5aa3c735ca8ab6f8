"""The redaction step: rules for content that must not be stored as it was sent.

`redact_request` runs on each request before its transaction begins and has no rules yet.
`redact_entry` runs on each entry before it is stored and shown, and applies the setting
`personal_data`. Values of governed kinds contain names and ids of the server, so that their
operations apply the policy to the text in them.
"""

from __future__ import annotations

import msgspec

from memorywall.kinds.registry import KINDS
from memorywall.records.entry import Entry
from memorywall.redaction.personal_data import apply
from memorywall.service.operation_context import OperationCall, OperationContext

TAG = "personal_data:"
"""The beginning of the tags that name the kinds of personal data in an entry. A tag is indexed,
and every list and search can filter by it, on both stores."""


def redact_request(call: OperationCall) -> OperationCall:
    """The call without content that must not be stored."""
    return call


async def redact_entry(context: OperationContext, entry: Entry) -> Entry:
    """The entry as it may be stored, by the setting `personal_data`. A second call changes nothing.

    entry: with its value in clear text
    """
    policy = context.service.settings.personal_data
    if policy == "keep" or (entry.kind in KINDS and KINDS[entry.kind].is_governed):
        return entry
    return await context.transaction.compute(len(entry.value), lambda: _redacted(policy, entry))


def _redacted(policy: str, entry: Entry) -> Entry:
    value, kinds = apply(policy, msgspec.json.decode(entry.value))
    if policy == "mask":
        if not kinds:
            return entry
        text = msgspec.json.encode(value)
        return msgspec.structs.replace(entry, value=text, size=len(text))
    tags = (*(one for one in entry.tags if not one.startswith(TAG)), *(TAG + one for one in kinds))
    return entry if tags == entry.tags else msgspec.structs.replace(entry, tags=tags)
