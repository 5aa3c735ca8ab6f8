"""The parameters of an operation by their names, wherever they stand in a request over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from memorywall.records.errors import RequestError
from memorywall.wire.operation import Operation

RESERVED = ("if_match", "idempotency_key", "fencing_token")
"""What stands in headers. No parameter has one of these names."""
_NUMBERS = ("if_match", "fencing_token")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of one call, by where they stand over HTTP.

    path, query: by name
    body: None for an operation that has none
    """

    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Mapping[str, Any] | None
    if_match: int | str | None
    fencing_token: int | str | None
    idempotency_key: str | None


def parameters_of(operation: Operation, given: Mapping[str, Any]) -> Parameters:
    """Sorts the parameters of an operation that takes JSON.

    What has no other place is a field of the body, or of the query where there is no body, and is
    refused there when it is unknown.
    Raises RequestError for a path parameter that is missing or no text, and for what cannot be a
    header.
    """
    rest = dict(given)
    headers = {name: _header(name, rest.pop(name, None)) for name in RESERVED}
    path = {name: _path(name, rest.pop(name, None)) for name in operation.path_parameters}
    query, body = rest, None
    if operation.body is not None:
        names = () if operation.query is None else field_names(operation.query)
        query, body = {name: rest.pop(name) for name in names if name in rest}, rest
    return Parameters(path=path, query=query, body=body, **headers)


def field_names(kind: type) -> tuple[str, ...]:
    """The names that the fields of a struct have in JSON and in query strings."""
    return tuple(field.encode_name for field in msgspec.structs.fields(kind))


def _path(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise RequestError(f"`{name}` must be given, as a text that is not empty")
    return given


def _header(name: str, given: Any) -> Any:
    is_number = name in _NUMBERS and isinstance(given, int) and not isinstance(given, bool)
    if given is None or isinstance(given, str) or is_number:
        return given
    raise RequestError(f"`{name}` is of another type")
