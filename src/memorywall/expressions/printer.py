"""Prints the tree of a condition as text that parses to the same tree."""

from __future__ import annotations

import re

import msgspec

from memorywall.records.condition import AllOf, AnyOf, Condition, Negation, Path, Scalar, Test
from memorywall.records.feature_errors import ExpressionError

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def print_condition(condition: Condition) -> str:
    """Returns a condition as text, with parentheses only where they are needed."""
    if isinstance(condition, Test):
        return _test(condition)
    if isinstance(condition, Negation):
        return f"not {_within(condition.part, (AllOf, AnyOf))}"
    if isinstance(condition, AllOf):
        return " and ".join(_within(one, (AllOf, AnyOf)) for one in condition.parts)
    return " or ".join(_within(one, (AnyOf,)) for one in condition.parts)


def print_path(path: Path) -> str:
    """Returns a path as text."""
    steps = (
        f"[{step}]"
        if isinstance(step, int)
        else f".{step if _WORD.fullmatch(step) else print_literal(step)}"
        for step in path.steps
    )
    return path.field + "".join(steps)


def print_literal(literal: Scalar) -> str:
    """Returns a literal as text."""
    return msgspec.json.encode(literal).decode()


def show_position(text: str, error: ExpressionError) -> str:
    """Returns the line of the error, and below it a caret at its position."""
    line = (text.split("\n")[error.line - 1]).replace("\t", " ")
    return f"{line}\n{' ' * (error.column - 1)}^"


def _test(test: Test) -> str:
    path = print_path(test.path)
    if test.operator == "exists":
        return f"exists {path}"
    literals = [print_literal(one) for one in test.literals]
    right = f"[{', '.join(literals)}]" if test.operator == "in" else literals[0]
    return f"{path} {test.operator} {right}"


def _within(part: Condition, wrapped: tuple[type, ...]) -> str:
    text = print_condition(part)
    return f"({text})" if isinstance(part, wrapped) else text
