"""The errors of compiled contexts."""

from __future__ import annotations

from typing import Any, ClassVar

from memorywall.records.errors import MemorywallError


class ContextBudgetError(MemorywallError):
    """The window or a budget is smaller than what the context must contain.

    needed: the least number of tokens that is enough; None if it is not known
    """

    status: ClassVar[int] = 409
    code = "CONTEXT_BUDGET"
    title = "The budget is too small"

    def __init__(
        self, detail: str = "", *, index: int | None = None, needed: int | None = None
    ) -> None:
        super().__init__(detail, index=index)
        self.needed = needed

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "needed": self.needed}
