"""MCP with tokens of an identity provider, as clients that insist on OAuth need it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.adapters.mcp_clients import over_http
from tests.adapters.test_mcp_transports import ask
from tests.http.test_bearer_tokens import AUDIENCE, ISSUER, Provider, Site, issuer, open_site, sign
from tests.support.asgi import AsgiClient
from tests.support.service import RunningService, open_service

pytestmark = pytest.mark.anyio


async def test_a_refusal_leads_to_the_issuer(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        for path in ("/mcp", "/mcp/graph"):
            reply = await ask(site.app, {"Host": "memory.test:7377"}, path)
            assert reply.status_code == 401
            where = f"http://memory.test:7377/.well-known/oauth-protected-resource{path}"
            assert reply.headers["www-authenticate"] == f'Bearer resource_metadata="{where}"'
            client = AsgiClient(site.app, "http://memory.test:7377", {"Host": "memory.test:7377"})
            found = await client.get(where.removeprefix("http://memory.test:7377"))
            assert found.json() == {
                "resource": f"http://memory.test:7377{path}",
                "authorization_servers": [ISSUER],
                "bearer_methods_supported": ["header"],
                "resource_name": "memorywall",
            }
        expired = await ask(site.app, {"Authorization": f"Bearer {sign(exp=0)}"})
        assert expired.headers["www-authenticate"].endswith(', error="invalid_token"')
        assert "expired" in expired.json()["detail"]


async def test_the_public_url_is_that_of_the_settings(tmp_path: Path) -> None:
    async with open_service(tmp_path, public_url="https://memory.example/") as service:
        site = Site(service, Provider(), (issuer(tenant="default"),))
        reply = await ask(site.app, {"Host": 'evil.example"'})
        found = re.search('"(.+)"', reply.headers["www-authenticate"])
        assert found is not None
        base = "https://memory.example/.well-known/oauth-protected-resource"
        assert found[1] == f"{base}/mcp"
        client = AsgiClient(site.app, "http://evil.example", {})
        metadata = await client.get("/.well-known/oauth-protected-resource")
        assert metadata.json()["resource"] == "https://memory.example"


async def test_without_issuers_there_is_no_metadata(service: RunningService) -> None:
    site = Site(service, Provider(), ())
    client = AsgiClient(site.app, "http://memory.test", {})
    for path in ("", "/mcp"):
        reply = await client.get(f"/.well-known/oauth-protected-resource{path}")
        assert reply.status_code == 404
    assert (await ask(site.app, {})).headers["www-authenticate"] == "Bearer"


async def test_a_token_is_taken_by_the_tools(tmp_path: Path) -> None:
    bound = issuer(agent_claim="azp", agents=frozenset({"desk"}), subject_claim="sub")
    async with open_site(tmp_path, bound) as site:
        headers = {"Authorization": f"Bearer {sign(azp='desk', sub='ana', aud=AUDIENCE)}"}
        async with over_http(site.app, headers) as call:
            made = await call("remember", text="Ana travels by train")
            found = await call("recall", question="How does Ana travel?")
            assert found["memories"][0]["people"] == ["ana"]
            assert found["memories"][0]["agent"] == "desk"
            for person in ("bob", "ana"):
                arguments = {"text": "x", "person": person}
                result = await call.client.call_tool("remember", arguments)
                assert result.is_error == (person == "bob")
        stranger = {"Authorization": f"Bearer {sign(azp='desk', sub='bob')}"}
        async with over_http(site.app, stranger) as call:
            assert (await call("list_memories"))["memories"] == []
            assert "not found" in await call.refused("forget", id=made["id"])
