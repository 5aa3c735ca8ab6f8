"""The functions a file names: what they are given, what they must give, how they fail."""

from __future__ import annotations

import sys

import pytest

from memorywall.records.errors import ConfigurationError
from tests.workflow_execution.stage import HEADER, Stage, reason, runners, statuses

ONLY = "- {task: only, agent: ann, input: {quarter: 3}, outputs: [report]}\n"


def test_a_plain_function_is_called_with_its_context(any_stage: Stage) -> None:
    any_stage.functions("""
        def work(ctx):
            assert ctx.agent_id == "ann"
            assert ctx.task.name == "only"
            ctx.memory.set("notes", "k", {"seen": ctx.input})
            return {"report": ctx.input["quarter"] + 1, "more": True}
    """)
    outcome = any_stage.plan(ONLY)
    assert outcome.completed
    assert outcome.steps[0].outputs == ["more", "report"]
    assert any_stage.task(outcome, "only").output == {"report": 4, "more": True}
    assert any_stage.archived(outcome, "only") == {"k": {"seen": {"quarter": 3}}}


def test_a_decorated_function_is_called_too(any_stage: Stage) -> None:
    any_stage.functions("""
        from memorywall import Worker

        @Worker(capabilities=["billing"])
        def work(ctx):
            ctx.memory.set("notes", "k", {"by": ctx.agent_id})
            return {"report": 1}
    """)
    outcome = any_stage.plan(ONLY)
    assert statuses(outcome) == {"only": "completed"}
    assert any_stage.archived(outcome, "only") == {"k": {"by": "ann"}}


def test_a_step_s_function_comes_before_its_agent_s(stage: Stage) -> None:
    stage.functions("""
        def work(ctx):
            return {"report": "the agent's"}

        def own(ctx):
            return {"report": "the step's"}
    """)
    outcome = stage.plan('- {task: only, agent: ann, function: "MODULE:own", outputs: [report]}')
    assert stage.task(outcome, "only").output == {"report": "the step's"}


def test_an_agent_without_a_function_is_a_stub(stage: Stage) -> None:
    outcome = stage.run(
        "name: n\nagents: {a: {}}\nplan: [{task: one, agent: a, outputs: [x]},"
        " {task: two, agent: a}]\n"
    )
    assert outcome.completed
    assert stage.task(outcome, "one").output == {"x": {"stub": True}}
    assert stage.task(outcome, "two").output == {}


def test_a_module_may_import_its_neighbours_even_late(stage: Stage) -> None:
    before = list(sys.path)
    stage.write(f"{stage.module_name}_helper.py", "ANSWER = 42\n")
    stage.functions(f"""
        def work(ctx):
            from {stage.module_name}_helper import ANSWER
            return {{"report": ANSWER}}
    """)
    outcome = stage.plan(ONLY)
    assert stage.task(outcome, "only").output == {"report": 42}
    assert sys.path == before


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return {'other': 1}", "StepError: the function gave no `report`"),
        ("return None", "StepError: the function gave no `report`"),
        ("return ['report']", "TypeError: a Worker's function returns a dict or None"),
        ("return 5", "TypeError: a Worker's function returns a dict or None"),
        ("return {'report': {1, 2}}", "ValidationError: `output.report` is a set, which cannot be"),
        ("raise ValueError('no luck')", "ValueError: no luck"),
        ("raise SystemExit(3)", "StepError: the function ended the program"),
        ("ctx.memory.set('n', 'k', {'a': float('nan')})", "ValidationError: "),
    ],
)
def test_error_fails_the_step_and_skips_its_dependents(stage: Stage, body: str, why: str) -> None:
    stage.functions(f"""
        SEEN = []

        def work(ctx):
            SEEN.append(ctx.task.name)
            if ctx.task.name == "only":
                {body}
    """)
    outcome = stage.plan(
        ONLY
        + "- {task: next, agent: bob, depends_on: [only]}\n"
        + "- {task: last, agent: bob, depends_on: [next]}\n"
        + "- {task: other, agent: bob}\n"
    )
    assert not outcome.completed
    assert statuses(outcome) == {
        "only": "failed",
        "next": "skipped",
        "last": "skipped",
        "other": "completed",
    }
    told = reason(outcome, "only")
    assert told is not None
    assert told.startswith(why)
    assert stage.task(outcome, "only").error == told
    assert reason(outcome, "next") == "not completed: `only`"
    assert reason(outcome, "last") == "not completed: `next`"
    assert reason(outcome, "other") is None
    assert stage.module.SEEN == ["only", "other"]
    assert stage.chief.intents.get(outcome.intent_id).status == "blocked"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("no_such_module:work", "`no_such_module` cannot be imported: ModuleNotFoundError"),
        ("MODULE:missing", "there is no `missing` in "),
        ("MODULE:NUMBER", "`MODULE:NUMBER` is not a function"),
        ("MODULE:later", "`MODULE:later` is async; a workflow runs plain functions"),
        ("MODULE:later_worker", "`MODULE:later_worker` is async; a workflow runs plain functions"),
        ("calendar:work", "there is no `work` in "),
    ],
)
def test_a_function_that_cannot_be_used_is_refused_before_anything_is_written(
    stage: Stage, function: str, said: str
) -> None:
    stage.functions("""
        from memorywall import Worker

        NUMBER = 1

        def work(ctx):
            return None

        async def later(ctx):
            return None

        @Worker()
        async def later_worker(ctx):
            return None
    """)
    stage.write("facts.yaml", "- {key: k, value: {}}\n")
    with pytest.raises(ConfigurationError) as refused:
        stage.run(
            f'{HEADER}  eve: {{function: "{function}"}}\n'
            "memory: {semantic_namespaces: [facts]}\n"
            "plan:\n  - {task: one, agent: ann}\n  - {task: two, agent: eve}\n"
        )
    said = said.replace("MODULE", stage.module_name)
    assert refused.value.detail.startswith(said)
    assert stage.chief.intents.list().total == 0
    assert stage.chief.memory.namespaces() == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def work(ctx:\n", "SyntaxError"),
        ("raise RuntimeError('on\\nimport')", "RuntimeError: on import"),
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("raise SystemExit(1)", "SystemExit: 1"),
    ],
)
def test_a_module_that_fails_when_it_is_imported_says_why(
    stage: Stage, source: str, said: str
) -> None:
    stage.functions(source)
    with pytest.raises(ConfigurationError) as refused:
        stage.plan(ONLY)
    assert refused.value.detail.startswith(f"`{stage.module_name}` cannot be imported: {said}")
    assert "\n" not in refused.value.detail


def test_no_thread_is_left_behind(stage: Stage) -> None:
    stage.functions("""
        def work(ctx):
            if ctx.task.name == "only":
                raise ValueError
    """)
    stage.plan(ONLY + "- {task: top, agent: ann}\n- {task: part, agent: bob, parent: top}\n")
    assert runners() == []
