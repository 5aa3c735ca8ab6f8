"""Parses the text of a condition to its tree.

    condition = all { "or" all }
    all       = one { "and" one }
    one       = "not" one | "(" condition ")" | "exists" path | path test
    test      = ( "=" | "!=" | "<" | "<=" | ">" | ">=" | "contains" ) literal
              | "in" "[" [ literal { "," literal } ] "]"
    path      = field { "." ( word | string ) | "[" index "]" }
    literal   = string | number | "true" | "false" | "null"

Words are in lower case, and strings and numbers have the form that they have in JSON.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection
from typing import cast

import msgspec

from memorywall.expressions.fields import Field, Fields
from memorywall.expressions.tokens import Token, error_at, split_tokens
from memorywall.records.condition import (
    AllOf,
    AnyOf,
    Condition,
    Negation,
    Operator,
    Path,
    Scalar,
    Test,
)
from memorywall.records.feature_errors import ExpressionError
from memorywall.records.identifiers import name_forms
from memorywall.records.validity import instant_of_field

DEEPEST = 20
"""Levels of parentheses and `not`."""
MOST_TESTS = 100
LONGEST_LIST = 100
MOST_STEPS = 20
_LONGEST_NAME = 64
LARGEST_INDEX = 65_535
LARGEST_INTEGER = 2**53 - 1
"""Numbers are compared as 64-bit floating-point numbers, which represent every integer up to it."""
RESERVED = frozenset({"and", "or", "not", "in", "exists", "contains", "true", "false", "null"})
_CONSTANTS: dict[str, Scalar] = {"true": True, "false": False, "null": None}
_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
_ORDERS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def parse(text: str, fields: Fields, instants: Collection[Path] = ()) -> Condition:
    """Returns the tree of a condition.

    fields: the fields that it may name
    instants: paths below fields whose values are instants in the stored form; default: none

    Raises ExpressionError, with the position of the first problem.
    """
    return _Parser(text, fields, instants).parse()


def parse_paths(text: str, fields: Fields) -> list[Path]:
    """Returns the paths of a list that commas separate. Raises ExpressionError."""
    return _Parser(text, fields).paths()


class _Parser:
    """One pass over the tokens of a text."""

    def __init__(self, text: str, fields: Fields, instants: Collection[Path] = ()) -> None:
        self._text = text
        self._fields = fields
        self._instants = instants
        self._tokens = list(split_tokens(text))
        self._position = 0
        self._tests = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def parse(self) -> Condition:
        condition = self._condition(0)
        if self._next.kind != "end":
            raise self._error("expected `and`, `or` or the end of the condition")
        return condition

    def paths(self) -> list[Path]:
        found = [self._path()[0]]
        while self._take(","):
            if len(found) == LONGEST_LIST:
                raise self._error(f"a list has at most {LONGEST_LIST} paths")
            found.append(self._path()[0])
        if self._next.kind != "end":
            raise self._error("expected `,` or the end of the list")
        return found

    def _condition(self, depth: int) -> Condition:
        parts = [self._all(depth)]
        while self._take("or"):
            parts.append(self._all(depth))
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _all(self, depth: int) -> Condition:
        parts = [self._one(depth)]
        while self._take("and"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _one(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise self._error(f"a condition has at most {DEEPEST} levels of parentheses and `not`")
        if self._take("not"):
            return Negation(self._one(depth + 1))
        if self._take("("):
            inner = self._condition(depth + 1)
            self._expect(")")
            return inner
        self._tests += 1
        if self._tests > MOST_TESTS:
            raise self._error(f"a condition has at most {MOST_TESTS} comparisons")
        if self._take("exists"):
            return Test(self._path()[0], "exists")
        return self._test(*self._path())

    def _test(self, path: Path, field: Field) -> Condition:
        sign = self._next.text
        if self._take("in"):
            return Test(path, "in", self._list(field))
        if self._take("contains"):
            parts = [Test(path, "contains", (one,)) for one in _forms(field, self._literal()[0])]
            return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))
        if self._next.kind != "symbol" or sign not in _COMPARISONS:
            raise self._error("expected a comparison, `in` or `contains`")
        self._position += 1
        token = self._next
        literal = self._literal_of(field)
        if sign not in _ORDERS:
            forms = _forms(field, literal)
            if len(forms) == 1:
                return Test(path, cast(Operator, sign), forms)
            if sign == "=":
                return Test(path, "in", forms)
            return AllOf(tuple(Test(path, "!=", (one,)) for one in forms))
        if literal is None or isinstance(literal, bool):
            raise self._error("only numbers and texts have an order", token)
        if field.words and isinstance(literal, str):
            bound, order = field.words.index(literal), _ORDERS[sign]
            within = (word for place, word in enumerate(field.words) if order(place, bound))
            return Test(path, "in", tuple(within))
        return Test(path, cast(Operator, sign), (literal,))

    def _list(self, field: Field) -> tuple[Scalar, ...]:
        self._expect("[")
        if self._take("]"):
            return ()
        literals = [self._literal_of(field)]
        while self._take(","):
            if len(literals) == LONGEST_LIST:
                raise self._error(f"a list has at most {LONGEST_LIST} values")
            literals.append(self._literal_of(field))
        self._expect("]")
        return tuple(form for literal in literals for form in _forms(field, literal))

    def _path(self) -> tuple[Path, Field]:
        token = self._next
        if token.kind != "word" or token.text in RESERVED:
            raise self._error("expected the name of a field")
        self._position += 1
        name = token.text
        steps: list[str | int] = []
        while len(steps) <= MOST_STEPS:
            if self._take("."):
                steps.append(self._member())
            elif self._take("["):
                steps.append(self._index())
            else:
                break
        else:
            raise self._error(f"a path has at most {MOST_STEPS} steps", token)
        if name not in self._fields and steps and f"{name}.{steps[0]}" in self._fields:
            name = f"{name}.{steps.pop(0)}"
        field = self._fields.get(name)
        if field is None:
            known = ", ".join(f"`{one}`" for one in sorted(self._fields))
            problem = f"unknown field; the fields are {known}"
            if "value" in self._fields:
                problem += f"; a member of the value is `value.{name[:_LONGEST_NAME]}`"
            raise self._error(problem, token)
        if steps and field.type != "json":
            raise self._error("this field has no members", token)
        path = Path(name, tuple(steps))
        return path, Field("instant") if path in self._instants else field

    def _member(self) -> str:
        token = self._next
        if token.kind == "string":
            return self._string()
        if token.kind != "word":
            raise self._error("expected the name of a member")
        self._position += 1
        return token.text

    def _index(self) -> int:
        token = self._next
        # Digits are few before they are converted, which takes quadratic time.
        if token.kind != "number" or not token.text.isdecimal() or len(token.text) > 5:
            raise self._error("expected the index of an element, from 0")
        if int(token.text) > LARGEST_INDEX:
            raise self._error(f"an index is at most {LARGEST_INDEX}")
        self._position += 1
        self._expect("]")
        return int(token.text)

    def _literal_of(self, field: Field) -> Scalar:
        """Returns a literal that is compared with a field, in the stored form of the field."""
        literal, token = self._literal()
        if not isinstance(literal, str):
            return literal
        if field.words and literal not in field.words:
            words = ", ".join(f'"{one}"' for one in field.words)
            raise self._error(f"the values of this field are {words}", token)
        if field.type == "instant":
            instant = instant_of_field("", literal)
            if instant is None:
                raise self._error("expected a date, or an RFC 3339 instant with an offset", token)
            return instant
        return literal

    def _literal(self) -> tuple[Scalar, Token]:
        token = self._next
        if token.kind == "string":
            return self._string(), token
        if token.kind == "number":
            self._position += 1
            return self._number(token), token
        if token.kind == "word" and token.text in _CONSTANTS:
            self._position += 1
            return _CONSTANTS[token.text], token
        raise self._error("expected a string, a number, `true`, `false` or `null`")

    def _string(self) -> str:
        token = self._next
        try:
            text = msgspec.json.decode(token.text.encode(), type=str)
        except (msgspec.DecodeError, UnicodeError):
            raise self._error("the string is not valid in JSON") from None
        if "\0" in text:
            raise self._error("a string must not contain the character NUL")
        self._position += 1
        return text

    def _number(self, token: Token) -> int | float:
        if token.text.lstrip("-").isdecimal():
            number = int(token.text) if len(token.text) <= 17 else LARGEST_INTEGER + 1
            if abs(number) > LARGEST_INTEGER:
                raise self._error(f"an integer lies between -{LARGEST_INTEGER} and the same", token)
            return number
        decimal = float(token.text)
        if math.isinf(decimal):
            raise self._error("the number is too large", token)
        return decimal

    def _take(self, text: str) -> bool:
        """Skips the next token if it is this word or symbol; returns whether it was."""
        token = self._next
        if token.text != text or token.kind not in ("word", "symbol"):
            return False
        self._position += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._error(f"expected `{text}`")

    def _error(self, problem: str, token: Token | None = None) -> ExpressionError:
        return error_at(self._text, (token or self._next).offset, problem)


def _forms(field: Field, literal: Scalar) -> tuple[Scalar, ...]:
    """Returns the texts that a literal stands for: all forms of a name, and otherwise itself."""
    return name_forms(literal) if field.is_name and isinstance(literal, str) else (literal,)
