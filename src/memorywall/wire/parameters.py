"""The parameters of an operation by name, independent of their position in an HTTP request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from memorywall.records.errors import RequestError
from memorywall.wire.operation import Operation

RESERVED = ("if_match", "if_none_match", "media_type", "idempotency_key", "fencing_token")
"""Names of parameters that are sent as headers. No other parameter has one of these names."""
_NUMBERS = ("if_match", "fencing_token")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of one call, by their position in an HTTP request.

    path, query: the parameters by name
    body: None for an operation without a body
    """

    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Mapping[str, Any] | None
    if_match: int | str | None
    if_none_match: str | None
    media_type: str | None
    fencing_token: int | str | None
    idempotency_key: str | None


def parameters_of(operation: Operation, given: Mapping[str, Any]) -> Parameters:
    """Sorts the parameters of an operation with a JSON body.

    Other parameters are fields of the body, or of the query if there is no body. Unknown fields are
    refused later. Raises RequestError for a missing or non-text path parameter, and for an invalid
    header value.
    """
    rest = dict(given)
    headers = {name: _header(name, rest.pop(name, None)) for name in RESERVED}
    path = {name: _path(name, rest.pop(name, None)) for name in operation.path_parameters}
    query, body = rest, None
    if operation.body is not None:
        names = () if operation.query is None else field_names(operation.query)
        query, body = {name: rest.pop(name) for name in names if name in rest}, rest
    return Parameters(path=path, query=query, body=body, **headers)


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """Returns the names of a struct's fields in JSON and in query strings."""
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
