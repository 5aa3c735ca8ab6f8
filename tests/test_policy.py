"""The access rules against a second reading of them, for nearly every case there is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest
from msgspec import structs

from memorywall.policy.decide import access_to, decide
from memorywall.policy.intents import access_to_intent
from memorywall.policy.visibility_filter import (
    NO_WORK_ACCESS,
    WorkAccess,
    shared_target,
    visibility_filter,
)
from memorywall.records.clock import format_instant
from memorywall.records.decision import Target, Verb, VisibilityFilter, WorkRelations
from memorywall.records.intent import DefaultPolicy, Intent, IntentGrant
from memorywall.records.namespace import Access, Grant
from memorywall.records.principal import Maintenance, Permission, PrincipalKind
from memorywall.records.tier import Isolation
from tests.support.rules import (
    BINDINGS,
    EITHER,
    NOW,
    PERMISSION_SETS,
    behind_a_namespaces_wall,
    behind_an_agents_wall,
    every_namespace,
    every_work,
    in_an_intent,
    make_namespace,
    make_principal,
)
from tests.support.service import START

_BEFORE = format_instant(START - 1)
_LATER = format_instant(START + 1)


# Decisions


@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.parametrize("tenant", ["acme", "globex"])
def test_access_to_entries_of_an_agent(verb: Verb, tenant: str) -> None:
    for owner, work, coordinated in itertools.product(["ada", "grace", "Ada"], BINDINGS, EITHER):
        target = Target(
            tenant=tenant,
            isolation=Isolation.AGENT,
            owner=owner,
            work=work,
            coordinated=coordinated,
        )
        for permissions in PERMISSION_SETS:
            decision = decide(make_principal(permissions), verb, target)
            expected = tenant == "acme" and behind_an_agents_wall(
                verb.value, set(permissions), owner, work, coordinated
            )
            assert decision.allowed is expected, (sorted(permissions), target)
            assert decision.hidden is (tenant != "acme")
            assert decision.reason


@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.parametrize("tenant", ["acme", "globex", "ACME", ""])
def test_access_to_entries_of_a_namespace(verb: Verb, tenant: str) -> None:
    for namespace, founder, denied in itertools.product(
        every_namespace(), ["", "ada", "grace"], EITHER
    ):
        target = shared_target(tenant, namespace, creator=founder, denied=denied)
        for permissions in PERMISSION_SETS:
            decision = decide(make_principal(permissions), verb, target)
            expected = tenant == "acme" and behind_a_namespaces_wall(
                verb.value, set(permissions), target
            )
            assert decision.allowed is expected, (sorted(permissions), target)
            assert decision.hidden is (tenant != "acme")
            assert decision.reason


@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.parametrize("tenant", ["acme", "globex", "ACME", ""])
def test_an_intents_wall(verb: Verb, tenant: str) -> None:
    for permissions, level in itertools.product(PERMISSION_SETS, Access):
        target = Target(tenant=tenant, isolation=Isolation.INTENT, level=level)
        decision = decide(make_principal(permissions), verb, target)
        expected = tenant == "acme" and in_an_intent(verb.value, set(permissions), level.value)
        assert decision.allowed is expected, (sorted(permissions), level)
        assert decision.hidden is (tenant != "acme")
        assert decision.reason


@pytest.mark.parametrize("isolation", list(Isolation))
def test_what_was_told_of_nowhere_is_refused(isolation: Isolation) -> None:
    """A target about which no fact is known opens nothing but what nobody has founded yet."""
    everything = make_principal(frozenset(Permission) - {Permission.TENANT_ADMIN})
    target = Target(tenant="acme", isolation=isolation)
    allowed = {verb for verb in Verb if decide(everything, verb, target).allowed}
    founding = {Verb.CREATE, Verb.ADMINISTER} if isolation is Isolation.NAMESPACE else set[Verb]()
    assert allowed == founding


def _anothers() -> Iterator[Target]:
    """Another agent's memory with every fact there can be about it, also such as mean nothing
    of an agent's own."""
    generous = [None, make_namespace(Access.ADMIN, Access.ADMIN, None)]
    for work, coordinated, namespace, founder, denied, level in itertools.product(
        BINDINGS, EITHER, generous, ["", "ada"], EITHER, [Access.NONE, Access.ADMIN]
    ):
        yield Target(
            tenant="acme",
            isolation=Isolation.AGENT,
            owner="grace",
            namespace=namespace,
            creator=founder,
            denied=denied,
            work=work,
            coordinated=coordinated,
            level=level,
        )


def test_only_the_owner_does_more_than_read() -> None:
    """The limits of agents, which are no memory, are the one thing an administrator sets."""
    for permissions in (frozenset(Permission), frozenset(Permission) - {Permission.TENANT_ADMIN}):
        asker = make_principal(permissions)
        sets_limits = Permission.TENANT_ADMIN in permissions
        for target in _anothers():
            for verb in set(Verb) - {Verb.READ, Verb.ADMINISTER}:
                assert not decide(asker, verb, target).allowed, (verb, target)
            assert decide(asker, Verb.ADMINISTER, target).allowed is sets_limits, target


def test_more_permissions_never_close_anything() -> None:
    """Nor does an administrator of the tenant read what it could not read without."""
    targets = [*itertools.islice(_anothers(), 0, None, 7)]
    targets += [shared_target("acme", one) for one in every_namespace()]
    targets += [Target(tenant="acme", isolation=Isolation.INTENT, level=level) for level in Access]
    all_but_one = frozenset(Permission) - {Permission.TENANT_ADMIN}
    for verb, target in itertools.product(Verb, targets):
        less = decide(make_principal(all_but_one), verb, target).allowed
        more = decide(make_principal(frozenset(Permission)), verb, target).allowed
        assert more >= less
        assert more is less or verb is Verb.ADMINISTER


def _targets_of_all_kinds() -> list[Target]:
    """Memory of one's own and of another's, bound and not, every namespace and every intent."""
    return [
        Target(tenant="acme", isolation=Isolation.AGENT, owner="ada"),
        Target(tenant="acme", isolation=Isolation.AGENT, owner="robot"),
        *(
            Target(tenant="acme", isolation=Isolation.AGENT, owner="robot", work=work)
            for work in (
                WorkRelations(assigned="robot"),
                WorkRelations(coordinates=True),
                WorkRelations(takes_part=True),
            )
        ),
        *(shared_target("acme", namespace) for namespace in every_namespace()),
        *(Target(tenant="acme", isolation=Isolation.INTENT, level=level) for level in Access),
    ]


_OF_KEYS = list(PrincipalKind)


@pytest.mark.parametrize("verb", list(Verb))
def test_nothing_else_about_the_caller_counts(verb: Verb) -> None:
    """Neither what kind of principal a key stands for nor whose key speaks for it."""
    for permissions, target in itertools.product(PERMISSION_SETS, _targets_of_all_kinds()):
        answers = {
            decide(make_principal(permissions, kind=kind, acting=acting), verb, target)
            for kind in _OF_KEYS
            for acting in ("", "robot", "grace")
        }
        assert len(answers) == 1


def _maintenance_of(tenant: str, maintenance: Maintenance) -> Target:
    return Target(tenant=tenant, isolation=Isolation.AGENT, maintenance=maintenance)


def test_a_system_principal_does_its_one_maintenance_and_nothing_else() -> None:
    """Whatever permissions it is given, and whatever it is asked for besides."""
    for permissions, own in itertools.product(PERMISSION_SETS, Maintenance):
        asker = replace(make_principal(permissions, id=own.value), maintenance=own)
        for maintenance, verb in itertools.product(Maintenance, Verb):
            allowed = decide(asker, verb, _maintenance_of("acme", maintenance)).allowed
            assert allowed is (verb is Verb.MAINTAIN and maintenance is own), (verb, maintenance)
            foreign = decide(asker, verb, _maintenance_of("globex", maintenance))
            assert (foreign.allowed, foreign.hidden) == (False, True)
        for verb, target in itertools.product(Verb, _targets_of_all_kinds()):
            assert not decide(asker, verb, target).allowed, (verb, target)


@pytest.mark.parametrize("kind", _OF_KEYS)
def test_no_key_maintains_a_tenant(kind: PrincipalKind) -> None:
    """Not even that of a principal named after a maintenance."""
    for permissions, maintenance in itertools.product(PERMISSION_SETS, Maintenance):
        asker = make_principal(permissions, kind=kind.value, id=maintenance.value)
        target = _maintenance_of("acme", maintenance)
        assert not decide(asker, Verb.MAINTAIN, target).allowed


def test_a_wall_is_the_only_thing_that_counts_behind_it() -> None:
    """A grant for one owner changes nothing for another."""
    works = [None, *(work for work in every_work() if work.takes_part)]
    for permissions, verb in itertools.product([frozenset(Permission), *PERMISSION_SETS], Verb):
        asker = make_principal(permissions)
        for work, owner in itertools.product(works[::9], ["ada", "grace"]):
            beside = {
                decide(asker, verb, Target(
                    tenant="acme", isolation=Isolation.AGENT, owner=owner, work=work,
                    namespace=namespace, creator=founder, denied=denied, level=level,
                ))
                for namespace in (None, make_namespace(Access.ADMIN, Access.ADMIN, None))
                for founder, denied, level in itertools.product(["", "ada"], EITHER, Access)
            }  # fmt: skip
            assert len(beside) == 1
        closed = make_namespace(Access.NONE, None, None)
        for isolation in (Isolation.NAMESPACE, Isolation.INTENT):
            beside = {
                decide(asker, verb, Target(
                    tenant="acme", isolation=isolation, namespace=closed, owner=owner, work=work,
                    coordinated=coordinated,
                ))
                for owner, coordinated in itertools.product(["", "ada", "grace"], EITHER)
                for work in works[::9]
            }  # fmt: skip
            assert len(beside) == 1


def test_grant_replaces_the_default() -> None:
    ada = make_principal(frozenset())
    for default, own in itertools.product(Access, Access):
        assert access_to(ada, make_namespace(default, own, Access.ADMIN)) is own
        assert access_to(ada, make_namespace(default, None, Access.ADMIN)) is default


# The part somebody has in an intent


def _intent(created_by: str, policy: DefaultPolicy, tenant: str = "acme") -> Intent:
    return Intent(
        tenant=tenant,
        id="int_1",
        title="Books",
        default_policy=policy,
        created_by=created_by,
        created_at=NOW,
        updated_at=NOW,
    )


def _line(principal: str, access: Access, expires_at: str | None) -> IntentGrant:
    return IntentGrant(
        tenant="acme",
        intent_id="int_1",
        id="acl_1",
        principal_id=principal,
        access=access,
        granted_by="grace",
        granted_at=_BEFORE,
        expires_at=expires_at,
    )


def _lists() -> Iterator[tuple[IntentGrant, ...]]:
    """Access lists with two lines for ada at most, and one for somebody else."""
    ends = (None, _BEFORE, NOW, _LATER)
    own = [None, *(_line("ada", access, end) for access, end in itertools.product(Access, ends))]
    others = [None, _line("Ada", Access.ADMIN, None)]
    for lines in itertools.product(own, own, others):
        yield tuple(line for line in lines if line is not None)


def _part(
    intent: Intent, lines: tuple[IntentGrant, ...], coordinates: bool, works: bool, worked: bool
) -> str:
    """The greatest of all the parts there is a reason for. Lines whose time is over are none."""
    if intent.tenant != "acme":
        return "none"
    parts = {"none"}
    parts.update({"admin"} if coordinates or intent.created_by == "ada" else ())
    parts.update({"write"} if works or intent.default_policy.value == "open" else ())
    parts.update({"read"} if worked else ())
    for line in lines:
        if line.principal_id == "ada" and line.expires_at in (None, _LATER):
            parts.add(line.access.value)
    return next(part for part in ("admin", "write", "read", "none") if part in parts)


@pytest.mark.parametrize("tenant", ["acme", "globex"])
@pytest.mark.parametrize("policy", list(DefaultPolicy))
@pytest.mark.parametrize("creator", ["ada", "grace"])
def test_the_part_in_an_intent(tenant: str, policy: DefaultPolicy, creator: str) -> None:
    intent = _intent(creator, policy, tenant)
    ada = make_principal(frozenset())
    for lines, facts in itertools.product(_lists(), itertools.product(EITHER, repeat=3)):
        coordinates, works, worked = facts
        level = access_to_intent(
            ada, intent, iter(lines),
            coordinates=coordinates, works=works, worked=worked, now=NOW,
        )  # fmt: skip
        assert level.value == _part(intent, lines, *facts), (lines, facts)


def test_no_permission_of_a_key_gives_a_part_in_an_intent() -> None:
    for permissions in PERMISSION_SETS:
        asker = make_principal(permissions, kind="service", acting="grace")
        level = access_to_intent(
            asker, _intent("grace", DefaultPolicy.CLOSED), (),
            coordinates=False, works=False, now=NOW,
        )  # fmt: skip
        assert level is Access.NONE


# How far a listing reaches


def _targets() -> list[Target]:
    """Every namespace there is, each under a name of its own; barred and foreign ones too."""
    levels: list[Access | None] = [None, *Access]
    named = itertools.product(Access, levels, EITHER, ["acme", "globex"])
    return [shared_target("acme", None)] + [
        shared_target(
            tenant, make_namespace(default, own, None, tenant, f"space-{place}"), denied=denied
        )
        for place, (default, own, denied, tenant) in enumerate(named)
    ]


_WORKS = {f"work-{place}": work for place, work in enumerate(every_work())}
_OPENED = WorkAccess(
    tasks=_WORKS, intents=_WORKS, coordinated=_WORKS, episodic=("grace", "hal")
)  # fmt: skip


@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.parametrize("opened", [NO_WORK_ACCESS, _OPENED], ids=["nothing", "much"])
def test_visibility_filter_contains_exactly_the_allowed_entries(
    verb: Verb, opened: WorkAccess
) -> None:
    targets = _targets()
    for permissions in PERMISSION_SETS:
        within = visibility_filter(make_principal(permissions), verb, iter(targets), opened)
        rules, asked = permissions, verb.value
        own = behind_an_agents_wall(asked, rules, "ada", None, False)
        works = tuple(
            name
            for name, work in opened.tasks.items()
            if behind_an_agents_wall(asked, rules, "grace", work, False)
        )
        past = behind_an_agents_wall(asked, rules, "grace", None, True)
        expected = VisibilityFilter(
            owners=("ada",) if own else (),
            namespaces=tuple(
                one.namespace.name
                for one in targets
                if one.namespace is not None
                and one.tenant == "acme"
                and behind_a_namespaces_wall(asked, rules, one)
            ),
            tasks=works,
            intents=works,
            coordinated=works,
            episodic=opened.episodic if past else (),
        )
        assert within == expected, sorted(permissions)


@pytest.mark.parametrize("verb", list(Verb))
def test_every_part_of_a_reach_is_an_allowed_decision(verb: Verb) -> None:
    """As it would be made about one entry there, of whomever."""
    targets = {one.namespace.name: one for one in _targets() if one.namespace is not None}
    for permissions in PERMISSION_SETS:
        asker = make_principal(permissions)
        within = visibility_filter(asker, verb, targets.values(), _OPENED)
        parts = [
            Target(tenant="acme", isolation=Isolation.AGENT, owner=owner) for owner in within.owners
        ]
        parts += [targets[name] for name in within.namespaces]
        for name in (*within.tasks, *within.intents, *within.coordinated):
            for owner in ("grace", "hal"):
                parts.append(
                    Target(tenant="acme", isolation=Isolation.AGENT, owner=owner, work=_WORKS[name])
                )
        parts += [
            Target(tenant="acme", isolation=Isolation.AGENT, owner=owner, coordinated=True)
            for owner in within.episodic
        ]
        assert all(decide(asker, verb, part).allowed for part in parts)
        if verb is not Verb.ADMINISTER:
            assert within.has_work_access is (verb is Verb.READ and Permission.READ in permissions)


def test_visibility_filter_is_empty_without_permissions() -> None:
    for verb in Verb:
        assert visibility_filter(make_principal(frozenset()), verb, _targets(), _OPENED).is_empty


@pytest.mark.parametrize("part", ["owners", "namespaces", "tasks", "intents", "coordinated",
                                  "episodic"])  # fmt: skip
def test_visibility_filter_with_any_entry_is_not_empty(part: str) -> None:
    within = VisibilityFilter(**{part: ("one",)})
    assert not within.is_empty
    assert within.has_work_access is (part not in ("owners", "namespaces"))
    assert VisibilityFilter().is_empty
    assert not VisibilityFilter().has_work_access


# Groups


def test_grants_of_groups_are_not_decided_before_the_groups_are_known() -> None:
    """A grant of `none` for a group must not be overlooked."""
    everything = make_principal(frozenset(Permission))
    named = structs.replace(
        make_namespace(Access.READ, None, None),
        grants=(Grant(agent="group:red", access=Access.NONE),),
    )
    with pytest.raises(LookupError):
        access_to(everything, named)
    for groups, level in ((set[str](), Access.READ), ({"group:red"}, Access.NONE)):
        assert access_to(replace(everything, groups=frozenset(groups)), named) is level
    agents = structs.replace(named, grants=(Grant(agent="eve", access=Access.NONE),))
    assert access_to(everything, agents) is Access.READ
