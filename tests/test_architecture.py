"""The architecture: imports between packages, sizes of files, and tables named by statements."""

from __future__ import annotations

import ast
import configparser
import logging
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import apsw
import pytest
from importlinter.cli import lint_imports

from memorywall.storage.sql.record_statements import all_checks, record_statements
from memorywall.storage.sql.record_table import RECORDS
from memorywall.storage.sqlite.connection import migrations
from memorywall.storage.statements import load, nouns
from memorywall.wire.openwop import OPENWOP_OPERATIONS
from memorywall.wire.operations import OPERATIONS

_ROOT = Path(__file__).parents[1]
_SOURCE = _ROOT / "src" / "memorywall"
_CONTRACTS = _ROOT / ".importlinter"
_LONGEST_FILE = 500
_LONGEST_BODY = 60
_SURFACES = ("wire", "operations", "sdk", "cli")
_SURFACE_LINES = 181.9
"""The most lines of the surfaces for each operation of the table; to be lowered, not raised."""
_MODULES = sorted(_SOURCE.rglob("*.py"))
_SUITE = _ROOT / "packages" / "testing" / "src" / "memorywall_testing"
_ALL_MODULES = [*_MODULES, *sorted(_SUITE.rglob("*.py"))]
_SQL = _SOURCE / "storage" / "sqlite" / "sql"


def _name(path: Path) -> str:
    return path.relative_to(_SUITE if path.is_relative_to(_SUITE) else _SOURCE).as_posix()


# Imports


def test_imports_go_only_where_the_contracts_let_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(_ROOT)
    known = [one for one in logging.root.manager.loggerDict.values() if hasattr(one, "disabled")]
    disabled = [one.disabled for one in known]
    code = lint_imports(config_filename=str(_CONTRACTS), no_cache=True, no_logo=True)
    # The linter sets up logging for itself and silences every logger there was before.
    for one, was_disabled in zip(known, disabled, strict=True):
        one.disabled = was_disabled
    printed = capsys.readouterr().out
    assert code == 0, printed
    assert re.search(r"Contracts: [1-9]\d* kept, 0 broken", printed), printed


def test_every_package_is_in_an_import_contract() -> None:
    """A room no contract names could import anything."""
    parser = configparser.ConfigParser()
    parser.read(_CONTRACTS, encoding="utf-8")
    layers = parser["importlinter:contract:floors"]["layers"]
    limited = [
        section.get("source_modules", "")
        for name, section in parser.items()
        if name.startswith("importlinter:contract:")
    ]
    named = set(re.findall(r"memorywall\.(\w+)", "\n".join([layers, *limited])))
    rooms = {
        path.stem if path.suffix == ".py" else path.name
        for path in _SOURCE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert rooms - {"__init__", "__main__"} <= named


@cache
def _imported(path: Path) -> set[str]:
    """The modules that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def test_only_the_conformance_suite_needs_what_tests_need() -> None:
    tools = {"pytest", "hypothesis", "_pytest", "memorywall_testing"}
    for path in _MODULES:
        for name in _imported(path):
            assert name.partition(".")[0] not in tools, _name(path)


@pytest.mark.parametrize(("backend", "driver"), [("sqlite", "apsw"), ("postgres", "asyncpg")])
def test_only_its_own_room_and_assembly_know_a_backend(backend: str, driver: str) -> None:
    room = _SOURCE / "storage" / backend
    assert any(driver in _imported(path) for path in _MODULES if path.is_relative_to(room))
    for path in _MODULES:
        own = path.is_relative_to(room)
        # Words are stemmed by a function of SQLite's; nothing is stored with it.
        if not own and _name(path) != "recall/analyzer.py":
            assert not {one for one in _imported(path) if one.partition(".")[0] == driver}
        if not own and _name(path) != "assembly.py":
            named = {one for one in _imported(path) if f"storage.{backend}" in one}
            assert named == set(), _name(path)


# What decides, and what reads a file of somebody's, can be judged by what it is given alone.
_KNOWN_TO = {
    "records": {"records"},
    "policy": {"policy", "records"},
    "workflow": {"workflow", "records"},
    "wire": {"wire", "kinds", "records"},
    "coordination": {"coordination", "service", "tiers", "policy", "storage", "records"},
}
_WHAT_A_DECISION_NEEDS = {"__future__", "collections", "dataclasses", "memorywall"}


@pytest.mark.parametrize("room", _KNOWN_TO)
def test_a_room_knows_only_these(room: str) -> None:
    paths = [path for path in _MODULES if path.is_relative_to(_SOURCE / room)]
    assert paths
    for path in paths:
        ours = {one for one in _imported(path) if one.partition(".")[0] == "memorywall"}
        known = {one.split(".")[1] for one in ours}
        assert known <= _KNOWN_TO[room], _name(path)
        backends = {one for one in ours if one.startswith("memorywall.storage.")}
        assert all(one.startswith("memorywall.storage.port.") for one in backends), _name(path)


def test_what_decides_does_nothing_else() -> None:
    for path in (_SOURCE / "policy").glob("*.py"):
        module = ast.parse(path.read_text(encoding="utf-8"))
        assert {one.partition(".")[0] for one in _imported(path)} <= _WHAT_A_DECISION_NEEDS
        assert not [node for node in ast.walk(module) if isinstance(node, ast.AsyncFunctionDef)]
        called = {ast.unparse(node.func) for node in ast.walk(module) if isinstance(node, ast.Call)}
        assert called.isdisjoint({"open", "print", "input", "exec", "eval", "__import__"})


_CHOICE_BY_TIER = re.compile(r"\b(?:tier|memory_type) (?:is(?: not)?|==|!=) Tier\.")


def test_no_code_of_the_server_asks_which_tier_it_is() -> None:
    """What differs between tiers stands in the table of tiers. A client does not know that."""
    exempt = ("tiers", "policy", "sdk")
    for path in _MODULES:
        if path.relative_to(_SOURCE).parts[0] not in exempt:
            assert not _CHOICE_BY_TIER.search(path.read_text(encoding="utf-8")), _name(path)


# Files


def _parsed() -> Iterator[tuple[Path, ast.Module]]:
    """Every module. One at a time, because all of them together fill a gigabyte."""
    assert len(_MODULES) > 100
    for path in _ALL_MODULES:
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def _long_functions(module: ast.Module) -> Iterator[str]:
    """What it is called with and what is said about it may take more room."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            end = (body[-1].end_lineno or 0) if body else 0
            if body and end - body[0].lineno >= _LONGEST_BODY:
                yield node.name


def test_a_function_does_one_thing_and_what_is_public_says_what_it_is() -> None:
    for path, module in _parsed():
        assert list(_long_functions(module)) == [], _name(path)
        assert list(_undocumented(path, module)) == [], _name(path)


def test_a_file_can_be_read_at_one_sitting() -> None:
    for path in _ALL_MODULES:
        assert len(path.read_text(encoding="utf-8").splitlines()) < _LONGEST_FILE, _name(path)


def test_the_surface_of_an_operation_does_not_grow() -> None:
    """The lines that a new operation costs beside its rules. What is raised here comes back with
    every operation: make the mechanism do more instead."""
    lines = sum(
        len(path.read_text(encoding="utf-8").splitlines())
        for path in _MODULES
        if path.relative_to(_SOURCE).parts[0] in _SURFACES
    )
    each = lines / (len(OPERATIONS) + len(OPENWOP_OPERATIONS))
    assert each <= _SURFACE_LINES, (
        f"{' + '.join(_SURFACES)} have {each:.1f} lines for each of {len(OPERATIONS)} operations,"
        f" and had {_SURFACE_LINES}: derive what is new from the operations table"
    )


# A function that is bound to an operation has its name; the operations table describes it.
_TOLD_IN_THE_TABLE = {operation.name for operation in OPERATIONS if operation.summary}


def _undocumented(path: Path, module: ast.Module) -> Iterator[str]:
    """What has no docstring: the module, its public classes and functions, a contract's methods."""
    told = _TOLD_IN_THE_TABLE if path.parent == _SOURCE / "operations" else set[str]()
    if ast.get_docstring(module) is None:
        yield "the module"
    for node in module.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_") or _is_overload(node) or node.name in told:
            continue
        if path.name == "routes.py" and _is_route(node):
            continue
        if ast.get_docstring(node) is None:
            yield node.name
        if isinstance(node, ast.ClassDef) and _is_protocol(node):
            for method in node.body:
                if (
                    isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
                    and not method.decorator_list
                    and ast.get_docstring(method) is None
                ):
                    yield f"{node.name}.{method.name}"


def _is_route(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the table of OpenWOP says what a function does."""
    return any("route(" in ast.unparse(one) for one in node.decorator_list)


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).startswith("Protocol") for base in node.bases)


def _is_overload(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(one).endswith("overload") for one in node.decorator_list)


# Statements


@cache
def _empty_database() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    for _, _, sql in migrations():
        connection.execute(sql)
    return connection


def _schema() -> dict[str, bool]:
    """Every table, and whether its rows belong to a tenant."""
    connection = _empty_database()
    return {
        name: any(row[1] == "tenant" for row in connection.execute(f"PRAGMA table_info({name})"))
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    }


def _statements() -> Iterator[tuple[str, str]]:
    shown = {name: ", ".join(spec.shown) for name, spec in RECORDS.items()}
    for noun in nouns("sqlite"):
        named = load("sqlite", noun, shown=shown.get(noun, ""))
        for part in _PARTS:
            named.pop(part, "")
        for name, statement in named.items():
            yield f"{noun}.{name}", statement
    for table, spec in RECORDS.items():
        for name, statement in record_statements(spec, "sqlite").items():
            if name != "columns":
                yield f"record {table}.{name}", statement
    declared = all_checks("sqlite").items()
    yield from ((f"inspection.{name}", statement) for name, statement in declared)


# Other statements contain these, which are none.
_PARTS = ("columns", "evictable")
_TABLES = _schema()
_STATEMENTS = dict(_statements())
# A key is looked up before its tenant is known, and to try the key-encryption key any row will do.
_OF_NO_TENANT = {
    "data_keys.any",
    "data_keys.wrappers",
    "identities.find_key",
    "identities.keys_of_all",
    # A file has few keys and no index of them by tenant.
    "identities.keys",
    "identities.end_key",
    "identities.revoke_key",
    # By the prefix, which is unique, and only a key of the tenant.
    "identities.touch_key",
}
_MENTIONED = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE(?! SET))\s+(\w+)")
_OF_TENANT = re.compile(r"\btenant = (?:\?|\w+\.tenant\b)")


def _tenant_tables(statement: str) -> list[str]:
    """Each mention of a table whose rows belong to tenants."""
    return [name for name in _MENTIONED.findall(statement) if _TABLES.get(name, False)]


def _named_tenants(statement: str) -> int:
    """How often the statement holds a table to one tenant: in WHERE, ON or the columns it fills."""
    filled = len(re.findall(r"INTO \w+ \([^)]*\btenant\b", statement))
    return filled + len(_OF_TENANT.findall(statement))


def test_every_table_but_the_list_of_them_belongs_to_tenants() -> None:
    assert {name for name, owned in _TABLES.items() if not owned} == {"tenants"}


def test_every_key_and_index_begins_with_the_tenant() -> None:
    connection = _empty_database()
    indexes = 0
    for table in (name for name, owned in _TABLES.items() if owned and name != "api_keys"):
        for row in connection.execute(f"PRAGMA index_list({table})").fetchall():
            first = connection.execute(f"PRAGMA index_info({row[1]})").fetchone()
            assert first is not None
            assert first[2] == "tenant", row[1]
            indexes += 1
    assert indexes > len(_TABLES) // 2


_CHECKS = [name for name in _STATEMENTS if name.startswith("inspection.")]
_OF_TENANTS = [name for name in _STATEMENTS if name not in {*_CHECKS, *_OF_NO_TENANT}]


def test_a_statement_names_the_tenant_of_every_table_it_touches() -> None:
    for name in _OF_NO_TENANT:
        assert _tenant_tables(_STATEMENTS[name]), name
    for name in _OF_TENANTS:
        statement = _STATEMENTS[name]
        assert _named_tenants(statement) >= len(_tenant_tables(statement)), (name, statement)


@pytest.mark.parametrize(
    "name", [name for name in _OF_TENANTS if _tenant_tables(_STATEMENTS[name])]
)
def test_a_statement_walks_no_table_of_tenants(name: str) -> None:
    """Its plan goes through a key or an index, and by the tenant first."""
    connection = _empty_database()
    statement = _STATEMENTS[name]
    numbered = [int(number) for number in re.findall(r"\?(\d+)", statement)]
    bindings = (None,) * max(numbered, default=statement.count("?"))
    for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", bindings):
        line = str(row[3])
        if line == "SCAN CONSTANT ROW":
            # It reads no table.
            continue
        if line.startswith(("SCAN", "SEARCH")) and "json_each" not in line:
            by_number = "INTEGER PRIMARY KEY" in line and "tenant = ?" in statement
            within_list = "LIST SUBQUERY" in line
            assert "(tenant=?" in line or by_number or within_list, line


@pytest.mark.parametrize("name", _CHECKS)
def test_a_check_compares_rows_of_one_tenant(name: str) -> None:
    statement = _STATEMENTS[name]
    for part in statement.split("UNION"):
        grouped = "GROUP BY tenant" in part
        assert grouped or _named_tenants(part) >= len(_tenant_tables(part)) - 1, statement


def test_statements_are_put_together_nowhere_else() -> None:
    """SQL stands in the files of statements, and what `search` and the pragmas put together."""
    allowed = {
        "search.py",
        "search_statement.py",
        "row_conditions.py",
        "conditions.py",
        "entry_columns.py",
        "connection.py",
        "checkpointer.py",
        "writer.py",
        "store.py",
        "consistency.py",
        "migrate.py",
        "transfer.py",
        "transfer_statements.py",
        "record_statements.py",
        "statements.py",
    }
    pattern = re.compile(r"\b(?:SELECT .* FROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b")
    backends = {_SOURCE / "storage" / name for name in ("", "sqlite", "postgres", "sql")}
    for path in _MODULES:
        if path.parent in backends and path.name in allowed:
            continue
        assert not pattern.search(path.read_text(encoding="utf-8")), _name(path)


def test_the_rules_above_can_fail() -> None:
    """Each rule about statements refuses one that breaks it."""
    assert _tenant_tables("SELECT 1 FROM entries e JOIN usage u ON u.owner = e.owner") == [
        "entries",
        "usage",
    ]
    assert _named_tenants("SELECT 1 FROM entries WHERE id = ?1") == 0
    assert _named_tenants("INSERT INTO usage (owner, tier) VALUES (?1, ?2)") == 0
    assert _named_tenants("INSERT INTO usage (tenant, owner) VALUES (?1, ?2)") == 1
    assert _named_tenants("UPDATE entries SET tags = ?2 WHERE tenant = ?1") == 1
    assert set(_OF_NO_TENANT) <= set(_STATEMENTS)
    assert len(_STATEMENTS) > 40


def _class_names(source: str) -> list[str]:
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


def _repeated(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def test_each_class_name_exists_once() -> None:
    """A name that stands for two classes makes imports and search results ambiguous."""
    names = [
        name for path in _ALL_MODULES for name in _class_names(path.read_text(encoding="utf-8"))
    ]
    assert _repeated(names) == []


def test_a_repeated_class_name_is_found() -> None:
    names = _class_names("class Page: ...\n\nclass Other:\n    class Page: ...\n")
    assert _repeated(names) == ["Page"]


def _set_states(source: str) -> set[str]:
    """What a file gives another `state`, and whether it makes an entry with one."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and any(one.arg == "state" for one in node.keywords):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in {"replace", "Entry"}:
                found.add(ast.unparse(node.args[0]) if node.args else name)
    return found


def test_one_function_sets_the_state_of_an_entry() -> None:
    """The others are states of sessions and of checkpoints."""
    found = {
        (_name(path), one)
        for path in _MODULES
        for one in _set_states(path.read_text(encoding="utf-8"))
    }
    assert found == {
        ("service/entries/state.py", "opened"),
        ("sessions/continuation.py", "wanted"),
        ("sessions/overflow.py", "checkpoint"),
    }
