"""Personal data in every text of a session, by the policy of the session and by the setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.http.checks import assert_problem
from tests.http.test_sessions import begin
from tests.support.service import open_service
from tests.support.stored import places_holding

pytestmark = pytest.mark.anyio

MAIL = "ann@example.com"


@pytest.mark.parametrize("by_setting", [True, False])
async def test_masked_data_is_nowhere_in_a_session(tmp_path: Path, by_setting: bool) -> None:
    async with open_service(tmp_path, personal_data="mask" if by_setting else "keep") as service:
        ada = await service.agent("ada")
        policy = {} if by_setting else {"personal_data": "mask"}
        state = {"to": [MAIL]}
        talk = await begin(
            ada, title=f"For {MAIL}", state=state, metadata={"to": MAIL}, policy=policy
        )
        shown = await talk.do("GET")
        assert (shown["title"], shown["state"]) == ("For [email]", {"to": ["[email]"]})
        assert shown["metadata"] == {"to": "[email]"}
        assert (await talk.do("PATCH", title=MAIL, state={MAIL: 1}))["state"] == {"[email]": 1}
        added = await talk.add("Hi", name=MAIL, source=f"mailto:{MAIL}", metadata={"to": MAIL})
        turn = added["turns"][0]
        assert (turn["name"], turn["source"]) == ("[email]", "mailto:[email]")
        assert (turn["metadata"], turn["personal_data"]) == ({"to": "[email]"}, ["email"])
        made = await talk.do("POST", "/checkpoints", working=[{"to": MAIL}], state=state)
        assert (made["working"], made["state"]) == ([{"to": "[email]"}], {"to": ["[email]"]})
        body = {"session_id": talk.id, "user": f"Write to {MAIL}", "format": "text"}
        context = (await ada.post("/api/v1/context", json=body)).json()
        assert "Write to [email]" in context["text"]
        again = (await ada.get(f"/api/v1/context/{context['id']}?format=text")).json()
        assert again["text"] == context["text"]
        turn = {"role": "user", "content": "x", "client_id": f"<{MAIL}>"}
        refused = await talk.ask("POST", "/turns", turns=[turn])
        assert "`turns[0].client_id`" in assert_problem(refused, 422)["detail"]
        await talk.do("POST", "/close", reason=f"{MAIL} has left")
    assert places_holding(tmp_path, MAIL.encode()) == []


async def test_marked_data_of_a_turn_is_kept_and_named(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        talk = await begin(await service.agent("ada"), policy={"personal_data": "mark"}, title=MAIL)
        turn = (await talk.add("Hi", name=MAIL, client_id=MAIL))["turns"][0]
        assert (turn["name"], turn["personal_data"]) == (MAIL, ["email"])
        assert (await talk.do("GET"))["title"] == MAIL
