"""The index of values at the paths that a kind declares, and at those that a namespace of shared
memory declares."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from memorywall.expressions.entry_fields import ENTRY_FIELDS, values_at
from memorywall.expressions.parser import parse_paths
from memorywall.expressions.printer import print_path
from memorywall.expressions.value_index import (
    UNKNOWN,
    find_index,
    index_target,
    relation_of,
)
from memorywall.kinds.registry import spec_of
from memorywall.records.condition import Condition
from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import SEALED_SENSITIVITIES, Entry
from memorywall.records.errors import ValidationError
from memorywall.records.feature_errors import ExpressionError
from memorywall.records.filter import EntryFilter, ValueIndex
from memorywall.records.namespace import IndexedPath, Namespace
from memorywall.records.usage import Usage
from memorywall.records.validity import instant_of_field
from memorywall.service.requests.namespace_names import namespace_forms
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tiers import NAMESPACE_TIERS

MOST_PATHS = 8
LONGEST_PATH = 200
"""Characters."""
INDEXED_TIERS = frozenset(NAMESPACE_TIERS)
"""The tiers whose namespaces may declare paths."""


async def declare_paths(context: OperationContext, old: Namespace, texts: list[str]) -> str | None:
    """Returns the `indexes` of a namespace whose declared paths change.

    Entries that exist already get their rows when they are written the next time. Until then
    queries read their values. Raises ValidationError.
    """
    paths = dict.fromkeys(_check_path(text) for text in texts)
    if len(paths) > MOST_PATHS:
        raise ValidationError(f"`indexed_paths` has more than {MOST_PATHS} paths")
    if not paths:
        return None
    known = {one.path: one for one in old.indexed_paths}
    since = None
    if not paths.keys() <= known.keys() and await _has_entries(context, old.name):
        since = context.now
    return msgspec.json.encode(
        [known.get(path) or IndexedPath(path, since) for path in paths]
    ).decode()


async def index_rows(context: OperationContext, entry: Entry) -> list[tuple[str, str]]:
    """Returns the rows of an entry of `INDEXED_TIERS`, whose value is in clear text, as edges."""
    known = context.namespaces
    if known is None or entry.namespace not in known:
        namespace = await context.transaction.namespaces.get(entry.namespace)
    else:
        namespace = known[entry.namespace]
    if namespace is None or namespace.indexes is None:
        return []
    paths = [parse_paths(one.path, ENTRY_FIELDS)[0] for one in namespace.indexed_paths]
    relations = [relation_of(one.path) for one in namespace.indexed_paths]
    if entry.sensitivity in SEALED_SENSITIVITIES:
        return [(relation, UNKNOWN) for relation in relations]
    rows = zip(relations, map(index_target, values_at(paths, entry)), strict=True)
    return [(relation, target) for relation, target in rows if target is not None]


def rows_of_kind(entry: Entry) -> list[tuple[str, str]]:
    """Returns the rows of an entry with its value in clear text at the paths of its kind, as edges.

    An instant is in clear text also if the entry is sealed, like its due instant.
    """
    spec = spec_of(entry.kind)
    fields = () if spec is None else spec.indexed_at(entry.kind_version)
    rows = []
    values = values_at([field.value_path for field in fields], entry) if fields else ()
    for field, value in zip(fields, values, strict=True):
        is_clear = entry.sensitivity not in SEALED_SENSITIVITIES
        if field.is_instant:
            # Another text would not be in the order of time.
            is_clear = value is None or instant_of_field("", value) == value
        target = index_target(value) if is_clear else UNKNOWN
        if target is not None:
            rows.append((relation_of(field.path, entry.kind), target))
    return rows


async def with_index(
    context: OperationContext, wanted: EntryFilter, where: Condition
) -> EntryFilter:
    """Returns the filter with the index that helps its condition, if there is one."""
    spec = spec_of(wanted.kind)
    fields = {} if spec is None else {field.path: field for field in spec.indexed}
    instants = [field.path for field in fields.values() if field.is_instant]
    found = find_index(where, fields.keys(), instants)
    if found is None:
        return await _with_namespace_index(context, wanted, where)
    since = fields[found.path].since
    return replace(
        wanted,
        value_index=ValueIndex(
            relation=relation_of(found.path, wanted.kind),
            targets=found.targets,
            between=found.between,
            # There is no earlier version of a kind than 1.
            since_version=since if since > 1 else None,
            in_all_tiers=True,
        ),
    )


async def _with_namespace_index(
    context: OperationContext, wanted: EntryFilter, where: Condition
) -> EntryFilter:
    if wanted.namespace is None:
        return wanted
    names = (wanted.namespace, *wanted.aliases)
    found_forms = [await context.transaction.namespaces.get(name) for name in names]
    forms = [one for one in found_forms if one is not None]
    if not forms or any(one.indexes != forms[0].indexes for one in forms):
        return wanted
    declared = {one.path: one for one in forms[0].indexed_paths}
    found = find_index(where, declared.keys())
    if found is None:
        return wanted
    return replace(
        wanted,
        value_index=ValueIndex(
            relation=relation_of(found.path),
            targets=found.targets,
            since=declared[found.path].since,
            in_all_tiers=bool(wanted.tiers) and INDEXED_TIERS.issuperset(wanted.tiers),
        ),
    )


def _check_path(text: str) -> str:
    """Returns a path in its usual form. Raises ValidationError."""
    try:
        path, *others = parse_paths(text, ENTRY_FIELDS)
    except ExpressionError as error:
        raise ValidationError(f"`indexed_paths`: {error.detail}") from None
    printed = print_path(path)
    if others or path.field != "value" or not path.steps or len(printed) > LONGEST_PATH:
        raise ValidationError(
            "`indexed_paths`: each must be one path below `value`, such as `value.customer.tier`,"
            f" of at most {LONGEST_PATH} characters"
        )
    return printed


async def _has_entries(context: OperationContext, name: str) -> bool:
    """Returns whether shared memory has entries in any stored form of a namespace, readable or
    not."""
    forms = await namespace_forms(context, name)
    wanted = EntryFilter(
        tenant=context.tenant,
        namespace=name,
        aliases=forms[1:],
        tiers=NAMESPACE_TIERS,
        state=None,
        listed_only=False,
    )
    within = VisibilityFilter(namespaces=forms)
    return await context.transaction.entries.count(wanted, within, context.now, 1) != Usage()
