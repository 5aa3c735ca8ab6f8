"""The package's public names: few, sorted, documented, and loaded only when asked for."""

from __future__ import annotations

import inspect
import subprocess
import sys
from operator import attrgetter

import pytest

import memorywall
from memorywall.sdk import (
    attachments,
    claims,
    contexts,
    coordinators,
    events,
    facts,
    groups,
    intents,
    jobs,
    keys,
    memory,
    session,
    sessions,
    shared,
    tasks,
    value_schemas,
    worker_memory,
    working_memory,
)
from memorywall.sdk import client as colours
from memorywall.sdk.session import ClientSession
from memorywall.wire.operations import OPERATIONS
from tests.support.extent import extent

GROUPS = [
    (getattr(module, name), getattr(module, "Async" + name))
    for module, name in (
        (attachments, "AttachmentsClient"),
        (claims, "ClaimsClient"),
        (contexts, "ContextsClient"),
        (coordinators, "CoordinatorsClient"),
        (events, "EventsClient"),
        (facts, "FactsClient"),
        (groups, "GroupsClient"),
        (intents, "IntentsClient"),
        (jobs, "JobsClient"),
        (keys, "KeysClient"),
        (memory, "MemoryClient"),
        (session, "ClientSession"),
        (sessions, "SessionsClient"),
        (shared, "SharedClient"),
        (tasks, "TasksClient"),
        (value_schemas, "ValueSchemasClient"),
        (worker_memory, "TaskMemoryClient"),
        (working_memory, "WorkingMemoryClient"),
    )
]
PAIRS = [(colours.Client, colours.AsyncClient), *GROUPS]


def methods(kind: type) -> dict[str, object]:
    return {
        name: getattr(kind, name)
        for name in dir(kind)
        if callable(getattr(kind, name)) and not name.startswith("_")
    }


def run(program: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ended.stdout.strip()


def test_names_are_sorted_and_importable() -> None:
    assert memorywall.__all__ == sorted(memorywall.__all__)
    assert set(memorywall.__all__) == set(memorywall._HOMES)
    assert set(memorywall.__all__) < set(dir(memorywall))
    for name in memorywall.__all__:
        assert inspect.getdoc(getattr(memorywall, name)), name
    assert memorywall.__version__ == "0.1.0"
    with pytest.raises(AttributeError, match="nothing"):
        memorywall.nothing  # noqa: B018


def test_names_can_be_imported_from_a_fresh_interpreter() -> None:
    for name in extent(memorywall.__all__[::5], long=memorywall.__all__):
        assert run(f"from memorywall import {name}; print({name} is not None)") == "True"
    assert run("from memorywall import *; print(Client.__name__)") == "Client"


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import memorywall", ("httpx", "starlette", "apsw", "msgspec")),
        ("import memorywall.server.app, memorywall.server.serve", ("httpx",)),
        ("import memorywall.cli.serve_command", ("httpx",)),
        (
            "import memorywall.cli.groups_command, memorywall.cli.sessions_command,"
            " memorywall.cli.entry_commands, memorywall.cli.search_commands",
            ("httpx", "asyncio", "apsw", "tabulate"),
        ),
        ("import memorywall.exceptions", ("httpx", "starlette", "apsw")),
        ("from memorywall import Client, AsyncClient", ("starlette", "apsw", "uvicorn")),
        (
            "import memorywall.adapters.langgraph",
            (
                "httpx",
                "memorywall.sdk.client",
                "memorywall.wire.operations",
                "memorywall.kinds.registry",
            ),
        ),
    ],
)
def test_a_name_loads_no_more_than_it_needs(program: str, absent: tuple[str, ...]) -> None:
    loaded = run(f"import sys\n{program}\nprint(*sorted(set(sys.modules) & {set(absent)!r}))")
    assert loaded == ""


def test_sync_and_async_have_the_same_methods() -> None:
    for blocking, awaited in PAIRS:
        names = {name.removeprefix("a") if name == "aclose" else name for name in methods(awaited)}
        assert names == set(methods(blocking))
        for name, method in methods(blocking).items():
            twin = methods(awaited).get(name) or methods(awaited)["aclose"]
            assert inspect.getdoc(method), name
            assert inspect.getdoc(twin), name
            if name not in ("close", "over"):
                assert inspect.getdoc(method) == inspect.getdoc(twin), name
                parameters = inspect.signature(method).parameters  # type: ignore[arg-type]
                assert parameters == inspect.signature(twin).parameters  # type: ignore[arg-type]


def test_help_shows_the_return_type_of_a_method() -> None:
    returns = {
        name: inspect.signature(method).return_annotation  # type: ignore[arg-type]
        for kind in (
            shared.SharedClient,
            tasks.TasksClient,
            events.EventsClient,
            memory.MemoryClient,
        )
        for name, method in methods(kind).items()
    }
    assert returns["set"] == "MemoryEntry"
    assert returns["get"] == "MemoryEntry | None"
    assert returns["claim"] == "ClaimedTaskResponse"
    assert returns["namespaces"] == "list[NamespaceBrief]"
    assert returns["export"] == "Generator[MemoryEntry, None, None]"
    assert not [
        name
        for name, text in returns.items()
        if text.startswith(("RequestGenerator", "StreamGenerator"))
    ]


def test_every_operation_has_a_method() -> None:
    called = {
        # The published OpenIntent client's list; `query` gives the same, with a total.
        "list_agent_memory": "memory.query",
        # The protocol's MCP bridge's words for working memory.
        "put_bridged": "memory.set",
        "get_bridged": "memory.get",
        "create_entry": "memory.set",
        "put_entry": "memory.put",
        "update_entry": "memory.set",
        "query_entries": "memory.query",
        "list_changes": "memory.changes",
        "list_entry_namespaces": "memory.entry_namespaces",
        "get_entry_history": "memory.history",
        "write_batch": "memory.batch",
        "delete_matching": "memory.delete_matching",
        "find_entry": "memory.get",
        "export_entries": "memory.export",
        "search_entries": "memory.search",
        "reshape_query": "memory.reshape_query",
        "recall_episodes": "recall_episodes",
        "get_profile": "profile",
        "list_namespaces": "memory.namespaces",
        "get_namespace": "memory.namespace",
        "set_namespace_permissions": "memory.set_permissions",
        "get_entry": "memory.get_by_id",
        "delete_entry": "memory.delete_by_id",
        "supersede_entry": "memory.supersede",
        "reinstate_entry": "memory.reinstate",
        "promote_entry": "promotions.promote",
        "list_promotions": "promotions.list",
        "get_promotion": "promotions.get",
        "revert_promotion": "promotions.revert",
        "correct_entry": "memory.correct",
        "retract_entry": "memory.retract",
        "undo_correction": "memory.undo",
        "confirm_entry": "memory.confirm",
        "summarize_agent": "memory.summary",
        "set_agent_limits": "memory.set_limits",
        "list_schemas": "schemas",
        "get_schema": "schema",
        "list_value_schemas": "value_schemas.list",
        "get_value_schema": "value_schemas.get",
        "put_value_schema": "value_schemas.put",
        "delete_value_schema": "value_schemas.delete",
        "check_value_schemas": "value_schemas.check",
        "list_tiers": "tiers",
        "narrow_tier": "narrow_tier",
        "get_quota": "quota",
        "set_quota": "set_quota",
        "get_worthiness": "worthiness",
        "set_worthiness": "set_worthiness",
        "evict_entries": "evict",
        "forget_subject": "forget",
        "forget_agent": "forget_agent",
        "list_events": "events.list",
        "create_intent": "intents.create",
        "list_intents": "intents.list",
        "get_intent": "intents.get",
        "patch_intent_state": "intents.set_state",
        "set_intent_status": "intents.set_status",
        "log_intent_event": "intents.log",
        "list_intent_events": "intents.events",
        "subscribe_intent": "intents.follow",
        "acquire_lease": "intents.lease",
        "list_leases": "intents.leases",
        "renew_lease": "intents.renew_lease",
        "release_lease": "intents.release_lease",
        "get_access": "intents.acl",
        "set_access": "intents.set_acl",
        "grant_access": "intents.grant",
        "revoke_access": "intents.revoke",
        "create_child_intent": "intents.create",
        "list_children": "intents.children",
        "list_descendants": "intents.descendants",
        "list_ancestors": "intents.ancestors",
        "list_dependencies": "intents.dependencies",
        "add_dependency": "intents.add_dependency",
        "remove_dependency": "intents.remove_dependency",
        "list_dependents": "intents.dependents",
        "list_ready_children": "intents.ready",
        "list_blocked_children": "intents.blocked",
        "get_intent_graph": "intents.graph",
        "list_intent_tasks": "tasks.list",
        "create_task": "tasks.create",
        "list_tasks": "tasks.list",
        "next_task": "tasks.next",
        "get_task": "tasks.get",
        "update_task": "tasks.update",
        "claim_task": "tasks.claim",
        "renew_task_lease": "tasks.renew",
        "release_task": "tasks.release",
        "list_working_items": "working.show",
        "begin_working_step": "working.begin",
        "end_working_step": "working.end",
        "tick_working_step": "working.tick",
        "explain_working_memory": "working.explain",
        "get_working_item": "working.read",
        "keep_working_item": "working.keep",
        "mark_working_item": "working.mark",
        "list_coordinators": "coordinators.list",
        "appoint_coordinator": "coordinators.create",
        "get_coordinator": "coordinators.get",
        "send_heartbeat": "coordinators.heartbeat",
        "resign_coordinator": "coordinators.resign",
        "acquire_claim": "claims.acquire",
        "create_session": "sessions.create",
        "list_sessions": "sessions.list",
        "get_session": "sessions.get",
        "match_session": "sessions.match",
        "resume_session": "sessions.resume",
        "delete_session": "sessions.delete",
        "create_context": "context.__call__",
        "get_context": "context.get",
        "add_context_outcome": "context.outcome",
        "list_jobs": "jobs.list",
        "run_job": "jobs.run",
        "pause_job": "jobs.pause",
        "resume_job": "jobs.resume",
        "query_facts": "facts.query",
        "walk_facts": "facts.walk",
        "check_ontology": "facts.check",
        "list_groups": "groups.list",
        "create_group": "groups.create",
        "get_group": "groups.get",
        "delete_group": "groups.delete",
        "add_group_member": "groups.add",
        "remove_group_member": "groups.remove",
        "list_keys": "keys.list",
        "create_key": "keys.create",
        "rotate_key": "keys.rotate",
        "revoke_key": "keys.revoke",
        "list_claims": "claims.list",
        "get_claim": "claims.get",
        "renew_claim": "claims.renew",
        "release_claim": "claims.release",
        "add_attachment": "attachments.add",
        "list_attachments": "attachments.list",
        "get_attachment": "attachments.get",
        "upload_attachment": "attachments.upload",
        "download_attachment": "attachments.download",
        "delete_attachment": "attachments.delete",
        "add_entry_attachment": "memory.attachments.add",
        "list_entry_attachments": "memory.attachments.list",
        "get_entry_attachment": "memory.attachments.get",
        "upload_entry_attachment": "memory.attachments.upload",
        "download_entry_attachment": "memory.attachments.download",
        "delete_entry_attachment": "memory.attachments.delete",
        "get_capabilities": "capabilities",
        "discover": "discover",
        "health": "health",
        "ready": "ready",
        "get_status": "status",
        "metrics": "metrics",
        "whoami": "whoami",
        "remember": "remember",
        "recall": "recall",
    }
    of_session = {
        "update_session": "update",
        "set_session_participant": "set_participant",
        "remove_session_participant": "remove_participant",
        "add_turns": "add_many",
        "list_turns": "turns",
        "remove_turns": "remove_turns",
        "create_checkpoint": "checkpoint",
        "list_checkpoints": "checkpoints",
        "put_saved_state": "put_saved_state",
        "get_saved_state": "get_saved_state",
        "list_saved_states": "list_saved_states",
        "delete_saved_state": "delete_saved_state",
        "fork_session": "fork",
        "close_session": "close",
        "archive_session": "archive",
        "issue_session_token": "token",
        "export_session": "export",
    }
    assert {*called, *of_session} == {operation.name for operation in OPERATIONS}
    for name in of_session.values():
        assert callable(getattr(ClientSession, name)), name
    with colours.Client("http://x", "k") as client:
        for path in called.values():
            assert callable(attrgetter(path)(client)), path
