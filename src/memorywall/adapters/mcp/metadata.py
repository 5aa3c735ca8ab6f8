"""The metadata of the protected resources (RFC 9728), by which a client finds where to get a token.

There is no authorization server here: any identity provider that the server accepts issues tokens.
"""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from memorywall.records.errors import ResourceNotFoundError
from memorywall.server.dispatch import HttpService
from memorywall.server.exchange import EXCHANGE, Exchange
from memorywall.server.replies import problem_response, send_response
from memorywall.settings import Settings
from memorywall.wire.results import Header, HttpResponse, encode

METADATA = "/.well-known/oauth-protected-resource"
_NO_ISSUERS = "this server accepts API keys only; see the setting `token_issuers`"


class ResourceMetadata:
    """The ASGI endpoint of the metadata; the rest of the path is that of the resource."""

    def __init__(self, service: HttpService) -> None:
        self._issuers = service.authenticator.issuers
        self._settings = service.runner.service.settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange: Exchange = scope[EXCHANGE]
        if not self._issuers:
            refusal = ResourceNotFoundError(_NO_ISSUERS)
            await send_response(problem_response(refusal, exchange.request_id), send)
            return
        document = {
            "resource": _base(self._settings, scope, exchange)
            + scope["path"].removeprefix(METADATA),
            "authorization_servers": list(self._issuers),
            "bearer_methods_supported": ["header"],
            "resource_name": "memorywall",
        }
        await send_response(HttpResponse(200, encode(document)), send)


def challenge(settings: Settings, scope: Scope, exchange: Exchange) -> Header:
    """The header of a refusal, which leads a client to the metadata (RFC 9728 section 5.1) and says
    whether its token was refused (RFC 6750 section 3)."""
    where = f"{_base(settings, scope, exchange)}{METADATA}{scope['path']}"
    text = f'Bearer resource_metadata="{where}"'
    if b"authorization" in exchange.headers:
        text += ', error="invalid_token"'
    return b"www-authenticate", text.encode()


def _base(settings: Settings, scope: Scope, exchange: Exchange) -> str:
    """The URL of the server without a path."""
    if settings.public_url is not None:
        return settings.public_url.rstrip("/")
    host = exchange.headers.get(b"host", b"").decode("latin-1")
    return f"{scope['scheme']}://{''.join(one for one in host if one.isalnum() or one in '.:-[]')}"
