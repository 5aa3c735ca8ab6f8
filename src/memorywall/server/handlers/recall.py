"""Searching by words and meaning, and reshaping a question before it is searched for."""

from __future__ import annotations

from memorywall.recall.reshape import reshape
from memorywall.recall.search import search
from memorywall.records.filter import Filter
from memorywall.records.recall import Sought
from memorywall.server.dispatch import Call
from memorywall.server.filters import instant_in_body, whole_or_prefix
from memorywall.server.replies import Reply, json_reply
from memorywall.wall.limits import check_tags
from memorywall.wire.recall import GuidanceView, ReshapeReply, Search, found_view


async def search_entries(call: Call) -> Reply:
    found = await search(call.service.index, call.principal, _sought(call, call.body))
    return json_reply(found_view(found))


async def reshape_query(call: Call) -> Reply:
    asked = call.body
    reshaped = await reshape(
        call.service.index,
        call.principal,
        asked.query,
        agent_id=asked.agent_id,
        namespace=asked.namespace,
        limit=asked.limit,
    )
    guidance = [
        GuidanceView(
            kind=one.kind,
            text=one.text,
            entry_id=one.entry_id,
            confidence=round(one.confidence, 6),
        )
        for one in reshaped.guidance
    ]
    return json_reply(ReshapeReply(query=reshaped.query, guidance=guidance))


def _sought(call: Call, asked: Search) -> Sought:
    """The search a body asks for. Raises ValidationError naming the field."""
    namespace, prefix = whole_or_prefix(asked.namespace)
    return Sought(
        query=asked.query,
        wanted=Filter(
            tenant=call.principal.tenant,
            tiers=() if asked.memory_type is None else (asked.memory_type,),
            agent_id=asked.agent_id,
            namespace=namespace,
            namespace_prefix=prefix,
            tags=check_tags(asked.tags, "tags"),
            tags_any=check_tags(asked.tags_any, "tags_any"),
            task_id=asked.scope.task_id,
            intent_id=asked.scope.intent_id,
        ),
        session_id=asked.scope.session_id,
        mode=asked.mode,
        outcome=asked.outcome,
        limit=asked.limit,
        min_trust=asked.min_trust,
        as_of=instant_in_body("as_of", asked.as_of),
        explain=asked.explain,
    )
