"""Coordinators, past and present."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import msgspec
import pytest

from memorywall.records.coordinator import Coordinator, Guardrails
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import TENANT, StoreCase, at
from memorywall_testing.names import LOOKALIKES
from memorywall_testing.work import ANYTHING, GUARDRAILS, INTENT, make_coordinator


async def _insert(store: Store, *coordinators: Coordinator) -> None:
    async def script(transaction: Transaction) -> None:
        for coordinator in coordinators:
            await transaction.coordinators.insert(coordinator)

    await store.write(TENANT, script)


async def _get(store: Store, coordinator: Coordinator) -> Coordinator | None:
    return await store.read(TENANT, lambda to: to.coordinators.get(coordinator.id))


async def _list(store: Store, intent_id: str = INTENT) -> list[Coordinator]:
    return await store.read(TENANT, lambda to: to.coordinators.list(intent_id))


class CoordinatorsConformance(StoreCase):
    """`port.Coordinators`."""

    async def test_without_coordinators(self, store: Store) -> None:
        assert await _get(store, make_coordinator()) is None
        assert await _list(store) == []

    @pytest.mark.parametrize("guardrails", [None, Guardrails(), GUARDRAILS], ids=str)
    async def test_every_field_of_a_coordinator_comes_back(
        self, store: Store, guardrails: Guardrails | None
    ) -> None:
        coordinators = [
            make_coordinator(guardrails=guardrails),
            make_coordinator(
                token=2**40,
                role="supervisor",
                coordinator_type="human",
                supervisor_id="coord_0",
                guardrails=guardrails,
                heartbeat_interval_seconds=5,
                last_heartbeat=at(-1),
                granted_at=at(-2),
                ends_at=at(99),
                resigned_at=at(1),
                metadata=ANYTHING,
                version=4,
            ),
        ]
        await _insert(store, *coordinators)
        for coordinator in coordinators:
            assert await _get(store, coordinator) == coordinator
        assert await _list(store) == coordinators

    async def test_replaced_coordinator_is_returned_by_reads(self, store: Store) -> None:
        first, second = make_coordinator(guardrails=GUARDRAILS), make_coordinator()
        await _insert(store, first, second)
        changed = msgspec.structs.replace(
            first, last_heartbeat=at(60), expires_at=at(240), guardrails=None, version=2
        )
        await store.write(TENANT, lambda to: to.coordinators.replace(changed))
        assert await _get(store, first) == changed
        assert await _list(store) == [changed, second]

    async def test_missing_coordinator_is_not_replaced(self, store: Store) -> None:
        coordinator = make_coordinator()
        with pytest.raises(LookupError):
            await store.write(TENANT, lambda to: to.coordinators.replace(coordinator))
        assert await _list(store) == []

    async def test_insert_of_coordinator_does_not_replace_another(self, store: Store) -> None:
        first = make_coordinator()
        await _insert(store, first)
        with pytest.raises(Exception):  # noqa: B017, PT011 - which one is the backend's own affair
            await _insert(store, make_coordinator(id=first.id, agent_id="eve"))
        assert await _list(store) == [first]

    async def test_an_intents_coordinators_are_listed_oldest_first(self, store: Store) -> None:
        coordinators = [make_coordinator() for _ in range(4)]
        elsewhere = [make_coordinator(intent_id=name) for name in LOOKALIKES]
        await _insert(store, *reversed(coordinators), *elsewhere)
        assert await _list(store) == coordinators
        for coordinator in elsewhere:
            assert await _list(store, coordinator.intent_id) == [coordinator]
