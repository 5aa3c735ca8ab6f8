"""What is wrong with a workflow file: every problem with its place, in one error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memorywall.records.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Problem:
    """One thing to put right.

    file: as the caller named it, or the file of a semantic namespace beside it
    line, column: counted from 1
    where: the keys that lead to the place, such as `memory.episodic_memory`; "" at the top
    reason: what is wrong there; it repeats keys and never a value
    """

    file: str
    line: int
    column: int
    where: str
    reason: str

    def __str__(self) -> str:
        path = f"{self.where}: " if self.where else ""
        return f"{self.file}:{self.line}:{self.column}: {path}{self.reason}"


class WorkflowError(ConfigurationError):
    """The workflow cannot be used; `problems` holds every reason, in the order of the file."""

    code = "WORKFLOW_INVALID"
    title = "The workflow cannot be used"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        heading = f"the workflow has {count} problem{'' if count == 1 else 's'}"
        super().__init__("\n".join([heading, *map(str, self.problems)]))
