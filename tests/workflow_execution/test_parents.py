"""Steps that are parts of others: what they inherit, when each begins and ends."""

from __future__ import annotations

import pytest

import memorywall.workflow_execution.step as step_module
from tests.workflow_execution.stage import Stage, reason, statuses

# Each function writes down when it was called; one that is told to does something else.
SCRIPTED = """
    SEEN = []

    def work(ctx):
        SEEN.append(ctx.task.name)
        orders = ctx.input.get("do")
        if orders == "fail":
            raise ValueError("as told")
        if orders == "block":
            raise ctx.blocked("as told")
        ctx.memory.set("notes", ctx.task.name, {"by": ctx.agent_id})
        return {"done": True}
"""


def test_sub_task_reads_working_memory_of_its_parent(any_stage: Stage) -> None:
    any_stage.functions("""
        READ = {}

        def work(ctx):
            ctx.memory.set("notes", ctx.task.name, {"by": ctx.task.name})
            READ[ctx.task.name] = sorted(entry.key for entry in ctx.memory.inherited())
    """)
    outcome = any_stage.plan("""
        - {task: top, agent: ann}
        - {task: heir, agent: bob, parent: top, memory_policy: {inherit_from_parent: true}}
        - {task: grandchild, agent: ann, parent: heir, memory_policy: {inherit_from_parent: true}}
        - {task: stranger, agent: bob, parent: top}
    """)
    assert outcome.completed
    assert any_stage.module.READ == {
        "top": [],
        "heir": ["top"],
        "grandchild": ["heir", "top"],
        "stranger": [],
    }
    for name in ("top", "heir", "grandchild", "stranger"):
        assert any_stage.archived(outcome, name) == {name: {"by": name}}


def test_a_parent_begins_before_its_parts_and_ends_after_them(any_stage: Stage) -> None:
    any_stage.functions(SCRIPTED)
    outcome = any_stage.plan("""
        - {task: leaf, agent: ann, parent: branch}
        - {task: branch, agent: ann, parent: top}
        - {task: top, agent: ann}
        - {task: second, agent: ann, parent: top, depends_on: [branch]}
        - {task: after, agent: bob, depends_on: [top]}
    """)
    assert outcome.completed
    assert any_stage.module.SEEN == ["top", "branch", "leaf", "second", "after"]
    names = {one.task_id: one.step for one in outcome.steps}
    ended = [names[event.task_id or ""] for event in any_stage.log(outcome, "task.completed")]
    assert ended == ["leaf", "branch", "second", "top", "after"]


def test_a_step_may_wait_for_a_part_of_another(any_stage: Stage) -> None:
    any_stage.functions(SCRIPTED)
    outcome = any_stage.plan("""
        - {task: top, agent: ann}
        - {task: part, agent: bob, parent: top}
        - {task: outsider, agent: ann, depends_on: [part]}
        - {task: late part, agent: bob, parent: top, depends_on: [outsider]}
    """)
    assert outcome.completed
    assert any_stage.module.SEEN == ["top", "part", "outsider", "late part"]


@pytest.mark.parametrize(("orders", "fate"), [("fail", "skipped"), ("block", "blocked")])
def test_parts_of_an_unstarted_step_do_not_begin(stage: Stage, orders: str, fate: str) -> None:
    stage.functions(SCRIPTED)
    outcome = stage.plan(f"""
        - {{task: top, agent: ann, input: {{do: {orders}}}}}
        - {{task: part, agent: bob, parent: top}}
        - {{task: part of part, agent: bob, parent: part}}
        - {{task: elsewhere, agent: bob}}
    """)
    assert statuses(outcome) == {
        "top": "failed" if orders == "fail" else "blocked",
        "part": fate,
        "part of part": fate,
        "elsewhere": "completed",
    }
    assert stage.module.SEEN == ["top", "elsewhere"]
    assert reason(outcome, "part") == "not completed: `top`"


def test_parts_of_a_skipped_step_are_skipped(stage: Stage) -> None:
    stage.functions(SCRIPTED)
    outcome = stage.plan("""
        - {task: first, agent: ann, input: {do: fail}}
        - {task: top, agent: ann, depends_on: [first]}
        - {task: part, agent: bob, parent: top}
        - {task: waits for part, agent: bob, depends_on: [part]}
    """)
    assert statuses(outcome) == {
        "first": "failed",
        "top": "skipped",
        "part": "skipped",
        "waits for part": "skipped",
    }
    assert stage.module.SEEN == ["first"]


@pytest.mark.parametrize(
    ("orders", "status", "after"), [("fail", "failed", "skipped"), ("block", "blocked", "pending")]
)
def test_parent_fails_when_a_part_is_not_completed(
    stage: Stage, orders: str, status: str, after: str
) -> None:
    stage.functions(SCRIPTED)
    outcome = stage.plan(f"""
        - {{task: top, agent: ann}}
        - {{task: bad, agent: bob, parent: top, input: {{do: {orders}}}}}
        - {{task: good, agent: bob, parent: top}}
        - {{task: after, agent: bob, depends_on: [top]}}
    """)
    assert statuses(outcome) == {
        "top": status,
        "bad": status,
        "good": "completed",
        "after": after,
    }
    said = reason(outcome, "top")
    assert said is not None
    assert said.endswith("not completed: `bad`")
    assert stage.module.SEEN == ["top", "bad", "good"]


def test_blocked_intent_keeps_its_memory_and_tasks(stage: Stage) -> None:
    stage.functions("""
        def work(ctx):
            ctx.memory.set("notes", "k", {"so far": 1})
            raise ctx.blocked("no approval yet")
    """)
    outcome = stage.plan("""
        - {task: waits, agent: ann}
        - {task: next, agent: bob, depends_on: [waits]}
    """)
    assert statuses(outcome) == {"waits": "blocked", "next": "pending"}
    assert reason(outcome, "waits") == "no approval yet"
    assert [entry.key for entry in stage.working("ann")] == ["k"]
    assert stage.chief.intents.get(outcome.intent_id).status == "blocked"


def test_a_parent_holds_its_task_while_its_parts_are_worked_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_module, "LEASE_SECONDS", 1)
    stage.functions("""
        import time

        import pytest

        from memorywall.exceptions import LeaseHeldError

        def work(ctx):
            if ctx.task.name == "top":
                ctx.memory.set("notes", "k", {"kept": True})
                return {"done": 1}
            # Three times as long as the lease of the parent lasts unless it is renewed.
            until = time.monotonic() + 3
            while time.monotonic() < until:
                with pytest.raises(LeaseHeldError):
                    ctx.client.tasks.claim(ctx.task.parent_task_id)
                time.sleep(0.1)
""")
    outcome = stage.plan("""
        - {task: top, agent: ann, outputs: [done]}
        - {task: part, agent: ann, parent: top}
    """)
    assert statuses(outcome) == {"top": "completed", "part": "completed"}, outcome
    assert stage.task(outcome, "top").output == {"done": 1}
    assert stage.archived(outcome, "top") == {"k": {"kept": True}}
