"""Requests and responses about the saved states of a session."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta


class SavedStateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A state of a framework to save.

    data: the bytes as base64, at most what an attachment takes
    parent: the name of the state that it follows; None for none
    metadata: free JSON
    """

    data: Annotated[bytes, Meta(description="The bytes, as base64.")]
    parent: Annotated[
        str | None, Meta(description="The name of the state that it follows; default: none.")
    ] = None
    metadata: dict[str, Any] = {}


class SavedStateResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A saved state.

    id: the id of its entry
    name: unique in its session
    parent: the name of the state that it follows; null for none
    size: the number of bytes
    data: the bytes as base64; null where many are listed, and in the reply to a request that sent
        them
    """

    id: str
    name: str
    parent: str | None
    metadata: dict[str, Any]
    size: int
    created_at: str
    data: bytes | None = None


class SavedStateQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects saved states by their names.

    after_name, before_name: only names after, and before, this one
    """

    after_name: Annotated[str, Meta(description="Only states with names after this one.")] = ""
    before_name: Annotated[
        str | None, Meta(description="Only states with names before this one.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 50


class SavedStateListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Saved states without their data, in the reverse order of their names.

    next: the value of `before_name` for the next page; None after the last page
    """

    saved_states: list[SavedStateResponse]
    next: str | None
