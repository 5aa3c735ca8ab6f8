"""`client.remember` and `client.recall`: a beginning without tiers, namespaces and keys."""

from __future__ import annotations

from typing import Unpack

from memorywall.records.tier import Tier
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.fencing import fencing_token_of
from memorywall.sdk.fields import WriteOptions, checked_text, entry_fields
from memorywall.sdk.indexing import may_wait
from memorywall.sdk.memory import MemoryCore
from memorywall.sdk.models import MemoryEntry, SearchResults

REMEMBERED = "remembered"
"""The namespace of what `remember` stores."""


class RememberCore:
    """Stores and finds texts, as request generators."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    @may_wait
    def remember(self, text: str, **options: Unpack[WriteOptions]) -> RequestGenerator[MemoryEntry]:
        """Stores a text and returns its entry.

        The entry is new: episodic memory of the client's agent in the namespace `remembered`, with
        a key that the server makes and the value `{"text": text}`. When episodic memory is full,
        the least recently used entries are evicted, unless they are `pinned`. With `for_user` the
        entry is about that person. The options are the fields of `memory.set`.

        Raises ValidationError for an empty text, ValueTooLargeError, MemoryCapacityError,
        MemoryAccessError.
        """
        fields = entry_fields({"text": checked_text(text)}, options)
        fence = fencing_token_of(self._state, options.get("fencing_token"))
        memory = MemoryCore(self._state)
        return (yield from memory.create(REMEMBERED, None, Tier.EPISODIC, fields, fence))

    def recall(self, question: str, *, limit: int | None = None) -> RequestGenerator[SearchResults]:
        """Returns the readable entries that answer a question best, best first: see
        `memory.search`.

        All readable memory is searched, not only what `remember` has stored. With `for_user` it is
        memory about that person, and memory without a subject.

        limit: the most hits; default 10, maximum 100

        Raises ValidationError for a question without a word.
        """
        return (yield from MemoryCore(self._state).search(question, limit=limit))
