"""Parses SQL as far as the rules for PostgreSQL statements need it.

A statement is taken apart into its queries, and each of them must hold every table it touches to
one tenant by conditions that nothing else can loosen.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Union

Token = Union[str, "Group"]
"""A word, a sign, a binding, or what stands in parentheses."""

_COMMENT = re.compile(r"--[^\n]*")
_TOKEN = re.compile(
    r"""(?P<text>[Ee]?'(?:[^']|'')*')|(?P<quoted>"[^"]+")|(?P<word>[^\W\d]\w*)|(?P<bound>\$\d+)
    |(?P<other>\d+|::|<>|>=|<=|!=|->>|->|\|\||\?[&|]|\$\$|\S)""",
    re.VERBOSE,
)
_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
    SELECT FROM WHERE GROUP ORDER HAVING LIMIT OFFSET RETURNING SET VALUES ON USING JOIN LEFT RIGHT
    FULL INNER OUTER CROSS NATURAL LATERAL UPDATE INTO DELETE INSERT FOR AS AND OR NOT UNION ALL
    INTERSECT EXCEPT WITH CONFLICT DO NOTHING BY IS DISTINCT ONLY
    """,
    )
)
_ENDS_OF_CONDITION = frozenset(
    re.findall(
        r"\w+",
        """
    GROUP ORDER HAVING LIMIT OFFSET RETURNING WHERE JOIN LEFT RIGHT FULL INNER CROSS FOR ON SET
    UNION SELECT
    """,
    )
)
_FORBIDDEN = {
    "a sequence": r"\bsequence\b|\b(?:next|curr|set)val\b|\b(?:small|big)?serial\d?\b|\bidentity\b",
    "the database's clock": r"\b(?:now|(?:clock|statement|transaction)_timestamp|timeofday)\s*\("
    r"|\bcurrent_(?:timestamp|date|time)\b|\blocaltime(?:stamp)?\b",
    "chance": r"\brandom\w*\s*\(|\bgen_random\w+|\buuid\w*\s*\(|\btablesample\b",
    "a trigger": r"\btrigger\b",
    "a rule or function": r"\bcreate\s+(?:or\s+replace\s+)?(?:rule|function|procedure|view)\b",
    "a foreign key": r"\breferences\b|\bforeign\s+key\b",
    "a value by default": r"\bdefault\b",
    "a message": r"\b(?:un)?listen\b|\b(?:pg_)?notify\b",
    "an advisory lock": r"\bpg_(?:try_)?advisory\w*",
    "a table that is not kept": r"\btemp(?:orary)?\b|\bunlogged\b",
    "another lock": r"\block\s+table\b|\bskip\s+locked\b|\bnowait\b",
}
MAY_BE_LOCKED = {"heads"}
"""The table whose rows are locked: one row of a tenant, for which its writers wait."""


@dataclass(eq=False)
class Group:
    """Returns the text in parentheses."""

    tokens: list[Token] = field(default_factory=list)


def forbidden(text: str) -> list[str]:
    """Returns the forbidden constructs that a text uses."""
    bare = _COMMENT.sub("", text)
    return [what for what, how in _FORBIDDEN.items() if re.search(how, bare, re.IGNORECASE)]


def problems(statement: str, tenants: dict[str, str], others: Sequence[str] = ()) -> list[str]:
    """The problems of a statement.

    tenants: for each table the column that says whose a row is
    others: what else may be read from, as it holds nobody's rows
    """
    tokens = _parse(statement)
    known = {*_common_tables(tokens), *others}
    found = forbidden(statement)
    for query in _queries(tokens):
        found.extend(_Query(query, tenants, known).problems())
    return found


def _parse(statement: str) -> list[Token]:
    levels: list[list[Token]] = [[]]
    for match in _TOKEN.finditer(_COMMENT.sub("", statement)):
        token = match[0]
        if token == "(":
            group = Group()
            levels[-1].append(group)
            levels.append(group.tokens)
        elif token == ")":
            levels.pop()
        elif match["word"]:
            levels[-1].append(token.upper() if token.upper() in _KEYWORDS else token)
        else:
            levels[-1].append(token.strip('"') if match["quoted"] else token)
    assert len(levels) == 1, f"a parenthesis is open: {statement}"
    return levels[0]


def _common_tables(tokens: list[Token]) -> Iterator[str]:
    """The names that WITH gives to queries, wherever it stands."""
    for place, token in enumerate(tokens):
        if isinstance(token, Group):
            yield from _common_tables(token.tokens)
        elif token == "AS" and place:
            body = tokens[place + 1 : place + 3]
            if body and (isinstance(body[0], Group) or body[0] == "MATERIALIZED"):
                name = tokens[place - 1]
                name = tokens[place - 2] if isinstance(name, Group) else name
                if isinstance(name, str) and _stands_in_with(tokens, place):
                    yield name


def _stands_in_with(tokens: list[Token], place: int) -> bool:
    before = tokens[:place]
    return "WITH" in before and not {"SELECT", "INSERT", "UPDATE", "DELETE"} & {
        one for one in before if isinstance(one, str)
    }


def _queries(tokens: list[Token]) -> Iterator[list[Token]]:
    """Each query of a statement, without those within it."""
    query: list[Token] = []
    for token in tokens:
        if isinstance(token, Group):
            yield from _queries(token.tokens)
        if token in ("UNION", "INTERSECT", "EXCEPT"):
            yield query
            query = []
        else:
            query.append(token)
    yield query


class _Query:
    """One query: what it touches, and under which conditions."""

    def __init__(self, tokens: list[Token], tenants: dict[str, str], known: set[str]) -> None:
        self._tokens = tokens
        self._tenants = tenants
        self._known = known
        self._strange: list[str] = []
        self._filled: list[tuple[str, int]] = []
        self._touched: dict[str, str] = {}
        self._find_tables()

    def problems(self) -> Iterator[str]:
        """Returns the problems of the statement."""
        yield from (f"{name} is no table known here" for name in self._strange)
        for table, place in self._filled:
            yield from self._problems_of_filling(table, place)
        held = self._held()
        for alias, table in self._touched.items():
            if alias not in held:
                yield f"{table} is not held to one tenant"
        yield from self._problems_of_conflict()
        yield from self._problems_of_locks()

    def _word(self, place: int) -> str:
        token = self._tokens[place] if 0 <= place < len(self._tokens) else ""
        return token if isinstance(token, str) else ""

    def _find_tables(self) -> None:
        in_list = False
        for place in range(len(self._tokens)):
            word, before = self._word(place), self._word(place - 1)
            if word == "FROM":
                in_list = before != "DISTINCT"
                if in_list:
                    self._add(place + 1)
            elif word == "JOIN" or (word == "USING" and self._word(place + 1)):
                in_list = True
                self._add(place + 1)
            elif word == "," and in_list:
                self._add(place + 1)
            elif word in ("WHERE", "ON", "SET", "GROUP", "ORDER", "LIMIT", "RETURNING"):
                in_list = False
            elif word == "INTO":
                self._filled.append((self._word(place + 1), place))
                if self._word(place + 1) not in self._tenants:
                    self._strange.append(self._word(place + 1))
            elif word == "UPDATE" and before not in ("DO", "FOR", "KEY"):
                self._add(place + 1)

    def _add(self, place: int) -> None:
        """Notes the table that is named at a place, under the name it goes by in the query."""
        while self._word(place) in ("LATERAL", "ONLY"):
            place += 1
        name = self._word(place)
        if not name or isinstance(self._after(place), Group):
            # Another query, or the rows of a function.
            return
        if name in self._known:
            return
        if name not in self._tenants:
            self._strange.append(name)
            return
        alias = self._word(place + 2) if self._word(place + 1) == "AS" else self._word(place + 1)
        named = bool(re.fullmatch(r"\w+", alias)) and alias not in _KEYWORDS
        self._touched[alias if named else name] = name

    def _after(self, place: int) -> Token | None:
        return self._tokens[place + 1] if place + 1 < len(self._tokens) else None

    def _conditions(self) -> Iterator[list[Token]]:
        """The conditions that all must hold, of WHERE and of ON."""
        for place in range(len(self._tokens)):
            starts = self._word(place) == "WHERE" or (
                self._word(place) == "ON" and self._word(place + 1) != "CONFLICT"
            )
            if not starts:
                continue
            terms: list[list[Token]] = [[]]
            for token in self._tokens[place + 1 :]:
                if token in _ENDS_OF_CONDITION:
                    break
                if token == "AND":
                    terms.append([])
                elif token == "OR":
                    # What is said besides need not hold.
                    terms = []
                    break
                else:
                    terms[-1].append(token)
            yield from terms

    def _held(self) -> set[str]:
        """Returns the tables that are restricted to the bound tenant, also through another one."""
        held: set[str] = set()
        equal: list[tuple[str, str]] = []
        for term in self._conditions():
            words = [one for one in term if isinstance(one, str)]
            if len(words) != len(term) or "=" not in words:
                continue
            left, right = words[: words.index("=")], words[words.index("=") + 1 :]
            alias = self._alias_of_tenant(left)
            if alias is None:
                continue
            if right and re.fullmatch(r"\$\d+", right[0]) and right[1:2] in ([], ["::"]):
                held.add(alias)
            elif (other := self._alias_of_tenant(right)) is not None:
                equal.append((alias, other))
        for _ in equal:
            for one, other in equal:
                if one in held or other in held:
                    held |= {one, other}
        return held

    def _alias_of_tenant(self, words: list[str]) -> str | None:
        """Returns the table of a reference to a tenant."""
        if len(words) == 3 and words[1] == ".":
            alias, column = words[0], words[2]
        elif len(words) == 1 and len(self._touched) == 1:
            alias, column = next(iter(self._touched)), words[0]
        else:
            return None
        table = self._touched.get(alias)
        return alias if table is not None and column == self._tenants[table] else None

    def _problems_of_filling(self, table: str, place: int) -> Iterator[str]:
        columns, tenant = self._after(place + 1), self._tenants.get(table)
        if not isinstance(columns, Group) or tenant not in columns.tokens:
            yield f"{table} is not given its tenant"
            return
        values: list[list[Token]] = [[]]
        for token in self._given(place + 3):
            if token == ",":
                values.append([])
            else:
                values[-1].append(token)
        at = [one for one in columns.tokens if one != ","].index(tenant)
        bound = [values[at]] if at < len(values) else []
        if values[0] != ["*"] and not any(
            len(one) == 1 and re.fullmatch(r"\$\d+", str(one[0])) for one in bound
        ):
            yield f"the tenant that {table} is given is not bound"

    def _given(self, place: int) -> list[Token]:
        """Returns the values of an inserted row."""
        given = self._after(place)
        if self._word(place) == "VALUES" and isinstance(given, Group):
            return given.tokens
        rest = self._tokens[place + 1 :]
        return list(itertools.takewhile(lambda token: token not in ("FROM", "ON"), rest))

    def _problems_of_conflict(self) -> Iterator[str]:
        for place in range(len(self._tokens)):
            if self._word(place) != "CONFLICT":
                continue
            target, (table, _) = self._after(place), self._filled[-1]
            tenant = self._tenants.get(table)
            if isinstance(target, Group) and target.tokens[:1] != [tenant]:
                yield f"what {table} may be in conflict by does not begin with the tenant"
            rest = self._tokens[place:]
            # A condition before it only says which index is meant.
            rest = rest[rest.index("DO") :] if "DO" in rest else rest
            if "WHERE" in rest:
                at = rest.index("WHERE") + 1
                if rest[at : at + 4] != [table, ".", tenant, "="]:
                    yield f"the row of {table} in conflict is not held to one tenant"

    def _problems_of_locks(self) -> Iterator[str]:
        for place in range(len(self._tokens)):
            if self._word(place) == "FOR" and not {*self._touched.values()} <= MAY_BE_LOCKED:
                yield f"rows of {', '.join(self._touched.values())} are locked"
