"""Migrates entities and facts to a new major version of the ontology of their namespace.

What is migrated already has the version of the ontology and stays as it is, so that a run that was
killed goes on, or begins again, without a difference.
"""

from __future__ import annotations

from typing import Final

from memorywall.jobs.job_runner import JobSpec, StepResult
from memorywall.kinds.facts import ONTOLOGY
from memorywall.longterm.migration import migrate_page
from memorywall.records.principal import Maintenance
from memorywall.service.requests.operation_context import OperationContext

_INTERVAL: Final = 5.0
"""The most seconds that a migration waits."""


async def _is_needed(context: OperationContext) -> bool:
    return bool(await context.transaction.edges.due(context.now, 1, ONTOLOGY.name))


async def _migrate(context: OperationContext, cursor: str) -> StepResult:
    found = await context.transaction.edges.due(context.now, 1, ONTOLOGY.name)
    if not found:
        return StepResult(0, "", False)
    (ontology,) = found
    ontology_id, _, place = cursor.partition(" ")
    done, following = await migrate_page(
        context, ontology, place if ontology_id == ontology.id else ""
    )
    return StepResult(done, f"{ontology.id} {following}" if following else "", True)


MIGRATE_FACTS_JOB: Final = JobSpec(
    name="migrate_facts",
    maintenance=Maintenance.ADMINISTER,
    interval=lambda service: _INTERVAL,
    is_needed=_is_needed,
    step=_migrate,
)
