"""`memorywall facts`: facts are stored, and found by patterns and walks."""

from __future__ import annotations

import json

from tests.cli.shell import Shell, succeed


def test_a_fact_is_stored_and_found(anywhere: Shell) -> None:
    person, place = f"Ann-{anywhere.agent}", ("--namespace", f"facts-{anywhere.agent}")
    since = ("--valid-from", "2026-03-01", "--confidence", "0.5", "--about", "ann")
    add, of = ("facts", "add", *anywhere.where, *place), (*anywhere.where, *place)
    made = json.loads(succeed(*add, *since, "--json", person, "lives_in", "Bern"))
    assert made["value"]["valid_from"] == "2026-03-01T00:00:00.000Z"
    assert (made["kind"], made["subjects"], made["value"]["confidence"]) == ("fact", ["ann"], 0.5)
    assert "age" in succeed(*add, person, "age", "40")
    asked = ("facts", "query", *of, f"{person} age ?age", f"{person} lives_in ?city")
    found = succeed(*asked, "--filter", "?age >= 40", "--valid-at", "2026-03-01")
    assert found.splitlines()[-1].split()[:2] == ["40", "Bern"]
    assert "Bern" not in succeed(*asked, "--valid-at", "2026-02-28")
    assert "Bern" in succeed("facts", "walk", *of, "--valid-at", "2026-03-01", person)


def test_memory_is_recalled_from_a_namespace(anywhere: Shell) -> None:
    word = f"violin{anywhere.agent}".replace("-", "")
    for namespace in ("music/old", "music/new", "other"):
        anywhere.succeed("set", namespace, word, f'{{"text": "The {word} is in the {namespace}."}}')
    for namespace, count in (("music/*", 2), ("other", 1), ("none", 0)):
        found = anywhere.json("recall", "--namespace", namespace, f"Where is the {word}?")
        assert len(found["results"]) == count
