"""What a workflow says of memory is in force while its functions run."""

from __future__ import annotations

from memorywall.records.tier import Tier
from tests.workflow_execution.stage import HEADER, Stage, reason, statuses

WRITES_ONE = """
    def work(ctx):
        ctx.memory.set("notes", ctx.task.name, {"n": 1})
"""


def test_working_memory_is_archived_or_deleted_as_each_step_says(any_stage: Stage) -> None:
    any_stage.functions(WRITES_ONE)
    outcome = any_stage.plan("""
        - {task: kept, agent: ann}
        - {task: gone, agent: ann, memory_policy: {archive_on_completion: false}}
    """)
    assert outcome.completed
    assert any_stage.archived(outcome, "kept") == {"kept": {"n": 1}}
    assert any_stage.archived(outcome, "gone") == {}
    (deleted,) = any_stage.log(outcome, "memory.deleted")
    assert deleted.task_id == any_stage.task(outcome, "gone").id
    assert any_stage.working("ann") == []


def test_the_file_s_default_holds_for_steps_that_do_not_say(stage: Stage) -> None:
    stage.functions(WRITES_ONE)
    outcome = stage.run(
        HEADER
        + "memory: {working_memory: {archive_on_completion: false}}\n"
        + "plan:\n"
        + "  - {task: silent, agent: ann}\n"
        + "  - {task: explicit, agent: ann, memory_policy: {archive_on_completion: true}}\n"
    )
    assert stage.archived(outcome, "silent") == {}
    assert stage.archived(outcome, "explicit") == {"explicit": {"n": 1}}


def test_memory_of_a_failed_step_is_archived_too(stage: Stage) -> None:
    stage.functions("""
        def work(ctx):
            ctx.memory.set("notes", "k", {"so far": 1})
            raise ValueError
    """)
    outcome = stage.plan("- {task: only, agent: ann}\n")
    assert stage.archived(outcome, "only") == {"k": {"so far": 1}}


def test_a_step_has_room_for_so_many_entries(any_stage: Stage) -> None:
    any_stage.functions("""
        from memorywall.exceptions import MemoryCapacityError

        REFUSED = []

        def work(ctx):
            for number in range(4):
                try:
                    ctx.memory.set("notes", str(number), {"n": number})
                except MemoryCapacityError as error:
                    REFUSED.append((ctx.task.name, number, error.current_count, error.max_capacity))
                    if ctx.input.get("careless"):
                        raise
    """)
    outcome = any_stage.run(
        HEADER
        + "memory: {working_memory: {max_entries_per_task: 3}}\n"
        + "plan:\n"
        + "  - {task: two, agent: ann, memory_policy: {max_entries: 2}}\n"
        + "  - {task: three, agent: ann, input: {careless: true}}\n"
        + "  - {task: ten, agent: ann, memory_policy: {max_entries: 10}}\n"
    )
    assert any_stage.module.REFUSED == [
        ("two", 2, 2, 2),
        ("two", 3, 2, 2),
        ("three", 3, 3, 3),
    ]
    assert statuses(outcome) == {"two": "completed", "three": "failed", "ten": "completed"}
    told = reason(outcome, "three")
    assert told is not None
    assert told.startswith("MemoryCapacityError: this task's working memory is full")
    assert len(any_stage.archived(outcome, "ten")) == 4


def test_a_step_has_room_for_so_many_kilobytes(stage: Stage) -> None:
    stage.functions("""
        def work(ctx):
            ctx.memory.set("notes", "small", {"text": "x" * 900})
            ctx.memory.set("notes", "large", {"text": "x" * 900})
    """)
    outcome = stage.plan("- {task: only, agent: ann, memory_policy: {max_total_size_kb: 1}}\n")
    told = reason(outcome, "only")
    assert told is not None
    assert "MemoryCapacityError" in told
    assert "at most 1 KB" in told
    assert sorted(stage.archived(outcome, "only")) == ["small"]


def test_episodic_capacity_and_pinned_namespaces_hold_during_the_run(any_stage: Stage) -> None:
    any_stage.functions("""
        def work(ctx):
            for number in range(4):
                ctx.memory.set("seen", str(number), {"n": number}, memory_type="episodic")
            ctx.memory.set("learned", "k", {"n": 1}, memory_type="episodic")
    """)
    any_stage.run("""\
name: n
memory: {episodic_memory: {capacity_per_agent: 3}}
agents:
  ann: {function: "MODULE:work"}
  bob:
    function: "MODULE:work"
    episodic_memory: {capacity: 4, pinned_namespaces: [learned]}
plan: [{task: one, agent: ann}, {task: two, agent: bob}]
""")

    def kept(agent: str) -> list[tuple[str, str, bool]]:
        found = any_stage.connections.agent(agent).memory.query(memory_type=Tier.EPISODIC)
        return sorted((one.namespace, one.key, one.pinned) for one in found)

    assert kept("ann") == [("learned", "k", False), ("seen", "2", False), ("seen", "3", False)]
    assert kept("bob") == [
        ("learned", "k", True),
        ("seen", "1", False),
        ("seen", "2", False),
        ("seen", "3", False),
    ]


def test_agents_reach_only_the_namespaces_the_file_names(any_stage: Stage) -> None:
    elsewhere = any_stage.chief.memory.set("internal", "k", {"secret": 1}, Tier.SEMANTIC)
    any_stage.functions("""
        from memorywall.exceptions import MemoryAccessError

        READ, REFUSED = [], []

        def work(ctx):
            READ.append(ctx.memory.get("policies", "k", "semantic").value)
            READ.append(ctx.memory.get("internal", "k", "semantic"))
            READ.append([one.key for one in ctx.client.memory.query(memory_type="semantic")])
            for reach in (
                lambda: ctx.client.memory.get_by_id(ctx.input["elsewhere"]),
                lambda: ctx.memory.set("internal", "mine", {}, memory_type="semantic"),
                lambda: ctx.memory.set("brand new", "mine", {}, memory_type="semantic"),
            ):
                try:
                    reach()
                except MemoryAccessError as error:
                    REFUSED.append(error.detail)
    """)
    any_stage.write("policies.yaml", "- {key: k, value: {limit: 1}}\n")
    outcome = any_stage.run(
        HEADER
        + "memory: {semantic_namespaces: [policies, only_declared]}\n"
        + f"plan: [{{task: one, agent: ann, input: {{elsewhere: {elsewhere.id}}}}}]\n"
    )
    assert outcome.completed, outcome
    assert any_stage.module.READ == [{"limit": 1}, None, ["k"]]
    assert len(any_stage.module.REFUSED) == 3
    assert all("guardrails" in detail for detail in any_stage.module.REFUSED)
    # When the work is done the guardrails concern nobody any more.
    reader = any_stage.connections.agent("ann").memory
    assert reader.get_by_id(elsewhere.id).value == {"secret": 1}
    assert any_stage.chief.memory.get("internal", "k", Tier.SEMANTIC) is not None


def test_without_a_list_of_namespaces_none_is_refused(stage: Stage) -> None:
    stage.chief.memory.set("internal", "k", {"n": 1}, Tier.SEMANTIC)
    stage.functions("""
        def work(ctx):
            return {"found": ctx.memory.get("internal", "k", "semantic").value}
    """)
    outcome = stage.plan("- {task: only, agent: ann}\n")
    assert stage.task(outcome, "only").output == {"found": {"n": 1}}


def test_functions_may_change_the_intent_s_state(stage: Stage) -> None:
    stage.functions("""
        def work(ctx):
            ctx.client.intents.set_state(ctx.task.intent_id, {ctx.task.name: "done"})
            ctx.log("noted", {"by": ctx.agent_id})
    """)
    outcome = stage.plan("- {task: one, agent: ann}\n- {task: two, agent: bob}\n")
    intent = stage.chief.intents.get(outcome.intent_id)
    assert (intent.status, intent.state) == ("completed", {"one": "done", "two": "done"})
    assert [event.actor for event in stage.log(outcome, "noted")] == ["ann", "bob"]
