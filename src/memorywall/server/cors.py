"""CORS: which pages of other origins a browser lets call the server.

API keys are headers that a page sets itself, so no cookie and no credential of the browser is
allowed.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_READ = (
    "Accept",
    "Authorization",
    "Content-Type",
    "Fencing-Token",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "Last-Event-ID",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Protocol-Version",
    "Traceparent",
    "X-API-Key",
    "X-Agent-ID",
    "X-Request-ID",
    "X-Said-At",
    "X-Session-ID",
    "X-Subject",
    "X-User",
)
"""The headers of a request that the server reads."""
_SHOWN = (
    "ETag", "Location", "Repr-Digest", "Retry-After", "Traceparent", "WWW-Authenticate",
    "X-Request-ID",
)  # fmt: skip
"""The headers of a reply that a page may read, besides those that every page may read."""
_SECONDS_CACHED = 600


def allow_origins(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """The application for pages of these origins as well.

    origins: each `scheme://host` or `scheme://host:port`
    """
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=_METHODS,
        allow_headers=_READ,
        expose_headers=_SHOWN,
        max_age=_SECONDS_CACHED,
    )
