"""The OpenAPI document and the API explorer. The server serves all their assets itself."""

from __future__ import annotations

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from memorywall.version import __version__
from memorywall.wire.openapi import document

_ASSETS = {
    "/docs": ("docs.html", "text/html"),
    "/docs/docs.css": ("docs.css", "text/css"),
    "/docs/docs.js": ("docs.js", "text/javascript"),
    "/docs/elements.js": ("elements.js", "text/javascript"),
    "/docs/requests.js": ("requests.js", "text/javascript"),
    "/docs/schemas.js": ("schemas.js", "text/javascript"),
}
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
}


def page_routes() -> list[BaseRoute]:
    """The routes of /openapi.json, /docs and its assets."""
    start = Route("/", _start)
    return [start, Route("/openapi.json", _openapi), *(Route(path, _asset) for path in _ASSETS)]


async def _start(request: Request) -> Response:
    """Leads a browser to the API page."""
    return RedirectResponse("/docs", status_code=307)


async def _openapi(request: Request) -> Response:
    return Response(document(__version__), media_type="application/json")


async def _asset(request: Request) -> Response:
    name, media = _ASSETS[request.url.path]
    content = files("memorywall.server").joinpath("assets", name).read_bytes()
    return Response(content, media_type=media, headers=_HEADERS)
