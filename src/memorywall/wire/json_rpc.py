"""JSON-RPC 2.0: the methods at `POST /rpc`, and its path in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from memorywall.records.errors import RequestError, ValueTooLargeError
from memorywall.wire.header_parameters import AGENT, SESSION, USER, with_examples
from memorywall.wire.operations import OPERATIONS

PATH = "/rpc"
NAME = "rpc"
"""The name of these requests in metrics, in logs and in OpenAPI."""
TAG = "JSON-RPC"
MOST_CALLS = 100
"""The most calls of a batch."""
METHODS = {operation.name: operation for operation in OPERATIONS if operation.is_json}
"""Every operation with a JSON request and response, by name."""

_ID = {
    "type": ["string", "integer", "null"],
    "description": "The id of the call; a call without one runs and is not answered.",
}
_VERSION = {"type": "string", "enum": ["2.0"], "description": "The version of JSON-RPC."}
_CALL = {
    "type": "object",
    "title": "RpcCall",
    "description": "One call of an operation.",
    "properties": {
        "jsonrpc": _VERSION,
        "method": {
            "type": "string",
            "enum": list(METHODS),
            "description": "The name of the operation.",
        },
        "params": {
            "type": "object",
            "description": "Its path parameters, query parameters and body fields by name, and"
            " where the operation accepts them `if_match`, `if_none_match`, `media_type`,"
            " `idempotency_key` and `fencing_token`.",
        },
        "id": _ID,
    },
    "required": ["jsonrpc", "method"],
    "additionalProperties": False,
}
_ERROR = {
    "type": "object",
    "description": "Why the call failed. The problem document of the operation is in `data`.",
    "properties": {
        "code": {"type": "integer"},
        "message": {"type": "string"},
        "data": {"$ref": "#/components/schemas/ProblemDetails"},
    },
    "required": ["code", "message"],
}
_ANSWER = {
    "type": "object",
    "title": "RpcAnswer",
    "description": "The answer to one call: `result` or `error`.",
    "properties": {
        "jsonrpc": _VERSION,
        "result": {"description": "The body of the response of the operation; null without one."},
        "error": _ERROR,
        "id": _ID,
    },
    "required": ["jsonrpc", "id"],
}
RPC_SCHEMAS: dict[str, Any] = {"RpcCall": _CALL, "RpcAnswer": _ANSWER}
"""The schemas of the document that `path_item` refers to."""


def path_item() -> dict[str, Any]:
    """The item of `PATH` in the document."""
    problem = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
    responses: dict[str, Any] = {
        "200": {
            "description": "The answers to calls with an id.",
            "content": _one_or_more("RpcAnswer"),
        },
        "204": {"description": "No Content: no call has an id."},
    }
    for error in (RequestError, ValueTooLargeError):
        responses[str(error.status)] = {
            "description": f"`{error.code}`: {error.title}.",
            "content": {"application/problem+json": problem},
        }
    return {
        "post": {
            "operationId": NAME,
            "tags": [TAG],
            "summary": "Run operations by name: one call, or a batch in order.",
            "description": "Source: JSON-RPC 2.0. Each call runs in its own transaction and needs"
            " the key and the permissions of its operation.",
            "parameters": with_examples((AGENT, USER, SESSION)),
            "requestBody": {"required": True, "content": _one_or_more("RpcCall")},
            "responses": responses,
            "security": [{"apiKey": []}, {"bearer": []}, {}],
        }
    }


def _one_or_more(name: str) -> dict[str, Any]:
    """JSON content: one of this schema, or the list of a batch."""
    one = {"$ref": f"#/components/schemas/{name}"}
    batch = {"type": "array", "items": one, "minItems": 1, "maxItems": MOST_CALLS}
    return {"application/json": {"schema": {"anyOf": [one, batch]}}}
