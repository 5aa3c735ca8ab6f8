"""The table of kinds: schemas, checks, reading of older versions and of lessons without a kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from memorywall.kinds.lessons import Correction, HighValueSuccess
from memorywall.kinds.registry import (
    KINDS,
    KindError,
    check,
    derive,
    kind_names,
    read,
    register_kind,
    schema_of,
)
from memorywall.kinds.spec import Edge, KindSpec
from memorywall.records.tier import Tier


class Ticket(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A made-up kind, in its second version."""

    title: str
    state: str = "open"
    blocks: list[str] = []
    until: str | None = None


def _edges(value: Ticket) -> Iterable[Edge]:
    return [Edge("blocks", target, is_id=True) for target in value.blocks]


TICKET = KindSpec(
    name="ticket",
    version=2,
    schema=Ticket,
    description="Something to be done.",
    tier=Tier.SEMANTIC,
    statuses=("open", "done"),
    status=lambda value: value.state,
    edges=_edges,
    due=lambda value: value.until,
    upgrades={1: lambda value: {"title": value["name"]}},
)


def test_kinds_include_the_four_lessons() -> None:
    lessons = {
        "correction",
        "negative_retrieval",
        "escalation_resolution",
        "high_value_success",
    }
    assert lessons <= set(kind_names())


@pytest.mark.parametrize("name", sorted(KINDS))
def test_schema_is_closed_for_every_kind(name: str) -> None:
    schema = schema_of(name)
    assert schema["title"] == name
    assert schema["additionalProperties"] is False
    assert schema["description"] == KINDS[name].description


def test_registered_kind_is_removed_after_the_context() -> None:
    with register_kind(TICKET):
        assert check("ticket", Tier.SEMANTIC, {"title": "a"}) == Ticket(title="a")
        with pytest.raises(ValueError, match="already"), register_kind(TICKET):
            raise AssertionError
    with pytest.raises(KindError, match="no kind"):
        check("ticket", Tier.SEMANTIC, {"title": "a"})


@pytest.mark.parametrize(
    ("value", "tier", "message"),
    [
        ({"title": "a", "x": 1, "y": 2}, Tier.SEMANTIC, "unknown fields: `value.x`, `value.y`"),
        ({"title": 5}, Tier.SEMANTIC, "`value.title` must be a text"),
        ({}, Tier.SEMANTIC, "`value.title` is required: a text"),
        ({"title": "a"}, Tier.EPISODIC, "must have memory_type `semantic`"),
    ],
)
def test_check_refuses_when_the_value_does_not_fit(
    value: dict[str, Any], tier: Tier, message: str
) -> None:
    with register_kind(TICKET), pytest.raises(KindError) as caught:
        check("ticket", tier, value)
    assert message in str(caught.value)


def test_refusal_does_not_repeat_the_value() -> None:
    with register_kind(TICKET), pytest.raises(KindError) as caught:
        check("ticket", Tier.SEMANTIC, {"title": "a", "state": {"canary-7": 1}})
    assert "canary" not in str(caught.value)


def test_derive_returns_the_derived_fields() -> None:
    with register_kind(TICKET):
        value = Ticket(title="a", blocks=["mem_2", "mem_2"], until="2026-03-01T01:00:00+01:00")
        derived = derive("ticket", value)
    assert derived.status == "open"
    assert derived.edges == (Edge("blocks", "mem_2", is_id=True),)
    assert derived.due_at == "2026-03-01T00:00:00.000Z"
    assert derived.listed


def test_derive_refuses_when_a_kind_uses_a_relation_of_the_server() -> None:
    spec = KindSpec(
        name="greedy",
        schema=Ticket,
        description="Points at a person by itself.",
        edges=lambda _: [Edge("about", "ann")],
    )
    with register_kind(spec), pytest.raises(KindError, match="about"):
        derive("greedy", Ticket(title="a"))


def test_derive_returns_nothing_for_free_json() -> None:
    derived = derive(None, None)
    assert (derived.status, derived.edges, derived.due_at) == (None, (), None)


def test_read_upgrades_an_older_version() -> None:
    with register_kind(TICKET):
        assert read("ticket", 1, {"name": "old"}) == Ticket(title="old")
        assert read("ticket", 2, {"title": "new"}) == Ticket(title="new")
        assert read("ticket", 3, {"title": "of a newer server"}) is None
    assert read("ticket", 2, {"title": "of a kind that is gone"}) is None


def test_read_takes_free_json_for_the_lesson_its_type_names() -> None:
    value = {"type": "correction", "wrong_answer": "1", "right_answer": "2", "ticket": 5}
    assert read(None, 1, value) == Correction(wrong_answer="1", right_answer="2")
    assert read(None, 1, {"type": "high_value_success", "approach": "x"}) == HighValueSuccess(
        approach="x"
    )
    for unfit in ({}, {"type": 1}, {"type": "other"}, {"type": "correction", "wrong_answer": "1"}):
        assert read(None, 1, unfit) is None


@pytest.mark.parametrize(
    "broken",
    [
        {"name": "Ticket"},
        {"name": "two words"},
        {"version": 3},
        {"upgrades": {}},
        {"schema": type("Open", (msgspec.Struct,), {})},
    ],
)
def test_kind_is_refused_when_it_is_incomplete(broken: dict[str, Any]) -> None:
    given: dict[str, Any] = {
        "name": "ticket",
        "version": 2,
        "schema": Ticket,
        "description": "x",
        "upgrades": TICKET.upgrades,
    }
    with pytest.raises(ValueError, match="kind"):
        KindSpec(**given | broken)
