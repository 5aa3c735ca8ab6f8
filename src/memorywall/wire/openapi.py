"""The OpenAPI 3.1 document, made from the table of operations."""

from __future__ import annotations

import re
from functools import cache
from http import HTTPStatus
from typing import Any, get_args

import msgspec

from memorywall.records.entry import Priority, Sensitivity
from memorywall.records.namespace import Access
from memorywall.records.principal import Permission
from memorywall.records.recall import GuidanceKind, Mode, Outcome
from memorywall.records.tier import Tier
from memorywall.wire.operations import OPERATIONS, Operation
from memorywall.wire.service import Problem

_REFERENCE = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"{(\w+)(?::path)?}")
_ORDERED: tuple[tuple[str, ...], ...] = (
    tuple(Tier),
    tuple(Access),
    tuple(Mode),
    tuple(Outcome),
    tuple(GuidanceKind),
    get_args(Priority),
    get_args(Sensitivity),
)
_PARAMETER_TEXT = {
    "agent_id": "The agent whose memory or stream it is.",
    "attachment_id": "The id of the attachment.",
    "claim_id": "The id of the claim.",
    "coordinator_id": "The id of the coordinator.",
    "dependency_id": "The id of the intent that this one depends on.",
    "entry_id": "The id of the entry.",
    "grant_id": "The id of the line of the access list.",
    "intent_id": "The id of the intent.",
    "key": "The key of the entry.",
    "lease_id": "The id of the lease.",
    "namespace": "The namespace; it may hold dots and slashes.",
    "task_id": "The id of the task.",
}
# What a file holds is sent as it is, and comes back with the media type it was attached with.
_BYTES = {"type": "string", "format": "binary"}
_ANY_MEDIA = "*/*"
_FILE_HEADERS = {
    "Content-Disposition": "The file's name.",
    "ETag": "Its SHA-256, in hexadecimal.",
    "Repr-Digest": "Its SHA-256 (RFC 9530).",
}


@cache
def document(version: str) -> bytes:
    """The document as JSON text."""
    return msgspec.json.format(msgspec.json.encode(build(version)), indent=2)


def build(version: str) -> dict[str, Any]:
    """The document as plain data."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        path = _PARAMETER.sub(r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "memorywall",
            "version": version,
            "summary": "Governed memory for AI agents.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": group} for group in dict.fromkeys(one.group for one in OPERATIONS)],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.group],
        "summary": operation.summary,
        "description": _description(operation),
        "parameters": _parameters(operation),
        "responses": _responses(operation),
        "security": [] if operation.public else [{"apiKey": []}, {"bearer": []}],
    }
    if operation.content == "bytes":
        described["requestBody"] = {
            "required": True,
            "content": {"application/octet-stream": {"schema": _BYTES}},
        }
    elif operation.body is not None:
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _schema(operation.body)}},
        }
    return described


def _description(operation: Operation) -> str:
    text = f"Source: {operation.source}."
    if operation.permission is not None:
        text += f" Needs `{operation.permission}` and what the rule of its tier or intent asks for."
    return text


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PARAMETER_TEXT[name],
            "schema": {"type": "string", "minLength": 1},
        }
        for name in _PARAMETER.findall(operation.path)
    ]
    if operation.query is not None:
        fields = _schemas()[operation.query.__name__]["properties"]
        parameters.extend(
            {"name": name, "in": "query", "required": False, "schema": _without_null(schema)}
            for name, schema in fields.items()
        )
    if not operation.public:
        parameters.append(
            _header(
                "X-Agent-ID",
                "The agent the request speaks for: the key's own, or any agent"
                f" when the key has `{Permission.ACT_AS}`.",
            )
        )
    if operation.if_match != "none":
        required = operation.if_match == "required"
        parameters.append(_header("If-Match", "The current version.", required=required))
    if operation.fenced:
        parameters.append(
            _header(
                "Fencing-Token",
                "The number of the lease or claim that this is done under; it is refused when that"
                " is over.",
            )
        )
    if operation.repeatable:
        parameters.append(
            _header("Idempotency-Key", "The same key gives the first reply again for 24 hours.")
        )
    if operation.media == "events":
        parameters.append(
            _header("Last-Event-ID", "The last event seen; a stream goes on behind it.")
        )
    return parameters


def _header(name: str, text: str, *, required: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": required,
        "description": text,
        "schema": {"type": "string"},
    }


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query parameter is absent or has a value; there is no null in a query string."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    if len(kinds) == 1:
        return dict(kinds[0])
    return {name: part for name, part in schema.items() if name != "default" or part is not None}


def _responses(operation: Operation) -> dict[str, Any]:
    success: dict[str, Any] = {"description": HTTPStatus(operation.status).phrase}
    if operation.media == "bytes":
        success["content"] = {_ANY_MEDIA: {"schema": _BYTES}}
        success["headers"] = {
            name: {"description": text, "schema": {"type": "string"}}
            for name, text in _FILE_HEADERS.items()
        }
    elif operation.media == "text":
        success["content"] = {"text/plain": {"schema": {"type": "string"}}}
    elif operation.media == "lines":
        success["content"] = {"application/x-ndjson": {"schema": _schema(operation.reply)}}
    elif operation.reply is not None:
        success["content"] = {"application/json": {"schema": _schema(operation.reply)}}
    if operation.media == "events":
        streams = success.setdefault("content", {})
        streams["text/event-stream"] = {"schema": {"type": "string"}}
    responses = {str(operation.status): success}
    if operation.empty:
        responses["204"] = {"description": "No Content: there is nothing."}
    by_status: dict[int, list[str]] = {}
    for error in operation.errors:
        by_status.setdefault(error.status, []).append(f"`{error.code}`: {error.title}.")
    for status, texts in sorted(by_status.items()):
        responses[str(status)] = {
            "description": " ".join(dict.fromkeys(texts)),
            "content": {"application/problem+json": {"schema": _schema(Problem)}},
        }
    return responses


def _types() -> list[Any]:
    types: list[Any] = [Problem]
    for operation in OPERATIONS:
        types.extend(
            kind
            for kind in (operation.query, operation.body, operation.reply)
            if kind not in (None, bytes)
        )
    return list(dict.fromkeys(types))


@cache
def _schema(kind: Any) -> Any:
    schemas, _ = msgspec.json.schema_components([kind], ref_template=_REFERENCE)
    return schemas[0]


@cache
def _schemas() -> dict[str, Any]:
    _, schemas = msgspec.json.schema_components(_types(), ref_template=_REFERENCE)
    # The value is spliced into replies as text, which msgspec cannot know to be an object.
    schemas["EntryView"]["properties"]["value"] = {"type": "object"}
    _restore_order(schemas)
    return schemas


def _restore_order(node: Any) -> None:
    """msgspec sorts the values of an enumeration; ours stand in an order that means something."""
    if isinstance(node, dict):
        values = node.get("enum")
        for ordered in _ORDERED:
            if values is not None and set(values) == set(ordered):
                node["enum"] = list(ordered)
        for child in node.values():
            _restore_order(child)
    elif isinstance(node, list):
        for child in node:
            _restore_order(child)
