"""The SDK example of RFC-0015 runs as printed, but for the package's name and the address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import memorywall
from memorywall import Client, exceptions
from memorywall.in_process.drivers import InProcessDriver
from memorywall.records import errors, feature_errors
from tests.support.process import ServerProcess
from tests.test_sdk_support import fresh, server

__all__ = ["server"]

CLIENT_INTERFACE = """
from memorywall import Client

client = Client(server_url="...", api_key="...")

# Write working memory (task context inferred from current execution)
client.memory.set(
    namespace="invoice_processing",
    key="batch_progress",
    value={"total": 47, "completed": 23, "last_id": "inv_789"},
    memory_type="working",
    tags=["batch", "invoices"]
)

# Read a specific entry
progress = client.memory.get(
    namespace="invoice_processing",
    key="batch_progress"
)

# Query by tags
entries = client.memory.query(
    namespace="invoice_processing",
    tags=["in-progress"],
    memory_type="working"
)

# Update with optimistic concurrency (version auto-tracked)
client.memory.set(
    namespace="invoice_processing",
    key="batch_progress",
    value={"total": 47, "completed": 24, "last_id": "inv_790"},
    tags=["batch", "invoices", "in-progress"]
)
# The SDK tracks the version from the last get/set and sends If-Match automatically.
# On conflict, raises MemoryConflictError with the current server state.

# Read semantic memory
policy = client.memory.get(
    namespace="company_policies",
    key="charge_approval_threshold"
)
"""

ERROR_HANDLING = """
from memorywall.exceptions import (
    MemoryConflictError,     # VERSION_MISMATCH (409)
    MemoryCapacityError,     # CAPACITY_EXCEEDED (429)
    MemoryAccessError,       # ACCESS_DENIED (403)
    MemoryNotFoundError,     # ENTRY_NOT_FOUND (404)
)

try:
    client.memory.set("ns", "key", value={"data": "..."})
except MemoryConflictError as e:
    # e.current_value has the server's current state
    # e.current_version has the current version number
    merged = merge(e.current_value, my_value)
    client.memory.set("ns", "key", value=merged, version=e.current_version)
except MemoryCapacityError as e:
    # e.current_count and e.max_capacity available
    # Agent should evict or consolidate entries
    pass
"""


def run(text: str, **names: Any) -> dict[str, Any]:
    """Runs an example; returns the names it defined."""
    exec(compile(text, "RFC-0015", "exec"), names)
    return names


def with_address(url: str, key: str) -> str:
    return CLIENT_INTERFACE.replace('server_url="..."', f'server_url="{url}"').replace(
        'api_key="..."', f'api_key="{key}"'
    )


def check_interface(names: dict[str, Any]) -> None:
    assert names["progress"].version == 1
    assert names["progress"]["completed"] == 23
    assert names["entries"] == []
    assert names["policy"]["threshold_usd"] == 10_000
    client = names["client"]
    (now,) = client.memory.query(memory_type="working", tags=["in-progress"])
    assert (now.version, now["last_id"]) == (2, "inv_790")
    assert (now.id, now.tags) == (names["progress"].id, ("batch", "invoices", "in-progress"))


def write_policy(client: Client) -> None:
    client.memory.set(
        "company_policies",
        "charge_approval_threshold",
        {"threshold_usd": 10_000},
        memory_type="semantic",
    )


def check_error_handling(client: Client, other: Client) -> None:
    names: dict[str, Any] = {
        "client": client,
        "my_value": {"mine": 1},
        "merge": lambda theirs, mine: {**theirs, **mine},
    }
    run(ERROR_HANDLING, **names)
    first = other.memory.get("ns", "key")
    assert first is not None
    assert first.value == {"data": "..."}
    other.memory.set("ns", "key", {"theirs": 1})
    run(ERROR_HANDLING, **names)
    merged = other.memory.get("ns", "key")
    assert merged is not None
    assert (merged.version, merged.value) == (3, {"theirs": 1, "mine": 1})


def test_the_client_interface_over_a_server(server: ServerProcess) -> None:
    agent = fresh("agent_billing")
    with Client(server.url, server.dev_key) as curator:
        write_policy(curator)
    names = run(with_address(server.url, server.create_key(agent)))
    check_interface(names)
    names["client"].close()


def test_the_client_interface_in_process(place: Path | str) -> None:
    text = CLIENT_INTERFACE.replace("from memorywall import Client", "import memorywall").replace(
        'Client(server_url="...", api_key="...")', "memorywall.open(place)"
    )
    with memorywall.open(place) as curator:
        write_policy(curator)
    names = run(text, place=place)
    check_interface(names)
    names["client"].close()


def test_error_handling_over_a_server(server: ServerProcess) -> None:
    agent = fresh("billing")
    with (
        Client(server.url, server.dev_key, agent=agent) as client,
        Client(server.url, server.dev_key, agent=agent) as other,
    ):
        check_error_handling(client, other)


def test_error_handling_in_process(place: Path | str) -> None:
    with memorywall.open(place, agent="billing") as client:
        driver = client.driver
        assert isinstance(driver, InProcessDriver)
        other = Client.over(driver.for_agent("billing"), agent="billing")
        check_error_handling(client, other)


def test_error_handling_of_a_full_task(server: ServerProcess) -> None:
    task = fresh("task")
    with Client(server.url, server.dev_key, agent=fresh("billing"), task_id=task) as client:
        client.memory.batch(
            {"namespace": "bulk", "key": f"k{n}", "value": {}} for n in range(1_000)
        )
        names = run(ERROR_HANDLING, client=client)
        assert "merged" not in names
        assert client.memory.get("ns", "key") is None
        with pytest.raises(exceptions.MemoryCapacityError) as raised:
            client.memory.set("ns", "key", {"data": "..."})
        assert (raised.value.current_count, raised.value.max_capacity) == (1_000, 1_000)


_ERRORS = {
    one
    for module in (
        errors,
        feature_errors,
    )
    for one in vars(module).values()
    if isinstance(one, type)
}


def test_there_is_one_tree_of_errors() -> None:
    for name in exceptions.__all__:
        kind = getattr(exceptions, name)
        assert issubclass(kind, errors.MemorywallError)
        assert kind.__doc__
        if name != "MemoryTransportError":
            assert kind in _ERRORS
    assert exceptions.__all__ == sorted(exceptions.__all__)


def test_environment_gives_address_and_key(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = fresh("billing")
    monkeypatch.setenv("MEMORYWALL_URL", server.url)
    monkeypatch.setenv("MEMORYWALL_API_KEY", server.create_key(agent))
    with Client() as client:
        assert client.whoami().agent_id == agent
    with Client(api_key="mw_wrong.wrong") as client:
        with pytest.raises(exceptions.AuthenticationError):
            client.memory.get("a", "b")
        assert client.health().status == "ok"
