"""A method of the SDK that sends one operation sends what the table names, and decodes the reply.

A row gives every argument of a method. Each must arrive under its own name, or under the one that
the row states, in the path, the query, the body or a header, and nothing else may arrive. Both
colours of client run each row over a transport that records the request.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import httpx
import msgspec
import pytest

from memorywall import AsyncClient, Client
from memorywall.sdk.session import AsyncClientSession, ClientSession, SessionCore
from memorywall.wire.operations import OPERATIONS_BY_NAME, Operation
from memorywall.wire.sessions import SessionResponse

_SESSION = "session"
_HEADERS = {
    "If-Match": "if_match",
    "If-None-Match": "if_none_match",
    "Fencing-Token": "fencing_token",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    """A method that sends one operation.

    given: the arguments, each by its name
    sent: what arrives under another name or in another form than it was given; None for nothing
    """

    method: str
    given: Mapping[str, Any] = field(default_factory=dict)
    sent: Mapping[str, Any] = field(default_factory=dict)


def _row(method: str, sent: Mapping[str, Any] | None = None, **given: Any) -> _Row:
    return _Row(method=method, given=given, sent=sent or {})


def _versioned(method: str, noun: str, sent: Mapping[str, Any] | None = None, **given: Any) -> _Row:
    """A method that takes the id of a record and its version."""
    renamed = {noun: None, f"{noun}_id": "x-1", "version": None, "if_match": 3}
    return _Row(
        method=method, given={noun: "x-1", "version": 3, **given}, sent={**renamed, **(sent or {})}
    )


def _of_session(method: str, sent: Mapping[str, Any] | None = None, **given: Any) -> _Row:
    """A method of the object of a session."""
    return _row(f"{_SESSION}.{method}", {"session_id": "x-1", **(sent or {})}, **given)


ROWS = {
    "get_entry": _row("memory.get_by_id", entry_id="e-1", version=2, schema_version=1),
    "delete_entry": _row(
        "memory.delete_by_id", {"version": None, "if_match": 2}, entry_id="e-1", version=2,
        fencing_token=5,
    ),
    "supersede_entry": _row(
        "memory.supersede", {"version": None, "if_match": 2},
        entry_id="e-1", newer_id="e-2", version=2, fencing_token=5,
    ),
    "reinstate_entry": _row(
        "memory.reinstate", {"version": None, "if_match": 2}, entry_id="e-1", version=2,
        fencing_token=5,
    ),
    "promote_entry": _row(
        "promotions.promote", entry_id="e-1", to="semantic", namespace="n", key="k",
        value={"a": 1}, kind="fact", dry_run=True,
    ),
    "list_promotions": _row(
        "promotions.list", decision="merged", candidate="e-1", result="e-2", limit=3
    ),
    "get_promotion": _row("promotions.get", promotion_id="p-1"),
    "revert_promotion": _row("promotions.revert", promotion_id="p-1"),
    "correct_entry": _row(
        "memory.correct", {"version": None, "if_match": 2, "right": None, "value": {"n": 1}},
        entry_id="e-1", right={"n": 1}, reason="r", version=2, fencing_token=5,
    ),
    "retract_entry": _row(
        "memory.retract", {"version": None, "if_match": 2},
        entry_id="e-1", reason="r", version=2, fencing_token=5,
    ),
    "undo_correction": _row(
        "memory.undo", {"version": None, "if_match": 2}, entry_id="e-1", version=2,
        fencing_token=5,
    ),
    "confirm_entry": _row(
        "memory.confirm", {"version": None, "if_match": 2}, entry_id="e-1", version=2,
        fencing_token=5,
    ),
    "get_entry_history": _row("memory.history", entry_id="e-1", limit=2, before_version=3),
    "list_namespaces": _row("memory.namespaces"),
    "get_namespace": _row("memory.namespace", {"name": None, "namespace": "a/b"}, name="a/b"),
    "reshape_query": _row(
        "memory.reshape_query", query="q", agent_id="a-1", namespace="n", limit=2
    ),
    "recall_episodes": _row(
        "recall_episodes", query="q", profile="execution", outcome="success",
        weights={"similarity": 1.0, "recency": 0.0, "outcome": 0.0, "use": 0.0},
        min_similarity=0.5, budget_tokens=90, limit=2, agent_id="a-1", namespace="n", about="ann",
        user="ann",
    ),
    "get_profile": _row("profile", subject="ann", tokens=250, user="ann"),
    "set_agent_limits": _row(
        "memory.set_limits", agent_id="a-1", episodic_capacity=9, pinned_namespaces=["n"]
    ),
    "summarize_agent": _row("memory.summary", agent_id="a-1"),
    "list_value_schemas": _row("value_schemas.list", namespace="n"),
    "check_value_schemas": _row("value_schemas.check", namespace="n", before="e-1", limit=3),
    "get_value_schema": _row("value_schemas.get", namespace="n", name="s", version=2),
    "put_value_schema": _row(
        "value_schemas.put", namespace="n", name="s", schema={"type": "object"}, version="1.0.0",
        key_pattern="k*",
    ),
    "delete_value_schema": _row("value_schemas.delete", namespace="n", name="s"),
    "create_intent": _row(
        "intents.create", parent_intent_id="i-1", title="t", description="d",
        constraints={"a": 1}, state={"b": 2}, depends_on=["i-2"],
    ),
    "list_intents": _row("intents.list", status="active", limit=2, offset=1),
    "get_intent": _row("intents.get", intent_id="i-1"),
    "patch_intent_state": _versioned(
        "intents.set_state", "intent",
        {"changes": None, "remove": None, "patches": [
            {"op": "set", "path": "a", "value": 1}, {"op": "remove", "path": "b"}
        ]},
        changes={"a": 1}, remove=["b"],
    ),
    "set_intent_status": _versioned("intents.set_status", "intent", status="blocked", reason="r"),
    "log_intent_event": _row(
        "intents.log", intent_id="i-1", event_type="x", payload={"a": 1}, trace_id="t",
        parent_event_id="p",
    ),
    "acquire_lease": _row(
        "intents.lease", {"duration": None, "duration_seconds": 9}, intent_id="i-1", scope="s",
        duration=9,
    ),
    "list_leases": _row("intents.leases", intent_id="i-1"),
    "renew_lease": _row(
        "intents.renew_lease", {"duration": None, "duration_seconds": 9}, intent_id="i-1",
        lease_id="l-1", duration=9,
    ),
    "release_lease": _row("intents.release_lease", intent_id="i-1", lease_id="l-1"),
    "get_access": _row("intents.acl", intent_id="i-1"),
    "set_access": _row(
        "intents.set_acl", intent_id="i-1", default_policy="open", entries=[{"principal_id": "b"}]
    ),
    "grant_access": _row(
        "intents.grant", intent_id="i-1", principal_id="b", permission="write",
        principal_type="agent", reason="r", expires_at="2030-01-01T00:00:00Z",
    ),
    "revoke_access": _row("intents.revoke", intent_id="i-1", grant_id="g-1"),
    **{
        f"list_{name}": _row(f"intents.{name}", intent_id="i-1")
        for name in ("children", "descendants", "ancestors", "dependencies", "dependents")
    },
    "list_ready_children": _row("intents.ready", intent_id="i-1"),
    "list_blocked_children": _row("intents.blocked", intent_id="i-1"),
    "get_intent_graph": _row("intents.graph", intent_id="i-1"),
    "add_dependency": _versioned("intents.add_dependency", "intent", dependency_id="i-2"),
    "remove_dependency": _versioned("intents.remove_dependency", "intent", dependency_id="i-2"),
    "list_intent_tasks": _row("tasks.list", intent_id="i-1", status="ready", limit=2, offset=1),
    "list_tasks": _row(
        "tasks.list", intent_id="i-1", assigned_agent="a-1", status="ready", limit=2, offset=1
    ),
    "create_task": _row(
        "tasks.create", {"others": None, "plan_id": "p"}, intent_id="i-1", name="n",
        description="d", assigned_agent="a-1", capabilities_required=["c"], depends_on=["t-2"],
        input={"a": 1}, parent_task_id="t-3", memory_policy={"archive_on_completion": True},
        priority="high", max_attempts=2, metadata={"m": 1}, others={"plan_id": "p"},
    ),
    "next_task": _row("tasks.next", capabilities=["c"], intent_id="i-1", lease_seconds=9),
    "get_task": _row("tasks.get", task_id="t-1"),
    "update_task": _versioned(
        "tasks.update", "task", fencing_token=5, status="blocked", assigned_agent="a-1",
        output={"a": 1}, error="e", blocked_reason="r", metadata={"m": 1}, episode={"trigger": "t"},
    ),
    "claim_task": _row("tasks.claim", task_id="t-1", lease_seconds=9),
    "renew_task_lease": _row("tasks.renew", task_id="t-1", fencing_token=5, duration_seconds=9),
    "release_task": _row("tasks.release", task_id="t-1", fencing_token=5),
    "list_coordinators": _row("coordinators.list", intent_id="i-1"),
    "appoint_coordinator": _row(
        "coordinators.create", intent_id="i-1", agent_id="a-1", guardrails={"x": 1},
        heartbeat_interval_seconds=9, expires_at="2030-01-01T00:00:00Z", role="r",
        coordinator_type="t", supervisor_id="s", metadata={"m": 1},
    ),
    "get_coordinator": _row("coordinators.get", coordinator_id="c-1"),
    "send_heartbeat": _row("coordinators.heartbeat", coordinator_id="c-1"),
    "resign_coordinator": _row("coordinators.resign", coordinator_id="c-1"),
    "acquire_claim": _row(
        "claims.acquire", {"ttl": None, "ttl_seconds": 9}, key="k", ttl=9, scope="agent",
        purpose="p",
    ),
    "list_claims": _row("claims.list", scope="global", agent_id="a-1"),
    "get_claim": _row("claims.get", claim_id="c-1"),
    "renew_claim": _row(
        "claims.renew", {"claim": None, "claim_id": "c-1", "ttl": None, "ttl_seconds": 9},
        claim="c-1", ttl=9,
    ),
    "release_claim": _row("claims.release", {"claim": None, "claim_id": "c-1"}, claim="c-1"),
    "list_working_items": _row("working.show", task_id="t-1", agent_id="a-1"),
    "begin_working_step": _row(
        "working.begin", task_id="t-1", goal="g", policy={"budget": 900}, fencing_token=5
    ),
    "end_working_step": _row("working.end", task_id="t-1", fencing_token=5),
    "tick_working_step": _row("working.tick", task_id="t-1", fencing_token=5),
    "explain_working_memory": _row("working.explain", task_id="t-1", after=3, limit=2),
    "get_working_item": _row("working.read", task_id="t-1", name="n", agent_id="a-1"),
    "keep_working_item": _row(
        "working.keep", task_id="t-1", name="n", content={"a": 1}, depends_on=["m"],
        carry_forward=True, ttl_ops=2, sensitivity="public", fencing_token=5,
    ),
    "mark_working_item": _row(
        "working.mark", task_id="t-1", name="n", carry_forward=False, fencing_token=5
    ),
    "delete_session": _row("sessions.delete", session_id="s-1"),
    "match_session": _row("sessions.match", text="t", user="ada"),
    "get_session": _of_session("refresh"),
    "set_session_participant": _of_session(
        "set_participant", {"agent": None, "agent_id": "b"}, agent="b", access="read"
    ),
    "remove_session_participant": _of_session(
        "remove_participant", {"agent": None, "agent_id": "b"}, agent="b"
    ),
    "remove_turns": _of_session("remove_turns", first=3, last=4),
    "create_checkpoint": _of_session(
        "checkpoint", trigger="shutdown", working=[{"name": "plan"}], state={"a": 1}
    ),
    "list_checkpoints": _of_session("checkpoints"),
    "put_saved_state": _of_session(
        "put_saved_state", {"data": "/w==", "if_absent": None, "if_none_match": "*"}, name="n",
        data=b"\xff", parent="m", metadata={"a": 1}, if_absent=True,
    ),
    "get_saved_state": _of_session("get_saved_state", name="n"),
    "list_saved_states": _of_session(
        "list_saved_states",
        {"after": None, "after_name": "m", "before": None, "before_name": "p", "with_data": "true"},
        after="m", before="p", limit=2, with_data=True,
    ),
    "delete_saved_state": _of_session("delete_saved_state", name="n"),
    "close_session": _of_session("close", reason="done"),
    "archive_session": _of_session("archive"),
    "issue_session_token": _of_session("token", ttl="PT1H"),
    "get_context": _row("context.get", context_id="c-1", format="text"),
    "add_context_outcome": _row(
        "context.outcome", context_id="c-1", outcome="corrected", used=["e-1"], correction="c"
    ),
    "list_schemas": _row("schemas"),
    "get_schema": _row("schema", kind="core"),
    "list_tiers": _row("tiers"),
    "narrow_tier": _row(
        "narrow_tier", memory_type="episodic", capacity=9, default_ttl="duration:P1D",
        eviction="lru", admission="promoted",
    ),
    "evict_entries": _row(
        "evict", memory_type="episodic", target=9, agent_id="a-1", task_id="t-1", namespace="n",
        policy="lru", dry_run=True,
    ),
    "forget_subject": _row("forget", {"user": None, "subject": "ada"}, user="ada", wait=2),
    "forget_agent": _row("forget_agent", agent_id="a-1", wait=2),
    "get_quota": _row("quota"),
    "set_quota": _row("set_quota", entries=9, bytes=99),
    "get_worthiness": _row("worthiness"),
    "set_worthiness": _row("set_worthiness", mode="refuse"),
    "query_facts": _row(
        "facts.query",
        {
            "patterns": [{"subject": "?a", "relation": "r", "object": 1}],
            "filters": [{"variable": "?a", "operator": "<", "value": "?b"}],
        },
        patterns=[("?a", "r", 1)], filters=[("?a", "<", "?b")], namespace="f", order_by="?a",
        descending=True, limit=9, valid_at="2026-01-01", as_of="2026-01-02T00:00:00Z",
    ),
    "walk_facts": _row(
        "facts.walk", start=["Ann"], namespace="f", hops=3, relations=["knows"], direction="out",
        limit=9, valid_at="2026-01-01", as_of="2026-01-02T00:00:00Z",
    ),
    "check_ontology": _row("facts.check", ontology={"version": "1.0.0"}, namespace="f"),
    "list_groups": _row("groups.list"),
    "create_group": _row("groups.create", {"name": None, "group": "g"}, name="g", kind="class"),
    "get_group": _row("groups.get", {"name": None, "group": "g"}, name="g"),
    "delete_group": _row("groups.delete", {"name": None, "group": "g"}, name="g"),
    "add_group_member": _row(
        "groups.add", {"name": None, "group": "g"}, name="g", principal_id="b"
    ),
    "remove_group_member": _row(
        "groups.remove", {"name": None, "group": "g"}, name="g", principal_id="b"
    ),
    "whoami": _row("whoami"),
    "list_events": _row("events.list", after=3, limit=2, agent_id="a-1", entry_id="e-1"),
    "list_intent_events": _row(
        "intents.events", intent_id="i-1", after=3, limit=2, event_type="x",
        since="2030-01-01T00:00:00Z",
    ),
    "get_capabilities": _row("capabilities"),
    "discover": _row("discover"),
    "health": _row("health"),
    "ready": _row("ready"),
    "get_status": _row("status"),
    "list_jobs": _row("jobs.list"),
    "run_job": _row("jobs.run", {"name": None, "job": "j"}, name="j"),
    "pause_job": _row("jobs.pause", {"name": None, "job": "j"}, name="j"),
    "resume_job": _row("jobs.resume", {"name": None, "job": "j"}, name="j"),
    "list_keys": _row("keys.list"),
    "create_key": _row(
        "keys.create", agent_id="a-1", kind="agent", permissions=["memory.read"], users=["ada"],
        namespaces=["n"], read_only=True, expires_at="2030-01-01T00:00:00Z",
    ),
    "rotate_key": _row(
        "keys.rotate", prefix="p", overlap="PT1H", expires_at="2030-01-01T00:00:00Z", user="ada"
    ),
    "revoke_key": _row("keys.revoke", prefix="p"),
    **{
        f"{verb}_{prefix}attachment{'s' * (verb == 'list')}": _row(
            f"{group}.{verb}", {"parent_id": None, f"{parent}_id": "x-1"}, parent_id="x-1", **given
        )
        for parent, prefix, group in (
            ("intent", "", "attachments"),
            ("entry", "entry_", "memory.attachments"),
        )
        for verb, given in {
            "list": {},
            "get": {"attachment_id": "f-1"},
            "delete": {"attachment_id": "f-1", "fencing_token": 5},
            "add": {
                "filename": "f", "storage_url": "https://x/f", "mime_type": "text/plain",
                "size": 3, "metadata": {"m": 1}, "fencing_token": 5,
            },
        }.items()
    },
}  # fmt: skip


ELSEWHERE = {
    "tests/test_sdk_put.py": ["create_entry", "put_entry", "update_entry", "remember"],
    "tests/test_sdk_queries.py": ["query_entries", "delete_matching", "export_entries"],
    "tests/adapters/test_langgraph_store.py": ["list_entry_namespaces"],
    "tests/test_sdk_by_name.py": ["find_entry"],
    "tests/test_sdk.py": ["write_batch", "set_namespace_permissions", "metrics"],
    "tests/test_sdk_watch.py": ["list_changes"],
    "tests/test_sdk_search.py": ["search_entries"],
    "tests/test_sdk_streams.py": ["subscribe_intent"],
    "tests/test_sdk_attachments.py": [
        "upload_attachment", "download_attachment",
        "upload_entry_attachment", "download_entry_attachment",
    ],
    "tests/test_sdk_sessions.py": [
        "create_session", "list_sessions", "update_session", "add_turns", "list_turns",
        "resume_session", "fork_session", "export_session",
    ],
    "tests/test_sdk_contexts.py": ["create_context"],
    # They are the forms of other clients.
    "client.call": [
        "create_child_intent", "list_agent_memory", "put_bridged", "get_bridged",
        "recall",
    ],
}  # fmt: skip
"""Operations whose methods do more than send them, with their tests."""
_UNSAID = {
    "get_entry": {"as_of"},  # It excludes `version`.
    "list_intent_tasks": {"assigned_agent"},  # It selects the other operation.
    "acquire_claim": {"wait"},  # It decides how often the request is sent.
}
"""Arguments that a row leaves out, with the reason."""


_PLAIN = {
    msgspec.inspect.FloatType: 0.5,
    msgspec.inspect.BoolType: True,
    msgspec.inspect.BytesType: "/w==",
}


def _example(kind: Any, name: str = "") -> Any:
    """A value of a type of a reply, with all fields, as JSON has it."""
    return _value(msgspec.inspect.type_info(kind), name)


def _value(kind: Any, name: str) -> Any:
    """The same, of a type as msgspec describes it."""
    kind = kind.type if isinstance(kind, msgspec.inspect.Metadata) else kind
    match kind:
        case msgspec.inspect.StructType():
            return {one.encode_name: _value(one.type, one.name) for one in kind.fields}
        case msgspec.inspect.UnionType():
            return _value(next(one for one in kind.types if not _is_absent(one)), name)
        case msgspec.inspect.ListType() | msgspec.inspect.VarTupleType():
            return [_value(kind.item_type, name)]
        case msgspec.inspect.TupleType():
            return [_value(one, name) for one in kind.item_types]
        case msgspec.inspect.DictType():
            return {_value(kind.key_type, "key"): _value(kind.value_type, name)}
        case msgspec.inspect.EnumType():
            return next(iter(kind.cls)).value
        case msgspec.inspect.LiteralType():
            return kind.values[0]
        case msgspec.inspect.IntType():
            return kind.ge or 7
        case msgspec.inspect.StrType():
            return f"<{name}>"
    return _PLAIN.get(type(kind), {"n": 1})


def _is_absent(kind: Any) -> bool:
    return isinstance(kind, msgspec.inspect.NoneType) or "Unset" in str(getattr(kind, "cls", ""))


class _Recorder:
    """Answers each request with the reply of an operation, and keeps the request."""

    def __init__(self, operation: Operation) -> None:
        self.requests: list[httpx.Request] = []
        self.reply = None if operation.reply is None else _example(operation.reply)
        self._status = operation.status

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.reply is None:
            return httpx.Response(self._status)
        return httpx.Response(self._status, content=msgspec.json.encode(self.reply))


def _arrived(request: httpx.Request, operation: Operation) -> dict[str, Any]:
    """What a request says, by name, in the form in which the server reads it."""
    pattern = re.sub(r"\\?\{(\w+)(?::path)?\\?\}", r"(?P<\1>[^/]+)", operation.path)
    raw, _, _ = request.url.raw_path.decode().partition("?")
    found = re.fullmatch(pattern, raw)
    assert found is not None, raw
    arrived: dict[str, Any] = {name: unquote(text) for name, text in found.groupdict().items()}
    query = dict(request.url.params)
    if query:
        assert operation.query is not None
        arrived |= query
        msgspec.convert(query, operation.query, strict=False)
        assert query.keys() <= {one.encode_name for one in msgspec.structs.fields(operation.query)}
    if request.content:
        assert operation.body is not None
        msgspec.json.decode(request.content, type=operation.body)
        arrived |= msgspec.json.decode(request.content)
    for header, name in _HEADERS.items():
        if header in request.headers:
            sent = request.headers[header]
            arrived[name] = int(sent) if sent.isdigit() else sent
    return arrived


def _check(row: _Row, operation: Operation, recorder: _Recorder, result: Any) -> None:
    (request,) = recorder.requests
    assert request.method == operation.method
    expected = {name: one for name, one in {**row.given, **row.sent}.items() if one is not None}
    arrived = _arrived(request, operation)
    in_text = set(request.url.params)
    assert {name: str(one) if name in in_text else one for name, one in expected.items()} == arrived
    keyed = "Idempotency-Key" in request.headers
    assert keyed <= operation.accepts_idempotency_key
    if recorder.reply is None:
        assert result is None
        return
    shown = msgspec.json.decode(msgspec.json.encode(result, enc_hook=vars))
    parts = recorder.reply.values() if isinstance(recorder.reply, dict) else ()
    assert shown == recorder.reply or shown in parts or _is_part(shown, recorder.reply)


def _is_part(shown: Any, reply: Any) -> bool:
    """Whether all that a type of the SDK shows of a reply is in the reply."""
    if isinstance(shown, dict) and isinstance(reply, dict):
        return all(name in reply and _is_part(one, reply[name]) for name, one in shown.items())
    if isinstance(shown, list) and isinstance(reply, list):
        pairs = zip(shown, reply, strict=True)
        return all(_is_part(one, other) for one, other in pairs)
    return bool(shown == reply)


def _method(client: Client | AsyncClient, row: _Row) -> Any:
    names = row.method.split(".")
    found: Any = client
    if names[0] == _SESSION:
        colour = ClientSession if isinstance(client, Client) else AsyncClientSession
        info = msgspec.convert({**_example(SessionResponse), "id": "x-1"}, SessionResponse)
        found, names = colour(SessionCore(info), client.driver), names[1:]  # type: ignore[arg-type]
    for name in names:
        found = getattr(found, name)
    return found


def test_every_operation_has_a_row_or_tests_of_its_own() -> None:
    elsewhere = [name for names in ELSEWHERE.values() for name in names]
    assert sorted([*ROWS, *elsewhere]) == sorted(OPERATIONS_BY_NAME)


@pytest.mark.parametrize("name", ROWS)
def test_a_method_sends_what_the_table_names(name: str) -> None:
    operation, row = OPERATIONS_BY_NAME[name], ROWS[name]
    recorder = _Recorder(operation)
    transport = httpx.MockTransport(recorder)
    with Client("http://server", "key", agent="a-0", transport=transport) as client:
        method = _method(client, row)
        parameters = inspect.signature(method).parameters
        _check(row, operation, recorder, method(**row.given))
    unsaid = set(parameters) - set(row.given)
    assert unsaid <= _UNSAID.get(name, set()), "a row gives every argument"


@pytest.mark.anyio
@pytest.mark.parametrize("name", ROWS)
async def test_an_asynchronous_method_sends_the_same(name: str) -> None:
    operation, row = OPERATIONS_BY_NAME[name], ROWS[name]
    recorder = _Recorder(operation)
    transport = httpx.MockTransport(recorder)
    async with AsyncClient("http://server", "key", agent="a-0", transport=transport) as client:
        _check(row, operation, recorder, await _method(client, row)(**row.given))
