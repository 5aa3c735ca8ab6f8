"""Sessions: life, participants, checkpoints, resuming, forking and matching."""

from __future__ import annotations

import msgspec

from memorywall.kinds.sessions import Metadata, Session
from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.records.copier import copier
from memorywall.records.decision import Verb
from memorywall.records.errors import RequestError, ValidationError
from memorywall.records.feature_errors import SessionQuarantinedError
from memorywall.records.session import SessionCounters
from memorywall.service.access.known_names import find_agent
from memorywall.service.access.subjects import sole_subject
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.sessions import continuation, life, listing, resume, turns
from memorywall.sessions import shown_checkpoints as shown
from memorywall.sessions.access import load_session
from memorywall.sessions.checkpoints import StoredCheckpoint, create
from memorywall.sessions.find_session import SessionMatch, find_session
from memorywall.sessions.stored import LoadedSession, load_counters
from memorywall.wire.sessions import (
    MatchResponse,
    ResumeResponse,
    SessionExport,
    SessionListResponse,
    SessionQuery,
    SessionRequest,
    SessionResponse,
    SessionScore,
    session_view,
)
from memorywall.wire.turns import (
    CheckpointListResponse,
    CheckpointResponse,
    checkpoint_view,
    turn_view,
)

_MOST_SCORES = 5
"""The most sessions that a match shows, the best ones."""
_wanted = copier(
    SessionRequest,
    Session,
    given=["agent_id", "continues"],
    defaults=["status", "idle_at", "closed_reason", "clear_at", "summarize_at"],
    subject="user",
)


async def recheck_session(context: OperationContext, call: OperationCall) -> None:
    """Raises ResourceNotFoundError unless the caller may still read the session of its request."""
    await load_session(context, call.path["session_id"], Verb.READ)


@operation(
    "create_session",
    is_long=lambda call: call.body.continues is not None or call.body.reuse,
    shows=lambda shown: (shown.id,),
)
async def create_session(context: OperationContext, call: OperationCall) -> SessionResponse:
    body = call.body
    if body.with_state and body.state:
        raise ValidationError("give `state` or `with_state`, not both")
    continues = body.continues
    if body.client_id is not None:
        if body.reuse:
            raise ValidationError("give `client_id` or `reuse`, not both")
        named = await listing.find_named(context, body.user, body.client_id)
        if named is not None:
            return _view(*named, context.now)
    if body.reuse:
        newest = await listing.find_reusable(context, body.user)
        if newest is not None and newest.is_open:
            return _view(newest.session, newest.counters, context.now)
        if newest is not None and continues is None:
            continues = newest.session.id
    wanted = _wanted(body, agent_id=context.principal.id, continues=continues)
    made = await continuation.create(context, wanted, body.ttl, with_state=body.with_state)
    return _view(*made, context.now)


@operation("get_session")
async def get_session(context: OperationContext, call: OperationCall) -> SessionResponse:
    loaded = await load_session(context, call.path["session_id"], Verb.READ)
    return await _show(context, loaded)


@operation("list_sessions")
async def list_sessions(context: OperationContext, call: OperationCall) -> SessionListResponse:
    asked = call.query
    if asked.client_id is not None:
        if msgspec.structs.replace(asked, client_id=None, user=None) != SessionQuery():
            raise RequestError("`client_id` goes with `user` only; leave the other filters out")
        named = await listing.find_named(context, asked.user, asked.client_id)
        return SessionListResponse(
            sessions=[] if named is None else [_view(*named, context.now)], next=None
        )
    agent = None if asked.participating else context.principal.id
    if asked.agent_id is not None:
        agent = await find_agent(context, asked.agent_id)
    found = await listing.list_sessions(
        context,
        agent,
        status=asked.status,
        subject=asked.user,
        metadata=_metadata(asked.metadata),
        participating=asked.participating,
        before=asked.before,
        limit=asked.limit,
    )
    shown = [_view(*one, context.now) for one in found.sessions]
    return SessionListResponse(sessions=shown, next=found.next)


@operation("update_session")
async def update_session(context: OperationContext, call: OperationCall) -> SessionResponse:
    fields = life.as_fields(call.body)
    if "policy" in fields:
        fields["policy"] = life.as_fields(fields["policy"])
    loaded = await life.update(context, call.path["session_id"], call.if_match, fields)
    return await _show(context, loaded)


@operation("delete_session", is_long=lambda call: True)
async def delete_session(context: OperationContext, call: OperationCall) -> None:
    await life.delete(context, call.path["session_id"])


@operation("set_session_participant")
async def set_session_participant(
    context: OperationContext, call: OperationCall
) -> SessionResponse:
    session_id, agent_id = call.path["session_id"], call.path["agent_id"]
    loaded = await life.set_participant(context, session_id, agent_id, call.body.access)
    return await _show(context, loaded)


@operation("remove_session_participant")
async def remove_session_participant(context: OperationContext, call: OperationCall) -> None:
    await life.remove_participant(context, call.path["session_id"], call.path["agent_id"])


@operation("create_checkpoint", recheck=recheck_session)
async def create_checkpoint(context: OperationContext, call: OperationCall) -> CheckpointResponse:
    body = call.body
    stored = await create(context, call.path["session_id"], body.trigger, body.working, body.state)
    return _checkpoint(stored)


@operation("list_checkpoints")
async def list_checkpoints(
    context: OperationContext, call: OperationCall
) -> CheckpointListResponse:
    found = await shown.list_checkpoints(context, call.path["session_id"])
    return CheckpointListResponse(checkpoints=[_checkpoint(one) for one in found])


@multi_transaction_operation("resume_session")
async def resume_session(transactions: OperationTransactions) -> ResumeResponse:
    body, session_id = transactions.call.body, transactions.call.path["session_id"]
    found = await transactions.write(
        resume.resume,
        session_id,
        body.checkpoint,
        body.replay,
        reopen=body.reopen,
    )
    if found is None:
        # The quarantine is committed, so that no later request resumes the session.
        raise SessionQuarantinedError(
            "the session contains entries of another session and is quarantined;"
            " export or delete it"
        )
    checkpoint = await transactions.read(shown.show_checkpoint, session_id, found.checkpoint)
    return ResumeResponse(
        session=_view(found.session, found.counters, found.resumed_at),
        checkpoint=None if checkpoint is None else _checkpoint(checkpoint),
        summary=found.summary,
        turns=[turn_view(one.entry, one.turn) for one in found.turns],
        has_more=found.has_more,
    )


@operation("fork_session", is_long=lambda call: True, shows=lambda shown: (shown.id,))
async def fork_session(context: OperationContext, call: OperationCall) -> SessionResponse:
    body = call.body
    made = await resume.fork(context, call.path["session_id"], body.sequence, body.title)
    return _view(*made, context.now)


@operation("close_session")
async def close_session(context: OperationContext, call: OperationCall) -> SessionResponse:
    return await _show(
        context, await life.close(context, call.path["session_id"], call.body.reason)
    )


@operation("archive_session")
async def archive_session(context: OperationContext, call: OperationCall) -> SessionResponse:
    return await _show(context, await life.archive(context, call.path["session_id"]))


@operation("export_session")
async def export_session(context: OperationContext, call: OperationCall) -> SessionExport:
    asked = call.query
    turns.check_page(context, asked.limit)
    loaded = await load_session(context, call.path["session_id"], Verb.READ)
    found = await turns.load_turns(context, loaded, after=asked.after, limit=asked.limit)
    made = await shown.load_shown(context, loaded) if asked.after == 0 else []
    return SessionExport(
        session=await _show(context, loaded),
        checkpoints=[_checkpoint(one) for one in reversed(made)],
        turns=[turn_view(one.entry, one.turn) for one in found],
        next=found[-1].turn.sequence if len(found) == asked.limit else None,
    )


def _metadata(text: str | None) -> dict[str, str | int | float]:
    """Returns the metadata of a query. Raises RequestError."""
    if text is None:
        return {}
    try:
        return msgspec.json.decode(text, type=Metadata)
    except msgspec.MsgspecError:
        raise RequestError(
            '`metadata` must be a JSON object of texts and numbers: `{"channel": "mail"}`'
        ) from None


async def _show(context: OperationContext, loaded: LoadedSession) -> SessionResponse:
    return _view(loaded, await load_counters(context, loaded.id), context.now)


def _view(loaded: LoadedSession, counters: SessionCounters, now: str) -> SessionResponse:
    return session_view(loaded.entry, loaded.value, counters, now)


def _checkpoint(stored: StoredCheckpoint) -> CheckpointResponse:
    return checkpoint_view(stored.entry, stored.checkpoint)


@multi_transaction_operation("match_session")
async def match_session(transactions: OperationTransactions) -> MatchResponse:
    body = transactions.call.body
    subject = body.user
    if subject is None:
        subject = sole_subject(transactions.principal, None)
    return _match_view(await find_session(transactions, body.text, subject))


def _match_view(match: SessionMatch) -> MatchResponse:
    candidates, choice = match.candidates, match.choice
    scored = [
        SessionScore(session_id=one.session_id, score=round(score, 4))
        for one, score in zip(candidates, choice.scores, strict=True)
    ]
    best = sorted(scored, key=lambda one: -one.score)[:_MOST_SCORES]
    chosen = None if choice.index is None else candidates[choice.index]
    return MatchResponse(
        session_id=None if chosen is None else chosen.session_id,
        status=None if chosen is None else chosen.status,
        score=best[0].score if best else 0.0,
        threshold=choice.threshold,
        method=match.method,
        candidates=best,
    )
