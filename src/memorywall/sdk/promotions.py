"""`client.promotions`: promotes memory to tiers that last longer, and shows why."""

from __future__ import annotations

import builtins
from typing import Any

from memorywall.kinds.promotions import DecisionWord
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.filters import MemoryType, without_absent
from memorywall.sdk.retry import call
from memorywall.wire.promotions import (
    MOST_PROMOTIONS,
    PromotionListResponse,
    PromotionResponse,
)


class PromotionsCore:
    """The operations on promotions, as request generators."""

    def promote(
        self,
        entry_id: str,
        to: MemoryType,
        *,
        namespace: str | None = None,
        key: str | None = None,
        value: dict[str, Any] | None = None,
        kind: str | None = None,
        dry_run: bool = False,
    ) -> RequestGenerator[PromotionResponse]:
        """Promotes an entry to a tier that lasts longer, and returns the decision.

        The decision is `promoted`; `merged` with an entry that says the same; or `deferred`, and
        then `result` is a proposal that waits for a person. `rule`, `reason`, `score` and `parts`
        say why. The same entry at the same version is decided once.

        to: "session", "episodic", "semantic" or "procedural"
        namespace: of the result; default: that of the entry; required for "semantic" and
            "procedural"
        key: the key of the result; default: its id
        value, kind: the value of the result and its kind; default: those of the entry
        dry_run: whether to decide only, and store nothing; default: false

        Raises RuleError for a candidate that is rejected, with the rule; MemoryNotFoundError,
        MemoryAccessError, ValidationError.
        """
        asked = {"to": to, "namespace": namespace, "key": key, "value": value, "kind": kind}
        body = without_absent({**asked, "dry_run": dry_run or None})
        return call("promote_entry", PromotionResponse, entry_id=entry_id, body=body)

    def list(
        self,
        *,
        decision: DecisionWord | None = None,
        candidate: str | None = None,
        result: str | None = None,
        limit: int = MOST_PROMOTIONS,
    ) -> RequestGenerator[builtins.list[PromotionResponse]]:
        """Returns the decisions of the client's agent, newest first.

        decision: only with this decision
        candidate, result: only about this entry; only those that made this entry
        limit: the most decisions; default and maximum 100
        """
        query = {"decision": decision, "candidate": candidate, "result": result, "limit": limit}
        found = yield from call(
            "list_promotions", PromotionListResponse, query=without_absent(query)
        )
        return found.promotions

    def get(self, promotion_id: str) -> RequestGenerator[PromotionResponse]:
        """Returns a decision. Raises MemoryNotFoundError, MemoryAccessError."""
        return call("get_promotion", PromotionResponse, promotion_id=promotion_id)

    def revert(self, promotion_id: str) -> RequestGenerator[PromotionResponse]:
        """Takes a promotion back: its result and what was derived from it are withdrawn, and what
        it superseded is live again.

        Raises TransitionError for a decision that made nothing, MemoryNotFoundError,
        MemoryAccessError.
        """
        return call("revert_promotion", PromotionResponse, promotion_id=promotion_id)


class _PromotionsMethods:
    promote = method(PromotionsCore.promote)
    list = method(PromotionsCore.list)
    get = method(PromotionsCore.get)
    revert = method(PromotionsCore.revert)


class PromotionsClient(_PromotionsMethods, Facade[PromotionsCore]):
    """Promotes memory, and shows the decisions."""


class AsyncPromotionsClient(_PromotionsMethods, AsyncFacade[PromotionsCore]):
    """Promotes memory, and shows the decisions."""
