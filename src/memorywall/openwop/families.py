"""The table of families. Discovery, routes, the inventory of agents and `openwop describe` follow
from it: a family that is off loses its flag, its routes and its events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from memorywall.records.errors import ConfigurationError, ResourceNotFoundError
from memorywall.records.feature_errors import CapabilityError
from memorywall.settings import Settings
from memorywall.wire.openwop import LARGEST_ENTRY, PROTOCOL, QUERY_EXTENSION

MOST_COMPACTED = 200
"""The most entries that one compaction replaces."""
LARGEST_COMPACTION = 8_000
"""The most bytes of the output of a compaction."""
FIXTURES: Final = {
    "conformance-noop": {},
    "conformance-identity": {},
    "conformance-agent-memory-roundtrip": {"memoryAction": "write-then-read"},
    "conformance-agent-memory-redaction": {
        "memoryAction": "redaction-probe",
        "byokSecretId": "conformance-test-secret",
    },
    "conformance-agent-memory-ttl": {"memoryAction": "ttl-probe"},
    "conformance-agent-memory-cross-tenant": {
        "memoryAction": "cross-tenant-probe",
        "probeMemoryRef": "conformance/another-tenant/agent-memory",
    },
}
"""The workflows of the protocol's tests by their ids, and the `config` of their node. They exist
only while the test seams are on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """A row: what a host may offer.

    name: how the settings switch it off, such as `memory.compaction`
    flag: where discovery shows it, as a path of names, and what it shows there
    routes: the beginnings of the names of its operations
    events: the types of the events that its runs have
    dimensions: the dimensions of memory that it satisfies (RFC 0080, section A)
    rule: what it promises, in a sentence
    seam: the beginning of the names of its operations for tests; "" for none
    missing: why it is not offered; "" for a family that is built
    """

    name: str
    flag: dict[str, Any] = field(default_factory=dict)
    routes: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    rule: str
    seam: str = ""
    missing: str = ""


FAMILIES: Final = (
    Family(
        name="memory",
        flag={
            "memory": {
                "supported": True,
                "maxEntrySizeBytes": LARGEST_ENTRY,
                "ttlSupported": True,
                "writable": True,
            },
            "agents": {"memoryBackends": ["long-term"]},
            QUERY_EXTENSION: {"supported": True, "path": f"/v1/{QUERY_EXTENSION}/{{memoryRef}}"},
        },
        routes=("openwop_list_memory", "openwop_get_memory", "openwop_put_memory",
                "openwop_delete_memory"),
        dimensions=("read", "write", "long-term-durability"),
        rule="A memory is of one tenant, its entries never change, and secrets are redacted.",
        seam="openwop_test_seed",
    ),
    Family(
        name="replay",
        flag={"replay": {"supported": True, "modes": ["replay"]}},
        routes=("openwop_fork_run",),
        rule="A fork repeats the log of a run, writes nothing, and reads what the run has read.",
    ),
    Family(
        name="memory.attribution",
        flag={"memory": {"attribution": {"supported": True, "emitsWriteEvents": True}}},
        events=("memory.written",),
        dimensions=("attribution",),
        rule="Each write of a run has one event, without content.",
    ),
    Family(
        name="memory.compaction",
        flag={
            "memory": {
                "compaction": {
                    "supported": True,
                    "trigger": "host-managed",
                    "maxInputEntries": MOST_COMPACTED,
                    "maxOutputBytes": LARGEST_COMPACTION,
                }
            }
        },
        routes=("openwop_compact_memory",),
        events=("memory.compacted",),
        dimensions=("compaction",),
        rule="The entries of a memory become one summary; runs keep their snapshots.",
        seam="openwop_test_compact",
    ),
    Family(
        name="memory.search",
        flag={"memory": {"search": {"supported": True, "modes": ["semantic", "filter"]}}},
        dimensions=("search",),
        rule="`query` finds entries by their meaning, and `tag` filters them.",
    ),
    Family(
        name="memory.retention",
        flag={"memory": {"retention": {"ttl": True, "forget": True}}},
        dimensions=("retention",),
        rule="Entries expire to the millisecond, and a person is forgotten everywhere.",
        seam="openwop_test_forget",
    ),
    Family(
        name="workspace",
        flag={"workspace": {"supported": True, "versioned": True, "maxFileBytes": LARGEST_ENTRY}},
        routes=("openwop_list_files", "openwop_get_file", "openwop_put_file",
                "openwop_delete_file"),
        events=("workspace.updated",),
        rule="Files have versions, and a write may name the version that it replaces.",
    ),
    Family(
        name="memory.distillation",
        rule="A memory is distilled within a budget of tokens.",
        missing="archives within a budget of tokens are not built yet",
    ),
    Family(
        name="agents.memory_consolidation",
        rule="Long-term memory is reconciled in the background.",
        missing="consolidation of agent memory is not built yet",
    ),
    Family(
        name="agents.commitments",
        rule="Intentions that are inferred from memory fire once.",
        missing="commitments are not built yet",
    ),
    Family(
        name="agents.proposals",
        rule="Artifacts that are learned wait for a person.",
        missing="proposals of artifacts are not built yet",
    ),
    Family(
        name="memory.injection_budget",
        rule="A ranked list fits into a budget of tokens.",
        missing="it is optional and later than the specification",
    ),
    Family(
        name="replay-snapshot",
        dimensions=("replay-snapshot",),
        rule="A replay reads the snapshot of its run.",
        missing="it is built, but its flag needs an execution model that is not advertised",
    ),
)  # fmt: skip
"""Every family, those that are built first."""
FAMILIES_BY_NAME: Final = {one.name: one for one in FAMILIES}


def check_families(settings: Settings) -> None:
    """Raises ConfigurationError if the settings switch off a family that is not in the table."""
    known = [one.name for one in FAMILIES if not one.missing]
    if not set(settings.openwop_off) <= set(known):
        raise ConfigurationError(f"openwop_off names families, which are: {', '.join(known)}")


def is_offered(settings: Settings, family: Family) -> bool:
    """Whether a family is built and not switched off. Without memory nothing of memory is there."""
    parents = {family.name, family.name.partition(".")[0]}
    return not family.missing and parents.isdisjoint(settings.openwop_off)


def offered_families(settings: Settings) -> Iterator[Family]:
    """The families that this host offers."""
    return (one for one in FAMILIES if is_offered(settings, one))


def emits(settings: Settings, event: str) -> bool:
    """Whether runs have events of a type: those of no family, and of families that are offered."""
    owners = [one for one in FAMILIES if event in one.events]
    return not owners or any(is_offered(settings, one) for one in owners)


def require_family(settings: Settings, family: Family) -> None:
    """Raises CapabilityError for a family that is not offered."""
    if not is_offered(settings, family):
        details = {"capability": family.name}
        raise CapabilityError(
            f"this host does not offer {family.name}; /.well-known/openwop says what it offers",
            details=details,
        )


def refuse_unless_offered(settings: Settings, operation: str) -> None:
    """Raises CapabilityError for an operation of a family that is off, and ResourceNotFoundError
    for one of the test seams while they are off."""
    if "_test_" in operation and not settings.openwop_test_seams:
        raise ResourceNotFoundError(
            "there is no such path; /.well-known/openwop says what is offered"
        )
    named = operation.replace("_test_memory", "_memory")
    for family in FAMILIES:
        is_served = named in family.routes or named == family.seam
        if is_served:
            require_family(settings, family)


def discovery(settings: Settings) -> dict[str, Any]:
    """The document at /.well-known/openwop: only what is offered."""
    document: dict[str, Any] = {
        "protocolVersion": PROTOCOL,
        "supportedEnvelopes": [],
        "schemaVersions": {},
        "limits": {
            "clarificationRounds": 0,
            "schemaRounds": 0,
            "envelopesPerTurn": 0,
            "maxRequestBodyBytes": settings.body_limit,
        },
        "implementation": {"name": "memorywall", "vendor": "memorywall"},
        "supportedTransports": ["rest"],
    }
    offered = dict[str, Any]()
    for family in offered_families(settings):
        _merge(offered, family.flag)
    if settings.openwop_test_seams:
        offered["fixtures"] = sorted(FIXTURES)
    return {**document, **offered, "capabilities": offered}


def _merge(into: dict[str, Any], flags: dict[str, Any]) -> None:
    for name, one in flags.items():
        if isinstance(one, dict):
            _merge(into.setdefault(name, {}), one)
        else:
            into[name] = one


def missing_dimensions(settings: Settings, wanted: Iterable[str]) -> list[str]:
    """The dimensions of memory that this host does not satisfy, of those that an agent declares.
    What is built counts, whether or not its flag can be advertised."""
    found = {
        dimension
        for family in FAMILIES
        if is_offered(settings, family) or family.name == "replay-snapshot"
        for dimension in family.dimensions
    }
    return [one for one in dict.fromkeys(wanted) if one not in found]


def describe(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns every family: whether a host offers it, and why not.

    document: what the host says at /.well-known/openwop
    """
    return [
        {
            "family": one.name,
            "offered": bool(one.flag) and _contains(document, one.flag),
            "why": one.missing or ("" if _contains(document, one.flag) else "it is switched off"),
            "rule": one.rule,
        }
        for one in FAMILIES
    ]


def _contains(document: Any, flags: dict[str, Any]) -> bool:
    """Whether a document shows flags, with any values."""
    return isinstance(document, dict) and all(
        name in document and (not isinstance(one, dict) or _contains(document[name], one))
        for name, one in flags.items()
    )
