"""promote and promotions: sentences for people, JSON for programs."""

from __future__ import annotations

import json

from tests.cli.shell import Shell, columns, misuse, succeed

LEAP = "The export of the billing service fails on leap days; retry it a day later."


def test_a_promotion_is_explained_and_taken_back(anywhere: Shell) -> None:
    case = anywhere.json("set", "cases", "leap", json.dumps({"text": LEAP}), "--type", "episodic")
    target = ("--to", "semantic", "--namespace", "ops", "--result-key", "leap")
    rehearsed = anywhere.succeed("promote", case["id"], *target, "--dry-run")
    assert f"{case['id']} (version 1, episodic) would be promoted to semantic `ops`" in rehearsed
    assert anywhere.json("query", "--namespace", "ops", "--type", "semantic")["entries"] == []
    told = anywhere.succeed("promote", case["id"], *target)
    assert "Why: it meets every criterion (accepted)." in told
    assert "non obviousness: 1.00 (at least 0.1, weight 0.4)" in told
    assert "reusability: unknown (at least 0.4, weight 0.3, 0 outcomes)" in told
    promotion = told.splitlines()[-1].removeprefix("Promotion: ")
    entry = anywhere.json("get", "ops", "leap", "--type", "semantic")
    assert entry["value"] == {"text": LEAP}
    table = succeed("promotions", "list", *anywhere.where, "--candidate", case["id"])
    assert columns(table)[:3] == ["promotion", "decision", "to"]
    assert table.splitlines()[2].split()[:2] == [promotion, "promoted"]
    assert succeed("promotions", "explain", *anywhere.where, promotion) == told
    shown = succeed("promotions", "show", *anywhere.where, promotion, "--json")
    assert json.loads(shown)["result"] == entry["id"]
    assert "reverted to semantic `ops`" in succeed(
        "promotions", "revert", *anywhere.where, promotion
    )
    assert anywhere.json("get", entry["id"])["state"] == "withdrawn"
    refused = anywhere.refuse("promote", case["id"], *target)
    assert "taken back" in refused
    assert "--to" in misuse("promote", case["id"])
