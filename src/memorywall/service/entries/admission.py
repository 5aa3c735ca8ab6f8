"""The rules that a kind has for its entries besides its schema, such as the ontology of facts.

They read the store, so they cannot be functions of a value alone. The rooms above the service bind
them, and the functions of `writes.py` apply them, so that no write passes them by.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from memorywall.records.entry import Entry
from memorywall.records.tier import Admission
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tiers.table import PROMOTED_TIERS


class AdmissionRule(Protocol):
    """Decides about an entry that is about to be stored."""

    def __call__(
        self, context: OperationContext, old: Entry | None, new: Entry
    ) -> Awaitable[Entry]:
        """Returns the entry to store, with its value in clear text: `new`, a changed `new`, or a
        proposal, an entry with an id of its own that is stored in place of `new`.

        old: the entry that `new` replaces, with its value sealed; None for a new entry

        Raises ValidationError or ResourceConflictError for an entry that must not be stored.
        """
        ...


PROMOTED: Final = "*"
"""In place of a kind: the rule of tiers that are closed to direct writes."""
_RULES: dict[str, AdmissionRule] = {}


def admission_rule(kind: str) -> Callable[[AdmissionRule], AdmissionRule]:
    """Binds a function as the rule of a kind. Raises LookupError for a kind that has one."""

    def bind(rule: AdmissionRule) -> AdmissionRule:
        if kind in _RULES:
            raise LookupError(f"the kind {kind} has an admission rule already")
        _RULES[kind] = rule
        return rule

    return bind


async def admit(
    context: OperationContext, old: Entry | None, new: Entry, *, is_decided: bool = False
) -> Entry:
    """Returns what is stored in place of `new`; see `AdmissionRule`. The rule of a closed tier
    decides before that of the kind. What says nothing new is stored as it is; the value of a sealed
    entry counts as new.

    is_decided: whether the rule of a closed tier has nothing to decide; default: false
    """
    if old is not None:
        is_same = old.kind == new.kind and old.value == new.value
        if is_same or old.state != new.state:
            return new
    if not is_decided and new.tier in PROMOTED_TIERS and new.listed and PROMOTED in _RULES:
        spec = (await context.load_tiers()).effective[new.tier]
        if spec.admission is Admission.PROMOTED:
            admitted = await _RULES[PROMOTED](context, old, new)
            if admitted.id != new.id:
                return admitted
    rule = None if new.kind is None else _RULES.get(new.kind)
    return new if rule is None else await rule(context, old, new)
