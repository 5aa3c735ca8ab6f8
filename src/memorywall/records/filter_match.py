"""The conditions of a filter in memory. The stores evaluate the same conditions in SQL."""

from __future__ import annotations

from typing import Protocol

from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import is_same_name, name_forms
from memorywall.records.session import belongs_to
from memorywall.records.tier import Tier


class FilteredFields(Protocol):
    """The fields of an entry that may change and that a filter reads."""

    @property
    def tier(self) -> Tier: ...
    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def task_id(self) -> str | None: ...
    @property
    def intent_id(self) -> str | None: ...
    @property
    def session_id(self) -> str | None: ...
    @property
    def pinned(self) -> bool: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def status(self) -> str | None: ...
    @property
    def state(self) -> str: ...
    @property
    def listed(self) -> bool: ...
    @property
    def subjects(self) -> tuple[str, ...]: ...
    @property
    def origin(self) -> str | None: ...
    @property
    def source(self) -> str | None: ...


def matches_fields(one: FilteredFields, wanted: EntryFilter) -> bool:
    """Returns whether an entry meets the conditions on fields that may change, except instants."""
    return (
        all(_has_tag(one, tag) for tag in wanted.tags)
        and (not wanted.tags_any or any(_has_tag(one, tag) for tag in wanted.tags_any))
        and (wanted.task_id is None or is_same_name(wanted.task_id, one.task_id))
        and (wanted.intent_id is None or is_same_name(wanted.intent_id, one.intent_id))
        and (wanted.session_id is None or is_same_name(wanted.session_id, one.session_id))
        and (wanted.pinned is None or wanted.pinned == one.pinned)
        and (wanted.kind is None or wanted.kind == one.kind)
        and (not wanted.statuses or one.status in wanted.statuses)
        and (wanted.state is None or wanted.state == one.state)
        and (one.listed or wanted.kind is not None or not wanted.listed_only)
        and (not wanted.about or not set(wanted.about).isdisjoint(one.subjects))
        and (wanted.only_about is None or set(one.subjects) <= set(wanted.only_about))
        and (
            wanted.only_session is None or belongs_to(wanted.only_session, one.tier, one.session_id)
        )
        and (wanted.origin is None or wanted.origin == one.origin)
        and (wanted.source is None or wanted.source == one.source)
    )


def _has_tag(one: FilteredFields, tag: str) -> bool:
    return any(form in one.tags for form in name_forms(tag))
