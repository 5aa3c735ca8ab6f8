"""Tokens of sessions: what a key signs for one agent and one session. No token is stored.

A token ends with its session, which every transaction of a request reads, with the key that issued
it, which it names, and at its own instant. The key of its signature is derived from that of the
tenant's literal digests, which stays the same when the other keys of the store are replaced.
"""

from __future__ import annotations

import base64
import binascii
import hmac

import msgspec

from memorywall.service.encryption.cipher import EnvelopeCipher
from memorywall.service.requests.operation_context import OperationContext

MARK = "mws_"
_PURPOSE = "memorywall session token"
_EARLIER = "session token\0"
"""Begins what earlier versions signed with the key of the literal digests itself. A name of a
person, which has such a digest, contains no NUL."""


class SessionToken(msgspec.Struct, frozen=True, array_like=True):
    """The content of a token.

    key: the prefix of the key that issued it
    expires: the instant from which it is refused, in milliseconds since the epoch
    """

    tenant: str
    key: str
    agent: str
    session: str
    expires: int

    @property
    def literal(self) -> str:
        """The text that the signature covers."""
        return msgspec.json.encode(self).decode()


_decode = msgspec.json.Decoder(SessionToken).decode


async def sign(context: OperationContext, token: SessionToken) -> str:
    """Returns the text of a token."""
    cipher, transaction = context.service.cipher, context.transaction
    digest = await cipher.literal_digest(transaction, token.literal, context.now, _PURPOSE)
    claims = base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")
    return f"{MARK}{claims}.{digest}"


def is_signed(cipher: EnvelopeCipher, token: SessionToken, signature: str) -> bool:
    """Returns whether a signature is that of a token. A token of an earlier version, which lasts at
    most a day, is valid until it expires. The digests of its tenant must be prepared."""
    known = (
        cipher.prepared_digest(token.tenant, token.literal, _PURPOSE),
        cipher.prepared_digest(token.tenant, _EARLIER + token.literal),
    )
    return any(hmac.compare_digest(one.encode(), signature.encode()) for one in known)


def parse(text: str) -> tuple[SessionToken, str] | None:
    """Returns the content of a token and its signature, which is not checked; None for a text that
    is no token."""
    claims, separator, digest = text.removeprefix(MARK).partition(".")
    try:
        padded = claims + "=" * (-len(claims) % 4)
        content = base64.urlsafe_b64decode(padded.encode("ascii"))
        return (_decode(content), digest) if separator else None
    except (UnicodeEncodeError, binascii.Error, msgspec.MsgspecError, UnicodeDecodeError):
        return None
