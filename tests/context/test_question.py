"""The question that an agent works on is shown after any loop of calls of tools."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from memorywall.context.anthropic_messages import as_anthropic
from memorywall.context.compile import compile_context
from memorywall.context.formats import as_text
from memorywall.context.item import STRATEGIES, BudgetError, ContextItem, Strategy
from memorywall.context.openai_messages import as_openai
from memorywall.context.rendering import MESSAGE_TOKENS, heading_tokens
from memorywall.context.request import CompileRequest
from memorywall.kinds.sessions import SummaryQuality
from memorywall.summaries import SourceTurn, summarize
from memorywall.summaries.kept import kept_statements
from memorywall.tokens.estimate import estimate
from tests.context.made_up import NOW, check, words
from tests.http.test_contexts import compiled, talk_of
from tests.support.extent import chosen_seed, extent
from tests.support.service import RunningService


def _turn(sequence: int, role: str, content: str, **fields: object) -> ContextItem:
    return ContextItem(
        id=f"turn-{sequence:05d}", segment="turns", sequence=sequence, role=role, content=content,
        session_id="s", trusted=role != "tool", **fields,
    )  # fmt: skip


def _loop(source: Random) -> tuple[list[ContextItem], list[str]]:
    """Turns that end with a loop of calls of tools, and the first message and the question."""
    found: list[ContextItem] = []
    said = []
    for number in range(source.choice((1, 1, 2, 8))):
        if found:
            found.append(_turn(len(found) + 1, "assistant", words(source, 60)))
        said.append(f"question {number} {words(source, 40)}")
        found.append(_turn(len(found) + 1, "user", said[-1]))
    for _ in range(source.randint(1, 12)):
        call = f"c{len(found)}"
        asked: dict[str, object] = {"id": call, "name": "look", "arguments": {}}
        found.append(_turn(len(found) + 1, "assistant", "", tool_calls=(asked,)))
        found.append(_turn(len(found) + 1, "tool", words(source, 800), tool_call_id=call))
    found[-1] = replace(found[-1], mandatory=True)
    return found, [said[0], said[-1]]


def test_the_first_message_and_the_question_are_in_every_context_that_can_hold_them() -> None:
    seed = chosen_seed()
    held = 0
    for at in range(extent(60, long=4_000)):
        source = Random(f"{seed}-{at}")
        turns, said = _loop(source)
        data = "; ".join(f"{number} failed on 3.{number}" for number in range(60))
        newest = 0
        if len(turns) > 6 and source.random() < 0.5:
            newest = source.randrange(1, len(turns) - 3)
        summaries = [
            ContextItem(id="summary", segment="summary", sequence=newest, session_id="s",
                        content=f"Data from tool: “{data}”")
        ] if newest else []  # fmt: skip
        for strategy in STRATEGIES:
            window = source.choice((200, 500, 1_000, 2_000, 4_000, 16_000))
            asked = CompileRequest(
                window=window, reserve=window // 8, now=NOW, session_id="s", strategy=strategy,
                items=[*summaries, *turns],
                budgets={"session": 0.9} if source.random() < 0.2 else {},
                session_budget=source.choice((None, None, 400)),
            )  # fmt: skip
            texts = dict.fromkeys([*said, *(one.content for one in turns[-2:])])
            least = heading_tokens("turns", estimate) + sum(
                estimate(f"{text}\n") + 5 * MESSAGE_TOKENS for text in texts
            )
            try:
                context = compile_context(asked)
            except BudgetError:
                assert least > window * 0.875
                continue
            check(asked, context)
            again = compile_context(replace(asked, previous=context.slices))
            assert as_text(again) == as_text(context), at
            own = sum(estimate(text) + MESSAGE_TOKENS for text in dict.fromkeys(said))
            limit = window * 0.875 if asked.session_budget is None else asked.session_budget
            if least <= window * 0.875 and own <= limit / 2:
                held += 1
                for messages in (as_openai(context), as_anthropic(context)["messages"]):
                    assert all(text in str(messages) for text in said), (at, strategy, window)
    assert held > extent(60, long=4_000)


def test_the_question_comes_before_a_long_first_message() -> None:
    document = _turn(1, "user", "clause " * 900)
    question = _turn(3, "user", "Which clause is void?")
    turns = [
        document,
        _turn(2, "assistant", "Read."),
        question,
        _turn(4, "assistant", "long " * 700),
    ]
    asked = CompileRequest(window=1_200, reserve=100, now=NOW, session_id="s", items=turns)
    shown = {item.id for item in compile_context(asked).items("turns")}
    assert question.id in shown
    assert document.id not in shown


@pytest.mark.anyio
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_long_loop_keeps_turns_that_are_not_read_otherwise(
    service: RunningService, strategy: str
) -> None:
    ada = await service.agent("ada")
    talk = await talk_of(ada, 1)
    said = ["I am Ann and I run a bakery.", "Which of the 40 invoices was paid twice, and by whom?"]
    turns = [{"role": "user", "content": said[0]}, {"role": "assistant", "content": "Hello."}]
    turns += [{"role": "user", "content": f"Note {at}. " + "so " * 60} for at in range(20)]
    turns.append({"role": "user", "content": said[1]})
    for at in range(30):
        lines = "\n".join(f"2026-11-14 WARN worker-{at} failed with {n}" for n in range(30))
        call = {"id": f"c{at}", "name": "look", "arguments": {}}
        turns.append({"role": "assistant", "content": "", "tool_calls": [call]})
        turns.append({"role": "tool", "content": lines, "tool_call_id": f"c{at}"})
    await talk.do("DELETE", "/turns")
    await talk.do("POST", "/turns", turns=turns)
    context = await compiled(
        ada, session_id=talk.id, window=2_000, strategy=strategy, format="openai"
    )
    spoken = [str(one["content"]) for one in context["messages"] if one["role"] == "user"]
    assert all(text in spoken for text in said), spoken


def _with_decisions(number: int) -> tuple[list[ContextItem], ContextItem, list[str]]:
    """Turns of small talk with decisions in between, their summary, and the decisions."""
    decisions = [f"We decided to order {at + 3} crates of kind K{at}." for at in range(number)]
    said = [SourceTurn(1, "user", "I plan a party.")]
    for one in decisions:
        said.append(SourceTurn(len(said) + 1, "assistant", "Some like it so. " * 8))
        said.append(SourceTurn(len(said) + 1, "user", one))
    said += [SourceTurn(len(said) + 1 + at, "assistant", "Fine. " * 50) for at in range(4)]
    made = summarize(said, 4_000, count=estimate)
    quality = SummaryQuality(must_keep=made.must_keep, kept=made.kept, tokens=made.tokens,
                             fallback=False)  # fmt: skip
    summary = ContextItem(
        id="summary", segment="summary", sequence=len(said), session_id="s", content=made.text,
        statements=kept_statements(made), quality=quality,
    )  # fmt: skip
    return [_turn(one.sequence, one.role, one.text) for one in said], summary, decisions


@pytest.mark.parametrize("strategy", ["recency", "compaction", "hierarchical"])
def test_room_is_not_idle_while_what_must_be_kept_is_left_out(strategy: Strategy) -> None:
    turns, summary, decisions = _with_decisions(40)
    whole = []
    for window in range(300, 1_500, 100):
        asked = CompileRequest(window=window, reserve=0, now=NOW, session_id="s",
                               strategy=strategy, items=[summary, *turns])  # fmt: skip
        context = compile_context(asked)
        check(asked, context)
        left = [one for one in decisions if one not in as_text(context)]
        smallest = min(map(estimate, left), default=0) + 2 * MESSAGE_TOKENS
        smallest += heading_tokens("added", estimate)
        assert not left or window - context.tokens < smallest, (window, context.tokens)
        (shown,) = context.items("summary")
        assert shown.quality is not None
        assert shown.quality.kept == sum(one in shown.text for one in decisions)
        whole += [window] if not left else []
    # All decisions take about 700 tokens.
    assert min(whole) <= 1_200
