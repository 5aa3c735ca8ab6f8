"""The problems of a workflow file, each with its position, in one error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memorywall.records.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Diagnostic:
    """One problem of a file.

    file: the name as given by the caller, or the file of a semantic namespace
    line, column: counted from 1
    where: the path of keys, such as `memory.episodic_memory`; "" for the top level
    reason: the problem; it may repeat keys and never repeats a value
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
    """The workflow is invalid; `problems` lists all problems in the order of the file."""

    code = "WORKFLOW_INVALID"
    title = "The workflow cannot be used"

    def __init__(self, problems: Iterable[Diagnostic]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        heading = f"the workflow has {count} problem{'' if count == 1 else 's'}"
        super().__init__("\n".join([heading, *map(str, self.problems)]))
