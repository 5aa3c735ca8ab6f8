"""The file that RFC-0015 prints runs as it is printed."""

from __future__ import annotations

import json

from memorywall.records.tier import Tier
from tests.workflow.support import PRINTED
from tests.workflow_execution.stage import Stage, statuses

POLICIES = [
    {"key": "threshold", "value": {"usd": 10_000}, "tags": ["policy"]},
    {"key": "salaries", "value": {"secret": 1}, "sensitivity": "confidential"},
]


def test_it_is_completed_by_stubs(any_stage: Stage) -> None:
    outcome = any_stage.run(PRINTED)
    assert outcome.completed
    assert outcome.name == "quarterly-compliance"
    assert statuses(outcome) == {
        "gather-financial-data": "completed",
        "process-billing": "completed",
    }
    gather, bill = outcome.steps
    assert (gather.agent, gather.outputs) == ("data-agent", ["financial_summary"])
    assert (bill.agent, bill.outputs) == ("billing-agent", ["billing_report"])
    assert gather.reason is None
    task = any_stage.task(outcome, "process-billing")
    assert task.depends_on == (gather.task_id,)
    assert task.output == {"billing_report": {"stub": True}}
    assert task.memory_policy.max_entries == 100
    assert any_stage.task(outcome, "gather-financial-data").memory_policy.max_entries == 50


def test_its_intent_tells_what_happened(any_stage: Stage) -> None:
    outcome = any_stage.run(PRINTED)
    intent = any_stage.chief.intents.get(outcome.intent_id)
    assert (intent.title, intent.status) == ("quarterly-compliance", "completed")
    assert intent.constraints == {"workflow": "quarterly-compliance", "version": "1.0"}
    done = [event.task_id for event in any_stage.log(outcome, "task.completed")]
    assert done == [step.task_id for step in outcome.steps]
    for step in outcome.steps:
        assert any_stage.archived(outcome, step.step) == {step.task_id: {"stub": True}}
        assert any_stage.working(step.agent) == []
    coordinators = any_stage.chief.coordinators.list(outcome.intent_id)
    assert [one.status for one in coordinators] == ["completed"]


def test_its_agents_have_their_limits(any_stage: Stage) -> None:
    any_stage.run(PRINTED)
    billing, data = map(any_stage.connections.agent, ("billing-agent", "data-agent"))
    assert billing.memory.summary().episodic.capacity == 200
    assert data.memory.summary().episodic.capacity == 500
    kept = billing.memory.set("learned_patterns", "k", {}, Tier.EPISODIC)
    assert kept.pinned
    assert not data.memory.set("learned_patterns", "k", {}, Tier.EPISODIC).pinned


def test_what_lies_beside_it_is_loaded(any_stage: Stage) -> None:
    any_stage.write("company_policies.json", json.dumps(POLICIES))
    any_stage.write("billing_domain.yaml", "- {key: refunds, value: {rule: 'as charged'}}\n")
    any_stage.run(PRINTED)
    reader = any_stage.connections.agent("data-agent").memory
    threshold = reader.get("company_policies", "threshold", Tier.SEMANTIC)
    assert threshold is not None
    assert (threshold.value, threshold.tags) == ({"usd": 10_000}, ("policy",))
    salaries = reader.get("company_policies", "salaries", Tier.SEMANTIC)
    assert salaries is not None
    assert (salaries.value, salaries.sensitivity) == ({"secret": 1}, "confidential")
    refunds = reader.get("billing_domain", "refunds", Tier.SEMANTIC)
    assert refunds is not None
    assert refunds.value == {"rule": "as charged"}


def test_it_runs_again_as_another_intent(any_stage: Stage) -> None:
    first, second = any_stage.run(PRINTED), any_stage.run(PRINTED)
    assert first.completed
    assert second.completed
    assert first.intent_id != second.intent_id
    assert len({step.task_id for step in (*first.steps, *second.steps)}) == 4
