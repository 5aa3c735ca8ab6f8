"""The kinds of values and their JSON Schemas."""

from __future__ import annotations

from memorywall.kinds.registry import KINDS, KindError, kind_names, schema_of
from memorywall.kinds.spec import KindSpec
from memorywall.operations.binding import multi_transaction_operation
from memorywall.records.copier import copier
from memorywall.records.errors import ResourceNotFoundError
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.kinds import KindResponse, SchemaListResponse, SchemaResponse


@multi_transaction_operation("list_schemas")
async def list_schemas(transactions: OperationTransactions) -> SchemaListResponse:
    del transactions
    return SchemaListResponse(schemas=[_view(name) for name in kind_names()])


@multi_transaction_operation("get_schema")
async def get_schema(transactions: OperationTransactions) -> SchemaResponse:
    name = transactions.call.path["kind"]
    try:
        schema = schema_of(name)
    except KindError:
        raise ResourceNotFoundError("there is no kind of this name") from None
    return SchemaResponse(kind=_view(name), schema=schema)


_kind = copier(
    KindSpec,
    KindResponse,
    given=["kind"],
    memory_type="tier",
    governed_by="operations",
)


def _view(name: str) -> KindResponse:
    return _kind(KINDS[name], kind=name)
