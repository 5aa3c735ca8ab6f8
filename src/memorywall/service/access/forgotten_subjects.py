"""Requests that say when their content was said, in `X-Said-At`: nothing is stored about a person
who was forgotten since.

A client may keep what was said in a file and send it later, so that a person may be forgotten
meanwhile. Every forgetting is an event with the digest of the person, see `subject_erasure.py`. The
rule applies to the people that a request is bound to, in each of its transactions, and to the
subjects of each entry that it stores.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from memorywall.records.event import Event
from memorywall.records.feature_errors import SubjectForgottenError
from memorywall.records.identifiers import forms_of_names
from memorywall.records.suppression import SuppressionKind
from memorywall.service.encryption.opened_key import DIGEST_MARK
from memorywall.service.requests.operation_context import OperationContext

_encode = msgspec.json.Encoder().encode


class _Forgetting(msgspec.Struct):
    """What the data of an event `subject.forgotten` says about its instant.

    forgotten_at: of a forgetting that a restore repeats, its instant; "" for that of the event
    """

    forgotten_at: str = ""


_decode = msgspec.json.Decoder(_Forgetting).decode


async def refuse_forgotten(context: OperationContext, subjects: Collection[str]) -> None:
    """Raises SubjectForgottenError if a person was forgotten at the instant of `X-Said-At` or
    later. Does nothing for a request without the header.

    subjects: names or digests
    """
    said_at = context.principal.said_at
    if said_at is None or not subjects:
        return
    transaction, cipher = context.transaction, context.service.cipher
    forms = set(forms_of_names(subjects))
    digests = [
        form if form.startswith(DIGEST_MARK) else await cipher.find_digest(transaction, form)
        for form in forms
    ]
    # A tenant without digests has no event either.
    sought = {digest for digest in digests if digest is not None}
    ledger = context.service.ledger
    key = None if ledger is None else ledger.opened_key
    if key is not None:
        # A restored log names by these whom the backup did not know.
        kind = SuppressionKind.SUBJECT
        sought |= {key.digest(context.tenant, kind, form) for form in forms | sought}
    events = await transaction.events.list_forgotten([_encode(one) for one in sought], said_at)
    if any(_forgotten_at(event) >= said_at for event in events):
        raise SubjectForgottenError(
            "a person was forgotten after `X-Said-At`, so nothing was stored; drop what was said"
            " before, and send what the person said again later with its own instant"
        )


def _forgotten_at(event: Event) -> str:
    return _decode(event.data or b"{}").forgotten_at or event.timestamp
