"""What the host sends fits the published schemas of OpenWOP, which `MEMORYWALL_OPENWOP_SCHEMAS`
names: a folder with files such as `run-event.schema.json`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.openwop.host import host_of
from tests.openwop.payloads import payloads_of
from tests.support.service import open_service

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_what_is_sent_fits_the_published_schemas(tmp_path: Path) -> None:
    folder = Path(os.environ["MEMORYWALL_OPENWOP_SCHEMAS"])
    schemas = {one.name: json.loads(one.read_text("utf-8")) for one in folder.glob("*.json")}
    # Some name schemas of other features, which the folder lacks.
    registry = jsonschema_rs.Registry(
        [(one["$id"], one) for one in schemas.values()], retriever=lambda uri: {}
    )

    def schema_of(name: str) -> dict[str, Any]:
        found: dict[str, Any] | None = schemas.get(f"{name}.schema.json")
        if found is not None:
            return found
        first, *rest = name.split(".")
        payload = first + "".join(one.title() for one in rest)
        return {"$ref": f"{schemas['run-event-payloads.schema.json']['$id']}#/$defs/{payload}"}

    async with open_service(tmp_path, openwop_test_seams=True) as service:
        sent = await payloads_of(await host_of(service), await host_of(service, "bob"))
    for name, document in sent:
        if name.startswith("memorywall."):
            continue
        check = jsonschema_rs.Draft202012Validator(schema_of(name), registry=registry)
        wrong = [(list(one.instance_path), one.message) for one in check.iter_errors(document)]
        assert not wrong, (name, wrong)
