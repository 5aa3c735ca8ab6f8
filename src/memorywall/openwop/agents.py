"""The inventory of agents: the manifests in the workspace, with the dimensions of memory that this
host does not satisfy (RFC 0080, section C)."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.openwop.families import missing_dimensions
from memorywall.openwop.workspace import decode_file, list_files
from memorywall.records.errors import ResourceNotFoundError
from memorywall.service.requests.operation_context import OperationContext
from memorywall.settings import Settings
from memorywall.wire.openwop import AgentsResponse

FOLDER = "agents/"
"""The folder of the workspace that has a manifest for each agent, a JSON file."""
_DIMENSIONS = {
    "longTerm": ("long-term-durability",),
    "scratchpad": ("read", "write"),
    "conversation": ("read", "write"),
}
"""The dimensions of memory by what a manifest declares."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The parts of an `AgentManifest` that the inventory shows. It has no prompts and schemas."""

    agent_id: str
    persona: str
    model_class: str
    label: str | None = None
    description: str | None = None
    tool_allowlist: list[str] = []
    memory_shape: dict[str, bool] | None = None
    handoff: dict[str, Any] | None = None
    confidence: dict[str, Any] | None = None
    requires_capabilities: list[str] = []


async def list_agents(context: OperationContext) -> AgentsResponse:
    """Returns the agents by id. A file that is no manifest is left out."""
    found = []
    for entry in await list_files(context, FOLDER):
        manifest = decode_file(entry, Manifest)
        if manifest is not None:
            found.append(_view(context.service.settings, manifest, entry.version))
    found.sort(key=lambda one: str(one["agentId"]))
    return AgentsResponse(agents=found, total=len(found))


async def find_agent(context: OperationContext, agent_id: str) -> dict[str, Any]:
    """Returns an agent. Raises ResourceNotFoundError."""
    for one in (await list_agents(context)).agents:
        if one["agentId"] == agent_id:
            return one
    raise ResourceNotFoundError("there is no such agent; `GET /v1/agents` lists them")


def _view(settings: Settings, manifest: Manifest, version: int) -> dict[str, Any]:
    shape = manifest.memory_shape or {}
    wanted = [name for key, names in _DIMENSIONS.items() if shape.get(key) for name in names]
    degraded = missing_dimensions(settings, wanted)
    shown: dict[str, Any] = {
        "agentId": manifest.agent_id,
        "persona": manifest.persona,
        "label": manifest.label or manifest.persona,
        "description": manifest.description,
        "modelClass": manifest.model_class,
        "packName": "workspace",
        "packVersion": f"{version}.0.0",
        "toolAllowlist": manifest.tool_allowlist,
        "hasHandoffSchemas": bool(manifest.handoff),
        "memoryShape": manifest.memory_shape,
        "confidenceThreshold": (manifest.confidence or {}).get("defaultThreshold"),
    }
    if degraded:
        shown |= {"memoryDegraded": True, "degradedMemoryDimensions": degraded}
    return {name: one for name, one in shown.items() if one is not None}
