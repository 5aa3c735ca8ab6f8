"""Errors of working memory."""

from __future__ import annotations

from typing import Any

from memorywall.records.errors import MemorywallError


class DecompositionRequiredError(MemorywallError):
    """A step needs more working memory than its budget; divide it into smaller steps (memory wall
    11.2.1).

    budget: tokens
    need: the tokens that remain after everything was pruned, compressed and externalized
    """

    status = 409
    code = "DECOMPOSITION_REQUIRED"
    title = "The step needs more working memory than its budget"

    def __init__(
        self,
        detail: str = "",
        *,
        budget: int | None = None,
        need: int | None = None,
        index: int | None = None,
    ) -> None:
        super().__init__(detail, index=index)
        self.budget = budget
        self.need = need

    def fields(self) -> dict[str, Any]:
        members = super().fields()
        if self.budget is not None:
            members["budget"] = self.budget
        if self.need is not None:
            members["need"] = self.need
        return members
