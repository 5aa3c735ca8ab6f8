"""`client.sessions`, sync and async."""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

import memorywall
from memorywall.exceptions import (
    ResourceConflictError,
    ResourceNotFoundError,
    SessionClosedError,
    ValidationError,
)
from tests.support.backend import store_of


def _place(directory: Path) -> str:
    return store_of(directory) or str(directory / "memory.db")


def test_a_session_is_found_by_metadata_changed_and_continued(tmp_path: Path) -> None:
    with memorywall.open(_place(tmp_path), agent="ada") as client:
        first = client.sessions.create("ann", metadata={"channel": "mail"}, idle_timeout="30m")
        turn = first.add("user", "My invoice 4711 is wrong.", client_id="a", metadata={"n": 1})
        assert turn.metadata == {"n": 1}
        with pytest.raises(ResourceConflictError, match="client_id"):
            first.add("user", "Other.", client_id="a")
        assert first.update(ttl="2h", idle_timeout=None).idle_timeout is None
        assert first.update(ends_at=None, metadata={"channel": "chat"}).ends_at is None
        found = client.sessions.list(metadata={"channel": "chat"}).sessions
        assert [one.id for one in found] == [first.id]
        assert client.sessions.list(metadata={"channel": "mail"}).sessions == []
        first.close()
        with pytest.raises(SessionClosedError):
            first.update(ttl="1h")
        second = client.sessions.create("ann", continues=first.id, with_state=True)
        assert "4711" in second.resume().summary
        assert [one.data.status for one in first.events()][-2:] == ["active", "closed"]
        assert client.sessions.list(participating=True).sessions == []


@pytest.mark.anyio
async def test_the_async_client_continues_and_reopens(tmp_path: Path) -> None:
    async with memorywall.open_async(_place(tmp_path), agent="ada") as client:
        first = await client.sessions.create("ann", idle_timeout=3600)
        await first.add("user", "My invoice 4711 is wrong.")
        again = await client.sessions.resume(first.id, reopen=True)
        assert again.info.status == "active"
        second = await client.sessions.create("ann", continues=first.id)
        assert "4711" in (await second.resume()).summary
        assert [one.type for one in await second.events()] == ["memory.created"]


def test_a_conversation_survives_a_restart(tmp_path: Path) -> None:
    place = _place(tmp_path)
    with memorywall.open(place, agent="ada") as client:
        session = client.sessions.create("ann", title="Refund", idle_timeout="PT1H")
        assert session.add("user", "Hello, order 17 is late.").sequence == 1
        session.add_many([{"role": "assistant", "content": "I look."}])
        assert "order 17" in session.checkpoint(state={"order": 17}).summary
        assert session.refresh().status == "checkpointed"
    with memorywall.open(place, agent="ada") as client:
        again = client.sessions.resume(session.id)
        assert again.resumed is not None
        assert again.resumed.checkpoint is not None
        assert again.resumed.checkpoint.state == {"order": 17}
        assert again.info.status == "active"
        assert [one.content for one in again.turns(after=1)] == ["I look."]
        assert [one.number for one in again.checkpoints()] == [1]
        fork = again.fork(1, title="other")
        assert fork.info.continues == session.id
        assert again.update(title="new", version=again.refresh().version).title == "new"
        with pytest.raises(ResourceConflictError):
            again.update(title="late", version=1)
        assert again.set_participant("bob", "read").participants[0].agent_id == "bob"
        again.remove_participant("bob")
        again.remove_turns(2)
        assert again.clear().counts.turn_count == 0
        assert again.close("solved").closed_reason == "solved"
        with pytest.raises(SessionClosedError):
            again.add("user", "more")
        assert again.archive().status == "archived"
        assert len(fork.export().turns) == 1
        assert [one.id for one in client.sessions.list(subject="ann").sessions] == [
            fork.id,
            session.id,
        ]
        assert repr(fork) == f"<ClientSession {fork.id} active>"
        again.delete()
        client.sessions.delete(fork.id)
        with pytest.raises(ResourceNotFoundError):
            client.sessions.get(session.id)


def test_durations_have_the_forms_of_lifetimes(tmp_path: Path) -> None:
    with memorywall.open(_place(tmp_path), agent="ada") as client:
        policy = {"retention": "30d", "checkpoint_interval": timedelta(minutes=5)}
        session = client.sessions.create(ttl="8h", idle_timeout=900, policy=policy)
        assert session.info.idle_timeout == "PT900S"
        assert (session.info.policy.retention, session.info.policy.checkpoint_interval) == (
            "P30D", "PT300S",
        )  # fmt: skip
        assert session.update(policy={"retention": 60}).policy.retention == "PT60S"
        turn = session.add("user", "a", valid_for="10m")
        assert turn.valid_until is not None
        with pytest.raises(ValidationError, match="`ttl`"):
            client.sessions.create(ttl="soon")


def test_turns_and_exports_are_read_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memorywall.sdk.session._TURN_PAGE", 3)
    monkeypatch.setattr("memorywall.sdk.session._EXPORT_PAGE", 3)
    with memorywall.open(_place(tmp_path), agent="ada") as client:
        session = client.sessions.create("ann", reuse=True)
        session.add_many({"role": "user", "content": str(number)} for number in range(1, 8))
        assert client.sessions.create("ann", reuse=True).id == session.id

        def read(**wanted: object) -> list[int]:
            return [one.sequence for one in session.turns(**wanted)]

        assert read() == [1, 2, 3, 4, 5, 6, 7]
        assert read(newest_first=True) == [7, 6, 5, 4, 3, 2, 1]
        assert read(after=1, limit=5) == [2, 3, 4, 5, 6]
        assert read(newest_first=True, before=7, limit=4) == [6, 5, 4, 3]
        assert read(after=7) == []
        assert read(limit=3) == [1, 2, 3]
        exported = session.export()
        assert [one.sequence for one in exported.turns] == [1, 2, 3, 4, 5, 6, 7]
        assert exported.next is None


@pytest.mark.anyio
async def test_a_conversation_is_held_asynchronously(tmp_path: Path) -> None:
    async with memorywall.open_async(_place(tmp_path), agent="ada") as client:
        session = await client.sessions.create("ann")
        await session.add("user", "Hello", client_id="1")
        await session.add("user", "Hello", client_id="1")
        await session.checkpoint()
        again = await client.sessions.resume(session.id)
        assert again.resumed is not None
        assert await again.turns() == await session.turns()
        fork = await again.fork()
        assert (await fork.refresh()).continues == session.id
        assert len((await client.sessions.list()).sessions) == 2
        assert (await client.sessions.match("Hello", "ann")).candidates
        await (await client.sessions.get(fork.id)).delete()


def test_a_client_of_a_person_holds_their_sessions(tmp_path: Path) -> None:
    with memorywall.open(_place(tmp_path), agent="ada") as client:
        session = client.for_user("ann").sessions.create()
        assert session.info.subject == "ann"
        with pytest.raises(ResourceNotFoundError):
            client.for_user("bob").sessions.get(session.id)


class _Reply:
    """An object of a provider's library, as pydantic makes them."""

    def __init__(self, **fields: object) -> None:
        self._fields = fields

    def model_dump(self, mode: str = "python") -> dict[str, object]:
        assert mode == "json"
        return self._fields


def test_whole_messages_are_added(tmp_path: Path) -> None:
    used = _Reply(type="tool_use", id="c1", name="find", input={"order": 17})
    function = {"name": "find", "arguments": '{"order": 17}'}
    calls = [{"id": "c1", "type": "function", "function": function}]
    with memorywall.open(_place(tmp_path), agent="ada") as client:
        session = client.sessions.create("ann")
        for turn in (
            session.add(_Reply(role="assistant", content=None, tool_calls=calls)),
            session.add("assistant", tool_calls=calls),
            session.add("assistant", [used]),
            session.add({"role": "assistant"}, [used], client_id="3"),
        ):
            assert turn.content == ""
            assert [(one.name, one.arguments) for one in turn.tool_calls] == [
                ("find", {"order": 17})
            ]
        result = {"type": "tool_result", "tool_use_id": "c1", "content": "in Bonn"}
        last = session.add({"role": "user", "content": [result]}, trusted=False, valid_for="10m")
        assert (last.role, last.content, last.trusted) == ("tool", "in Bonn", False)
        assert last.valid_until is not None
        reply = _Reply(role="assistant", content="Bonn")
        assert session.add_many([{"role": "user", "content": "So?"}, reply])[1].content == "Bonn"
        for wrong in (17, None, [used]):
            with pytest.raises(ValidationError, match=r"`turns\[0\]` must be a dict"):
                session.add(wrong)


def test_states_of_a_framework_are_saved(tmp_path: Path) -> None:
    place, data = _place(tmp_path), bytes(range(256)) * 300
    with memorywall.open(place, agent="ada") as client:
        session = client.sessions.create("ann")
        session.put_saved_state("1", b"\0first", metadata={"step": 1})
        assert session.put_saved_state("2", data, parent="1").size == len(data)
        with pytest.raises(ValidationError, match="`data` must be bytes"):
            session.put_saved_state("3", "text")  # type: ignore[arg-type]
    with memorywall.open(place, agent="ada") as client:
        session = client.sessions.get(session.id)
        (newest,) = session.list_saved_states(limit=1).saved_states
        assert (newest.name, newest.parent, newest.data) == ("2", "1", None)
        assert session.get_saved_state("2").data == data
        found = session.get_saved_state(newest.parent or "")
        assert (found.data, found.metadata) == (b"\0first", {"step": 1})
        session.delete_saved_state("2")
        with pytest.raises(ResourceNotFoundError):
            session.get_saved_state("2")


def test_a_session_in_use_has_a_checkpoint_at_its_end(tmp_path: Path) -> None:
    with memorywall.open(_place(tmp_path), agent="ada") as client:
        id_ = client.sessions.create("ann").id
        with client.sessions.use(id_) as session:
            session.add("user", "Hello")
            inside = client.for_user("ann").in_session(id_)
            inside.memory.set("plan", "next", {"step": 2}, "working")
        (made,) = session.checkpoints()
        assert (made.trigger, session.refresh().status) == ("shutdown", "checkpointed")
        with client.sessions.use(id_) as session:
            assert session.info.status == "active"
            assert session.resumed is not None
            assert session.resumed.checkpoint is not None
            (entry,) = session.resumed.checkpoint.working
        assert entry == {"namespace": "user/ann/plan", "key": "next", "value": {"step": 2}}
        with pytest.raises(KeyError), client.sessions.use(id_):
            raise KeyError
        assert session.checkpoints()[0].trigger == "error_recovery"
        assert session.refresh().status == "active"
        with pytest.raises(KeyboardInterrupt), client.sessions.use(id_):
            raise KeyboardInterrupt
        assert session.checkpoints()[0].trigger == "shutdown"
        with client.sessions.use(id_) as session:
            session.close()
        with pytest.raises(SessionClosedError), client.sessions.use(id_):
            pass


@pytest.mark.anyio
async def test_a_session_is_used_asynchronously(tmp_path: Path) -> None:
    async with memorywall.open_async(_place(tmp_path), agent="ada") as client:
        id_ = (await client.sessions.create("ann")).id
        async with client.sessions.use(id_) as session:
            await session.add("user", "Hello")
        with pytest.raises(KeyError):
            async with client.sessions.use(id_) as session:
                raise KeyError
        triggers = [one.trigger for one in await session.checkpoints()]
        assert triggers == ["error_recovery", "shutdown"]
        async with client.sessions.use(id_) as session:
            await session.delete()


def test_a_found_turn_names_its_session_and_what_it_says(tmp_path: Path) -> None:
    with memorywall.open(_place(tmp_path), agent="ada") as client:
        session = client.sessions.create()
        session.add("user", [{"type": "text", "text": "Where is the harvest plan?"}])
        call = {"id": "1", "name": "find", "arguments": {"plan": "harvest"}}
        session.add("assistant", "The harvest: I look.", tool_calls=[call])
        client.memory.put("notes", "a", {"text": "A harvest note."})
        found = {hit.sequence: hit for hit in client.memory.search("harvest")}
        assert {one: hit.session_id for one, hit in found.items()} == {
            1: session.id, 2: session.id, None: None,
        }  # fmt: skip
        assert found[1].text == "Where is the harvest plan?"
        assert found[2].text == 'The harvest: I look.\nfind(plan="harvest")'
        assert found[None].text == "A harvest note."


def test_a_photo_is_downloaded_and_shown_as_it_was_sent(place: Path | str) -> None:
    photo = bytes(range(256)) * 500
    url = f"data:image/png;base64,{base64.b64encode(photo).decode()}"
    image = {"type": "image_url", "image_url": {"url": url}}
    with memorywall.open(place, agent="ada") as client:
        session = client.sessions.create("ann")
        turn = session.add("user", [{"type": "text", "text": "What is it?"}, image])
        assert not isinstance(turn.attachments, msgspec.UnsetType)
        (file,) = turn.attachments
        assert client.memory.attachments.download(turn.id, file.attachment_id) == photo
        reference = client.context(session.id, format="openai", window=8_000)
        whole = client.context(session.id, format="openai", window=8_000, parts="whole")
        assert reference.messages is not None
        assert whole.messages is not None
        assert file.uri in reference.messages[0]["content"][1]["text"]
        assert whole.messages[0]["content"][1] == image
