"""Whether a server answers, and whether it is ready."""

from __future__ import annotations

import httpx

from memorywall.diagnosis.finding import Finding, ok, problem, warning
from memorywall.settings import Settings

_PATIENCE_SECONDS = 5.0


def check_server(settings: Settings, url: str | None, *, is_served: bool) -> Finding:
    """Asks a server whether it is ready.

    url: of the server; None for the address in the settings, if a server uses the store
    is_served: whether a server uses the store of the settings
    """
    if url is None and not is_served:
        return ok("server", "no server uses this store")
    asked = url or server_url(settings)
    try:
        response = httpx.get(asked.rstrip("/") + "/ready", timeout=_PATIENCE_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        text = f"no server answers at {_hide_account(asked)} ({type(error).__name__})"
        if url is None:
            return warning("server", text, "give its address with --url")
        return problem("server", text, "start it with `memorywall serve`, or correct the address")
    if response.status_code != 200:
        return problem(
            "server",
            f"the server at {_hide_account(asked)} is not ready (status {response.status_code})",
            "read the log of the server",
        )
    return ok("server", f"the server at {_hide_account(asked)} is ready")


def server_url(settings: Settings) -> str:
    """The URL of a server with these settings, from this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104
    scheme = "http" if settings.tls_cert is None else "https"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}"


def _hide_account(url: str) -> str:
    """The URL without an account in front of the host."""
    scheme, mark, rest = url.partition("://")
    return scheme + mark + rest.rpartition("@")[2]
