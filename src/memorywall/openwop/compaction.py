"""Compaction: the entries of a memory become one summary of them, by the summarizer of sessions."""

from __future__ import annotations

import re

from memorywall.openwop.adapter import MemoryAdapter, filter_of, view
from memorywall.openwop.families import LARGEST_COMPACTION, MOST_COMPACTED
from memorywall.openwop.references import MALFORMED, namespace_of
from memorywall.openwop.runs import start
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import ValidationError
from memorywall.records.event import EventType
from memorywall.service.access.targets import load_target
from memorywall.service.access.visibility import load_visibility
from memorywall.service.entries.kept import retire_entry
from memorywall.service.requests.operation_context import OperationContext
from memorywall.summaries import SourceTurn, summarize
from memorywall.tokens.estimate import estimate
from memorywall.wire.openwop import CompactionResponse, StartRunRequest

_WORKFLOW = "memory.compaction"
_MOST_BYTES = 256 * 1024
_TOKENS = LARGEST_COMPACTION // 5
_OTHER_MARKERS = re.compile(r"\[BYOK:([^\]\n]{1,128})\]|<REDACTED:([^>\n]{1,128})>")
"""Markers of other hosts, which become those of this one."""


async def compact(context: OperationContext, memory_ref: str) -> CompactionResponse:
    """Replaces the entries of a memory that do not expire by a summary, in a run of its own. Other
    runs keep their snapshots.

    Raises ValidationError for a malformed reference and for a memory without such entries,
    MemoryAccessError.
    """
    namespace = namespace_of(memory_ref)
    if namespace is None:
        raise ValidationError(MALFORMED)
    run = await start(context, _WORKFLOW, StartRunRequest(workflow_id=_WORKFLOW), None,
                      [memory_ref])  # fmt: skip
    sources, turns = await _read(context, namespace)
    if not sources:
        raise ValidationError("the memory has no entries that last; there is nothing to compact")
    for entry in sources:
        context.authorize(Verb.DELETE, await load_target(context, Verb.DELETE, entry))
    text = summarize(turns, _TOKENS, count=estimate).text or turns[-1].text
    text = _OTHER_MARKERS.sub(lambda one: f"[REDACTED:{one[1] or one[2]}]", text)
    text = text.encode()[:LARGEST_COMPACTION].decode(errors="ignore")
    adapter = MemoryAdapter(context, run)
    tags = [f"compacted-from:{run.id}"]
    output = await adapter.put(memory_ref, text, tags, sources=sources)
    for entry in sources:
        await retire_entry(context, EventType.DELETED, entry)
    content = view(output).content
    payload = {
        "memoryRef": memory_ref,
        "outputId": output.id,
        "sourceCount": len(sources),
        "trigger": "host-managed",
        "byteSize": len(content.encode()),
        "sourceIds": [one.id for one in sources],
    }
    await run.emit("memory.compacted", payload, about=output)
    await run.end({}, {})
    return CompactionResponse(type="memory.compacted", payload=payload, output_content=content)


async def _read(context: OperationContext, namespace: str) -> tuple[list[Entry], list[SourceTurn]]:
    """Returns the entries to replace, the oldest first, and their texts."""
    wanted = filter_of(context.tenant, namespace, MOST_COMPACTED)
    visible = await load_visibility(context, Verb.READ, wanted)
    found, _ = await context.transaction.entries.search(wanted, visible, context.now)
    lasting, size = list[Entry](), 0
    for entry in found:
        size += entry.size
        if entry.expires_at is None and size <= _MOST_BYTES:
            lasting.append(entry)
    lasting.reverse()
    shown = await context.build(view, lasting)
    return lasting, [SourceTurn(number, "user", one.content) for number, one in enumerate(shown, 1)]
