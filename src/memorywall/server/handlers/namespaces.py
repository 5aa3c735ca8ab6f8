"""Namespaces of shared memory."""

from __future__ import annotations

from memorywall.records.namespace import Access, Namespace
from memorywall.server.dispatch import Call
from memorywall.server.replies import Reply, json_reply
from memorywall.wall import namespaces
from memorywall.wire.agents import NamespaceBrief, NamespaceList, NamespaceView, Permissions


async def list_namespaces(call: Call) -> Reply:
    known = await namespaces.list_namespaces(call.door, call.principal)
    briefs = [NamespaceBrief(namespace=one.name, access=access) for one, access in known]
    return json_reply(NamespaceList(namespaces=briefs, total=len(briefs)))


async def get_namespace(call: Call) -> Reply:
    namespace, access = await namespaces.get_namespace(
        call.door, call.principal, call.path["namespace"]
    )
    return _namespace_reply(namespace, access)


async def set_namespace_permissions(call: Call) -> Reply:
    change = call.body.permissions
    name = call.path["namespace"]
    script = await namespaces.set_permissions(
        call.door,
        call.principal,
        name,
        default=change.default,
        allow=change.allow,
        version=call.if_match,
    )
    return _namespace_reply(*await call.door.store.write(call.principal.tenant, script))


def _namespace_reply(namespace: Namespace, access: Access) -> Reply:
    content = NamespaceView(
        namespace=namespace.name,
        access=access,
        permissions=Permissions(default=namespace.default, allow=list(namespace.grants)),
        version=namespace.version,
        created_at=namespace.created_at,
        updated_at=namespace.updated_at,
    )
    return json_reply(content, headers=((b"etag", b'"%d"' % namespace.version),))
