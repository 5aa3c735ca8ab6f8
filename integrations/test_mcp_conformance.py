"""The official conformance suite of MCP against `/mcp`; it needs npm.

The suite calls the tools, prompts and resources of an example server by name. Its scenarios about
what memorywall does not offer fail, and `EXPECTED` lists them: another failure, and a scenario of
the list that passes, fail the run. The suite knows no keys, so that the application is served with
one in front of it.
"""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from integrations.npm_packages import install_packages
from memorywall.server.uvicorn_transport import CoalescingProtocol
from tests.adapters.mcp_clients import app_of
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

VERSIONS = ("0.1.16", "0.2.0-alpha.12")
"""The latest version, which knows the revision 2025-11-25, and one that knows 2026-07-28."""
NODE = "node@22.23.3"

_EXAMPLE_TOOLS = (
    "tools-call-simple-text", "tools-call-image", "tools-call-audio",
    "tools-call-embedded-resource", "tools-call-mixed-content", "tools-call-with-logging",
    "tools-call-error", "tools-call-with-progress", "tools-call-sampling",
    "tools-call-elicitation", "json-schema-2020-12", "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums", "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling", "input-required-result-basic-list-roots",
    "input-required-result-request-state", "input-required-result-multiple-input-requests",
    "input-required-result-multi-round", "input-required-result-result-type",
    "input-required-result-tampered-state", "input-required-result-capability-check",
    "http-custom-header-server-validation",
    "input-required-result-missing-input-response", "input-required-result-ignore-extra-params",
    # Four of its 25 checks need tools of the example server.
    "server-stateless",
)  # fmt: skip
_NOT_OFFERED = (
    # Logging, completion, prompts, and resources of the example server.
    "logging-set-level", "completion-complete", "prompts-list", "prompts-get-simple",
    "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image",
    "resources-read-text", "resources-read-binary",
    "resources-templates-read", "resources-subscribe", "resources-unsubscribe",
    "input-required-result-non-tool-request",
    # Sessions of the protocol, and streams of the server's own.
    "server-sse-polling", "server-sse-multiple-streams",
    # Three of its 7 checks are about prompts and resources.
    "caching",
    # The extension for tasks.
    "tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields",
    "tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers",
    "tasks-dispatch-and-envelope", "tasks-required-task-error", "tasks-mrtr-composition",
)  # fmt: skip
EXPECTED = (*_EXAMPLE_TOOLS, *_NOT_OFFERED)


class WithKey:
    """An application whose requests all have a key."""

    def __init__(self, app: Any, key: str) -> None:
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        scope["headers"] = [*scope["headers"], (b"x-api-key", self._key)]
        await self._app(scope, receive, send)


def suite(version: str) -> tuple[str, str]:
    """The command that runs a version of the suite."""
    wanted = (NODE, f"@modelcontextprotocol/conformance@{version}")
    modules = install_packages(f"conformance-{version}", *wanted)
    main = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    return str(modules / "node" / "bin" / "node"), str(main)


async def run_suite(url: str, version: str, directory: Path) -> tuple[int, str]:
    """Runs the server scenarios of a version; returns the exit code and what the suite printed."""
    expected = directory / "expected.yml"
    expected.write_text("server:\n" + "".join(f"  - {name}\n" for name in EXPECTED))
    process = await asyncio.create_subprocess_exec(
        *suite(version), "server", "--url", url, "--suite", "all",
        "--expected-failures", str(expected), "--output-dir", str(directory / "results"),
        stdout=subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode().partition("=== SUMMARY ===")[2].strip()


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_applies_to_a_server_of_tools_passes(
    service: RunningService,
    version: str,
    tmp_path: Path,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    app = WithKey(app_of(service), await service.key("conformance"))
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=CoalescingProtocol, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    code, summary = await run_suite(url, version, tmp_path)
    server.should_exit = True
    await serving
    assert code == 0, summary
    passed = re.findall(r"^\S+ (\S+): [1-9]\d* passed, 0 failed$", summary, re.MULTILINE)
    record_testsuite_property("conformance", f"{version}: {len(passed)} scenarios")
