"""Lines of the suppression ledger, which names forgotten people and agents by keyed digests.

A line is the text `MAC JSON` of a `SuppressionLine`. The MAC covers the line and the MAC of the
line before, and the first MAC follows a random seed. A changed, missing, added or moved line
therefore has a wrong MAC. Digests and MACs are keyed with keys that are derived from a secret of
the ledger, which the key-encryption key wraps, so that nobody can test guesses of a name without
that key.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from memorywall.records.event_chain import LogHead, Mac

_DIGEST_BYTES = 20
_encode = msgspec.json.Encoder().encode


class SuppressionKind(StrEnum):
    """The object that the digests of a line name.

    AGENT, SUBJECT: a forgotten agent or person; for a person the name, and the digest that replaces
        the name beside sealed entries
    ENTRIES: ids of entries that were erased with a person
    RESTORED: nothing: earlier lines were applied to a restored log
    """

    AGENT = "agent"
    SUBJECT = "subject"
    ENTRIES = "entries"
    RESTORED = "restored"


class SuppressionLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line.

    at: the instant of the line
    tenant: the digest of the tenant's name
    seq, hash: the end of the tenant's log after the erasure, the hash in hexadecimal. A log that
        contains this event contains the erasure.
    key: the id of the key of the digests and of the MAC
    applied: of a RESTORED line, the number of lines that were applied
    """

    at: str
    kind: SuppressionKind
    tenant: str
    digests: tuple[str, ...]
    seq: int
    hash: str
    key: str
    applied: int = 0


_decode_line = msgspec.json.Decoder(SuppressionLine).decode


class LedgerPosition(msgspec.Struct, frozen=True, kw_only=True):
    """A position in a ledger.

    lines: the number of lines before it
    size: the number of bytes before it
    mac: the MAC of the last of these lines, in hexadecimal; the seed if there are none
    """

    lines: int
    size: int
    mac: str


@dataclass(frozen=True, slots=True)
class LedgerKey:
    """The keys of a ledger.

    id: names the key in lines; reveals nothing about it
    """

    id: str
    of_names: Mac
    of_lines: Mac

    @classmethod
    def derive(cls, root: bytes) -> LedgerKey:
        """Derives the keys from the secret of a ledger."""
        names = hmac.digest(root, b"memorywall suppression ledger names", "sha256")
        lines = hmac.digest(root, b"memorywall suppression ledger lines", "sha256")
        return cls(hashlib.sha256(lines).hexdigest()[:16], Mac(names), Mac(lines))

    def digest(self, tenant: str, kind: str, name: str) -> str:
        """Returns the digest of a name of a tenant."""
        return self.of_names(_encode((tenant, kind, name)))[:_DIGEST_BYTES].hex()

    def digest_tenant(self, tenant: str) -> str:
        """Returns the digest of a tenant's name."""
        return self.digest(tenant, "tenant", "")

    def make_line(
        self,
        at: str,
        kind: SuppressionKind,
        tenant: str,
        names: Iterable[str],
        head: LogHead,
        applied: int = 0,
    ) -> SuppressionLine:
        """Returns a line about names of a tenant.

        at: the instant in stored form
        head: the end of the tenant's log after the erasure
        applied: see `SuppressionLine`; default: 0
        """
        return SuppressionLine(
            at=at,
            kind=kind,
            tenant=self.digest_tenant(tenant),
            digests=tuple(self.digest(tenant, kind, name) for name in names),
            seq=head.seq,
            hash=head.hash.hex(),
            key=self.id,
            applied=applied,
        )

    def mac(self, before: str, body: bytes) -> str:
        """Returns the MAC of a line in hexadecimal.

        before: the MAC of the line before, or the seed
        """
        return self.of_lines(before.encode() + b"\n" + body).hex()


def encode_line(line: SuppressionLine, key: LedgerKey, before: str) -> tuple[bytes, str]:
    """Returns the bytes of a line with its line break, and its MAC.

    before: the MAC of the line before, or the seed
    """
    body = _encode(line)
    mac = key.mac(before, body)
    return b"%s %s\n" % (mac.encode(), body), mac


def read_line(text: bytes) -> tuple[str, bytes, SuppressionLine] | None:
    """Returns the MAC, the covered bytes and the content of a line without its line break; None if
    it is none."""
    mac, _, body = text.partition(b" ")
    try:
        return mac.decode("ascii"), body, _decode_line(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
