"""Memories as resources: `memory://entries/{id}`, which a host may show and attach whole."""

from __future__ import annotations

from typing import Any

from mcp import types
from mcp.shared.exceptions import MCPError

from memorywall.adapters.large_values import LargeValues, is_unfinished
from memorywall.adapters.mcp.tool import NO_TURN, Context, FindClient, Outage
from memorywall.records.errors import MemoryNotFoundError, MemorywallError
from memorywall.sdk.models import MemoryEntry

_ENTRIES = "memory://entries/"
_PAGE = 50
_LONGEST_TITLE = 80
_TEMPLATE = types.ResourceTemplate(
    name="memory",
    title="A memory",
    uri_template=f"{_ENTRIES}{{id}}",
    description="The whole text of a memory, or its value as JSON. The id is that of the tools.",
)


def resource_handlers(client: FindClient, outage: Outage) -> dict[str, Any]:
    """Returns the handlers of resources for a server.

    client: returns the client of the caller of a request
    outage: describes errors
    """

    async def list_resources(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = (params.cursor if params else None) or "*"
        try:
            page = await client(context).memory.query(limit=_PAGE, cursor=cursor, where=NO_TURN)
        except MemorywallError as error:
            raise MCPError(types.INTERNAL_ERROR, outage.describe(error)) from error
        outage.end()
        shown = [_resource(one) for one in page if not is_unfinished(one)]
        return types.ListResourcesResult(resources=shown, next_cursor=page.next_cursor)

    async def list_templates(_: Context, __: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[_TEMPLATE])

    async def read_resource(
        context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri, owner = str(params.uri), client(context)
        try:
            entry = await owner.memory.get_by_id(uri.removeprefix(_ENTRIES))
            whole = await owner.driver.run(LargeValues(owner.memory.core).read(entry))
            if whole is None:
                raise MemoryNotFoundError
        except MemorywallError as error:
            is_absent = isinstance(error, MemoryNotFoundError)
            code = types.INVALID_PARAMS if is_absent else types.INTERNAL_ERROR
            raise MCPError(code, outage.describe(error), {"uri": uri}) from error
        outage.end()
        contents = types.TextResourceContents(uri=uri, mime_type=_type(whole), text=whole.text)
        return types.ReadResourceResult(contents=[contents])

    return {
        "on_list_resources": list_resources,
        "on_list_resource_templates": list_templates,
        "on_read_resource": read_resource,
    }


def _resource(entry: MemoryEntry) -> types.Resource:
    title = " ".join(entry.text[: 2 * _LONGEST_TITLE].split())[:_LONGEST_TITLE]
    uri = f"{_ENTRIES}{entry.id}"
    return types.Resource(uri=uri, name=entry.id, title=title, mime_type=_type(entry))


def _type(entry: MemoryEntry) -> str:
    has_text = any(isinstance(entry.value.get(name), str) for name in ("text", "content"))
    return "text/plain" if has_text else "application/json"
