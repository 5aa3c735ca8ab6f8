"""Properties of steps, ticks and overflow, on generated items."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from memorywall.kinds.working_memory import Scratch, ScratchReference, WorkingPolicy, WorkingState
from memorywall.records.feature_errors import DecompositionRequiredError
from memorywall.working_memory.overflow import handle_overflow
from memorywall.working_memory.steps import Outcome, end_step, tick
from memorywall.working_memory.utility import total_tokens, with_dependencies
from tests.support.extent import extent

_NAMES = tuple("abcdefghijkl")
_WORDS = ("invoice", "march", "total", "customer", "weather", "route", "error", "47")


def _count(text: str) -> int:
    return len(text) // 4 + 1


def _refer(item: Scratch) -> ScratchReference:
    return ScratchReference(uri=f"/{item.name}", schema_hash="sha256:0", tokens=item.tokens)


@st.composite
def _items(draw: st.DrawFn) -> tuple[Scratch, ...]:
    items: list[Scratch] = []
    for order, name in enumerate(_NAMES[: draw(st.integers(0, len(_NAMES)))], 1):
        words = draw(st.lists(st.sampled_from(_WORDS), min_size=1, max_size=120))
        content = " ".join(words) if draw(st.booleans()) else {"words": words}
        needs = draw(st.sets(st.sampled_from(_NAMES[: order - 1]), max_size=3)) if items else set()
        items.append(
            Scratch(
                name=name,
                order=order,
                content=content,
                tokens=_count(str(content)),
                depends_on=tuple(sorted(needs)),
                carry_forward=draw(st.booleans()),
                ttl_ops=draw(st.none() | st.integers(1, 5)),
                tick=draw(st.integers(0, 5)),
            )
        )
    return tuple(items)


_states = st.builds(
    WorkingState,
    step=st.just(1),
    is_open=st.just(True),
    tick=st.integers(5, 8),
    goal=st.sampled_from(("", "the total of march", "weather")),
    policy=st.builds(
        WorkingPolicy,
        budget=st.integers(1, 2_000),
        carry_share=st.floats(0, 1),
        prune_below=st.floats(0, 1),
    ),
)
_tried = settings(max_examples=extent(25, long=2_000))


def _check_dependencies(outcome: Outcome) -> None:
    """Nothing that stays has lost what it needs."""
    gone = {item.name for item in outcome.leaving}
    for item in outcome.items:
        assert not gone & set(item.depends_on)
    assert {one.item for one in outcome.changes if one.action == "evicted"} == gone


@_tried
@given(_items(), _states)
def test_a_step_ends_within_what_may_be_carried(
    items: tuple[Scratch, ...], state: WorkingState
) -> None:
    outcome = end_step(items, state)
    limit = state.policy.carry_share * state.policy.budget
    assert total_tokens(outcome.items) <= limit
    _check_dependencies(outcome)
    marked = [item.name for item in items if item.carry_forward]
    carried = with_dependencies(items, marked)
    if total_tokens(item for item in items if item.name in carried) <= limit:
        assert {item.name for item in outcome.items} == carried
    assert {item.name for item in outcome.items} <= carried
    assert not any(item.carry_forward for item in outcome.items)
    assert len(outcome.items) + len(outcome.leaving) == len(items)
    again = end_step(tuple(items), state)
    assert msgspec.json.encode((outcome.items, outcome.changes)) == msgspec.json.encode(
        (again.items, again.changes)
    )


@_tried
@given(_items(), _states)
def test_a_tick_lets_go_only_what_is_over(items: tuple[Scratch, ...], state: WorkingState) -> None:
    outcome = tick(items, state)
    _check_dependencies(outcome)
    over = {
        item.name
        for item in items
        if item.ttl_ops is not None and state.tick - item.tick >= item.ttl_ops
    }
    assert {item.name for item in outcome.leaving} <= over
    held = with_dependencies(items, {item.name for item in items} - over)
    assert {item.name for item in outcome.leaving} == over - held


@_tried
@given(_items(), _states)
def test_an_overflow_ends_within_the_budget_or_names_the_need(
    items: tuple[Scratch, ...], state: WorkingState
) -> None:
    budget = state.policy.budget
    named: tuple[int | None, int | None] = (None, None)
    outcome: Outcome | None
    try:
        outcome = handle_overflow(items, state, count=_count, refer=_refer)
    except DecompositionRequiredError as error:
        named = (error.budget, error.need)
        outcome = None
    if outcome is None:
        assert named[0] == budget < (named[1] or 0)
        return
    assert total_tokens(outcome.items) <= budget
    _check_dependencies(outcome)
    marked = [item.name for item in items if item.carry_forward]
    assert with_dependencies(items, marked) <= {item.name for item in outcome.items}
    if total_tokens(items) <= budget:
        assert outcome == Outcome(items, (), ())
    for item in outcome.items:
        assert (item.content is None) == (item.reference is not None)
    again = handle_overflow(items, state, count=_count, refer=_refer)
    assert msgspec.json.encode((outcome.items, outcome.changes)) == msgspec.json.encode(
        (again.items, again.changes)
    )


def test_the_phases_come_in_their_order() -> None:
    """Pruning, compression and externalization, and no further than needed."""

    def item(order: int, name: str, content: object, **fields: object) -> Scratch:
        text = content if isinstance(content, str) else str(content)
        return Scratch(name=name, order=order, content=content, tokens=_count(text), **fields)  # type: ignore[arg-type]

    text = "The invoice of march has a total of 47 euros. " * 10
    items = (
        item(1, "weather", "sunny " * 100, tick=0),
        item(2, "invoice", text, tick=9, carry_forward=True),
        item(3, "rows", {"invoice": list(range(200))}, tick=9, carry_forward=True),
    )
    state = WorkingState(step=1, is_open=True, tick=9, goal="invoice march total")

    def phases(budget: int) -> list[tuple[str, str]]:
        policy = WorkingPolicy(budget=budget)
        given = msgspec.structs.replace(state, policy=policy)
        outcome = handle_overflow(items, given, count=_count, refer=_refer)
        return [(one.item, one.action) for one in outcome.changes]

    total = total_tokens(items)
    assert phases(total) == []
    assert phases(total - 1) == [("weather", "evicted")]
    assert phases(total - items[0].tokens - 10) == [
        ("weather", "evicted"),
        ("invoice", "compressed"),
    ]
    assert phases(items[2].tokens) == [
        ("weather", "evicted"),
        ("invoice", "compressed"),
        ("rows", "externalized"),
    ]
