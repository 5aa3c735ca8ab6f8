"""JSON Schemas of what OpenWOP says about documents, written for these tests."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 0}
INSTANT = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"}
TEXTS = {"type": "array", "items": {"type": "string"}}
OBJECT = {"type": "object"}
TRUE = {"const": True}
DIMENSIONS = {
    "enum": ["read", "write", "search", "long-term-durability", "compaction", "attribution",
             "replay-snapshot", "retention"],
}  # fmt: skip


def _of(required: dict[str, Any], is_closed: bool = True, **optional: Any) -> dict[str, Any]:
    """The schema of an object with these members."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **optional},
        "additionalProperties": not is_closed,
    }


FAILURE = _of({"code": TEXT, "message": TEXT})
SCHEMAS: dict[str, dict[str, Any]] = {
    "capabilities": _of(
        {
            "protocolVersion": {"const": "1.0"},
            "supportedEnvelopes": TEXTS,
            "schemaVersions": OBJECT,
            "limits": OBJECT,
            "memory": _of(
                {"supported": TRUE, "maxEntrySizeBytes": COUNT, "ttlSupported": TRUE},
                writable=TRUE,
                attribution=_of({"supported": TRUE, "emitsWriteEvents": TRUE}),
                compaction=_of(
                    {
                        "supported": TRUE,
                        "trigger": {"const": "host-managed"},
                        "maxInputEntries": COUNT,
                        "maxOutputBytes": COUNT,
                    }
                ),
                search=_of({"supported": TRUE, "modes": TEXTS}),
                retention=_of({"ttl": TRUE, "forget": TRUE}),
            ),
            "agents": _of({"memoryBackends": {"const": ["long-term"]}}),
            "workspace": _of({"supported": TRUE, "versioned": TRUE}, maxFileBytes=COUNT),
            "capabilities": OBJECT,
        },
        is_closed=False,
    ),
    "memory-entry": _of(
        {"id": TEXT, "content": {"type": "string"}, "tags": TEXTS, "createdAt": INSTANT},
        expiresAt=INSTANT,
    ),
    "run-event": _of(
        {
            "eventId": TEXT,
            "runId": TEXT,
            "type": {"type": "string", "pattern": r"^[a-z]+(\.[a-zA-Z]+)+$"},
            "payload": OBJECT,
            "timestamp": INSTANT,
            "sequence": COUNT,
        },
        nodeId=TEXT,
    ),
    "run-snapshot": _of(
        {
            "runId": TEXT,
            "workflowId": TEXT,
            "status": {"enum": ["running", "completed", "failed"]},
            "startedAt": INSTANT,
        },
        completedAt=INSTANT,
        variables=OBJECT,
        agent=_of({"agentId": TEXT}, is_closed=False, memoryRef=TEXT),
        error=FAILURE,
        tags=TEXTS,
        metadata=OBJECT,
    ),
    "error-envelope": _of({"error": TEXT, "message": TEXT}, details=OBJECT),
    "workspace-file": _of(
        {
            "path": TEXT,
            "content": {"type": "string"},
            "version": {"type": "integer", "minimum": 1},
            "updatedAt": INSTANT,
        },
        contentType=TEXT,
        etag=TEXT,
    ),
    "agent-inventory-response": _of(
        {
            "total": COUNT,
            "agents": {
                "type": "array",
                "items": _of(
                    {
                        "agentId": TEXT,
                        "persona": TEXT,
                        "label": TEXT,
                        "modelClass": TEXT,
                        "packName": TEXT,
                        "packVersion": TEXT,
                        "toolAllowlist": TEXTS,
                        "hasHandoffSchemas": {"type": "boolean"},
                    },
                    memoryShape=OBJECT,
                    memoryDegraded=TRUE,
                    degradedMemoryDimensions={"type": "array", "items": DIMENSIONS},
                ),
            },
        }
    ),
    "run.started": _of({"workflowId": TEXT}, is_closed=False, inputs=OBJECT),
    "run.completed": _of({}),
    "run.failed": _of({"error": FAILURE}, failedNodeId=TEXT),
    "node.failed": _of({"nodeId": TEXT, "error": FAILURE}),
    "node.started": _of({"nodeId": TEXT, "typeId": TEXT}),
    "node.completed": _of({"nodeId": TEXT}, outputs=OBJECT),
    "memory.written": _of(
        {"memoryRef": TEXT, "memoryId": TEXT, "tags": TEXTS}, nodeId=TEXT, agentId=TEXT
    ),
    "memory.compacted": _of(
        {
            "memoryRef": TEXT,
            "outputId": TEXT,
            "sourceCount": {"type": "integer", "minimum": 1},
            "trigger": {"const": "host-managed"},
            "byteSize": COUNT,
        },
        sourceIds=TEXTS,
    ),
    "memorywall.secret.resolved": _of({"secretId": TEXT}),
}
"""The schema of each document by its name; that of an event's payload by the type of the event."""
