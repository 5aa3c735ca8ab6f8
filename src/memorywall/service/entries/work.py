"""Memory that is bound to a task or an intent."""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.records.decision import Verb, WorkRelations
from memorywall.records.entry import Entry, Scope
from memorywall.records.errors import ValidationError
from memorywall.records.tier import Admission
from memorywall.service.access.authorization_facts import load_task_relations, resolve_scope
from memorywall.service.access.targets import owner_target
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import TASK_LIFETIME
from memorywall.tiers import TIERS


async def enter_work(context: OperationContext, entry: Entry) -> Scope:
    """Checks that `principal` may bind memory to this scope, whose log will contain events about
    it, and returns the complete scope."""
    scope, task = await resolve_scope(context, entry.scope)
    working = TIERS[entry.tier].admission is Admission.ASSIGNEE
    work = await load_task_relations(context, scope, task, own=working)
    is_over = False
    if work is not None and not working:
        is_over = work.is_terminal
        # Other tiers outlive a task; current and former workers and participants may refer to the
        # task.
        work = WorkRelations(takes_part=work.takes_part or work.assigned == context.principal.id)
    own = owner_target(context.tenant, context.principal.id, entry.namespace)
    target = replace(own, work=work)
    context.authorize(Verb.CREATE, target)
    if is_over and entry.ttl == TASK_LIFETIME:
        raise ValidationError("the task is over, so nothing can last as long as it any more")
    return scope
