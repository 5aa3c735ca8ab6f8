"""The redaction step: rules for content that must not be stored as it was sent.

`redact_entry` runs on each entry before it is stored and shown, and applies the setting
`personal_data`. Values of governed kinds contain names and ids of the server, so that their
operations apply the policy to the text in them.
"""

from __future__ import annotations

import msgspec

from memorywall.kinds.registry import KINDS
from memorywall.records.entry import Entry
from memorywall.redaction.personal_data import apply

TAG = "personal_data:"
"""The beginning of the tags that name the kinds of personal data in an entry. A tag is indexed,
and every list and search can filter by it, on both stores."""


def redact_entry(policy: str, entry: Entry) -> Entry:
    """The entry as it may be stored, by the setting `personal_data`. A second call changes nothing.

    policy: `keep`, `mark` or `mask`
    entry: with its value in clear text
    """
    if policy == "keep" or (entry.kind in KINDS and KINDS[entry.kind].is_governed):
        return entry
    value, kinds = apply(policy, msgspec.json.decode(entry.value))
    if policy == "mask":
        if not kinds:
            return entry
        text = msgspec.json.encode(value)
        return msgspec.structs.replace(entry, value=text, size=len(text))
    tags = (*(one for one in entry.tags if not one.startswith(TAG)), *(TAG + one for one in kinds))
    return entry if tags == entry.tags else msgspec.structs.replace(entry, tags=tags)
