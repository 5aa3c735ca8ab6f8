"""No callback of the event loop uses much processor time, whatever an allowed request contains."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from memorywall.records.principal import Permission, PrincipalKind
from memorywall.wire.openapi import build
from memorywall.wire.operations import OPERATIONS, Operation
from tests.http.checks import until_erased
from tests.support.largest import ANYTHING, Largest
from tests.support.loop_watch import watched
from tests.support.many_records import (
    Add,
    add_large_key,
    add_namespace,
    add_work,
    write_many,
)
from tests.support.service import RunningService, draft, open_service
from tests.support.stage import Stage, make_stage

LONGEST = 0.020
LONGEST_OF_LARGE_BODIES = 0.100
LARGE_BODY = 1024 * 1024
AGENT = "me"
ENDLESS = "subscribe_intent"
EARLY = {"revoke_access", "remove_dependency"}
"""Operations that end what others replace."""
LATER = "2999-12-31T23:59:59Z"
TAGS = [f"{number:03}-{'t' * 120}" for number in range(64)]
WHERE = " or ".join(f'value.n{number}[1] = "{number}"' for number in range(100))
LARGE_TEXT = "lorem ipsum dolor " * 3_300
DROPPED: Any = ...
"""Leaves a field out that excludes another one."""
# What an entry may have.
ENTRY = {
    "agent_id": AGENT,
    "namespace": "written",
    "memory_type": "episodic",
    "scope": DROPPED,
    "tags": TAGS,
    "ttl": DROPPED,
    "expires_at": LATER,
    "kind": DROPPED,
    "derived_from": DROPPED,
    "subjects": DROPPED,
    "context_id": DROPPED,
    "sensitivity": "restricted",
    "origin": "agent",
}
FACTS = {
    "namespace": "written",
    "user": DROPPED,
    "valid_at": DROPPED,
    "as_of": DROPPED,
}
ATTACHMENT = {
    "mime_type": "text/plain",
    "size": DROPPED,
    "storage_url": DROPPED,
    "content_type": DROPPED,
    "size_bytes": DROPPED,
    "url": DROPPED,
    "metadata": {"l": ANYTHING},
}
INTENT = {
    "state": ANYTHING,
    "constraints": DROPPED,
    "created_by": AGENT,
    "parent_intent_id": DROPPED,
    "depends_on": DROPPED,
}


def bodies(stage: Stage) -> dict[str, dict[str, Any]]:
    """The fields of the largest bodies that a schema does not tell."""
    intent, task = stage.ids["intent_id"], stage.ids["task_id"]
    turn = {"role": "user", "content": LARGE_TEXT}
    return {
        "create_entry": {**ENTRY, "key": "created", "value": ANYTHING},
        "remember": {
            "text": LARGE_TEXT,
            "metadata": {},
            "user": DROPPED,
            "subjects": [],
            "tags": TAGS,
            "ttl": None,
            "expires_at": None,
            "origin": None,
            "source": None,
            "scope": None,
            "derived_from": None,
            "kind": None,
            "context_id": None,
        },
        "put_entry": {**ENTRY, "key": "put"},
        "rotate_key": {"overlap": "PT1H", "expires_at": LATER, "user": DROPPED},
        "promote_entry": {"kind": DROPPED, "value": DROPPED, "to": "episodic"},
        "correct_entry": {"text": DROPPED, "value": {"t": LARGE_TEXT}},
        "supersede_entry": {"newer_id": stage.ids["newer_id"]},
        "update_entry": {
            **ENTRY,
            "agent_id": DROPPED,
            "namespace": DROPPED,
            "memory_type": DROPPED,
            "value": ANYTHING,
        },
        "write_batch": {
            "entries": [draft(f"b-{n}", memory_type="episodic", value=ANYTHING) for n in range(14)]
        },
        "search_entries": {
            "agent_id": AGENT,
            "memory_type": DROPPED,
            "namespace": DROPPED,
            "tags": DROPPED,
            "tags_any": DROPPED,
            "scope": DROPPED,
            "mode": DROPPED,
            "kind": DROPPED,
            "status": DROPPED,
            "about": DROPPED,
            "user": DROPPED,
            "origin": DROPPED,
            "source": DROPPED,
            "outcome": DROPPED,
            "min_trust": DROPPED,
            "as_of": DROPPED,
            "valid_at": DROPPED,
            "state": DROPPED,
        },
        "query_facts": {
            **FACTS,
            "patterns": [
                {"subject": f"?v{n}", "relation": "r", "object": f"?v{n + 1}"} for n in range(8)
            ],
            "filters": [{"variable": "?v1", "operator": "<", "value": "x" * 4_000}] * 16,
            "order_by": "?v1",
        },
        "walk_facts": {**FACTS, "start": [f"{n}" * 2_000 for n in range(32)], "hops": 4},
        "check_ontology": {
            "namespace": "written",
            "user": DROPPED,
            "ontology": {
                "version": "1.0.0",
                "entity_types": {
                    f"t{n}": {"parent": f"t{n - 1}"} if n % 16 else {} for n in range(1_000)
                },
            },
        },
        "reshape_query": {"agent_id": AGENT, "namespace": DROPPED},
        "set_namespace_permissions": {
            "permissions": {"default": "read"},
            "indexed_paths": ["value.a"],
        },
        "put_value_schema": {
            "version": "1.0.0",
            "schema": {
                "type": "object",
                "properties": {f"p{n}": {"type": "string"} for n in range(400)},
            },
            "key_pattern": "k.*",
        },
        "create_intent": INTENT,
        "create_child_intent": INTENT,
        "patch_intent_state": {},
        "log_intent_event": {
            "event_type": "comment",
            "actor": AGENT,
            "trace_id": DROPPED,
            "parent_event_id": DROPPED,
        },
        "set_access": {
            "entries": [{"principal_id": f"p{n}", "permission": "read"} for n in range(500)],
            "intent_id": DROPPED,
        },
        "grant_access": {
            "principal_id": "guest-2",
            "principal_type": "agent",
            "expires_at": LATER,
            "id": DROPPED,
            "granted_by": DROPPED,
            "granted_at": DROPPED,
        },
        "add_dependency": {"dependency_id": stage.other_intent},
        "create_task": {
            "intent_id": intent,
            "parent_task_id": DROPPED,
            "memory_policy": DROPPED,
            "assigned_agent": AGENT,
            "depends_on": [task],
            "priority": "normal",
            "plan_id": DROPPED,
            "permissions": DROPPED,
            "timeout_seconds": DROPPED,
            "retry_policy": DROPPED,
            "artifacts": DROPPED,
            "blocks": DROPPED,
            "requires_tools": DROPPED,
        },
        "next_task": {"intent_id": intent},
        "update_task": {
            "status": DROPPED,
            "state": DROPPED,
            "assigned_agent": DROPPED,
            "output": DROPPED,
            "error": DROPPED,
            "blocked_reason": DROPPED,
            # It belongs to the end of a task.
            "episode": DROPPED,
        },
        "recall_episodes": {"weights": DROPPED, "profile": "general", "outcome": "any"},
        "appoint_coordinator": {
            "agent_id": AGENT,
            "intent_id": stage.other_intent,
            "expires_at": LATER,
            "guardrails": DROPPED,
            "role": "coordinator",
            "coordinator_type": DROPPED,
            "scope": DROPPED,
            "supervisor_id": DROPPED,
        },
        "acquire_claim": {"scope": "global", "key": "another"},
        "begin_working_step": {"policy": DROPPED},
        "keep_working_item": {
            "content": LARGE_TEXT,
            "depends_on": DROPPED,
            "ttl_ops": DROPPED,
            "sensitivity": DROPPED,
        },
        "add_attachment": ATTACHMENT,
        "add_entry_attachment": ATTACHMENT,
        "create_session": {
            "user": "ann",
            "participants": DROPPED,
            "ttl": DROPPED,
            "ends_at": LATER,
            "idle_timeout": DROPPED,
            "policy": DROPPED,
            "metadata": {"a": 1},
            "continues": DROPPED,
            "with_state": False,
            "reuse": False,
        },
        "match_session": {"user": DROPPED},
        "update_session": {
            "policy": DROPPED,
            "ttl": DROPPED,
            "ends_at": LATER,
            "idle_timeout": DROPPED,
            "metadata": {"a": 1},
        },
        "add_turns": {"turns": [turn] * 15},
        "create_checkpoint": {"trigger": DROPPED, "working": DROPPED},
        "put_saved_state": {"data": "QUJD" * 250_000, "parent": DROPPED, "metadata": {}},
        "resume_session": {"checkpoint": DROPPED},
        "fork_session": {"sequence": 1},
        "issue_session_token": {"ttl": "PT1H"},
        "create_context": {
            "session_id": stage.ids["session_id"],
            "task_id": DROPPED,
            "shared": DROPPED,
            "model": DROPPED,
            "window": 100_000,
            "reserve": DROPPED,
            "budgets": DROPPED,
            "format": DROPPED,
            "counter": DROPPED,
            "strategy": DROPPED,
            "tools": DROPPED,
            "user": DROPPED,
            "revalidated": DROPPED,
            "system": LARGE_TEXT,
        },
        "add_context_outcome": {"used": DROPPED},
        "narrow_tier": {"default_ttl": DROPPED, "eviction": DROPPED, "capacity": 100},
        "evict_entries": {
            "target": 1,
            "task_id": DROPPED,
            "agent_id": DROPPED,
            "namespace": "small",
            "policy": "oldest",
            "dry_run": True,
        },
        "create_key": {
            "agent_id": "made",
            "kind": "agent",
            "permissions": ["memory.read"],
            "users": [f"s{n}" for n in range(100)],
            "namespaces": ["n"],
            "expires_at": LATER,
        },
    }


QUERIES: dict[str, list[dict[str, Any]]] = {
    "query_entries": [
        {"agent_id": AGENT, "limit": 1_000},
        {"agent_id": AGENT, "limit": 100},
        {"agent_id": AGENT, "limit": 1_000, "order_by": "updated", "fields": "value"},
        {"agent_id": AGENT, "limit": 1_000, "as_of": "2026-02-02T02:40:00Z"},
        {"namespace": "small", "limit": 1_000, "where": WHERE},
        {"namespace": "small", "where": WHERE, "count_only": "true"},
        {"agent_id": AGENT, "namespace": "large", "key": "0-0", "where": 'value.t contains "z"'},
        {"agent_id": AGENT, "namespace": "arrays", "where": "value.l contains 100"},
    ],
    "export_entries": [
        {"agent_id": AGENT},
        {"agent_id": AGENT, "namespace": "arrays", "where": "value.l contains 1"},
    ],
    "delete_matching": [
        {"agent_id": AGENT, "namespace": "arrays", "where": "value.l contains 100"},
        {"namespace": "small", "where": WHERE},
    ],
    "find_entry": [{"namespace": "large", "key": "0-0", "memory_type": "episodic"}],
    "list_value_schemas": [{"namespace": "small"}],
    "check_value_schemas": [{"namespace": "small"}],
    "remove_turns": [{"first": 1}],
}


class Application:
    """Calls an application without the work that a client does in its event loop."""

    def __init__(self, runner: asyncio.Runner, service: RunningService, key: str) -> None:
        self._runner = runner
        self._service = service
        self._app: Any = service.app
        self._key = key

    def request(self, method: str, url: str, **options: Any) -> httpx.Response:
        target = httpx.URL("http://memorywall.test" + url, params=options.get("params"))
        path, _, query = target.raw_path.partition(b"?")
        content = options.get("content", b"")
        if "json" in options:
            content = json.dumps(options["json"]).encode()
        headers = {
            "X-API-Key": self._key,
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            **options.get("headers", {}),
        }
        scope = {
            "type": "http",
            "method": method,
            "path": target.path,
            "raw_path": path,
            "query_string": query,
            "headers": [(name.lower().encode(), text.encode()) for name, text in headers.items()],
        }
        status, pieces = self._runner.run(self._call(scope, [content]))
        return httpx.Response(status, content=b"".join(pieces))

    async def _call(self, scope: dict[str, Any], waiting: list[bytes]) -> tuple[int, list[bytes]]:
        sent: list[Any] = []

        async def receive() -> Any:
            if not waiting:
                await asyncio.get_running_loop().create_future()
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        return sent[0]["status"], [one.get("body", b"") for one in sent]

    def post(self, url: str, **options: Any) -> httpx.Response:
        return self.request("POST", url, **options)

    def put(self, url: str, **options: Any) -> httpx.Response:
        return self.request("PUT", url, **options)

    def write_many(self, count: int, add: Add) -> None:
        """Writes records without requests; see `write_many`."""
        self._runner.run(write_many(self._service.services, AGENT, count, add))


@contextmanager
def application(directory: Path, **settings: Any) -> Iterator[Application]:
    with asyncio.Runner() as runner:
        opened = AsyncExitStack()
        # While an erasure is due, as when a store has been opened, long reads wait for it.
        settings["erasure_deadline"] = 600.0
        # A busy machine may need more than the usual time of PostgreSQL.
        settings["query_timeout"] = 60.0
        service = runner.run(opened.enter_async_context(open_service(directory, **settings)))
        runner.run(until_erased(service))
        # Only a person may confirm an entry.
        kind = PrincipalKind.USER
        key = runner.run(service.key(AGENT, kind=kind, permissions=tuple(Permission)))
        # A collection takes the longer the more tests have run before.
        gc.collect()
        gc.disable()
        try:
            yield Application(runner, service, key)
        finally:
            gc.enable()
            runner.run(opened.aclose())


def fill(app: Application, batches: int = 1) -> None:
    """Stores many entries with the largest values, and the largest number of entries of a page."""
    made_of = [
        [("large", f"{batch}-{number}", {"t": LARGE_TEXT}) for number in range(250)]
        for batch in range(batches)
    ]
    made_of.append([("arrays", str(number), ANYTHING) for number in range(40)])
    for batch in made_of:
        entries = [
            draft(key, namespace=namespace, value=value, memory_type="episodic")
            for namespace, key, value in batch
        ]
        took = longest(app, "POST", "/api/v1/memory/batch", {"entries": entries})
        assert took < LONGEST_OF_LARGE_BODIES
    small = [
        draft(str(number), namespace="small", value={"n": number}, memory_type="semantic")
        for number in range(1_000)
    ]
    assert app.post("/api/v1/memory/batch", json={"entries": small}).is_success


def order(operation: Operation) -> tuple[int, int]:
    """Writes before reads, which then find more, and removals last, the innermost things first."""
    if operation.name in EARLY:
        return -1, 0
    ends = ("delete", "remove", "release", "revoke", "resign", "close", "archive", "forget", "end_")
    if operation.name.startswith(ends) or operation.name in ("next_task", "claim_task"):
        return 2, -operation.path.count("/")
    return (0 if operation.changes else 1), 0


class Requests:
    """Makes the largest requests of operations about the things of a stage."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._document = build("1")
        self._stage = make_stage(app, AGENT)  # type: ignore[arg-type]
        ids = self._stage.ids
        app.write_many(200, add_work(ids["intent_id"], ids["task_id"], ANYTHING))
        self._prefix = app.post("/api/v1/keys", json={"agent_id": "made"}).json()["prefix"]
        self._bodies = bodies(self._stage)
        self._largest = Largest(self._document, 500_000)

    def of(self, operation: Operation) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields the address and the options of each request."""
        path = operation.path.replace(":path", "")
        described = self._document["paths"][path][operation.method.lower()]
        named = {
            **dict.fromkeys(operation.path_parameters, "x"),
            **self._stage.path_of(operation),
            "kind": "turn",
            "job": "expire",
            "user": "ann",
            "prefix": self._prefix,
        }
        url = path.format(**named)
        options: dict[str, Any] = {"headers": self._headers(operation, url, named)}
        if operation.content == "bytes" and operation.body is not None:
            options["content"] = b"x" * (16 * 1024 * 1024)
        elif operation.body is not None:
            schema = described["requestBody"]["content"]["application/json"]["schema"]
            body = self._largest.instance(schema) | self._bodies.get(operation.name, {})
            given = {name: value for name, value in body.items() if value is not DROPPED}
            # Spaces make the server parse the text twice.
            options["content"] = json.dumps(given).encode()
        limit = {
            one["name"]: one["schema"]["maximum"]
            for one in described.get("parameters", [])
            if one["name"] == "limit" and "maximum" in one["schema"]
        }
        for query in QUERIES.get(operation.name, [limit]):
            yield url, {**options, "params": query}

    def _headers(self, operation: Operation, url: str, named: dict[str, str]) -> dict[str, str]:
        headers = {}
        if operation.if_match == "required":
            whole = f"/api/v1/intents/{named['intent_id']}" if "intent_id" in named else url
            whole = whole.removesuffix("/superseded_by").removesuffix("/confirmation")
            headers["If-Match"] = str(self._app.request("GET", whole).json()["version"])
        if self._stage.held_task in url:
            headers["Fencing-Token"] = str(self._stage.token)
        return headers


def longest(app: Application, method: str, url: str, body: Any) -> float:
    """Returns the most processor time of a callback during a request, in seconds."""
    content = b"" if body is None else json.dumps(body).encode()
    with watched() as callbacks:
        reply = app.request(method, url, content=content)
    assert reply.is_success, reply.text
    return callbacks.longest


def test_no_operation_holds_the_event_loop(tmp_path: Path) -> None:
    too_long: dict[str, str] = {}
    refused: dict[str, str] = {}
    with application(tmp_path, episodic_capacity=100_000) as app:
        fill(app)
        requests = Requests(app)
        for operation in sorted(OPERATIONS, key=order):
            if operation.name == ENDLESS:
                continue
            for url, options in requests.of(operation):
                with watched() as callbacks:
                    reply = app.request(operation.method, url, **options)
                size = len(options.get("content", b""))
                allowed = LONGEST_OF_LARGE_BODIES if size > LARGE_BODY else LONGEST
                if callbacks.longest > allowed:
                    shown = f"{callbacks.longest * 1000:.1f} ms, {callbacks.name}"
                    too_long[operation.name] = shown
                if not reply.is_success:
                    refused[operation.name] = reply.text
    assert (too_long, refused) == ({}, {})


def test_the_largest_replies_hold_no_event_loop(tmp_path: Path) -> None:
    """A page of 60 MB, alone and among the calls of one request."""
    with application(tmp_path, episodic_capacity=100_000) as app:
        fill(app, batches=4)
        params = [{"agent_id": AGENT, "limit": 1_000}]
        params += [{"namespace": "small", "limit": 100}] * 99
        calls = [
            {"jsonrpc": "2.0", "method": "query_entries", "params": one, "id": number}
            for number, one in enumerate(params)
        ]
        assert longest(app, "POST", "/rpc", calls) < LONGEST
        where = {"agent_id": AGENT, "namespace": "arrays", "where": "value.l contains 100"}
        calls = [
            {"jsonrpc": "2.0", "method": "query_entries", "params": where, "id": number}
            for number in range(3)
        ]
        assert longest(app, "POST", "/rpc", calls) < LONGEST
        url = f"/api/v1/memory?agent_id={AGENT}&limit=1000&order_by=updated"
        assert longest(app, "GET", url, None) < LONGEST


def test_checks_of_the_largest_values_hold_no_event_loop(tmp_path: Path) -> None:
    ways = [{"required": [f"n{number}"]} for number in range(150)]
    schema = {"type": "object", "properties": {"l": {"items": {"anyOf": ways}}}}
    value = {"l": [{"n149": 149}] * 4_000, "t": "555 1234 567 or a@b.example " * 400}
    with application(tmp_path, personal_data="mask") as app:
        url = "/api/v1/memory/schemas/one/checked"
        longest(app, "PUT", url, {"version": "1.0.0", "schema": schema})
        body = draft("k", namespace="checked", memory_type="semantic", value=value)
        assert longest(app, "POST", "/api/v1/memory", body) < LONGEST


def test_lists_without_a_limit_hold_no_event_loop(tmp_path: Path) -> None:
    with application(tmp_path) as app:
        app.write_many(3_000, add_namespace)
        app.write_many(600, add_large_key)
        for url in ("/api/v1/memory/namespaces", "/api/v1/keys", "/api/v1/memory"):
            assert longest(app, "GET", url, None) < LONGEST, url
