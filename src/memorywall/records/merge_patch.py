"""JSON Merge Patch (RFC 7396)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """Returns the target with a merge patch applied; the target stays unchanged.

    The members of an object are merged at every depth, and null removes a member. Every other
    value, such as a list, replaces the target.
    """
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, part in patch.items():
        if part is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), part)
    return merged
