"""Checks the hash chain of a tenant's log, the digests of its contents and those of entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from memorywall.jobs.chain_log import RowDigests
from memorywall.jobs.log_segments import LogSegment, read_segment
from memorywall.records.entry import Entry
from memorywall.records.errors import KeyUnavailableError
from memorywall.records.event import Event, LogEvent, RowDigest
from memorywall.records.event_chain import (
    NO_HASH,
    ROW_FIELDS,
    DigestKey,
    StoredEvent,
    content_digest,
    hash_of,
    read_content,
    repeats_content,
    row_digest,
)
from memorywall.records.idempotency import DataKey, KeyPurpose
from memorywall.service.encryption.cipher import EnvelopeCipher


class ChainVerifier:
    """The check of one tenant's log. Without a cipher only the hashes are checked, which need no
    key.

    erased: the number of events whose content has been erased
    segments: the segments of the log that restores have begun
    """

    def __init__(self, data_keys: Iterable[DataKey], cipher: EnvelopeCipher | None) -> None:
        self._cipher = cipher
        self._data_keys = {one.id: one for one in data_keys if one.purpose is KeyPurpose.DIGEST}
        self._digest_keys: dict[str, DigestKey | None] = {}
        self._event_keys: dict[int, str] = {}
        self._noted_rows: dict[tuple[str, int], tuple[int, RowDigest, str]] = {}
        self.erased = 0
        self.segments: list[LogSegment] = []

    def check_log(self, log: Iterable[StoredEvent]) -> Iterator[str]:
        """Yields the defects of a log that is read in the order of `seq`."""
        previous = NO_HASH
        for stored in log:
            envelope = stored.envelope
            if envelope.previous != previous:
                yield f"event {envelope.seq} does not follow from the event before it"
            yield from self._check_segment(stored)
            previous = hash_of(envelope)
            if envelope.digest_key not in self._digest_keys:
                key = self._open(envelope.digest_key)
                self._digest_keys[envelope.digest_key] = key
                if key is None and self._cipher is not None:
                    yield f"the digest key {envelope.digest_key} is missing or cannot be opened"
            yield from self._check_content(stored)

    def check_entry(self, entry: Entry, last: Event) -> Iterator[str]:
        """Yields the defects of an entry according to the row digest in the log.

        last: the last event about the entry
        """
        row, key_id, version = last.row, self._event_keys.pop(last.seq, None), last.version
        noted = self._noted_rows.pop((entry.id, entry.version), None)
        # An entry that was sealed anew has a later digest than that of its last event.
        if noted is not None and (row is None or noted[0] > last.seq):
            (_, row, key_id), version = noted, entry.version
        key = self._digest_keys.get(key_id or "")
        if row is None or key is None or version != entry.version:
            return
        if row.format not in ROW_FIELDS:
            yield f"has a digest of its row of the format {row.format}, which is not known"
        elif row_digest(entry, key, row.format) != row.digest:
            yield "has another row than its log says"

    def _check_segment(self, stored: StoredEvent) -> Iterator[str]:
        segment = read_segment(stored)
        if segment is None:
            return
        self.segments.append(segment)
        said, envelope = segment.restored, stored.envelope
        if said is not None and (said.seq, said.hash) != (
            envelope.seq - 1,
            envelope.previous.hex(),
        ):
            yield f"event {envelope.seq} names another end of the backup than the event before it"

    def _check_content(self, stored: StoredEvent) -> Iterator[str]:
        envelope = stored.envelope
        if stored.salt is None or stored.content is None:
            self.erased += 1
            return
        key = self._digest_keys[envelope.digest_key]
        if key is not None:
            if content_digest(stored.salt, stored.content, key) != envelope.digest:
                yield f"the content of event {envelope.seq} is not the one its envelope names"
                return
            self._note_rows(stored)
        if not repeats_content(stored):
            yield f"the columns of event {envelope.seq} are not what its content says"

    def _note_rows(self, stored: StoredEvent) -> None:
        """Stores the data for checks of entries, from authentic contents only."""
        envelope = stored.envelope
        if envelope.tier:
            self._event_keys[envelope.seq] = envelope.digest_key
        elif envelope.type == LogEvent.ROWS and stored.content is not None:
            data = read_content(stored.content).data
            rows = msgspec.json.decode(data, type=RowDigests)
            for entry_id, version, digest in rows.rows:
                noted = RowDigest(rows.format, digest)
                self._noted_rows[entry_id, version] = envelope.seq, noted, rows.key

    def _open(self, key_id: str) -> DigestKey | None:
        data_key = self._data_keys.get(key_id)
        if self._cipher is None or data_key is None:
            return None
        try:
            return self._cipher.derive_digest_key(data_key)
        except KeyUnavailableError:
            return None
