"""episodes and profile: lines for people, JSON for programs."""

from __future__ import annotations

import json

from tests.cli.shell import Shell, columns, misuse, succeed


def _tell(agent: Shell, key: str, trigger: str, status: str) -> str:
    value = {"trigger": trigger, "outcome": {"status": status}}
    made: str = agent.json("set", "work", key, json.dumps(value), "--type", "episodic",
                           "--kind", "episode")["id"]  # fmt: skip
    return made


def test_episodes_are_recalled_a_line_each(anywhere: Shell) -> None:
    good = _tell(anywhere, "good", "refund order 5", "success")
    bad = _tell(anywhere, "bad", "refund order 6", "failure")
    recall = ("episodes", "recall", *anywhere.where)
    table = succeed(*recall, "refund", "an", "order")
    assert columns(table) == ["id", "score", "text"]
    assert [line.split()[0] for line in table.splitlines()[2:]] == [good, bad]
    asked = ("--profile", "diagnosis", "--min-similarity", "0.5", "--limit", "1", "--json")
    found = json.loads(succeed(*recall, "refund order", *asked))
    assert [one["entry"]["id"] for one in found["episodes"]] == [bad]
    weights = '{"similarity": 0, "recency": 0, "outcome": 0, "use": 1}'
    found = json.loads(succeed(*recall, "refund", "--weights", weights, "--json"))
    assert found["weights"]["use"] == 1
    assert "profile" in misuse(*recall, "refund", "--profile", "luck")


def test_a_profile_is_printed_for_a_prompt(anywhere: Shell) -> None:
    assert anywhere.succeed("profile", "ann") == (
        "nothing that you may read says anything about this person\n"
    )
    value = json.dumps({"text": "Ann eats no meat."})
    made = anywhere.json("set", "diet", "meat", value, "--user", "ann", "--type", "episodic")
    assert anywhere.succeed("profile", "ann") == f"- meat: Ann eats no meat. [{made['id']}]\n"
    found = anywhere.json("profile", "ann", "--tokens", "200")
    assert found["lines"][0]["source"] == {"id": made["id"], "version": 1}
    assert "200" in misuse("profile", "ann", "--tokens", "20")
