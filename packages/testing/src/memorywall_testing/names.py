"""Names that a collation, a case fold, a normalisation or a pattern would take for one another."""

from __future__ import annotations

LOOKALIKES = (
    "name",
    "Name",
    "NAME",
    "name ",
    "name\u0301",
    "nam\u00e9",
    "name\u0300\u0301",
    "name\u0301\u0300",
    "stra\u00dfe",
    "strasse",
    "STRASSE",
    "\u017ftrasse",
    "\ufb01le",
    "file",
    "k",
    "\u212a",
    "i",
    "I",
    "\u0130",
    "\u0131",
    "\u00c5",
    "A\u030a",
    "\u212b",
    "na%e",
    "na_e",
    "na*e",
    "na?e",
    "[n]ame",
    "na\\me",
    "na'me",
    'na"me',
    "na,me",
    "{name}",
    "$1",
    "1",
    "01",
    "1.0",
    "1e0",
    "\u0661",
    "null",
    "\u2764",
    "\u2764\ufe0f",
    "\U0001f44d",
    "\U0001f44d\U0001f3fd",
    "\U0001f9d1\U0001f3fd\u200d\U0001f680",
    "\uffee",
    "\U00020000",
)


def case_id(case: object) -> str:
    """The name of a case of a parametrized test; the same in every process, also for a set, whose
    own order depends on how the module was loaded."""
    return str(sorted(case) if isinstance(case, set | frozenset) else case)[:60]
