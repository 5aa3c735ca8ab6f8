"""The redaction step: secrets that runs have resolved, and the policy of personal data for content
that callers send.

`redact_entry` runs once on each entry before it is stored and shown. An operation that needs the
redacted value before, because it counts its tokens or has a policy of its own, calls `redact_value`
and stores with the policy `keep`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from memorywall.kinds.registry import spec_of
from memorywall.kinds.spec import KindSpec
from memorywall.records.attached_members import attachment_of
from memorywall.records.entry import VALUE_LIMIT, Entry
from memorywall.records.feature_errors import RuleError
from memorywall.redaction.personal_data import PersonalDataKind, apply
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.run_secrets import RunSecret, redact_secrets

Value = TypeVar("Value", bound=msgspec.Struct)
TAG = "personal_data:"
"""The beginning of the tags that name the kinds of personal data in an entry. A tag is indexed,
and every list and search can filter by it, on both stores."""


def redact_entry(policy: str, entry: Entry, secrets: Sequence[RunSecret] = ()) -> Entry:
    """Returns the entry as it may be stored. Personal data of a governed kind is redacted in its
    texts only; secrets are redacted in every value and in tags.

    policy: `keep`, `mark` or `mask`
    entry: with its value in clear text
    secrets: those that the run of the write has resolved, see `run_secrets.py`; default: none
    """
    if secrets:
        text = msgspec.json.encode(redact_secrets(secrets, msgspec.json.decode(entry.value)))
        tags = tuple(redact_secrets(secrets, list(entry.tags)))
        entry = msgspec.structs.replace(entry, value=text, size=len(text), tags=tags)
    if policy == "keep":
        return entry
    spec, value = spec_of(entry.kind), msgspec.json.decode(entry.value)
    texts = value
    if spec is not None and spec.is_governed:
        texts = {name: value[name] for name in spec.texts if name in value}
    redacted, kinds = apply(policy, texts)
    if policy == "mask":
        if not kinds:
            return entry
        text = msgspec.json.encode(redacted if texts is value else value | redacted)
        return msgspec.structs.replace(entry, value=text, size=len(text))
    tags = (*(one for one in entry.tags if not one.startswith(TAG)), *(TAG + one for one in kinds))
    return entry if tags == entry.tags else msgspec.structs.replace(entry, tags=tags)


def refuse_unredacted(context: OperationContext, entry: Entry) -> None:
    """Raises RuleError for a value with members in an attachment where values are redacted: files
    are stored as they are sent.

    entry: with its value in clear text
    """
    run = entry.provenance.session or entry.scope.session_id
    is_redacted = context.service.settings.personal_data == "mask" or bool(
        context.service.secrets.of(context.tenant, run)
    )
    if is_redacted and attachment_of(entry.value):
        raise RuleError(
            f"personal data or secrets are masked here in values only, so that a value has at most"
            f" {VALUE_LIMIT} bytes",
            rule="personal_data",
        )


def redact_value(
    policy: str, spec: KindSpec, value: Value
) -> tuple[Value, tuple[PersonalDataKind, ...]]:
    """Returns the value of a governed kind as it may be stored, and the kinds of personal data in
    its texts.

    policy: `keep`, `mark` or `mask`
    """
    # The names of the fields contain no personal data.
    texts, kinds = apply(policy, {name: getattr(value, name) for name in spec.texts})
    if policy != "mask" or not kinds:
        return value, kinds
    return msgspec.structs.replace(value, **texts), kinds
