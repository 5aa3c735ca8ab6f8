"""What providers accept in messages, as data with the date at which it was read."""

from __future__ import annotations

import hashlib
import re
from importlib import resources
from typing import Literal

import msgspec

from memorywall.kinds.sessions import Role

Provider = Literal["openai", "responses", "anthropic"]

_DIGEST_LENGTH = 8
_NAME_CHARACTER = "[a-zA-Z0-9_-]"


class ProviderRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rules of a provider.

    longest_id: the most characters of the id of a call
    id_pattern: a regular expression of the characters of an id
    longest_name: the most characters of the name of a tool
    parts: the types of content parts by the role of the message, without calls and results
    """

    longest_id: int
    id_pattern: str
    longest_name: int
    parts: dict[Role, frozenset[str]]


class _Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    date: str
    providers: dict[Provider, ProviderRules]


RULES = msgspec.json.decode(
    resources.files(__package__).joinpath("provider_rules.json").read_bytes(), type=_Rules
)
KNOWN_PARTS = frozenset[str]().union(
    *(types for one in RULES.providers.values() for types in one.parts.values())
)
"""The types of parts that some provider accepts. Compatible servers may accept further ones."""


def fit_id(text: str, provider: Provider) -> str:
    """Returns the id of a call as a provider accepts it. The same id always gives the same."""
    rules = RULES.providers[provider]
    return _fit(text, rules.id_pattern, rules.longest_id)


def fit_name(text: str, provider: Provider) -> str:
    """Returns the name of a tool as a provider accepts it in a call."""
    return _fit(text, _NAME_CHARACTER, RULES.providers[provider].longest_name)


def _fit(text: str, character: str, longest: int) -> str:
    if re.fullmatch(f"(?:{character}){{1,{longest}}}", text):
        return text
    fitted = "".join(one if re.fullmatch(character, one) else "_" for one in text)
    if 0 < len(fitted) <= longest:
        return fitted
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{fitted[: longest - _DIGEST_LENGTH - 1]}_{digest}"
