"""Finds the operation for a path by lookups in dictionaries, which is fast.

A fixed segment wins over a parameter in the same position, so `/memory/batch` is never the id of an
entry. If the fixed segment leads to no operation, the parameter is tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.types import ASGIApp, Receive, Scope, Send

from memorywall.records.errors import MemorywallError
from memorywall.server.exchange import EXCHANGE
from memorywall.server.replies import problem_response, send_response
from memorywall.wire.results import HttpResponse

_REST = ":path"


class UnknownMethodError(MemorywallError):
    """The path does not support the method."""

    status = 405
    code = "METHOD_NOT_ALLOWED"
    title = "This path does not support this method"


@dataclass(slots=True)
class _Node:
    """The continuations of a path prefix."""

    words: dict[str, _Node] = field(default_factory=dict)
    parameter: str = ""
    after_parameter: _Node | None = None
    takes_rest: bool = False
    methods: dict[str, ASGIApp] = field(default_factory=dict)


class Router:
    """Routes a request to its operation, and any other request to `otherwise`."""

    def __init__(self, otherwise: ASGIApp) -> None:
        self._otherwise = otherwise
        self._root = _Node()
        # The nodes that fixed segments alone lead to, by those segments.
        self._fixed: dict[str, _Node] = {"": self._root}

    def add(self, method: str, path: str, endpoint: ASGIApp) -> None:
        """Serves `method` on `path`, where `{name}` is one segment and `{name:path}` is the
        rest."""
        node, fixed = self._root, ""
        for part in path.split("/")[1:]:
            if not part.startswith("{"):
                parent, node = node, node.words.setdefault(part, _Node())
                if self._fixed.get(fixed) is parent:
                    fixed = f"{fixed}/{part}"
                    self._fixed[fixed] = node
                continue
            name = part.strip("{}")
            if node.after_parameter is None:
                node.after_parameter = _Node(takes_rest=name.endswith(_REST))
                node.parameter = name.removesuffix(_REST)
            node = node.after_parameter
        node.methods[method] = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parameters: dict[str, str] = {}
        node = self._find(scope["path"], parameters)
        if node is None:
            await self._otherwise(scope, receive, send)
            return
        scope["path_params"] = parameters
        endpoint = node.methods.get(scope["method"])
        if endpoint is None:
            # HEAD is handled like GET; uvicorn drops the body.
            is_head = scope["method"] == "HEAD"
            endpoint = (is_head and node.methods.get("GET")) or _refuse_method(node)
        await endpoint(scope, receive, send)

    def _find(self, path: str, parameters: dict[str, str]) -> _Node | None:
        # Most paths have at most one parameter, at their end, and need no walk.
        fixed, _, last = path.rpartition("/")
        parent = self._fixed.get(fixed)
        if parent is not None and last:
            node = parent.words.get(last)
            if node is not None and node.methods:
                return node
            after = parent.after_parameter
            if node is None and after is not None and after.methods and not after.takes_rest:
                parameters[parent.parameter] = last
                return after
        return _walk(self._root, path.split("/"), 1, parameters)


def _walk(node: _Node, parts: list[str], place: int, parameters: dict[str, str]) -> _Node | None:
    """The node for the segments of a path from `place` on, None if no operation is there."""
    if place == len(parts):
        return node if node.methods else None
    part = parts[place]
    word = node.words.get(part)
    if word is not None:
        found = _walk(word, parts, place + 1, parameters)
        if found is not None:
            return found
    following = node.after_parameter
    if following is None or not part:
        return None
    if following.takes_rest:
        parameters[node.parameter] = "/".join(parts[place:])
        return following
    parameters[node.parameter] = part
    return _walk(following, parts, place + 1, parameters)


def _refuse_method(node: _Node) -> ASGIApp:
    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        allowed = sorted(node.methods) + (["HEAD"] if "GET" in node.methods else [])
        refusal = problem_response(UnknownMethodError(), scope[EXCHANGE].request_id)
        headers = (*refusal.headers, (b"allow", ", ".join(allowed).encode()))
        await send_response(
            HttpResponse(refusal.status, refusal.body, headers, refusal.media), send
        )

    return endpoint
