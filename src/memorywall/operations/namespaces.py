"""Namespaces of shared memory and their permissions."""

from __future__ import annotations

from memorywall.operations.binding import operation
from memorywall.records.copier import copier
from memorywall.records.identifiers import normalize_name
from memorywall.records.namespace import Access, Namespace
from memorywall.service.administration.namespace_permissions import (
    get,
    list_visible,
    set_permissions,
)
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.wire.namespaces import (
    NamespaceBrief,
    NamespaceListResponse,
    NamespaceResponse,
    Permissions,
    PermissionsChange,
)


@operation("list_namespaces")
async def list_namespaces(context: OperationContext, call: OperationCall) -> NamespaceListResponse:
    known = await list_visible(context)
    briefs = [NamespaceBrief(namespace=one.name, access=access) for one, access in known]
    return NamespaceListResponse(namespaces=briefs, total=len(briefs))


@operation("get_namespace")
async def get_namespace(context: OperationContext, call: OperationCall) -> NamespaceResponse:
    name = call.path["namespace"]
    return _view(name, *await get(context, name))


@operation("set_namespace_permissions")
async def set_namespace_permissions(
    context: OperationContext, call: OperationCall
) -> NamespaceResponse:
    change = call.body.permissions or PermissionsChange()
    name = normalize_name(call.path["namespace"])
    return _view(
        name,
        *await set_permissions(
            context,
            name,
            default=change.default,
            allow=change.allow,
            last_write_wins=call.body.last_write_wins,
            indexed_paths=call.body.indexed_paths,
            version=call.if_match,
        ),
    )


_shown = copier(
    Namespace,
    NamespaceResponse,
    given=["namespace", "access"],
    permissions=lambda one: Permissions(default=one.default, allow=list(one.grants)),
    indexed_paths=lambda one: tuple(path.path for path in one.indexed_paths),
)


def _view(name: str, namespace: Namespace, access: Access) -> NamespaceResponse:
    return _shown(namespace, namespace=name, access=access)
