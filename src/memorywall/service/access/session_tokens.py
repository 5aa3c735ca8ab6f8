"""Tokens of sessions: what a key signs for one agent and one session. No token is stored.

A token ends with its session, which every transaction of a request reads, with the key that issued
it, which it names, and at its own instant. Its signature is keyed by the tenant's literal digests,
whose key stays the same when the other keys of the store are replaced.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from memorywall.service.requests.operation_context import OperationContext

MARK = "mws_"
_PURPOSE = "session token\0"
"""Separates what is signed from names of people, which contain no NUL."""


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
        return _PURPOSE + msgspec.json.encode(self).decode()


_decode = msgspec.json.Decoder(SessionToken).decode


async def sign(context: OperationContext, token: SessionToken) -> str:
    """Returns the text of a token."""
    cipher, transaction = context.service.cipher, context.transaction
    digest = await cipher.literal_digest(transaction, token.literal, context.now)
    claims = base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")
    return f"{MARK}{claims}.{digest}"


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
