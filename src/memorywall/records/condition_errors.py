"""The errors of conditions; see the tree in `errors.py`."""

from __future__ import annotations

from typing import Any

from memorywall.records.errors import RequestError


class ExpressionError(RequestError):
    """A condition is not valid in the language of conditions; nothing was read.

    line, column: the position of the problem, from 1; the column counts characters
    """

    code = "INVALID_EXPRESSION"
    title = "Invalid condition"

    def __init__(
        self, detail: str = "", *, line: int = 1, column: int = 1, index: int | None = None
    ) -> None:
        super().__init__(detail, index=index)
        self.line = line
        self.column = column

    def fields(self) -> dict[str, Any]:
        return {**super().fields(), "line": self.line, "column": self.column}


class ScanLimitError(RequestError):
    """The condition reads the values of too many entries; the message says how to narrow it."""

    code = "SCAN_LIMIT"
    title = "The condition reads too many entries"
