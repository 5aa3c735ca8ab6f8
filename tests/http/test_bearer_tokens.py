"""Tokens of identity providers in place of API keys: what they allow, and what is refused."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from memorywall.adapters.mcp.endpoint import mcp_endpoints
from memorywall.records.errors import ConfigurationError
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.server.app import build_app
from memorywall.service.access.bearer_tokens import TokenAuthenticator, open_authenticator
from memorywall.service.access.token_issuers import TokenIssuer, read_issuers
from memorywall.service.access.token_keys import FRESH_SECONDS, REST_SECONDS
from memorywall.service.administration.tenants import create_tenant
from tests.support.asgi import AsgiClient
from tests.support.service import START, RunningService, open_service

pytestmark = pytest.mark.anyio

ISSUER = "https://login.example/acme"
AUDIENCE = "https://memory.example/mcp"
NOW = START // 1000
MEMORY = "/api/v1/memory"
EC = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
DRAFT = {"namespace": "n", "key": "k", "value": {"n": 1}, "memory_type": "episodic"}


def sign(key: Any = EC, algorithm: str = "ES256", kid: str | None = "ec", **claims: Any) -> str:
    """A token of the issuer; a claim of None is left out."""
    given = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ana-agent", "exp": NOW + 600, **claims}
    body = {name: one for name, one in given.items() if one is not None}
    return jwt.encode(body, key, algorithm, headers=None if kid is None else {"kid": kid})


class Provider:
    """An identity provider: its documents by URL, and which of them were fetched."""

    def __init__(self) -> None:
        self.keys = {"ec": EC.public_key(), "rsa": RSA.public_key()}
        self.issuer = ISSUER
        self.is_away = False
        self.fetched: list[str] = []
        self.seconds = 0.0

    async def get(self, url: str) -> bytes:
        self.fetched.append(url)
        if self.is_away:
            raise httpx.ConnectError("away")
        if url == f"{ISSUER}/.well-known/openid-configuration":
            return json.dumps({"issuer": self.issuer, "jwks_uri": f"{ISSUER}/keys"}).encode()
        assert url == f"{ISSUER}/keys"
        keys = []
        for kid, key in self.keys.items():
            form = RSAAlgorithm if isinstance(key, rsa.RSAPublicKey) else ECAlgorithm
            keys.append({**form.to_jwk(key, as_dict=True), "kid": kid, "use": "sig"})
        return json.dumps({"keys": keys}).encode()


def issuer(**fields: Any) -> TokenIssuer:
    return TokenIssuer(
        **{
            "issuer": ISSUER,
            "audience": AUDIENCE,
            "tenant": "acme",
            "agents": frozenset({"ana-agent", "bob-agent"}),
            **fields,
        }
    )


class Site:
    """A service that accepts tokens of a provider."""

    def __init__(self, service: RunningService, provider: Provider, issuers: Any) -> None:
        self.service = service
        self.provider = provider
        authenticator = TokenAuthenticator(
            service.services, issuers, provider.get, lambda: provider.seconds
        )
        self.app = build_app(service.services, authenticator, endpoints=mcp_endpoints())

    def client(self, token: str, **headers: str) -> httpx.AsyncClient:
        given = {"Authorization": f"Bearer {token}", **headers}
        return AsgiClient(self.app, "http://memory.test", given)

    async def refusal(self, token: str, **headers: str) -> tuple[int, str]:
        reply = await self.client(token, **headers).get("/api/v1/agents/me")
        return reply.status_code, reply.json().get("detail", "")


@asynccontextmanager
async def open_site(tmp_path: Path, *issuers: TokenIssuer) -> AsyncIterator[Site]:
    async with open_service(tmp_path) as service:
        await create_tenant(service.services, "acme")
        yield Site(service, Provider(), issuers or (issuer(),))


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


async def test_a_token_is_an_agent_of_its_tenant(site: Site) -> None:
    for token in (sign(), sign(RSA, "RS256", "rsa"), sign(aud=["other", AUDIENCE])):
        own = (await site.client(token).get("/api/v1/agents/me")).json()
        assert (own["tenant"], own["agent_id"], own["kind"]) == ("acme", "ana-agent", "agent")
        assert sorted(own["permissions"]) == ["memory.read", "memory.write"]
    made = await site.client(sign()).post(MEMORY, json=DRAFT)
    assert (made.status_code, made.json()["created_by"]) == (201, "ana-agent")
    # An agent of the same name in another tenant, and a stranger in this one.
    for client in (
        await site.service.agent("ana-agent"),
        site.client(sign(sub="bob-agent")),
    ):
        assert (await client.get(f"{MEMORY}/{made.json()['id']}")).status_code in (403, 404)
    events = await site.client(sign()).get("/api/v1/agents/ana-agent/events")
    assert {one["actor"] for one in events.json()["events"]} == {"ana-agent"}
    key = await site.service.key("ana-agent", "acme")
    assert (await site.client(key).get(f"{MEMORY}/{made.json()['id']}")).status_code == 200


async def test_what_is_wrong_is_refused(site: Site) -> None:
    secret = EC.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    header, body, signature = sign().split(".")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
    hmac = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"ec","typ":"JWT"}').decode().rstrip("=")
    assert secret
    for token, part in (
        (sign(aud="https://other.example"), "another audience"),
        (sign(aud=None), "another audience"),
        (sign(iss="https://evil.example"), "another issuer"),
        (sign(iss=None), "another issuer"),
        (sign(exp=None), "incomplete"),
        (sign(exp=NOW - 31), "expired"),
        (sign(exp="tomorrow"), "`exp` of the token must be a number"),
        (sign(nbf=NOW + 31), "not valid yet"),
        (sign(OTHER), "not signed by its issuer"),
        (sign(EC, kid="unknown"), "does not have"),
        (sign(EC, kid=None), "does not have"),
        (sign(RSA, "RS256", "ec"), "not signed by its issuer"),
        (f"{unsigned}.{body}.", "algorithm"),
        (f"{hmac}.{body}.{signature}", "algorithm"),
        (f"{header}.{body}.{signature[:-4]}AAAA", "not signed by its issuer"),
        (f"{header}.{body}", "not a JWT"),
        ("eyJ", "not a JWT"),
        (sign(sub="eve-agent"), "not allowed"),
        (sign(sub=None), "claim `sub`"),
    ):
        status, detail = await site.refusal(token)
        assert (status, part in detail) == (401, True), (part, detail)
        assert "evil" not in detail
        assert "eve" not in detail
    assert (await site.refusal(sign(exp=NOW - 29, nbf=NOW + 29)))[0] == 200
    site.service.clock.advance(2)
    assert (await site.refusal(sign(exp=NOW - 29)))[0] == 401


async def test_the_request_chooses_no_tenant_and_no_right(site: Site) -> None:
    """Claims and headers of a caller change nothing that the settings bind."""
    token = sign(tenant="default", permissions=["tenant.admin"], scope="tenant.admin")
    own = (await site.client(token).get("/api/v1/agents/me")).json()
    assert own["tenant"] == "acme"
    assert "tenant.admin" not in own["permissions"]
    assert (await site.client(token).get("/api/v1/keys")).status_code == 403
    assert (await site.refusal(token, **{"X-Agent-ID": "bob-agent"}))[0] == 403


async def test_a_claim_binds_requests_to_a_person(tmp_path: Path) -> None:
    bound = issuer(agent_claim="azp", agents=frozenset({"desk"}), subject_claim="sub")
    async with open_site(tmp_path, bound) as site:
        ana = site.client(sign(azp="desk", sub="ana"))
        made = (await ana.post(MEMORY, json=DRAFT)).json()
        assert made["subjects"] == ["ana"]
        bob = site.client(sign(azp="desk", sub="bob"))
        assert (await bob.get(f"{MEMORY}/{made['id']}")).status_code == 404
        assert (await bob.get(MEMORY)).json()["total"] == 0
        assert (await ana.get(MEMORY)).json()["total"] == 1
        for name in ("X-Subject", "X-User"):
            widened = site.client(sign(azp="desk", sub="bob"), **{name: "ana"})
            reply = await widened.get(MEMORY)
            assert (reply.status_code, reply.json()["error"]) == (403, "ACCESS_DENIED")
        assert (await site.refusal(sign(azp="desk", sub=None)))[0] == 401
        assert (await site.refusal(sign(azp="desk", sub="a/b")))[0] == 401
    only = issuer(agents=frozenset({"*"}), subject_claim="who", subjects=frozenset({"ana"}))
    async with open_site(tmp_path / "other", only) as site:
        assert (await site.client(sign(who="ana")).get(MEMORY)).status_code == 200
        assert (await site.client(sign(who="bob")).get(MEMORY)).status_code == 401


async def test_a_claim_names_groups_that_are_allowed(tmp_path: Path) -> None:
    grouped = issuer(groups_claim="groups", groups=frozenset({"billing"}))
    async with open_site(tmp_path, grouped) as site:
        admin = await site.service.agent("boss", "acme", permissions=list(Permission))
        await admin.put("/api/v1/groups/billing", json={})
        await admin.put("/api/v1/groups/payroll", json={})
        draft = {**DRAFT, "memory_type": "semantic"}
        for name in ("billing", "payroll"):
            made = await admin.post(MEMORY, json={**draft, "namespace": name})
            assert made.status_code == 201, made.text
            grants = {"default": "none", "allow": [{"agent": f"group:{name}", "access": "read"}]}
            own = f"{MEMORY}/namespaces/{name}"
            reply = await admin.patch(own, json={"permissions": grants})
            assert reply.status_code == 200, reply.text
        for name in ("billing", "payroll"):
            intent = (await admin.post("/api/v1/intents", json={"title": name})).json()
            grant = {"principal_id": f"group:{name}", "permission": "read"}
            reply = await admin.post(f"/api/v1/intents/{intent['id']}/acl/entries", json=grant)
            assert reply.status_code == 201, reply.text
        joined = await admin.put("/api/v1/groups/payroll/members/ana-agent")
        assert joined.status_code in (200, 201), joined.text
        for groups, found in (
            (["billing", "payroll"], {"billing"}),
            ("billing other", {"billing"}),
            (["payroll"], set()),
            (None, set()),
            (7, set()),
        ):
            page = (await site.client(sign(groups=groups)).get(MEMORY)).json()
            assert {one["namespace"] for one in page["entries"]} == found, groups
            listed = (await site.client(sign(groups=groups)).get("/api/v1/intents")).json()
            assert {one["title"] for one in listed["intents"]} == found, groups


async def test_keys_are_fetched_once_and_again_when_they_change(site: Site) -> None:
    provider = site.provider
    for _ in range(3):
        assert (await site.refusal(sign()))[0] == 200
    assert len(provider.fetched) == 2
    # A new key is found as soon as a token has it, and unknown ones do not make a flood.
    provider.keys["new"] = OTHER.public_key()
    assert (await site.refusal(sign(OTHER, kid="new")))[0] == 401
    provider.seconds += REST_SECONDS
    assert (await site.refusal(sign(OTHER, kid="new")))[0] == 200
    assert len(provider.fetched) == 4
    for number in range(5):
        assert (await site.refusal(sign(kid=f"guess {number}")))[0] == 401
    assert len(provider.fetched) == 4
    # A key that is withdrawn is not accepted for longer than keys are fresh.
    del provider.keys["ec"]
    assert (await site.refusal(sign()))[0] == 200
    provider.seconds += FRESH_SECONDS
    assert (await site.refusal(sign()))[0] == 401


async def test_a_provider_that_is_away_stops_only_who_is_unknown(site: Site) -> None:
    provider = site.provider
    provider.is_away = True
    status, detail = await site.refusal(sign())
    assert (status, "issuer cannot be fetched" in detail) == (503, True)
    key = await site.service.key("billing")
    assert (await site.refusal(key))[0] == 200
    provider.is_away, provider.seconds = False, REST_SECONDS
    assert (await site.refusal(sign()))[0] == 200
    provider.is_away = True
    provider.seconds += FRESH_SECONDS
    assert (await site.refusal(sign()))[0] == 200


async def test_a_document_of_another_issuer_is_not_used(site: Site) -> None:
    site.provider.issuer = "https://evil.example"
    assert (await site.refusal(sign()))[0] == 503


async def test_keys_come_over_http(tmp_path: Path) -> None:
    """The documents of an issuer on this machine, with the file of issuers, as a server has it."""
    provider = Provider()
    replies: dict[str, bytes] = {}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        body = replies.get(path, b"")
        status = b"200 OK" if path in replies else b"404 Not Found"
        head = b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        writer.write(head % (status, len(body)) + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        own = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        replies["/keys"] = await provider.get(f"{ISSUER}/keys")
        found = {"issuer": own, "jwks_uri": f"{own}/keys"}
        replies["/.well-known/openid-configuration"] = json.dumps(found).encode()
        file = tmp_path / "issuers.toml"
        file.write_text(FILE.replace("https://login.example/acme", own))
        for change, status in (({}, 200), ({"/keys": b"[" * 2_000_000}, 503)):
            replies |= change
            async with open_service(tmp_path, token_issuers=file) as service:
                await create_tenant(service.services, "acme")
                app = build_app(service.services, await open_authenticator(service.services))
                headers = {"Authorization": f"Bearer {sign(iss=own)}"}
                reply = await AsgiClient(app, "http://m", headers).get("/api/v1/agents/me")
                assert reply.status_code == status, reply.text


FILE = """
[[issuers]]
issuer = "https://login.example/acme"
audience = "https://memory.example/mcp"
tenant = "acme"
permissions = ["memory.read"]
kind = "user"
agents = ["*"]
"""


async def test_the_file_of_issuers(tmp_path: Path) -> None:
    file = tmp_path / "issuers.toml"
    file.write_text(FILE)
    (read,) = read_issuers(file)
    assert read.permissions == {Permission.READ}
    assert (read.kind, read.agents) == (PrincipalKind.USER, frozenset({"*"}))
    for wrong, part in (
        ("", "`file.issuers`"),
        (FILE.replace("tenant", "tennant"), "`tennant` (do you mean `tenant`?)"),
        (FILE.replace('"memory.read"', '"memory.everything"'), "`file.issuers[0].permissions"),
        (FILE.replace('agents = ["*"]', "agents = []"), "`file.issuers[0].agents`"),
        (FILE.replace('"https://login', '"http://login'), "`issuer` must be a URL"),
        (FILE + 'jwks_uri = "ftp://x"', "`jwks_uri` must be a URL"),
        (FILE + 'jwks_uri = "http://127.0.0.1:80@evil.example/keys"', "`jwks_uri` must be a URL"),
        (FILE + 'jwks_uri = "https:///keys"', "`jwks_uri` must be a URL"),
        ("issuers = 1", "`file.issuers`"),
        ("issuers = [1]", "`file.issuers[0]`"),
        (FILE * 2, "stand there once"),
        ("[[", "TOML"),
    ):
        file.write_text(wrong)
        with pytest.raises(ConfigurationError) as caught:
            read_issuers(file)
        assert part in caught.value.detail
    for own in ("http://127.0.0.1:8080/keys", "http://[::1]/keys", "http://localhost"):
        file.write_text(f'{FILE}jwks_uri = "{own}"')
        assert read_issuers(file)[0].jwks_uri == own
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_issuers(tmp_path / "absent.toml")
    file.write_text(FILE)
    async with open_service(tmp_path, token_issuers=file) as service:
        with pytest.raises(ConfigurationError, match="no tenant 'acme'"):
            await open_authenticator(service.services)
        await create_tenant(service.services, "acme")
        authenticator = await open_authenticator(service.services)
        assert authenticator.issuers == (ISSUER,)
