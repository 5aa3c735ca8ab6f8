"""The rules that a kind has for its entries besides its schema, such as the ontology of facts.

They read the store, so they cannot be functions of a value alone. The rooms above the service bind
them, and the functions of `writes.py` apply them, so that no write passes them by.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from memorywall.records.entry import Entry
from memorywall.service.requests.operation_context import OperationContext


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


_RULES: dict[str, AdmissionRule] = {}


def admission_rule(kind: str) -> Callable[[AdmissionRule], AdmissionRule]:
    """Binds a function as the rule of a kind. Raises LookupError for a kind that has one."""

    def bind(rule: AdmissionRule) -> AdmissionRule:
        if kind in _RULES:
            raise LookupError(f"the kind {kind} has an admission rule already")
        _RULES[kind] = rule
        return rule

    return bind


async def admit(context: OperationContext, old: Entry | None, new: Entry) -> Entry:
    """Returns what is stored in place of `new`; see `AdmissionRule`. An entry whose kind has no
    rule, or whose value is not new, is stored as it is."""
    rule = None if new.kind is None else _RULES.get(new.kind)
    if rule is None or (old is not None and not _is_new(old, new)):
        return new
    return await rule(context, old, new)


def _is_new(old: Entry, new: Entry) -> bool:
    """Returns whether an update says something new; the value of a sealed entry counts as new."""
    is_same = old.kind == new.kind and old.value == new.value
    return old.state == new.state and not is_same
