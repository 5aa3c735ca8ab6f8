"""The sentences that the documents of a shard consist of, as digests.

They find what says the same as a text, whatever its marks of lists, quotations and headings are.
Digests are of 8 bytes, so whoever finds a document by one compares the sentence itself as well.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection
from hashlib import blake2b
from typing import Final

import msgspec

from memorywall.records.tier import Tier
from memorywall.records.words import normalize_text
from memorywall.summaries.sentences import sentences

LASTING_TIERS: Final = (Tier.EPISODIC, Tier.SEMANTIC, Tier.PROCEDURAL)
"""The tiers of long-term memory, whose documents have digests. What was said in a session is not
kept by it."""
LIST_MARK: Final = re.compile(r"^\s*(?:(?:[-*•>#–—]+|\(?\d{1,3}[.)]|\[\d{1,3}\])(?=\s|\*|>)\s*)+")
_LABEL = re.compile(
    r"^\W*(?:recalled|remembered|i (?:recall|remember)|(?:relevant |known |long-term |stored |core"
    r" |working |further )?memor(?:y|ies)|known facts|earlier experience|procedures"
    r"|erinnerung(?:en)?|recuerdos?|souvenirs?|ricordi|lembranças?|记忆|記憶)"
    r"(?:\W*$|(?: that|[:：])\W*)"
    r"|^\(from memory\b[^)]*\)$",
    re.IGNORECASE,
)
"""What stands before recalled memories, in contexts of this server and of others."""
_ASIDE = re.compile(
    r"\((?:untrusted data|source_changed|stale since)[^)]*\)"
    r"|[\[(](?:(?:memory|id)[:= ]+)?mem_\w+[\])]|\bmem_[0-9A-Z]{26}\b"
)
"""The marks of memories in contexts, and ids of entries."""
_TOKEN = re.compile(r"(?<!\w)-\d(?:[\w.,:]*\w)?|\w+(?:[.,:'’/@+-]\w+)*\+*|[%$€£°<>=?؟]")
_DIGEST_BYTES = 8
_COLUMN_BYTES = 12
_ADDED_BYTES = 200
"""The approximate bytes of a sentence outside of the columns."""
Sentence = tuple[str, ...]
"""The words of a sentence, with the signs that change what it says."""


def words_of(text: str) -> Sentence:
    """The words of a text in one form, without the marks that only format it."""
    said: list[str] = []
    for line in normalize_text(text).split("\n"):
        plain = _LABEL.sub("", LIST_MARK.sub("", line))
        if "mem_" in plain or "(" in plain or "[" in plain:
            plain = _ASIDE.sub(" ", plain)
        words = _TOKEN.findall(plain.lower())
        # Every entry that the index reads passes here, and few have an underscore.
        said += filter(None, (one.strip("_") for one in words)) if "_" in plain else words
    return tuple(said)


def sentences_of(text: str) -> set[Sentence]:
    """The sentences of a stored text, each as its words."""
    return {words for one in sentences(text) if (words := words_of(one))}


class DigestColumns(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Digests in their order, and the document of each, as 8-byte and 4-byte integers.

    lengths: the numbers of words of the sentences
    """

    digests: bytes
    documents: bytes
    lengths: list[int]


class SentenceDigests:
    """Documents by the digests of their sentences; removed documents may be among them.

    lengths: the numbers of words that they have
    """

    def __init__(self) -> None:
        self.lengths: set[int] = set()
        # Nearly all sentences are in one document, and a list for each would take long to make.
        self._added: dict[int, int] = {}
        self._further: dict[int, list[int]] = {}
        # Those of segments stay columns, because most of them are never asked for.
        self._digests, self._documents = array("q"), array("i")
        self._absorbed: list[tuple[DigestColumns, int]] = []

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        absorbed = sum(len(one.digests) for one, _ in self._absorbed)
        return _ADDED_BYTES * len(self._added) + _COLUMN_BYTES * len(self._digests) + 2 * absorbed

    @property
    def is_merged(self) -> bool:
        """Whether a look-up is fast; `merge` makes it so, and takes long for many segments."""
        return not self._absorbed

    def add(self, document: int, text: str) -> None:
        """Adds the sentences of the text of a document."""
        for one in sentences_of(text):
            state = blake2b(f"{' '.join(one)} ".encode(), digest_size=_DIGEST_BYTES)
            digest = _number(state.digest())
            if self._added.setdefault(digest, document) != document:
                self._further.setdefault(digest, []).append(document)
            self.lengths.add(len(one))

    def absorb(self, columns: DigestColumns, base: int) -> None:
        """Adds those of a segment, whose first document has the number `base`."""
        self._absorbed.append((columns, base))
        self.lengths.update(columns.lengths)

    def merge(self) -> None:
        """Merges the columns of absorbed segments."""
        # Numpy takes time and memory, which a server that absorbs no segments saves.
        import numpy as np

        given = [np.frombuffer(self._digests, "i8"), np.frombuffer(self._documents, "i4")]
        absorbed = [
            (np.frombuffer(one.digests, "i8"), np.frombuffer(one.documents, "i4") + np.int32(base))
            for one, base in self._absorbed
        ]
        digests, documents = (np.concatenate(some) for some in zip(given, *absorbed, strict=True))
        order = np.argsort(digests, kind="stable")
        self._digests = array("q", digests[order].tobytes())
        self._documents = array("i", documents[order].tobytes())
        self._absorbed.clear()

    def columns(self) -> DigestColumns:
        """The columns of those that were added."""
        further = ((digest, one) for digest, some in self._further.items() for one in some)
        pairs = sorted((*self._added.items(), *further))
        digests, documents = (
            array("q", [one[0] for one in pairs]),
            array("i", [one[1] for one in pairs]),
        )
        return DigestColumns(digests.tobytes(), documents.tobytes(), sorted(self.lengths))

    def at(self, digest: int) -> list[int]:
        """The documents with a sentence of this digest, if the columns are merged."""
        first = bisect_left(self._digests, digest)
        last = bisect_right(self._digests, digest, first)
        found = self._documents[first:last].tolist()
        if digest in self._added:
            found += [self._added[digest], *self._further.get(digest, ())]
        return found


def digests_at(said: Sentence, place: int, lengths: Collection[int]) -> list[tuple[int, int]]:
    """The digests of the texts that begin at a word and have one of these numbers of words, each
    after that number, shortest first."""
    state, found = blake2b(digest_size=_DIGEST_BYTES), list[tuple[int, int]]()
    for length, word in enumerate(said[place : place + max(lengths, default=0)], start=1):
        state.update(f"{word} ".encode())
        if length in lengths:
            found.append((length, _number(state.digest())))
    return found


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "little", signed=True)
