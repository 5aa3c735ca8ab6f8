"""The secrets that OpenWOP runs have resolved, for redaction (OpenWOP agent-memory, SR-1).

They are in the memory of this process only, and are forgotten when their run ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

SHORTEST_SECRET = 8
"""The fewest characters of a value that is redacted: shorter ones are ordinary words."""


class RunSecret(NamedTuple):
    """A value, and the text that replaces it."""

    value: str
    marker: str


class RunSecrets:
    """The resolved secrets of the runs of this process.

    values: by tenant and run, by id; empty on most servers, so that writes ask for nothing else
    """

    def __init__(self) -> None:
        self.values: dict[tuple[str, str | None], dict[str, str]] = {}

    def register(self, tenant: str, run: str | None, secret_id: str, value: str) -> None:
        """Registers a secret that a run has resolved, or changes its value.

        run: None for all runs and writes of the tenant
        """
        self.values.setdefault((tenant, run), {})[secret_id] = value

    def forget(self, tenant: str, run: str | None, secret_id: str | None = None) -> bool:
        """Forgets a secret, by default all of the run. Returns whether there was any."""
        if secret_id is None:
            return self.values.pop((tenant, run), None) is not None
        return self.values.get((tenant, run), {}).pop(secret_id, None) is not None

    def find(self, tenant: str, run: str | None, secret_id: str) -> str | None:
        """Returns the value of a secret of a run; None if it is not registered."""
        return self.values.get((tenant, run), {}).get(secret_id)

    def of(self, tenant: str, run: str | None) -> list[RunSecret]:
        """Returns what must be redacted from a write of a run, the longest value first.

        run: None for a write outside of runs
        """
        named = [*self.values.get((tenant, None), {}).items()]
        if run is not None:
            named += self.values.get((tenant, run), {}).items()
        found = {value: name for name, value in named if len(value) >= SHORTEST_SECRET}
        longest = sorted(found, key=len, reverse=True)
        return [RunSecret(value, f"[REDACTED:{found[value]}]") for value in longest]


def redact_secrets(secrets: Sequence[RunSecret], node: Any) -> Any:
    """Returns a JSON value with markers in place of secrets in its texts and names.

    secrets: the longest first, so that one that contains another is replaced as a whole
    """
    if isinstance(node, str):
        return _redact_text(secrets, node)
    if isinstance(node, dict):
        return {
            _redact_text(secrets, name): redact_secrets(secrets, one) for name, one in node.items()
        }
    if isinstance(node, list):
        return [redact_secrets(secrets, one) for one in node]
    return node


def _redact_text(secrets: Sequence[RunSecret], text: str) -> str:
    if not secrets:
        return text
    first, rest = secrets[0], secrets[1:]
    # What is between two markers cannot contain the secret any more, and a marker stays whole.
    return first.marker.join(_redact_text(rest, part) for part in text.split(first.value))
