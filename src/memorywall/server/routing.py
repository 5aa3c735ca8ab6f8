"""Finds the operation for a path. Part of every request's time, so it is a walk over dictionaries.

Words win over parameters at the same place, so `/memory/batch` is never taken for an entry's id;
where a word leads nowhere it may still be a parameter, such as the name of an agent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.types import ASGIApp, Receive, Scope, Send

from memorywall.records.errors import MemorywallError
from memorywall.server.replies import Reply, problem_reply

_REST = ":path"


class UnknownMethodError(MemorywallError):
    """The path is served, but not for this method."""

    status = 405
    code = "METHOD_NOT_ALLOWED"
    title = "This path does not take this method"


@dataclass(slots=True)
class _Node:
    """What can follow the part of a path up to here."""

    words: dict[str, _Node] = field(default_factory=dict)
    parameter: str = ""
    after_parameter: _Node | None = None
    takes_rest: bool = False
    methods: dict[str, ASGIApp] = field(default_factory=dict)


class Router:
    """Sends a request to its operation, and everything else to `otherwise`."""

    def __init__(self, otherwise: ASGIApp) -> None:
        self._otherwise = otherwise
        self._root = _Node()

    def add(self, method: str, path: str, endpoint: ASGIApp) -> None:
        """Serves `method` on `path`, in which `{name}` is one part and `{name:path}` the rest."""
        node = self._root
        for part in path.split("/")[1:]:
            if not part.startswith("{"):
                node = node.words.setdefault(part, _Node())
                continue
            name = part.strip("{}")
            if node.after_parameter is None:
                node.after_parameter = _Node(takes_rest=name.endswith(_REST))
                node.parameter = name.removesuffix(_REST)
            node = node.after_parameter
        node.methods[method] = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            parameters: dict[str, str] = {}
            node = self._find(scope["path"], parameters)
            if node is not None:
                scope["path_params"] = parameters
                # HEAD is answered like GET; the server below drops the body.
                method = "GET" if scope["method"] == "HEAD" else scope["method"]
                endpoint = node.methods.get(method) or _refuse_method(node)
                await endpoint(scope, receive, send)
                return
        await self._otherwise(scope, receive, send)

    def _find(self, path: str, parameters: dict[str, str]) -> _Node | None:
        return _walk(self._root, path.split("/"), 1, parameters)


def _walk(node: _Node, parts: list[str], place: int, parameters: dict[str, str]) -> _Node | None:
    """The node that the parts of a path from `place` on lead to, where something is served."""
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
        refusal = problem_reply(UnknownMethodError())
        headers = (*refusal.headers, (b"allow", ", ".join(allowed).encode()))
        await Reply(refusal.status, refusal.body, headers, refusal.media).send(send)

    return endpoint
