"""Groups of operations: what most operations of a group share, so that a record states the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack

from memorywall.records.errors import MemorywallError, ResourceNotFoundError
from memorywall.records.principal import Permission
from memorywall.wire.operation import Media, Operation

Errors = tuple[type[MemorywallError], ...]


class StatedFields(TypedDict, total=False):
    """What a record states: the fields of `Operation` that do not follow from its group, its method
    and its path."""

    source: str
    permission: Permission | None
    public: bool
    query: type
    body: type
    content: Literal["json", "bytes"]
    reply: Any
    status: int
    empty: bool
    media: Media
    if_match: Literal["required", "optional", "any"]
    if_none_match: bool
    merge_patch: type
    created: int
    defers: bool
    recognizes: bool
    safe: bool
    accepts_idempotency_key: bool
    etag: bool
    location: str
    raises: Errors
    shrink: str


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationGroup:
    """Makes the records of a group, each from what it does not share with the others.

    name: the heading in the reference
    source: the document that defines the contracts; default: memorywall itself
    prefix: the beginning of the paths; default: "/api/v1"
    read: the permission of an operation that changes nothing; default: `memory.read`
    write: the permission of any other operation; default: `memory.write`
    not_found: the errors if something that a path names does not exist; default: `NOT_FOUND`
    """

    name: str
    source: str = "memorywall"
    prefix: str = "/api/v1"
    read: Permission = Permission.READ
    write: Permission = Permission.WRITE
    not_found: Errors = (ResourceNotFoundError,)

    def __call__(
        self,
        name: str,
        request: str,
        summary: str,
        *,
        not_found: Errors | None = None,
        **own: Unpack[StatedFields],
    ) -> Operation:
        """The record of an operation. A DELETE without a reply has the status 204, and a public
        operation needs no permission.

        name, summary: see `Operation`
        request: the method and the path after the prefix, such as "GET /tasks/{task_id}"
        not_found: the errors if something that the path names does not exist; default: those of
            the group if the path has parameters, otherwise none
        own: the other fields; see `Operation`
        """
        method, _, path = request.partition(" ")
        if not_found is None:
            not_found = self.not_found if "{" in path else ()
        reads = method == "GET" or own.get("safe", False)
        permission = self.read if reads else self.write
        own.setdefault("source", self.source)
        own.setdefault("permission", None if "public" in own else permission)
        own.setdefault("status", 204 if method == "DELETE" and "reply" not in own else 200)
        own["raises"] = (*not_found, *own.get("raises", ()))
        return Operation(
            name=name,
            method=method,
            path=self.prefix + path,
            group=self.name,
            summary=summary,
            **own,
        )
