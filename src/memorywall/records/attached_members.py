"""Members of a value that are too large for an entry, and are in an attachment of the entry
(RFC-0015 section 6.2).

In the place of such a member is its beginning as text, so that searches find the entry by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

ATTACHED: Final = "$attached"
"""The member of a value that says what is attached."""
FILENAME: Final = "members.json"
"""The name of the attachment, a JSON object of the members."""
MARK: Final = f'"{ATTACHED}"'.encode()
"""What the JSON of such a value contains."""


class AttachedMember(msgspec.Struct, frozen=True):
    """A member that is attached.

    shown: the characters of its text that the value has
    size: the bytes of its text in UTF-8; the text of a member that is no text is its JSON
    """

    shown: int
    size: int


class AttachedMembers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is attached.

    attachment_id: "" while the attachment is not stored yet: the entry counts as absent then
    is_whole: whether the value itself is the only member of the attachment
    """

    attachment_id: str = ""
    members: dict[str, AttachedMember]
    is_whole: bool = False


def attached_of(value: Mapping[str, Any]) -> AttachedMembers | None:
    """Returns what is attached to an entry with this value; None for a value that has all."""
    if ATTACHED not in value:
        return None
    try:
        return msgspec.convert(value[ATTACHED], AttachedMembers)
    except msgspec.ValidationError:
        # Somebody else uses the name.
        return None


def attachment_of(encoded: bytes) -> str | None:
    """Returns the id of the attachment with the members of a value, given as JSON; None for a value
    that has all."""
    if MARK not in encoded:
        return None
    attached = attached_of(msgspec.json.decode(encoded))
    return None if attached is None else attached.attachment_id
