"""Finds the operation for a path by lookups in dictionaries, which is fast.

A fixed segment wins over a parameter in the same position, so `/memory/batch` is never the id of an
entry. If the fixed segment leads to no operation, the parameter is tried.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Receive, Scope, Send

from memorywall.records.errors import MemorywallError
from memorywall.server.exchange import EXCHANGE
from memorywall.server.replies import problem_response, send_response
from memorywall.wire.results import HttpResponse

_REST = ":path"
Refusal = Callable[[MemorywallError, str], HttpResponse]
"""Makes the response for an error from it and the id of the request."""


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
    methods: dict[str, int] = field(default_factory=dict)


class RouteTable:
    """The paths of routes that are known by their number. It holds no endpoints, so that all
    applications of a process share one table."""

    def __init__(self, routes: Iterable[tuple[str, str]]) -> None:
        """Numbers routes from 0.

        routes: method and path of each, where `{name}` is one segment and `{name:path}` is the rest
        """
        self._root = _Node()
        # The nodes that fixed segments alone lead to, by those segments.
        self._fixed: dict[str, _Node] = {"": self._root}
        for number, (method, path) in enumerate(routes):
            self._add(method, path, number)

    def _add(self, method: str, path: str, number: int) -> None:
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
        node.methods[method] = number

    def find(self, path: str, parameters: dict[str, str]) -> Mapping[str, int] | None:
        """The numbers of the routes of a path by method; None if there are none.

        parameters: gets the parameters in the path
        """
        # Most paths have at most one parameter, at their end, and need no walk.
        fixed, _, last = path.rpartition("/")
        parent = self._fixed.get(fixed)
        if parent is not None and last:
            node = parent.words.get(last)
            if node is not None and node.methods:
                return node.methods
            after = parent.after_parameter
            if node is None and after is not None and after.methods and not after.takes_rest:
                parameters[parent.parameter] = last
                return after.methods
        node = _walk(self._root, path.split("/"), 1, parameters)
        return None if node is None else node.methods


class Router:
    """Routes a request to its operation, and any other request to `otherwise`.

    endpoints: the endpoint of each route of the table, by number
    refuse: makes the response for an unknown method; default: a problem document
    """

    def __init__(
        self,
        table: RouteTable,
        endpoints: Sequence[ASGIApp],
        otherwise: ASGIApp,
        refuse: Refusal = problem_response,
    ) -> None:
        self._table = table
        self._endpoints = endpoints
        self._otherwise = otherwise
        self._refuse = refuse

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        # The awaitable of the endpoint is returned, because each coroutine around it would cost
        # every request half a microsecond.
        parameters: dict[str, str] = {}
        methods = self._table.find(scope["path"], parameters)
        if methods is None:
            return self._otherwise(scope, receive, send)
        scope["path_params"] = parameters
        number = methods.get(scope["method"])
        if number is None and scope["method"] == "HEAD":
            # HEAD is handled like GET; uvicorn drops the body.
            number = methods.get("GET")
        endpoint = (
            _refuse_method(methods, self._refuse) if number is None else self._endpoints[number]
        )
        return endpoint(scope, receive, send)


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


def _refuse_method(methods: Mapping[str, int], refuse: Refusal) -> ASGIApp:
    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        allowed = sorted(methods) + (["HEAD"] if "GET" in methods else [])
        refusal = refuse(UnknownMethodError(), scope[EXCHANGE].request_id)
        headers = (*refusal.headers, (b"allow", ", ".join(allowed).encode()))
        await send_response(
            HttpResponse(refusal.status, refusal.body, headers, refusal.media), send
        )

    return endpoint
