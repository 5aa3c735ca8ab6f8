"""The saved states of a session, as request generators."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from memorywall.records.errors import ValidationError
from memorywall.sdk import retry
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.filters import without_absent
from memorywall.sdk.retry import call
from memorywall.wire.saved_states import SavedStateListResponse, SavedStateResponse
from memorywall.wire.sessions import SessionResponse


class SavedStatesCore:
    """The operations on the saved states of one session.

    info: the session as this client saw it last
    """

    info: SessionResponse

    def put_saved_state(
        self,
        name: str,
        data: bytes,
        *,
        parent: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> RequestGenerator[SavedStateResponse]:
        """Saves a state of a framework, such as its own checkpoint; one of this name is replaced.

        data: bytes, at most what an attachment takes
        parent: the name of the state that it follows; default: none
        metadata: free JSON; default: empty
        Raises ValidationError, ValueTooLargeError, SessionClosedError, MemoryAccessError.
        """
        if not isinstance(data, bytes):
            raise ValidationError("`data` must be bytes")
        text = b64encode(data).decode()
        body = without_absent({"data": text, "parent": parent, "metadata": metadata})
        return call(
            "put_saved_state", SavedStateResponse, session_id=self.info.id, name=name, body=body
        )

    def get_saved_state(self, name: str) -> RequestGenerator[SavedStateResponse]:
        """Returns a saved state with its `data`. Raises ResourceNotFoundError."""
        return call("get_saved_state", SavedStateResponse, session_id=self.info.id, name=name)

    def list_saved_states(
        self, *, after: str | None = None, before: str | None = None, limit: int | None = None
    ) -> RequestGenerator[SavedStateListResponse]:
        """Returns saved states without their data, in the reverse order of their names.

        after, before: only those with names after, and before, this one; default: all
        limit: the most states, up to 100; default: 50
        """
        query = {"after_name": after, "before_name": before, "limit": limit}
        return call(
            "list_saved_states", SavedStateListResponse, session_id=self.info.id, query=query
        )

    def delete_saved_state(self, name: str) -> RequestGenerator[None]:
        """Deletes a saved state."""
        return retry.remove("delete_saved_state", session_id=self.info.id, name=name)
