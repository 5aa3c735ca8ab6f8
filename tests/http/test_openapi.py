"""The OpenAPI 3.1 document: whole, and true to the table of operations and to the RFC."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from memorywall.version import __version__
from memorywall.wire.operations import OPERATIONS
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}

RFC_ENDPOINTS = {
    ("post", "/api/v1/memory"),
    ("get", "/api/v1/memory"),
    ("get", "/api/v1/memory/{entry_id}"),
    ("patch", "/api/v1/memory/{entry_id}"),
    ("delete", "/api/v1/memory/{entry_id}"),
    ("post", "/api/v1/memory/batch"),
    ("delete", "/api/v1/memory/batch"),
    ("get", "/api/v1/memory/namespaces"),
    ("get", "/api/v1/memory/namespaces/{namespace}"),
    ("patch", "/api/v1/memory/namespaces/{namespace}"),
    ("get", "/api/v1/agents/{agent_id}/memory/summary"),
    ("get", "/api/v1/agents/{agent_id}/memory"),
    ("get", "/api/v1/agents/{agent_id}/events"),
    ("get", "/api/v1/capabilities"),
    ("get", "/.well-known/openintent.json"),
    ("get", "/health"),
    ("get", "/ready"),
}
QUERY_PARAMETERS = {
    "agent_id", "namespace", "key", "memory_type", "tags", "tags_any", "scope.task_id",
    "scope.intent_id", "pinned", "updated_after", "updated_before", "limit", "offset",
}  # fmt: skip


@pytest.fixture
async def document(service: RunningService) -> dict[str, Any]:
    """The document as it is served."""
    response = await service.client().get("/openapi.json")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    served: dict[str, Any] = response.json()
    return served


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def _of_the_table(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The same without JSON-RPC, which is no record of the table."""
    return ((method, path, one) for method, path, one in _operations(document) if path != "/rpc")


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for inner in node.values():
            yield from _nodes(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _nodes(inner)


def _resolve(document: dict[str, Any], reference: str) -> Any:
    assert reference.startswith("#/"), reference
    node: Any = document
    for part in reference[2:].split("/"):
        node = node[part.replace("~1", "/").replace("~0", "~")]
    return node


async def test_the_document_has_the_parts_openapi_asks_for(document: dict[str, Any]) -> None:
    assert re.fullmatch(r"3\.1\.\d+", document["openapi"])
    assert document["info"]["title"] == "memorywall"
    assert document["info"]["version"] == __version__
    assert document.keys() <= {
        "openapi", "info", "jsonSchemaDialect", "servers", "paths", "webhooks", "components",
        "security", "tags", "externalDocs",
    }  # fmt: skip
    tags = [tag["name"] for tag in document["tags"]]
    assert len(tags) == len(set(tags))
    for path, item in document["paths"].items():
        assert path.startswith("/")
        assert item.keys() <= METHODS | {"summary", "description", "parameters", "servers"}
        assert ":path" not in path


async def test_the_paths_are_those_of_the_table_and_of_the_rfc(document: dict[str, Any]) -> None:
    described = {(method, path) for method, path, _ in _of_the_table(document)}
    table = {(one.method.lower(), re.sub(r"{(\w+):path}", r"{\1}", one.path)) for one in OPERATIONS}
    assert described == table
    assert described >= RFC_ENDPOINTS
    names = [operation["operationId"] for _, _, operation in _of_the_table(document)]
    assert sorted(names) == sorted(one.name for one in OPERATIONS)


async def test_every_reference_resolves_and_every_schema_is_used(document: dict[str, Any]) -> None:
    references = {node["$ref"] for node in _nodes(document) if isinstance(node.get("$ref"), str)}
    assert references
    for reference in references:
        assert isinstance(_resolve(document, reference), dict), reference
    schemas = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    # What a query may say stands with the operation, parameter by parameter.
    queries = {one.query.__name__ for one in OPERATIONS if one.query is not None}
    unused = {name.rpartition("/")[2] for name in schemas - references}
    assert unused <= queries, unused


async def test_every_operation_is_described_whole(document: dict[str, Any]) -> None:
    for method, path, operation in _operations(document):
        where = f"{method} {path}"
        assert operation["summary"], where
        assert set(operation["tags"]) <= {tag["name"] for tag in document["tags"]}, where
        parameters = operation["parameters"]
        places = [(one["in"], one["name"]) for one in parameters]
        assert len(places) == len(set(places)), where
        in_path = {one["name"] for one in parameters if one["in"] == "path"}
        assert in_path == set(re.findall(r"{(\w+)}", path)), where
        for parameter in parameters:
            assert parameter["in"] in ("path", "query", "header"), where
            assert isinstance(parameter["schema"], dict), where
            assert parameter["required"] is True or parameter["in"] != "path", where
        for scheme in operation["security"]:
            assert scheme.keys() <= document["components"]["securitySchemes"].keys(), where


async def test_every_body_is_described_with_its_media_type(document: dict[str, Any]) -> None:
    table = {one.name: one for one in OPERATIONS}
    for _, _, operation in _of_the_table(document):
        one = table[operation["operationId"]]
        content = operation.get("requestBody", {}).get("content", {})
        sent = {"json": "application/json", "bytes": "application/octet-stream"}[one.content]
        merged = {"application/merge-patch+json"} if one.merge_patch is not None else set()
        assert set(content) == ({sent} | merged if one.body is not None else set()), one.name
        if content:
            assert operation["requestBody"]["required"] is True, one.name
        received = {
            "json": {"application/json"},
            "lines": {"application/x-ndjson"},
            "events": {"application/json", "text/event-stream"},
            "bytes": {"*/*"},
            "text": {"text/plain"},
        }[one.media]
        if one.reply is None:
            received -= {"application/json"}
        success = operation["responses"][str(one.status)]
        assert set(success.get("content", {})) == received, one.name
        assert (one.status == 204) <= (one.reply is None), one.name
        for described in (*content.values(), *success.get("content", {}).values()):
            assert described["schema"], one.name


async def test_a_file_is_sent_and_given_as_it_is(document: dict[str, Any]) -> None:
    files = document["paths"]["/api/v1/intents/{intent_id}/attachments/{attachment_id}/content"]
    binary = {"schema": {"type": "string", "format": "binary"}}
    assert files["put"]["requestBody"]["content"] == {"application/octet-stream": binary}
    given = files["get"]["responses"]["200"]
    assert given["content"] == {"*/*": binary}
    assert given["headers"].keys() == {"Content-Disposition", "ETag", "Repr-Digest"}


async def test_a_list_is_described_as_one(document: dict[str, Any]) -> None:
    for path, name in (
        ("/api/v1/tasks", "TaskResponse"),
        ("/api/v1/intents/{intent_id}/coordinators", "CoordinatorResponse"),
        ("/api/v1/agents/{agent_id}/memory", "EntryResponse"),
    ):
        reply = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]
        assert reply["schema"] == {
            "type": "array",
            "items": {"$ref": f"#/components/schemas/{name}"},
        }


async def test_every_operation_documents_its_errors_as_problems(document: dict[str, Any]) -> None:
    table = {one.name: one for one in OPERATIONS}
    for _, _, operation in _of_the_table(document):
        one = table[operation["operationId"]]
        responses = operation["responses"]
        assert all(re.fullmatch(r"[1-5]\d\d", status) for status in responses)
        assert all(response["description"] for response in responses.values())
        succeeds = {str(one.status)} | ({"204"} if one.empty else set())
        succeeds |= {str(one.created)} if one.created else set()
        succeeds |= {"202"} if one.defers else set()
        succeeds |= {"200"} if one.recognizes else set()
        succeeds |= {"304"} if one.is_conditional else set()
        assert all("content" not in responses[status] for status in succeeds & {"204", "304"}), (
            one.name
        )
        expected = {str(error.status) for error in one.errors}
        assert set(responses) == expected | succeeds, one.name
        for status in expected:
            assert responses[status]["content"] == {
                "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/ProblemDetails"}
                }
            }
        assert {"401", "403"} <= responses.keys() or one.public, one.name
        assert ("413" in responses) >= ("requestBody" in operation), one.name
        assert ("507" in responses) is (one.method != "GET" and not one.safe), one.name


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("create_entry", {201, 400, 401, 403, 409, 410, 413, 422, 429, 503, 507}),
        ("get_entry", {200, 400, 401, 403, 404, 503}),
        ("update_entry", {200, 400, 401, 403, 404, 409, 413, 422, 428, 429, 503, 507}),
        ("delete_entry", {204, 400, 401, 403, 404, 409, 428, 503, 507}),
        ("write_batch", {200, 400, 401, 403, 404, 409, 410, 413, 422, 428, 429, 503, 507}),
        ("set_namespace_permissions", {200, 400, 401, 403, 409, 413, 422, 428, 503, 507}),
        ("patch_intent_state", {200, 400, 401, 403, 404, 409, 413, 422, 428, 503, 507}),
        ("acquire_lease", {201, 400, 401, 403, 404, 409, 413, 422, 503, 507}),
        ("list_tasks", {200, 400, 401, 403, 404, 503}),
        ("next_task", {200, 204, 400, 401, 403, 413, 422, 503, 507}),
        ("update_task", {200, 400, 401, 403, 404, 409, 413, 422, 428, 503, 507}),
        ("renew_task_lease", {200, 400, 401, 403, 409, 413, 422, 503, 507}),
        ("acquire_claim", {201, 400, 401, 403, 409, 413, 422, 429, 503, 507}),
        ("upload_attachment", {200, 400, 401, 403, 404, 409, 413, 422, 503, 507}),
        ("set_agent_limits", {200, 400, 401, 403, 413, 422, 503, 507}),
        ("put_bridged", {200, 400, 401, 403, 409, 413, 422, 429, 503, 507}),
    ],
)
async def test_the_statuses_that_can_happen_are_listed(
    document: dict[str, Any], name: str, statuses: set[int]
) -> None:
    operation = next(one for _, _, one in _operations(document) if one["operationId"] == name)
    assert {int(status) for status in operation["responses"]} >= statuses


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("create_entry", {"ENTRY_EXISTS", "FENCED"}),
        ("write_batch", {"ENTRY_EXISTS", "VERSION_MISMATCH", "FENCED"}),
        ("update_entry", {"VERSION_MISMATCH", "FENCED"}),
        ("update_task", {"VERSION_MISMATCH", "INVALID_TRANSITION", "FENCED"}),
        ("claim_task", {"LEASE_HELD", "INVALID_TRANSITION"}),
        ("acquire_lease", {"LEASE_HELD"}),
        ("acquire_claim", {"LEASE_HELD"}),
        ("renew_claim", {"FENCED"}),
        ("upload_attachment", {"VERSION_MISMATCH"}),
    ],
)
async def test_the_conflicts_that_can_happen_are_told_apart(
    document: dict[str, Any], name: str, codes: set[str]
) -> None:
    operation = next(one for _, _, one in _operations(document) if one["operationId"] == name)
    told = set(re.findall(r"`([A-Z_]+)`", operation["responses"]["409"]["description"]))
    assert told >= codes


async def test_the_query_has_every_parameter_of_section_4_1(document: dict[str, Any]) -> None:
    parameters = {
        one["name"]: one["schema"]
        for one in document["paths"]["/api/v1/memory"]["get"]["parameters"]
        if one["in"] == "query"
    }
    ours = {"scope.session_id", "kind", "status", "state", "about", "origin", "source", "as_of"}
    ours |= {"schema_version", "user"}
    ours |= {"key_prefix", "created_after", "created_before", "where", "order_by", "direction"}
    ours |= {"cursor", "count_only", "fields"}
    assert parameters.keys() == QUERY_PARAMETERS | ours
    limit = parameters["limit"]
    assert (limit["type"], limit["minimum"], limit["maximum"]) == ("integer", 1, 1_000)
    assert parameters["offset"]["minimum"] == 0
    assert parameters["pinned"]["type"] == "boolean"


async def test_the_schema_of_an_entry_has_the_fields_of_section_1_1(
    document: dict[str, Any],
) -> None:
    entry = document["components"]["schemas"]["EntryResponse"]
    assert entry["properties"].keys() >= {
        "id", "agent_id", "namespace", "key", "value", "memory_type", "scope", "tags", "ttl",
        "version", "created_at", "updated_at", "expires_at", "pinned", "priority", "sensitivity",
        "curated_by", "created_by", "provenance",
    }  # fmt: skip
    assert entry["properties"]["value"]["type"] == "object"
    assert {"type": "object"} in entry["properties"]["value"]["anyOf"]
    draft = document["components"]["schemas"]["NewEntry"]
    # The server makes a key that is left out.
    assert set(draft["required"]) == {"namespace", "value", "memory_type"}
    problem = document["components"]["schemas"]["ProblemDetails"]
    assert set(problem["required"]) == {"type", "title", "status", "detail", "error", "message"}


async def test_every_kind_has_a_schema_and_drafts_only_name_free_kinds(
    document: dict[str, Any], service: RunningService
) -> None:
    client = await service.agent("ada")
    schemas = document["components"]["schemas"]
    named = {
        name: {one["$ref"].rpartition("/")[2] for one in value["anyOf"] if "$ref" in one}
        for name in ("NewEntry", "EntryResponse")
        for value in [schemas[name]["properties"]["value"]]
    }
    kinds = (await client.get("/api/v1/schemas")).json()["schemas"]
    assert named["EntryResponse"] == {f"kind_{one['kind']}" for one in kinds}
    free = {f"kind_{one['kind']}" for one in kinds if not one["governed_by"]}
    assert named["NewEntry"] == free < named["EntryResponse"]
    for kind in (one["kind"] for one in kinds):
        served = (await client.get(f"/api/v1/schemas/{kind}")).json()["schema"]
        described = schemas[f"kind_{kind}"]
        assert described["properties"].keys() == served["properties"].keys()
        for field in ("title", "description", "type"):
            assert described[field] == served[field]
        assert described.get("required") == served.get("required")


async def test_json_rpc_is_described_with_its_methods(document: dict[str, Any]) -> None:
    operation = document["paths"]["/rpc"]["post"]
    asked = operation["requestBody"]["content"]["application/json"]["schema"]
    told = operation["responses"]["200"]["content"]["application/json"]["schema"]
    for schema, name in ((asked, "RpcCall"), (told, "RpcAnswer")):
        one = {"$ref": f"#/components/schemas/{name}"}
        assert schema == {
            "anyOf": [one, {"type": "array", "items": one, "minItems": 1, "maxItems": 100}]
        }
    methods = document["components"]["schemas"]["RpcCall"]["properties"]["method"]["enum"]
    assert methods == [one.name for one in OPERATIONS if one.is_json]
    headers = [one["name"] for one in operation["parameters"]]
    assert headers == ["X-Agent-ID", "X-User", "X-Session-ID"]
    assert set(operation["responses"]) == {"200", "204", "400", "413"}


async def test_headers_are_documented_where_they_are_accepted(document: dict[str, Any]) -> None:
    table = {one.name: one for one in OPERATIONS}
    for _, _, operation in _of_the_table(document):
        one = table[operation["operationId"]]
        headers = {
            header["name"]: header["required"]
            for header in operation["parameters"]
            if header["in"] == "header"
        }
        heeded = {
            "X-Agent-ID": not one.public,
            "X-User": one.reads_subject,
            "X-Session-ID": one.reads_session,
            "If-Match": one.if_match != "none",
            "If-None-Match": one.if_none_match or one.is_conditional,
            "Fencing-Token": one.fenced,
            "X-Said-At": one.stores,
            "Idempotency-Key": one.accepts_idempotency_key,
            "Last-Event-ID": one.media == "events",
        }
        assert set(headers) == {name for name, is_heeded in heeded.items() if is_heeded}, one.name
        assert headers.get("If-Match", False) is (one.if_match == "required"), one.name
        assert not any(required for name, required in headers.items() if name != "If-Match")


def test_only_questions_change_nothing_though_they_are_posted() -> None:
    questions = {one.name for one in OPERATIONS if one.safe}
    assert questions == {
        "search_entries", "recall", "reshape_query", "match_session", "recall_episodes",
        "query_facts", "walk_facts", "check_ontology",
    }  # fmt: skip
    for one in OPERATIONS:
        assert one.changes is (one.method != "GET" and one.name not in questions), one.name
        assert not (one.name in questions and (one.fenced or one.accepts_idempotency_key)), one.name


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("If-Match", {"update_entry", "delete_entry", "update_task", "patch_intent_state"}),
        ("Fencing-Token", {"create_entry", "update_entry", "write_batch", "update_task"}),
        ("X-Said-At", {"create_entry", "update_entry", "write_batch", "add_turns"}),
        ("Idempotency-Key", {"create_entry", "write_batch", "create_intent", "create_task"}),
        (
            "Last-Event-ID",
            {"list_events", "list_changes", "list_intent_events", "subscribe_intent"},
        ),
        ("If-None-Match", {"get_entry", "find_entry", "put_entry"}),
    ],
)
async def test_what_clients_rely_on_heeds_the_header(
    document: dict[str, Any], header: str, names: set[str]
) -> None:
    heeding = {
        operation["operationId"]
        for _, _, operation in _operations(document)
        if header in {one["name"] for one in operation["parameters"]}
    }
    assert names <= heeding


async def test_every_parameter_has_a_description_and_an_example(document: dict[str, Any]) -> None:
    for method, path, operation in _operations(document):
        for one in operation["parameters"]:
            where = f"{method} {path}: {one['name']}"
            assert len(one["description"]) > 5, where
            assert one["description"].endswith("."), where
            assert one["example"] not in (None, ""), where
            kind = one["schema"].get("type")
            fits = {"integer": int, "boolean": bool}.get(kind, str)
            assert isinstance(one["example"], fits), where


async def test_every_field_of_a_body_has_a_description(document: dict[str, Any]) -> None:
    missing, fields = [], 0
    seen: set[int] = set()
    waiting = [
        (operation["operationId"], content["schema"])
        for _, _, operation in _operations(document)
        for content in operation.get("requestBody", {}).get("content", {}).values()
    ]
    while waiting:
        where, schema = waiting.pop()
        if "$ref" in schema:
            where, schema = schema["$ref"], _resolve(document, schema["$ref"])
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        for name, field in schema.get("properties", {}).items():
            fields += 1
            if not field.get("description"):
                missing.append(f"{where} {name}")
            waiting.append((f"{where}.{name}", field))
        inner = [schema.get("items"), *schema.get("anyOf", [])]
        waiting.extend((where, one) for one in inner if isinstance(one, dict))
    assert missing == []
    assert fields > 150


async def test_every_error_response_lists_its_codes(document: dict[str, Any]) -> None:
    table = {one.name: one for one in OPERATIONS}
    for _, _, operation in _of_the_table(document):
        for error in table[operation["operationId"]].errors:
            text = operation["responses"][str(error.status)]["description"]
            assert f"`{error.code}`: {error.title}." in text
