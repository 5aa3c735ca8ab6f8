"""Tools: async functions whose signatures are the schemas, and the MCP server that offers them.

The parameters of a function after the client are the arguments of the tool, and its result is a
struct. A refused call is a result that the model reads, not an error of the protocol.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_type_hints

import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as ToolDescription

from memorywall.records.argument_names import unknown_names
from memorywall.records.clock import Clock, format_instant
from memorywall.records.errors import (
    LeaseHeldError,
    MemorywallError,
    StoreLockedError,
    UnavailableError,
    ValidationError,
)
from memorywall.records.struct_errors import explain
from memorywall.sdk.client import AsyncClient
from memorywall.sdk.errors import MemoryTransportError
from memorywall.version import __version__

Context: TypeAlias = ServerRequestContext[Any, Any]
FindClient: TypeAlias = Callable[[Context], AsyncClient]
Function: TypeAlias = Callable[..., Awaitable[Any]]

NO_TURN = 'memory_type != "session"'
"""The condition of lists of memories, which turns of conversations are not."""
READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
ADDS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
REPLACES = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool.

    function: gets the client and the arguments by name
    arguments: the struct of the arguments
    description: as the protocol lists it
    """

    function: Function
    arguments: type[msgspec.Struct]
    description: ToolDescription

    async def run(self, client: AsyncClient, given: dict[str, Any]) -> Any:
        """Returns the result. Raises ValidationError for arguments that do not fit, and the errors
        of the SDK."""
        known = self.arguments.__struct_fields__
        if unknown := sorted(given.keys() - {*known}):
            raise ValidationError(unknown_names("arguments", unknown, known))
        try:
            arguments = msgspec.convert(given, self.arguments)
        except msgspec.ValidationError as error:
            raise ValidationError(explain(error, self.arguments, inside="arguments")) from None
        return await self.function(client, **msgspec.structs.asdict(arguments))


def make_tool(
    title: str, hints: ToolAnnotations
) -> Callable[[Callable[..., Awaitable[Any]]], Tool]:
    """Makes a tool of a function, whose docstring is the description for the model."""

    def make(function: Function) -> Tool:
        types = get_type_hints(function, include_extras=True)
        _, *parameters = inspect.signature(function).parameters.values()
        fields: list[Any] = [
            (one.name, types[one.name])
            if one.default is one.empty
            else (one.name, types[one.name], one.default)
            for one in parameters
        ]
        arguments = msgspec.defstruct(
            function.__name__, fields, kw_only=True, forbid_unknown_fields=True
        )
        description = ToolDescription(
            name=function.__name__,
            title=title,
            description=" ".join((function.__doc__ or "").split()),
            input_schema=_schema(arguments),
            output_schema=_schema(types["return"]),
            annotations=hints,
        )
        return Tool(function, arguments, description)

    return make


def make_server(
    name: str,
    tools: Sequence[Tool],
    instructions: str,
    client: FindClient,
    outage: Outage,
    **handlers: Any,
) -> Server[Any]:
    """An MCP server with these tools.

    instructions: for the model, how the tools belong together
    client: returns the client of the caller of a request
    outage: describes errors
    handlers: of other requests than those about tools, as for `Server`
    """
    by_name = {tool.description.name: tool for tool in tools}
    listed = ListToolsResult(tools=[tool.description for tool in tools])

    async def list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return listed

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = by_name.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, "there is no tool of this name; see tools/list")
        try:
            result = await tool.run(client(context), params.arguments or {})
        except MemorywallError as error:
            return _refusal(outage.describe(error))
        outage.end()
        text = msgspec.json.encode(result).decode()
        return CallToolResult(
            content=[TextContent(text=text)], structured_content=msgspec.json.decode(text)
        )

    return Server(
        name,
        version=__version__,
        title="memorywall",
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        **handlers,
    )


class Outage:
    """Since when calls find no memory.

    clock: tells the time
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: str | None = None

    def end(self) -> None:
        """Notes that a call has reached the memory."""
        self._since = None

    def describe(self, error: MemorywallError) -> str:
        """Returns an error in words for the model and its user."""
        if not isinstance(error, MemoryTransportError | UnavailableError | StoreLockedError):
            self.end()
            return _describe(error)
        self._since = self._since or format_instant(self._clock.now())
        return (
            f"memory is unavailable since {self._since}: {error.detail}. Nothing was read; what"
            " this call was to change may not be stored. Tell the user, and call again later."
        )


def _describe(error: MemorywallError) -> str:
    lease = error.existing_lease if isinstance(error, LeaseHeldError) else None
    if isinstance(lease, dict):
        return f"{lease.get('agent_id')} holds this key until {lease.get('expires_at')}"
    return error.detail


def _refusal(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def _schema(kind: type) -> dict[str, Any]:
    """The JSON Schema of a struct, an object at its root as the protocol requires."""
    (root,), others = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    for one in others.values():
        if "description" in one:
            one["description"] = " ".join(one["description"].split())
    schema = others.pop(root["$ref"].rpartition("/")[2])
    return {**schema, "$defs": others} if others else schema
