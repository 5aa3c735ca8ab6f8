"""The working memory of a task in a context. What does not fit is handled as in the memory itself,
without a change of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from memorywall.context.item import ContextItem
from memorywall.context.rendering import tokens_of
from memorywall.kinds.working_memory import Scratch, ScratchReference, WorkingPolicy, WorkingState
from memorywall.records.entry import Entry
from memorywall.records.feature_errors import DecompositionRequiredError
from memorywall.tokens.estimate import TokenCounter, estimate
from memorywall.working_memory.externalized import schema_hash
from memorywall.working_memory.overflow import handle_overflow
from memorywall.working_memory.utility import in_order_of_going, text_of, utilities

_SMALLEST_ITEM = 40
"""The tokens of an item that is assumed to be as small as it gets."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkingMemory:
    """The working memory of an agent on a task.

    items: those that stay, in the order in which they were added
    entries: the entry of each item by its name
    """

    task_id: str
    items: tuple[Scratch, ...]
    state: WorkingState
    entries: Mapping[str, Entry]

    def whole(self) -> list[ContextItem]:
        """Returns all items as they are."""
        return [_item(self.entries[one.name], one, "working") for one in self.items]

    def within(self, allowance: int, count: TokenCounter) -> list[ContextItem]:
        """Returns the items that the overflow handler of working memory leaves of them: those of
        low utility are pruned, texts are compressed, and content is replaced by references. If even
        that is too much, the items of the lowest utility are left out.

        allowance: the most tokens
        count: counts the tokens of the context
        """
        marks = sum(
            max(0, tokens_of(shown, count) - item.tokens)
            for shown, item in zip(self.whole(), self.items, strict=True)
        )
        budget = max(1, allowance - marks)
        state = _with_budget(self.state, budget)
        items = list(self.items)
        while items:
            try:
                left = handle_overflow(items, state, count=estimate, refer=self._refer).items
            except DecompositionRequiredError as error:
                scores = utilities(items, state.goal, state.tick, state.policy)
                going, excess = set[str](), (error.need or 0) - budget
                for item in in_order_of_going(items, scores):
                    going.add(item.name)
                    excess -= min(item.tokens, _SMALLEST_ITEM)
                    if excess <= 0:
                        break
                items = [item for item in items if item.name not in going]
                continue
            before = {item.name: item for item in items}
            return [
                _item(self.entries[one.name], one, _reason(before[one.name], one)) for one in left
            ]
        return []

    def _refer(self, item: Scratch) -> ScratchReference:
        # The path returns the item as it is, also if the context would compress it.
        return _reference(self.task_id, next(one for one in self.items if one.name == item.name))


def working_item(entry: Entry, reason: str) -> ContextItem:
    """Returns an item of working memory, with its value in clear text, as a context contained it.

    reason: `working`, `working_compressed` or `working_externalized`
    """
    item = msgspec.json.decode(entry.value, type=Scratch)
    task_id = entry.scope.task_id or ""
    if reason == "working_externalized":
        item = msgspec.structs.replace(item, content=None, reference=_reference(task_id, item))
    elif reason == "working_compressed":
        # A budget of one token below its size makes the handler compress a single item.
        state = _with_budget(WorkingState(), max(1, item.tokens - 1))
        handled = handle_overflow(
            [msgspec.structs.replace(item, depends_on=(), carry_forward=True)],
            state, count=estimate, refer=lambda one: _reference(task_id, one),
        )  # fmt: skip
        item = handled.items[0]
    return _item(entry, item, reason)


def _with_budget(state: WorkingState, budget: int) -> WorkingState:
    # Every context compresses to the default share, so that it can be shown again.
    policy = msgspec.structs.replace(
        state.policy, budget=budget, compress_to=WorkingPolicy().compress_to
    )
    return msgspec.structs.replace(state, policy=policy)


def _reason(old: Scratch, new: Scratch) -> str:
    if new.reference is not None and old.reference is None:
        return "working_externalized"
    return "working" if new.content == old.content else "working_compressed"


def _reference(task_id: str, item: Scratch) -> ScratchReference:
    """Returns a reference to an item that has its content; the path returns it."""
    return ScratchReference(
        uri=f"/api/v1/tasks/{task_id}/working/items/{quote(item.name, safe='')}",
        schema_hash=schema_hash(item.content),
        tokens=item.tokens,
    )


def _item(entry: Entry, item: Scratch, reason: str) -> ContextItem:
    if item.reference is None:
        text = text_of(item)
    else:
        text = f"externalized, {msgspec.json.encode(item.reference).decode()}"
    return ContextItem(
        id=entry.id,
        segment="working",
        content=f"{item.name}: {text}",
        version=entry.version,
        session_id=entry.scope.session_id,
        subjects=entry.subjects,
        expires_at=entry.expires_at,
        provenance=f"{entry.provenance.principal}, {entry.updated_at}",
        reason=reason,
    )
