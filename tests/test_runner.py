"""What runs operations: each has one function, and nothing is done that nobody decided about."""

from __future__ import annotations

import ast
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import memorywall
from memorywall.operations import binding
from memorywall.operations.table import FUNCTIONS
from memorywall.records.decision import Target, Verb
from memorywall.records.errors import (
    FencedError,
    MemoryAccessError,
    UndecidedOperationError,
)
from memorywall.records.namespace import Access, Namespace
from memorywall.records.principal import Maintenance, Permission, Principal, PrincipalKind
from memorywall.records.tier import Isolation
from memorywall.service.access.api_keys import ApiKeyAuthenticator
from memorywall.service.access.targets import owner_target
from memorywall.service.administration.tenants import create_key
from memorywall.service.requests.operation_context import (
    BoundFunction,
    OperationCall,
    OperationContext,
)
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import inspect, maintain, system_principal
from memorywall.service.runner.operation_runner import (
    OperationRunner,
    OperationTransactions,
    run_read,
    run_write,
)
from memorywall.settings import DEFAULT_TENANT
from memorywall.wire.openwop import OPENWOP_BY_NAME
from memorywall.wire.operations import OPERATIONS, Operation
from tests.http.checks import MEMORY, assert_problem, make
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

_SOURCE = Path(memorywall.__file__).parent
_NAMES = {operation.name: operation for operation in OPERATIONS}
_NAMESPACE = "of-nobody"


def _ada(kind: PrincipalKind = PrincipalKind.AGENT, agent: str = "ada") -> Principal:
    return Principal(tenant=DEFAULT_TENANT, id=agent, kind=kind, permissions=frozenset(Permission))


# The table


def test_every_operation_has_one_function_and_every_function_an_operation() -> None:
    assert len(_NAMES) == len(OPERATIONS)
    assert set(FUNCTIONS) == {*_NAMES, *OPENWOP_BY_NAME}
    own = {name: bound for name, bound in FUNCTIONS.items() if name in _NAMES}
    # A function that two operations shared could not be called like both.
    assert len({bound.run for bound in own.values()}) == len(OPERATIONS)
    for name, bound in own.items():
        assert getattr(bound.run, "__name__", "") == name


def test_a_second_function_and_one_without_an_operation_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(binding, "FUNCTIONS", dict(FUNCTIONS))

    async def function(*_: object) -> None: ...

    for decorator in (binding.operation, binding.multi_transaction_operation):
        for name in ("get_entry", "no_such_operation"):
            with pytest.raises(LookupError):
                decorator(name)(function)
    assert binding.FUNCTIONS == FUNCTIONS


# What nobody decided about


async def _found(context: OperationContext) -> None:
    """Writes, and asks nobody whether it may."""
    await context.transaction.namespaces.save(
        Namespace(
            tenant=context.tenant,
            name=_NAMESPACE,
            default=Access.WRITE,
            created_at=context.now,
            updated_at=context.now,
        )
    )


async def _look(context: OperationContext) -> list[Namespace]:
    """Reads, and asks nobody whether it may."""
    return await context.transaction.namespaces.list_for(context.principal.id)


async def _namespaces(service: SharedServices) -> list[str]:
    known = await service.store.read(DEFAULT_TENANT, lambda to: to.namespaces.list_for("ada"))
    return [one.name for one in known]


def _runner_of(
    service: RunningService,
    operation: Operation,
    function: Callable[..., Awaitable[object]],
    in_session: bool,
) -> OperationRunner:
    """A runner in which this function stands in an operation's place."""
    bound = BoundFunction(run=function, in_session=in_session, changes=operation.changes)
    return OperationRunner(service.services, {**FUNCTIONS, operation.name: bound})


@pytest.mark.parametrize("long", [False, True])
async def test_write_without_a_decision_is_not_committed(
    service: RunningService, long: bool
) -> None:
    with pytest.raises(UndecidedOperationError):
        await run_write(service.services, _ada(), _found, long=long)
    assert await _namespaces(service.services) == []

    async def decided(context: OperationContext) -> None:
        context.authorize(Verb.CREATE, owner_target(context.tenant, context.principal.id))
        await _found(context)

    # It was the missing decision that it was not committed for.
    await run_write(service.services, _ada(), decided, long=long)
    assert await _namespaces(service.services) == [_NAMESPACE]


@pytest.mark.parametrize("key", [None, "again"])
async def test_an_operation_that_writes_without_a_decision_is_not_committed(
    service: RunningService, key: str | None
) -> None:
    operation = _NAMES["create_entry"]

    async def function(context: OperationContext, call: OperationCall) -> None:
        await _found(context)

    runner = _runner_of(service, operation, function, in_session=False)
    call = OperationCall(operation=operation, principal=_ada(), idempotency_key=key)
    for _ in range(2):
        with pytest.raises(UndecidedOperationError):
            await runner.run(call)
    assert await _namespaces(service.services) == []
    kept = await service.services.store.read(
        DEFAULT_TENANT, lambda to: to.replies.get("ada", "again")
    )
    assert kept is None


@pytest.mark.parametrize("way", ["write", "write_long"])
async def test_a_session_that_writes_without_a_decision_is_not_committed(
    service: RunningService, way: str
) -> None:
    operation = _NAMES["next_task"]

    async def function(transactions: OperationTransactions) -> None:
        await getattr(transactions, way)(_found)

    runner = _runner_of(service, operation, function, in_session=True)
    with pytest.raises(UndecidedOperationError):
        await runner.run(OperationCall(operation=operation, principal=_ada()))
    assert await _namespaces(service.services) == []


async def test_read_without_a_decision_returns_nothing(service: RunningService) -> None:
    with pytest.raises(UndecidedOperationError):
        await run_read(service.services, _ada(), _look)

    async def in_transaction(context: OperationContext, call: OperationCall) -> list[Namespace]:
        return await _look(context)

    async def in_session(transactions: OperationTransactions) -> list[Namespace]:
        return await transactions.read(_look)

    for name, function, is_session in (
        ("list_namespaces", in_transaction, False),
        ("whoami", in_session, True),
    ):
        operation = _NAMES[name]
        runner = _runner_of(service, operation, function, is_session)
        with pytest.raises(UndecidedOperationError):
            await runner.run(OperationCall(operation=operation, principal=_ada()))

    async def decided(context: OperationContext) -> list[Namespace]:
        context.decide(Verb.OBSERVE, owner_target(context.tenant, context.principal.id))
        return await _look(context)

    assert await run_read(service.services, _ada(), decided) == []


async def test_a_decision_of_one_transaction_does_not_count_in_the_next(
    service: RunningService,
) -> None:
    async def decided(context: OperationContext) -> None:
        context.authorize(Verb.READ, owner_target(context.tenant, context.principal.id))

    call = OperationCall(operation=_NAMES["next_task"], principal=_ada())
    session = OperationTransactions(service.services, call)
    await session.read(decided)
    with pytest.raises(UndecidedOperationError):
        await session.write(_found)
    assert await _namespaces(service.services) == []


async def test_a_caller_is_told_nothing_of_a_missing_decision_but_that_it_failed(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = await service.agent("ada")

    async def function(context: OperationContext, call: OperationCall) -> None:
        await _found(context)

    monkeypatch.setitem(FUNCTIONS, "delete_entry", BoundFunction(run=function, changes=True))
    made = await make(ada)
    reply = await ada.delete(f"{MEMORY}/{made['id']}")
    problem = assert_problem(reply, 500, "INTERNAL_ERROR")
    assert made["id"] not in str(problem.get("detail"))
    assert await _namespaces(service.services) == []


# Under a lease


@pytest.mark.parametrize("in_session", [False, True])
async def test_an_operation_that_ignores_its_lease_is_not_committed(
    service: RunningService, in_session: bool
) -> None:
    operation = _NAMES["next_task" if in_session else "create_entry"]

    async def decided(context: OperationContext, *_: OperationCall) -> None:
        context.authorize(Verb.CREATE, owner_target(context.tenant, context.principal.id))
        await _found(context)

    async def in_transactions(transactions: OperationTransactions) -> None:
        await transactions.write(decided)

    runner = _runner_of(service, operation, in_transactions if in_session else decided, in_session)
    ended = replace(_ada(), fencing_token=7)
    with pytest.raises(FencedError):
        await runner.run(OperationCall(operation=operation, principal=ended))
    assert await _namespaces(service.services) == []
    # It was the token that it was refused for.
    await runner.run(OperationCall(operation=operation, principal=_ada()))
    assert await _namespaces(service.services) == [_NAMESPACE]


# Refusals


async def test_refused_requests_are_counted_by_operation_and_code(service: RunningService) -> None:
    ada, grace = await service.agent("ada"), await service.agent("grace")
    counts = service.services.refusals.counts
    made = await make(ada)
    path = f"{MEMORY}/{made['id']}"
    assert (await ada.get(path)).is_success
    assert_problem(await ada.get(f"{MEMORY}/mem_none"), 404)
    assert_problem(await ada.patch(path, json={}, headers={"If-Match": "1"}), 422)
    assert counts() == {}, "what is not refused is not counted"
    for _ in range(2):
        assert_problem(await grace.get(path), 403, "ACCESS_DENIED")
    assert_problem(await grace.delete(path), 403, "ACCESS_DENIED")
    # In a function that opens its transactions itself, too.
    assert_problem(await grace.get("/api/v1/agents/ada/events"), 403, "ACCESS_DENIED")
    fenced = await ada.post(MEMORY, json=draft("other"), headers={"Fencing-Token": "7"})
    code = assert_problem(fenced, 409, "FENCED")["error"]
    assert counts() == {
        ("get_entry", "ACCESS_DENIED"): 2,
        ("delete_entry", "ACCESS_DENIED"): 1,
        ("list_events", "ACCESS_DENIED"): 1,
        ("create_entry", code): 1,
    }
    told = counts()
    told.clear()
    assert len(counts()) == 4, "the counts cannot be changed through what is told of them"


# What the server does of itself


async def _nothing(context: OperationContext) -> str:
    return context.principal.id


@pytest.mark.parametrize("maintenance", list(Maintenance))
async def test_a_system_principal_may_do_its_one_maintenance_and_nothing_else(
    service: RunningService, maintenance: Maintenance
) -> None:
    tenant, context = DEFAULT_TENANT, service.services
    for run in (maintain, inspect):
        assert await run(context, tenant, maintenance, _nothing) == maintenance.value
    principal = system_principal(tenant, maintenance)
    assert (principal.maintenance, principal.permissions) == (maintenance, frozenset())
    targets = [
        Target(tenant=tenant, isolation=isolation, owner=owner, maintenance=other, level=level)
        for isolation in Isolation
        for owner in ("", "ada", maintenance.value)
        for other in (None, *Maintenance)
        for level in (Access.NONE, Access.ADMIN)
    ]

    async def attempt(context: OperationContext) -> None:
        for target in targets:
            for verb in Verb:
                own = verb is Verb.MAINTAIN and target.maintenance is maintenance
                assert context.allows(verb, target) is own, (verb, target)
        foreign = Target(tenant="other", isolation=Isolation.AGENT, maintenance=maintenance)
        assert context.decide(Verb.MAINTAIN, foreign).hidden

    await run_read(context, principal, attempt)
    # Nor does any operation of a caller's let it in.
    made = await make(await service.agent("ada"))
    runner = OperationRunner(context, FUNCTIONS)
    for name in ("get_entry", "delete_entry"):
        call = OperationCall(
            operation=_NAMES[name],
            principal=principal,
            path={"entry_id": made["id"]},
            query=None if (query := _NAMES[name].query) is None else query(),
        )
        with pytest.raises(MemoryAccessError):
            await runner.run(call)
    assert context.refusals.counts() == {
        ("get_entry", "ACCESS_DENIED"): 1,
        ("delete_entry", "ACCESS_DENIED"): 1,
    }


@pytest.mark.parametrize("maintenance", list(Maintenance))
async def test_an_ordinary_principal_may_not_maintain(
    service: RunningService, maintenance: Maintenance
) -> None:
    """Not with every permission there is, nor under the name of a system principal."""
    target = Target(tenant=DEFAULT_TENANT, isolation=Isolation.AGENT, maintenance=maintenance)

    async def attempt(context: OperationContext) -> None:
        await _found(context)
        context.authorize(Verb.MAINTAIN, target)

    for kind in PrincipalKind:
        for agent in ("ada", maintenance.value):
            with pytest.raises(MemoryAccessError):
                await run_write(service.services, _ada(kind, agent), attempt)
    assert await _namespaces(service.services) == []


@pytest.mark.parametrize("kind", list(PrincipalKind))
async def test_no_key_speaks_for_a_system_principal(
    service: RunningService, kind: PrincipalKind
) -> None:
    """Not even one for an agent with the name of a maintenance."""
    text, _ = await create_key(
        service.services, DEFAULT_TENANT, Maintenance.ERASE.value, kind, list(Permission)
    )
    principal = await ApiKeyAuthenticator(service.services).authenticate(text, None)
    assert principal.id == Maintenance.ERASE.value
    assert principal.maintenance is None


# One place for the writes of entries


_WRITES = {"insert", "replace", "remove"}
_MAY_WRITE = {
    "service/entries/writes.py": {"insert", "replace"},
    "service/entries/removal.py": {"remove"},
}
_OTHERS = ("storage/", "jobs/copy")
"""Stores themselves, and what copies whole tenants row by row."""


def _entry_writes(module: ast.Module) -> Iterator[str]:
    """Each use of a method by which the entries of a transaction are written."""
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and node.attr in _WRITES:
            of = node.value
            if (isinstance(of, ast.Attribute) and of.attr == "entries") or (
                isinstance(of, ast.Name) and of.id == "entries"
            ):
                yield ast.unparse(node)


def test_entries_are_written_in_one_place() -> None:
    writing = {}
    for path in sorted(_SOURCE.rglob("*.py")):
        name = path.relative_to(_SOURCE).as_posix()
        if not name.startswith(_OTHERS):
            found = list(_entry_writes(ast.parse(path.read_text(encoding="utf-8"))))
            if found:
                writing[name] = found
    methods = {name: {one.rpartition(".")[2] for one in found} for name, found in writing.items()}
    assert methods == _MAY_WRITE, writing


_RULES = re.compile(r"memorywall\.service\.(entries\.(removal|writes)|requests\.fencing)")
"""What stores and removes entries, and asks for the lease that they need."""


def _rules_of_entries(module: ast.Module) -> Iterator[str]:
    """Each import of a rule that only rules of the service and of nouns follow."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{one.name}" for one in node.names]
        elif isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        else:
            continue
        yield from (name for name in names if _RULES.match(name))


def test_operations_bind_and_write_no_entries() -> None:
    for path in sorted((_SOURCE / "operations").rglob("*.py")):
        found = list(_rules_of_entries(ast.parse(path.read_text(encoding="utf-8"))))
        assert not found, path.name


def test_the_rules_above_can_fail() -> None:
    for statement in (
        "from memorywall.service.entries.removal import remove_entry",
        "from memorywall.service.entries import writes",
        "from memorywall.service.requests.fencing import guard",
        "import memorywall.service.requests.fencing",
    ):
        assert list(_rules_of_entries(ast.parse(statement))), statement
    for statement in (
        "await context.transaction.entries.insert(entry, now)",
        "await transaction.entries.replace(old, new)",
        "entries = transaction.entries\nawait entries.remove(entry)",
        "remove = transaction.entries.remove",
    ):
        assert list(_entry_writes(ast.parse(statement))), statement
