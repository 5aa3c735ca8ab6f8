"""`memorywall forget`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from memorywall.cli.options import administer, require_database, storage_options, tenant_option
from memorywall.cli.output import print_table
from memorywall.cli.setting_options import ledger_option
from memorywall.service.context import ServiceContext
from memorywall.service.erasure import forget, wait_until_erased
from memorywall.service.subject_erasure import SubjectErasure, erase_subject
from memorywall.service.subjects import check_subject
from memorywall.service.validation import check_agent
from memorywall.settings import LEDGER_ENVIRONMENT, Settings

_ERASE_WITHIN = 0.5
_PATIENCE = 120.0
_KEPT = (
    "Shared memory, intents with their archives, the event log and backups keep their data;"
    " see When deleted data is gone in docs/operations.md."
)
_NOT_IN_LEDGER = (
    "No suppression ledger is configured: a restore of an older backup brings the data back. Set"
    f" --ledger or {LEDGER_ENVIRONMENT} and run the command again."
)
_KEPT_OF_SUBJECT = (
    "Intents with their archives, the event log and backups keep their data; see When deleted data"
    " is gone in docs/operations.md."
)


@click.command()
@storage_options
@ledger_option
@tenant_option
@click.option("--agent", help="An agent: everything that it owns, and its data keys.")
@click.option("--subject", help="A person: all entries about the person, of any owner.")
@click.option("--yes", is_flag=True, help="Do not ask before.")
def command(
    storage: Settings,
    ledger: Path | None,
    tenant: str,
    agent: str | None,
    subject: str | None,
    yes: bool,
) -> None:
    """Erase an agent or a person permanently.

    For an agent, deletes the entries that it owns, its stored responses, its limits and its
    memberships in groups, revokes its API keys and destroys its data keys. Its entries in shared
    memory remain. For a person, deletes all entries about the person, of any agent and in any tier,
    with derived entries. The event log remains. Run the command again after an interruption. The
    suppression ledger records the erasure, so that a restore of an older backup repeats it.
    """
    if (agent is None) == (subject is None):
        raise click.UsageError("give either --agent or --subject")
    name = check_agent("--agent", agent) if agent else check_subject("--subject", subject or "")
    require_database(storage)
    if not yes:
        click.confirm(f"Erase {name} of the tenant {tenant} permanently?", abort=True)
    # Without a server, no other process is delayed by erasure.
    storage = replace(
        storage, erasure_deadline=_ERASE_WITHIN, ledger=storage.ledger if ledger is None else ledger
    )
    if storage.ledger_directory is None:
        click.echo(_NOT_IN_LEDGER, err=True)
    erased = (
        _forget_agent(storage, tenant, name) if agent else _forget_subject(storage, tenant, name)
    )
    if not erased:
        click.echo("The next start of the server overwrites the remaining bytes.", err=True)
    click.echo(_KEPT if agent else _KEPT_OF_SUBJECT, err=True)


def _forget_agent(storage: Settings, tenant: str, agent: str) -> bool:
    gone = administer(
        storage, lambda context: forget(context, tenant, agent, patience=_PATIENCE), erases=True
    )
    rows = [
        *((f"{tier.value} entries", number) for tier, number in gone.entries.items()),
        ("stored replies", gone.kept_replies),
        ("limits", gone.limits),
        ("memberships", gone.groups),
        ("API keys revoked", gone.api_keys),
        ("data keys destroyed", gone.data_keys),
    ]
    print_table(("what", "gone"), rows)
    return gone.erased


def _forget_subject(storage: Settings, tenant: str, subject: str) -> bool:
    async def erase(service: ServiceContext) -> SubjectErasure:
        gone = await erase_subject(service, tenant, subject)
        gone.erased = await wait_until_erased(service, _PATIENCE)
        return gone

    gone = administer(storage, erase, erases=True)
    rows: list[tuple[str, object]] = [
        *((f"{tier} entries", number) for tier, number in sorted(gone.entries.items())),
        ("of these derived", gone.derived),
        ("namespaces", gone.namespaces),
        ("API keys revoked", gone.api_keys),
        ("receipt", "none" if gone.receipt is None else f"evt_{gone.receipt}"),
    ]
    print_table(("what", "gone"), rows)
    return gone.erased
