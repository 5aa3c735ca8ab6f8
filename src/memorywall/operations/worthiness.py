"""What is judged before it is stored, and what the tenant does with what is not worth keeping."""

from __future__ import annotations

from functools import partial

import msgspec

from memorywall.longterm.duplicates import ComparedText, compare_text
from memorywall.longterm.worthiness import RULES, candidate_of, is_own_statement, judge
from memorywall.operations.binding import operation, tenant_setting
from memorywall.records.decision import Verb
from memorywall.records.draft import NewEntry
from memorywall.records.entry import SEALED_SENSITIVITIES, Entry, origin_of_writer
from memorywall.records.feature_errors import RuleError
from memorywall.records.principal import PrincipalKind
from memorywall.records.worthiness import Verdict, WorthinessMode
from memorywall.service.access.targets import owner_target
from memorywall.service.requests.event_log import last_sequence
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.requests.tenant_tiers import read_tenant_tiers, store_worthiness
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.worthiness import WorthinessResponse, WorthinessRule

_RULES = {one.name: one for one in RULES}


@operation("get_worthiness")
async def get_worthiness(context: OperationContext, call: OperationCall) -> WorthinessResponse:
    context.authorize(Verb.READ, owner_target(context.tenant, context.principal.id))
    return await _view(context)


@tenant_setting("set_worthiness")
async def set_worthiness(context: OperationContext, call: OperationCall) -> WorthinessResponse:
    context.authorize(Verb.ADMINISTER, owner_target(context.tenant, context.principal.id))
    await store_worthiness(context.transaction, call.body.mode)
    return await _view(context)


async def _view(context: OperationContext) -> WorthinessResponse:
    tiers = await read_tenant_tiers(context.transaction, context.service.settings)
    # They tell what others write.
    is_told = context.allows(Verb.ADMINISTER, owner_target(context.tenant, context.principal.id))
    counts = context.service.verdicts.of(context.tenant)
    rules = [
        WorthinessRule(
            name=one.name,
            description=one.description,
            worthy=one.is_worthy,
            count=counts.get(one.name, 0) if is_told else None,
        )
        for one in RULES
    ]
    is_own = tiers.own_worthiness is not None
    return WorthinessResponse(mode=tiers.worthiness, is_own=is_own, rules=rules)


async def compare_remembered(transactions: OperationTransactions) -> ComparedText | None:
    """What memory says of the text that the call wants remembered; None if nothing is compared: a
    text that is to be sealed, which no search may see, and any text if the tenant judges none."""
    asked, principal = transactions.call.body, transactions.principal
    if asked.sensitivity in SEALED_SENSITIVITIES or asked.kind is not None:
        return None
    mode, since = await transactions.read(_load_mode)
    if mode is WorthinessMode.OFF:
        return None
    subjects = (*(principal.subjects or ()), *(asked.subjects or ()))
    is_person = principal.kind is PrincipalKind.USER
    return await compare_text(transactions, asked.text, subjects, since, is_person=is_person)


async def _load_mode(context: OperationContext) -> tuple[WorthinessMode, int]:
    context.decide_by_row()
    mode = (await context.load_tiers()).worthiness
    return mode, await last_sequence(context.transaction)


async def weigh(
    context: OperationContext, draft: NewEntry, known: Entry | None = None, *, raises: bool = True
) -> Verdict | None:
    """Judges a new entry and counts the verdict. Returns None if the tenant judges nothing.

    known: the entry that says the same, which is the reply instead
    raises: whether the refusal is an error rather than a verdict that is `refused`

    Raises RuleError if the tenant refuses what is not worth keeping, unless a person said it.
    """
    mode = (await context.load_tiers()).worthiness
    if mode is WorthinessMode.OFF:
        return None
    candidate = candidate_of(draft.value, draft.kind, None if known is None else known.id)
    size = len(candidate.text or "")
    verdict = await context.transaction.compute(size, partial(judge, candidate))
    context.service.verdicts.note(context.tenant, verdict.rule)
    if verdict.worthy or known is not None or mode is WorthinessMode.MARK:
        return verdict
    origin = draft.origin or origin_of_writer(context.principal.kind)
    if is_own_statement(origin, draft.value):
        return verdict
    if raises:
        raise RuleError(
            f"not worth keeping by the rule `{verdict.rule}`:"
            f" {_RULES[verdict.rule].description} A write by name stores it anyway.",
            rule=verdict.rule,
        )
    return msgspec.structs.replace(verdict, refused=True)
