"""The OpenAPI 3.1 document, made from the operations table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from typing import Any, get_args

import msgspec

from memorywall.kinds.registry import KINDS, kind_names
from memorywall.records.entry import Priority, Sensitivity
from memorywall.records.namespace import Access
from memorywall.records.recall import EntryOutcome, GuidanceKind, Mode
from memorywall.records.tier import Tier
from memorywall.wire.field_texts import FIELD_TEXTS
from memorywall.wire.header_parameters import header_parameters, with_examples
from memorywall.wire.json_rpc import PATH, RPC_SCHEMAS, TAG, path_item
from memorywall.wire.operation import MERGE_PATCH
from memorywall.wire.operations import OPERATIONS, Operation
from memorywall.wire.service import ProblemDetails

_REFERENCE = "#/components/schemas/{name}"
_REFERRED = re.compile(r"#/components/schemas/([\w.]+)")
_PARAMETER = re.compile(r"{(\w+)(?::path)?}")
_ORDERED: tuple[tuple[str, ...], ...] = (
    tuple(Tier),
    tuple(Access),
    tuple(Mode),
    tuple(EntryOutcome),
    tuple(GuidanceKind),
    get_args(Priority),
    get_args(Sensitivity),
)
_PARAMETER_TEXT = {
    "agent_id": "The agent that owns the memory or the stream.",
    "attachment_id": "The id of the attachment.",
    "claim_id": "The id of the claim.",
    "coordinator_id": "The id of the coordinator.",
    "dependency_id": "The id of the intent to depend on.",
    "entry_id": "The id of the entry.",
    "grant_id": "The id of the entry of the access list.",
    "intent_id": "The id of the intent.",
    "job": "The name of the background job.",
    "prefix": "The part of an API key before the dot.",
    "key": "The key of the entry.",
    "kind": "The name of the kind.",
    "lease_id": "The id of the lease.",
    "memory_type": "The tier.",
    "namespace": "The namespace; it may contain dots and slashes.",
    "subject": "The person it is about.",
    "task_id": "The id of the task.",
}
# The content of a file is sent unchanged, and is returned with the media type of the attachment.
_BYTES = {"type": "string", "format": "binary"}
_ANY_MEDIA = "*/*"
_FILE_HEADERS = {
    "Content-Disposition": "The file's name.",
    "ETag": "Its SHA-256, in hexadecimal.",
    "Repr-Digest": "Its SHA-256 (RFC 9530).",
}


def document(version: str) -> bytes:
    """The document as JSON text."""
    return _document(version, tuple(kind_names()))


@cache
def _document(version: str, kinds: tuple[str, ...]) -> bytes:
    """The same, made once for each set of kinds."""
    del kinds
    return msgspec.json.format(msgspec.json.encode(build(version)), indent=2)


def build(version: str) -> dict[str, Any]:
    """The document as plain data.

    version: the version of memorywall, for `info`
    """
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        path = _PARAMETER.sub(r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation)
    paths[PATH] = path_item()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "memorywall",
            "version": version,
            "summary": "Governed memory for AI agents.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": group} for group in dict.fromkeys((*(one.group for one in OPERATIONS), TAG))
        ],
        "paths": paths,
        "components": {
            "schemas": _with_kinds(_schemas()) | RPC_SCHEMAS,
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
            "content": {
                media: {"schema": _schema(kind)} for media, kind in _bodies(operation).items()
            },
        }
    return described


def _bodies(operation: Operation) -> dict[str, Any]:
    """The types of a JSON body by their media type."""
    bodies: dict[str, Any] = {"application/json": operation.body}
    if operation.merge_patch is not None:
        bodies[MERGE_PATCH] = operation.merge_patch
    return bodies


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
            "description": _parameter_text(name),
            "schema": {"type": "string", "minLength": 1},
        }
        for name in _PARAMETER.findall(operation.path)
    ]
    if operation.query is not None:
        fields = _schemas()[operation.query.__name__]["properties"]
        parameters.extend(
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": schema["description"],
                "schema": _without_null(schema),
            }
            for name, schema in fields.items()
        )
    parameters.extend(header_parameters(operation))
    return with_examples(parameters)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without null: a query parameter is absent or has a value."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    if len(kinds) == 1:
        return dict(kinds[0])
    return {name: part for name, part in schema.items() if name != "default" or part is not None}


_WAITS = "Accepted: the entry is a proposal, which waits for a person."
_KNOWN = "OK: memory says the same already, and this is the entry that says it."


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
    if operation.created is not None:
        made = HTTPStatus(operation.created)
        responses[str(made.value)] = {**success, "description": made.phrase}
    others = (("202", operation.defers, _WAITS), ("200", operation.recognizes, _KNOWN))
    responses |= {code: {**success, "description": text} for code, said, text in others if said}
    if operation.is_conditional:
        responses["304"] = {"description": "Not Modified: the client has this state."}
    if operation.empty:
        responses["204"] = {"description": "No Content: there is nothing."}
    by_status: dict[int, list[str]] = {}
    for error in operation.errors:
        by_status.setdefault(error.status, []).append(f"`{error.code}`: {error.title}.")
    for status, texts in sorted(by_status.items()):
        responses[str(status)] = {
            "description": " ".join(dict.fromkeys(texts)),
            "content": {"application/problem+json": {"schema": _schema(ProblemDetails)}},
        }
    return responses


def _with_kinds(schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas with that of each kind's value: an entry of a kind has such a value. No draft
    names a governed kind."""
    names = kind_names()
    types = [*_types(), *(KINDS[name].schema for name in names)]
    references, every = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    _restore_order(every)
    kinds = {}
    for name, reference in zip(names, references[-len(names) :], strict=True):
        own = every[reference["$ref"].rpartition("/")[2]]
        kinds[f"kind_{name}"] = {**own, "title": name, "description": KINDS[name].description}
    free = [f"kind_{name}" for name in names if not KINDS[name].is_governed]
    for name in free:
        # Requests contain such values, see `_describe_fields`.
        describe(kinds[name])
    waiting, inner = list(kinds.values()), dict[str, Any]()
    while waiting:
        schema = waiting.pop()
        new = set(_REFERRED.findall(repr(schema))) - schemas.keys() - inner.keys()
        inner |= {name: every[name] for name in new}
        waiting.extend(every[name] for name in new)
    return {
        **schemas,
        "NewEntry": _with_value(schemas["NewEntry"], free),
        "EntryResponse": _with_value(schemas["EntryResponse"], kinds),
        **inner,
        **kinds,
    }


def _with_value(schema: dict[str, Any], kinds: Iterable[str]) -> dict[str, Any]:
    """The schema of an entry whose value may be one of these kinds."""
    value = {
        "type": "object",
        "description": "The value; the kind, if one is named, decides its schema.",
        "anyOf": [{"type": "object"}, *({"$ref": _REFERENCE.format(name=name)} for name in kinds)],
    }
    return {**schema, "properties": {**schema["properties"], "value": value}}


def _types() -> list[Any]:
    types: list[Any] = [ProblemDetails]
    for operation in OPERATIONS:
        types.extend(
            kind
            for kind in (
                operation.query,
                operation.body,
                operation.merge_patch,
                operation.reply,
            )
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
    # The value is inserted into responses as text; msgspec cannot know that it is an object.
    schemas["EntryResponse"]["properties"]["value"] = {"type": "object"}
    _restore_order(schemas)
    _describe_fields(schemas, [kind for kind in _requests() if kind is not bytes])
    return schemas


def _requests() -> list[Any]:
    return [
        kind
        for one in OPERATIONS
        for kind in (one.query, one.body, one.merge_patch)
        if kind is not None
    ]


def _describe_fields(schemas: dict[str, Any], requests: list[Any]) -> None:
    """Gives each field of a request a description, from its struct or by its name."""
    waiting = [kind.__name__ for kind in requests]
    done: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in done:
            done.add(name)
            describe(schemas[name])
            waiting.extend(_REFERRED.findall(repr(schemas[name])))


def describe(schema: dict[str, Any]) -> None:
    """Gives each field of an object schema a description."""
    for name, field in schema.get("properties", {}).items():
        parts = [part for part in field.get("anyOf", []) if "description" in part]
        text = parts[0]["description"] if parts else FIELD_TEXTS.get(name)
        if "description" not in field and text is not None:
            field["description"] = text


def _restore_order(node: Any) -> None:
    """Restores the order of enumerations, which msgspec sorts and which has a meaning here."""
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


def _parameter_text(name: str) -> str:
    noun = name.removesuffix("_id").replace("_", " ")
    return _PARAMETER_TEXT.get(name, f"The id of the {noun}.")
