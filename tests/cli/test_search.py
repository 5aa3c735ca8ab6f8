"""search: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.shell import Shell, columns, misuse

TURNS = [
    ("t1", "Ada", "2023-05-08", "I bought a red kite for the beach."),
    ("t2", "Bo", "2023-05-09", "My bicycle has a flat tyre."),
    ("t3", "Ada", "2023-05-10", "The beach was closed by the storm."),
]


@pytest.fixture
def talked(anywhere: Shell) -> Shell:
    """An agent that remembers a short talk and two other things."""
    for key, author, date, text in TURNS:
        value = {"text": text, "author": author, "date": date}
        anywhere.succeed("set", "chat/talk", key, json.dumps(value), "--type", "session")
    _keep(anywhere, "garden", {"plants": "tomatoes", "rows": 3}, "--tag", "food", "--tag", "home")
    _keep(anywhere, "kitchen", {"note": "tomatoes go bad"}, "--tag", "food", "--task", "task_1")
    return anywhere


def _keep(agent: Shell, key: str, value: dict[str, Any], *options: str) -> None:
    agent.succeed("set", "notes", key, json.dumps(value), *options)


def _keys(agent: Shell, *arguments: str) -> list[str]:
    return [hit["entry"]["key"] for hit in agent.json("search", *arguments)["results"]]


def test_the_best_are_shown_a_line_each_with_where_they_are(talked: Shell) -> None:
    table = talked.succeed("search", "red", "kite", "on", "the", "beach")
    heading, rule, first, second, *_ = table.splitlines()
    assert columns(table) == ["rank", "score", "relevance", "where", "who", "when", "text"]
    assert set(rule) == {"-", " "}
    assert first.split()[0] == "1"
    assert second.split()[0] == "2"
    assert float(first.split()[1]) > float(second.split()[1]) > 0
    assert first.split()[3:6] == ["session/chat/talk/t1", "Ada", "2023-05-08"]
    assert first.endswith("I bought a red kite for the beach.")
    assert heading.index("text") == first.index("I bought")


def test_the_origin_and_the_source_of_content_are_filters(anywhere: Shell) -> None:
    policy = ("--origin", "document", "--source", "https://example.com/policy")
    _keep(anywhere, "policy", {"text": "Refunds take five days."}, *policy)
    _keep(anywhere, "said", {"text": "Refunds are slow."})
    assert set(_keys(anywhere, "refunds")) == {"policy", "said"}
    assert _keys(anywhere, "refunds", "--origin", "document") == ["policy"]
    assert _keys(anywhere, "refunds", "--source", "https://example.com/policy") == ["policy"]
    assert _keys(anywhere, "refunds", "--source", "https://example.com/other") == []
    assert "'rumour'" in misuse("search", *anywhere.where, "refunds", "--origin", "rumour")


def test_the_best_passage_of_a_long_text_is_shown(talked: Shell) -> None:
    text = "Soup is served on Mondays. " * 60 + "Tea is served on Fridays. " * 29
    _keep(talked, "menu", {"text": text + "The zebra was late."})
    hit, *_ = talked.json("search", "zebra")["results"]
    assert hit["highlight"]["text"].endswith("The zebra was late.")
    _, _, first, *_ = talked.succeed("search", "zebra").splitlines()
    assert "Tea is served" in first
    assert "Soup" not in first


def test_conditions_on_meaning_and_people_hold(talked: Shell) -> None:
    lesson = json.dumps({"wrong_answer": "tomatoes", "right_answer": "apples"})
    meaning = ("--type", "episodic", "--kind", "correction", "--about", "ann")
    talked.succeed("set", "n", "lesson", lesson, *meaning)
    assert _keys(talked, "tomatoes", "--kind", "correction") == ["lesson"]
    assert _keys(talked, "tomatoes", "--about", "ann") == ["lesson"]
    assert _keys(talked, "tomatoes", "--about", "bob") == []
    assert len(_keys(talked, "tomatoes", "--state", "live")) == 3
    assert _keys(talked, "tomatoes", "--context", "how many rows?")[0] == "garden"
    assert _keys(talked, "tomatoes", "--state", "cold") == []


def test_columns_in_which_nothing_would_stand_are_left_out(talked: Shell) -> None:
    table = talked.succeed("search", "tomatoes")
    assert columns(table) == ["rank", "score", "relevance", "where", "text"]
    lines = table.splitlines()[2:]
    assert sorted(line.split()[3] for line in lines) == [
        "working/notes/garden",
        "working/notes/kitchen",
    ]
    # One text stands by itself; what has more fields is shown as it is.
    assert any(line.endswith("  tomatoes go bad") for line in lines)
    assert any(line.endswith('  {"plants":"tomatoes","rows":3}') for line in lines)


def test_a_caption_stands_beside_its_text(agent: Shell) -> None:
    _keep(agent, "k", {"text": "Look!", "caption": "a red kite"})
    assert agent.succeed("search", "kite").splitlines()[2].endswith("  Look! [a red kite]")


def test_explain_contains_the_parts_of_a_score(talked: Shell) -> None:
    table = talked.succeed("search", "--explain", "kite beach")
    names = columns(table)
    assert names[:4] == ["rank", "score", "relevance", "lexical"]
    assert names[-5:] == ["words", "where", "who", "when", "text"]
    # Nobody is named in the question and nothing is embedded.
    assert not {"author", "dense", "date"} & set(names)
    assert "kite beach" in table.splitlines()[2]
    explained = talked.json("search", "--explain", "kite beach")["results"][0]["explain"]
    assert explained["lexical"] > 0
    assert explained["dense"] == 0
    assert set(explained["terms"]) == {"kite", "beach"}

    named = talked.succeed("search", "--explain", "What did Ada say of the beach?")
    assert "author" in columns(named)
    shares = [line.split()[columns(named).index("author")] for line in named.splitlines()[2:]]
    assert float(shares[0]) > 0


def test_explain_contains_what_links_an_entry_to_a_better_one(agent: Shell) -> None:
    _keep(agent, "owner", {"text": "Dev runs the kiln.", "object": "Dev Raman"})
    assert "link" not in columns(agent.succeed("search", "--explain", "kiln"))
    _keep(agent, "home", {"text": "He moved to Leeds.", "subject": "Dev Raman"})
    table = agent.succeed("search", "--explain", "kiln")
    assert "link" in columns(table)
    assert "dev raman" in table.splitlines()[3]


def test_without_explain_no_signal_is_shown(talked: Shell) -> None:
    found = talked.json("search", "kite")
    assert found["results"][0].get("explain") is None
    assert (found["model"], found["pending"]) == (None, 0)
    assert found["results"][0]["score"] > 0
    assert found["results"][0]["entry"]["value"]["author"] == "Ada"


def test_every_condition_is_applied(talked: Shell) -> None:
    # A turn between two that are found is found too, for what stands beside it.
    turns = {"t1", "t2", "t3"}
    assert set(_keys(talked, "tomatoes beach")) == {*turns, "garden", "kitchen"}
    assert set(_keys(talked, "tomatoes beach", "--namespace", "notes")) == {"garden", "kitchen"}
    assert set(_keys(talked, "tomatoes beach", "--namespace", "chat/*")) == turns
    assert set(_keys(talked, "tomatoes beach", "--type", "session")) == turns
    assert _keys(talked, "tomatoes", "--tag", "food", "--tag", "home") == ["garden"]
    assert set(_keys(talked, "tomatoes", "--any-tag", "home", "--any-tag", "food")) == {
        "garden",
        "kitchen",
    }
    assert _keys(talked, "tomatoes", "--task", "task_1") == ["kitchen"]
    assert _keys(talked, "tomatoes", "--intent", "intent_none") == []
    assert _keys(talked, "beach", "--session", "nosuch") == []
    assert _keys(talked, "beach", "--as-of", "2001-01-01T00:00:00Z") == []
    assert len(_keys(talked, "tomatoes beach", "--limit", "1")) == 1
    assert _keys(talked, "beach", "--outcome", "failure") == []
    # There is no embedder, so nothing is near by meaning alone.
    assert _keys(talked, "beach", "--mode", "dense") == []
    assert set(_keys(talked, "beach", "--mode", "lexical", "--min-trust", "0")) == turns
    assert set(_keys(talked, "beach", "--dense-weight", "2.5")) == turns


def test_a_session_is_a_condition(agent: Shell) -> None:
    lines = "".join(
        json.dumps({"content": f"the kite of {name}", "session": name}) + "\n" for name in "ab"
    )
    assert agent.run("import-chat", "-", input=lines).returncode == 0
    assert _keys(agent, "kite", "--session", "b") == ["000002"]
    assert set(_keys(agent, "kite")) == {"000001", "000002"}


def test_empty_result_is_reported(agent: Shell) -> None:
    assert agent.succeed("search", "kite") == "nothing found\n"
    assert agent.json("search", "kite")["results"] == []
    assert "by words only" in agent.run("search", "kite").stderr
    printed = agent.run("search", "kite", "--mode", "dense")
    assert printed.stdout == "nothing found\n"
    assert "no embedder" in printed.stderr


def test_a_line_is_as_wide_as_the_screen(agent: Shell) -> None:
    text = "kite " * 200
    _keep(agent, "k", {"text": text})
    for width in (80, 140):
        lines = agent.succeed("search", "kite", variables={"COLUMNS": str(width)}).splitlines()
        assert [len(line) for line in lines[1:]] == [width, width]
        assert lines[2].endswith("…")
    assert agent.json("search", "kite")["results"][0]["entry"]["value"] == {"text": text}


def test_what_a_terminal_would_obey_is_not_printed(agent: Shell) -> None:
    value = {
        "text": "kite\u001b[2J\u0007 and\n\u202eline",
        "author": "A\u001b[31m",
        "date": "\u009b",
    }
    _keep(agent, "k", value)
    printed = agent.succeed("search", "kite")
    assert printed.splitlines()[2].endswith("  kite [2J and line")
    assert all(one.isprintable() for one in printed.replace("\n", ""))


def test_invalid_input_prints_one_line(agent: Shell) -> None:
    assert "`query`" in agent.refuse("search", "  ")
    assert "query" in agent.refuse("search", "sk-1 " * 500)
    assert "--as-of must" in agent.refuse("search", "kite", "--as-of", "yesterday")
    assert "Missing argument 'WORDS...'" in misuse("search")
    assert "'both' is not one of" in misuse("search", "--mode", "both", "kite")
    assert "--limit" in misuse("search", "--limit", "101", "kite")
    assert "--min-trust" in misuse("search", "--min-trust", "2", "kite")
    assert "--dense-weight" in misuse("search", "--dense-weight", "101", "kite")


def test_another_agent_s_memory_is_not_found(new_agent: Callable[..., Shell]) -> None:
    owner, other = new_agent(), new_agent()
    _keep(owner, "k", {"text": "the kite"})
    assert _keys(owner, "kite") == ["k"]
    assert other.succeed("search", "kite") == "nothing found\n"


def test_a_memory_is_superseded_and_reinstated(anywhere: Shell) -> None:
    ids = {}
    for key, text in (("old", "The office is in Graz."), ("new", "The office is in Linz.")):
        made = anywhere.json("set", "notes", key, json.dumps({"text": text}))
        ids[key] = made["id"]
    anywhere.succeed("supersede", ids["old"], "--by", ids["new"])
    assert _keys(anywhere, "office") == ["new"]
    assert anywhere.json("get", ids["old"])["state"] == "superseded"
    anywhere.succeed("reinstate", ids["old"])
    assert sorted(_keys(anywhere, "office")) == ["new", "old"]


def test_a_search_leaves_out_what_does_not_hold_or_is_not_relevant(anywhere: Shell) -> None:
    _keep(anywhere, "old", {"text": "The office is in Graz.", "valid_until": "2020-06-30"})
    _keep(anywhere, "new", {"text": "The office is in Linz."})
    assert _keys(anywhere, "office") == ["new"]
    assert _keys(anywhere, "office", "--valid-at", "2020-01-01") == ["new", "old"]
    noise = [
        "Which",
        "violinist",
        "repaired",
        "the",
        "antique",
        "clocks",
        "of",
        "her",
        "cousin",
        "in",
        "the",
        "office?",
    ]
    assert _keys(anywhere, *noise) == ["new"]
    assert _keys(anywhere, *noise, "--min-relevance", "0.99") == []
    assert _keys(anywhere, *noise, "--strict") == []
    reply = anywhere.json("recall", *noise)
    assert (reply["results"], reply["answered"], reply["left_out"]) == ([], False, 1)
    shown = anywhere.run("recall", *noise)
    assert "1 result was left out" in shown.stderr


def test_a_memory_is_corrected_retracted_and_taken_back(anywhere: Shell) -> None:
    made = anywhere.json("set", "notes", "office", json.dumps({"text": "The office is in Graz."}))
    shown = anywhere.succeed("correct", made["id"], "It is", "in Linz.", "--reason", "moved")
    assert "It is in Linz." in shown
    whole = ("--value", '{"text": "Wels"}', "--version", "2")
    done = anywhere.json("correct", made["id"], *whole, "--reason", "moved")
    assert (done["entry"]["value"], done["withdrawn"], done["hidden"]) == ({"text": "Wels"}, [], 0)
    assert "moved" in anywhere.succeed("get", made["id"])
    anywhere.succeed("retract", made["id"], "--reason", "closed")
    assert _keys(anywhere, "office") == []
    assert "live" in anywhere.succeed("undo", made["id"])
    assert anywhere.json("undo", made["id"])["entry"]["value"] == {"text": "It is in Linz."}
    assert "only a person" in anywhere.refuse("confirm", made["id"])
    assert "--reason" in misuse("retract", "mem_1")
    assert "TEXT or --value" in misuse("correct", "mem_1", "--reason", "x")
