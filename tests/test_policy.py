"""The access rules against a second reading of them, written out as sentences."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorywall.policy.decide import access_to, decide
from memorywall.policy.reach import reach, shared_target
from memorywall.records.clock import format_instant
from memorywall.records.decision import Target, Verb
from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.records.principal import Permission, Principal, PrincipalKind
from memorywall.records.tier import Isolation
from tests.support.house import START

_NOW = format_instant(START)
_PERMISSION_SETS = [
    frozenset(subset)
    for size in range(len(Permission) + 1)
    for subset in itertools.combinations(Permission, size)
]
_NEEDS = {
    "read": "memory.read",
    "observe": "memory.read",
    "create": "memory.write",
    "update": "memory.write",
    "delete": "memory.write",
    "administer": "memory.admin",
}
_LEVELS_THAT_ALLOW = {
    "read": {"read", "write", "admin"},
    "create": {"write", "admin"},
    "update": {"write", "admin"},
    "delete": {"write", "admin"},
    "administer": {"admin"},
    "observe": set[str](),
}


def _principal(permissions: frozenset[Permission], **fields: str) -> Principal:
    return Principal(
        tenant=fields.get("tenant", "acme"),
        id=fields.get("id", "ada"),
        kind=PrincipalKind(fields.get("kind", "agent")),
        permissions=permissions,
        acting=fields.get("acting", ""),
    )


def _namespace(
    default: Access, own: Access | None, other: Access | None, tenant: str = "acme"
) -> Namespace:
    grants = [Grant(agent="grace", access=other)] if other is not None else []
    if own is not None:
        grants.append(Grant(agent="ada", access=own))
    return Namespace(
        tenant=tenant,
        name="policies",
        default=default,
        grants=tuple(grants),
        created_at=_NOW,
        updated_at=_NOW,
    )


def _namespaces() -> Iterator[Namespace | None]:
    yield None
    levels: list[Access | None] = [None, *Access]
    for default, own, other in itertools.product(Access, levels, levels):
        yield _namespace(default, own, other)


def _allowed(
    verb: str,
    permissions: set[str],
    same_tenant: bool,
    owner: str | None,
    namespace: Namespace | None,
) -> bool:
    """The rules, told once more. `owner` is None for what lies in a namespace.

    Nobody reaches into another tenant. Whoever administers the tenant may administer its
    namespaces. Everyone else, and for everything else, needs the permission of the key; then
    one's own memory is open to oneself alone, and a namespace to those it names, at the level it
    names them with, and to all others at its default. What does not exist yet can be founded.
    """
    if not same_tenant:
        return False
    if verb == "administer" and "tenant.admin" in permissions and owner is None:
        return True
    if _NEEDS[verb] not in permissions:
        return False
    if owner is not None:
        return owner == "ada"
    if namespace is None:
        return verb in ("create", "administer")
    named = [grant.access.value for grant in namespace.grants if grant.agent == "ada"]
    level = named[0] if named else namespace.default.value
    return level in _LEVELS_THAT_ALLOW[verb]


@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.parametrize("tenant", ["acme", "globex", "ACME", ""])
def test_an_agents_wall(verb: Verb, tenant: str) -> None:
    for permissions, owner in itertools.product(_PERMISSION_SETS, ["ada", "grace", "Ada", ""]):
        target = Target(tenant=tenant, isolation=Isolation.AGENT, owner=owner)
        decision = decide(_principal(permissions), verb, target)
        expected = _allowed(verb.value, set(permissions), tenant == "acme", owner, None)
        assert decision.allowed is expected, (sorted(permissions), owner)
        assert decision.hidden is (tenant != "acme")
        assert decision.reason


@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.parametrize("tenant", ["acme", "globex"])
def test_a_namespaces_wall(verb: Verb, tenant: str) -> None:
    for permissions, namespace in itertools.product(_PERMISSION_SETS, _namespaces()):
        target = Target(tenant=tenant, isolation=Isolation.NAMESPACE, namespace=namespace)
        decision = decide(_principal(permissions), verb, target)
        expected = _allowed(verb.value, set(permissions), tenant == "acme", None, namespace)
        assert decision.allowed is expected, (sorted(permissions), namespace)
        assert decision.hidden is (tenant != "acme")
        assert decision.reason


@pytest.mark.parametrize("verb", list(Verb))
def test_nothing_else_about_the_caller_counts(verb: Verb) -> None:
    """Neither what kind of principal it is nor whose key speaks for it."""
    targets = [
        Target(tenant="acme", isolation=Isolation.AGENT, owner="ada"),
        Target(tenant="acme", isolation=Isolation.AGENT, owner="robot"),
        *(
            Target(tenant="acme", isolation=Isolation.NAMESPACE, namespace=namespace)
            for namespace in _namespaces()
        ),
    ]
    for permissions, target in itertools.product(_PERMISSION_SETS, targets):
        answers = {
            decide(_principal(permissions, kind=kind, acting=acting), verb, target)
            for kind in PrincipalKind
            for acting in ("", "robot", "grace")
        }
        assert len(answers) == 1


def test_a_wall_is_the_only_thing_that_counts_behind_it() -> None:
    """A generous namespace opens nobody's own memory, and an owner opens no namespace."""
    reader = _principal(frozenset({Permission.READ}))
    generous = _namespace(Access.ADMIN, Access.ADMIN, None)
    hers = Target(tenant="acme", isolation=Isolation.AGENT, owner="grace", namespace=generous)
    assert not decide(reader, Verb.READ, hers).allowed
    closed = _namespace(Access.NONE, None, None)
    mine = Target(tenant="acme", isolation=Isolation.NAMESPACE, owner="ada", namespace=closed)
    assert not decide(reader, Verb.READ, mine).allowed


def test_a_grant_stands_in_place_of_the_default() -> None:
    ada = _principal(frozenset())
    for default, own in itertools.product(Access, Access):
        assert access_to(ada, _namespace(default, own, Access.ADMIN)) is own
        assert access_to(ada, _namespace(default, None, Access.ADMIN)) is default


_levels = st.none() | st.sampled_from(Access)
_some_namespaces = st.lists(
    st.builds(_namespace, st.sampled_from(Access), _levels, _levels), max_size=8
).map(
    lambda found: [
        Namespace(
            tenant=one.tenant,
            name=f"space-{place}",
            default=one.default,
            grants=one.grants,
            created_at=_NOW,
            updated_at=_NOW,
        )
        for place, one in enumerate(found)
    ]
)


@given(st.sampled_from(Verb), st.sampled_from(_PERMISSION_SETS), _some_namespaces)
def test_a_reach_holds_what_a_decision_allows_and_no_more(
    verb: Verb, permissions: frozenset[Permission], namespaces: list[Namespace]
) -> None:
    ada = _principal(permissions)
    within = reach(ada, verb, iter(namespaces))
    own = Target(tenant="acme", isolation=Isolation.AGENT, owner="ada")
    assert within.owners == (("ada",) if decide(ada, verb, own).allowed else ())
    assert within.namespaces == tuple(
        one.name for one in namespaces if decide(ada, verb, shared_target("acme", one)).allowed
    )
    assert within.is_empty is (not within.owners and not within.namespaces)
    by_the_oracle = [
        one.name for one in namespaces if _allowed(verb.value, set(permissions), True, None, one)
    ]
    assert list(within.namespaces) == by_the_oracle


def test_a_reach_of_whoever_may_nothing_is_empty() -> None:
    open_to_all = [_namespace(Access.ADMIN, Access.ADMIN, Access.ADMIN)]
    for verb in Verb:
        assert reach(_principal(frozenset()), verb, open_to_all).is_empty
