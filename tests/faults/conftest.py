"""What all fault tests share."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.faults.erasure import marked_value, new_mark
from tests.support.process import ServerProcess


@dataclass
class Expiring:
    """A server that is left alone with entries that have expired."""

    server: ServerProcess
    gone: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def create(self, tier: str, size: int, ttl: str | None) -> None:
        mark = new_mark()
        name = f"{tier}-{secrets.token_hex(8)}"
        if ttl is not None:
            self.names.append(name)
        (self.kept if ttl is None else self.gone).append(mark)
        with self.server.client() as client:
            made = client.post(
                "/api/v1/memory",
                json={
                    "namespace": "n",
                    "key": name,
                    "value": marked_value(mark, size),
                    "memory_type": tier,
                    "tags": ["short-lived"],
                    "ttl": ttl,
                },
            )
        assert made.status_code == 201, made.text


@pytest.fixture(scope="package", autouse=True)
def expiring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Expiring]:
    """Begun before the first of these tests, because the sweep comes only every minute: while the
    others run it comes by, and `test_sweep` need not wait."""
    with ServerProcess(tmp_path_factory.mktemp("expiring") / "data") as server:
        scene = Expiring(server)
        for tier in ("working", "session", "episodic", "semantic", "procedural"):
            for size in (0, 1_200, 20_000):
                scene.create(tier, size, "duration:PT1S")
            scene.create(tier, 1_200, None)
        yield scene
