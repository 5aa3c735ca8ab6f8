"""`memorywall forget`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from memorywall.cli.messages import named_by_options
from memorywall.cli.options import (
    administer,
    names_store,
    require_database,
    server_options,
    tenant_option,
)
from memorywall.cli.output import print_table
from memorywall.cli.setting_options import ledger_option, located
from memorywall.cli.table_options import renamed_option
from memorywall.configuration.reader import Configuration
from memorywall.records.errors import ConfigurationError
from memorywall.service.requests.validation import check_agent
from memorywall.settings import LEDGER_ENVIRONMENT, Settings
from memorywall.wire.erasure import ForgetAgentResponse, ForgetResponse
from memorywall.wire.events import LONGEST_WAIT

if TYPE_CHECKING:
    from memorywall.service.requests.services import SharedServices

Gone = ForgetAgentResponse | ForgetResponse

_ERASE_WITHIN = 0.5
_PATIENCE = 120.0
_KEPT = (
    "Shared memory, intents with their archives, the event log and backups keep their data;"
    " see When deleted data is gone in docs/operations.md."
)
_NOT_IN_LEDGER = (
    "No suppression ledger is configured: a restore of an older backup brings the data back. Set"
    f" --ledger, or {LEDGER_ENVIRONMENT} of the server, and run the command again."
)
_KEPT_OF_SUBJECT = (
    "Intents and tasks, except for their archives, and backups keep their data; see When deleted"
    " data is gone in docs/operations.md."
)
_OF_STORES = ("tenant", "ledger")


@click.command()
@located
@server_options
@ledger_option
@tenant_option
@click.option("--agent", help="An agent: everything that it owns, and its data keys.")
@renamed_option("--user", help="A person; the same as USER.")
@click.option("--yes", is_flag=True, help="Do not ask before.")
@click.argument("person", metavar="[USER]", required=False)
def command(
    configuration: Configuration,
    url: str | None,
    key: str | None,
    ledger: Path | None,
    tenant: str,
    agent: str | None,
    user: str | None,
    yes: bool,
    person: str | None,
) -> None:
    """Erase a person (USER) or an agent permanently.

    For an agent, deletes the entries that it owns, its stored responses, its limits and its
    memberships in groups, revokes its API keys and destroys its data keys. Its entries in shared
    memory remain. For a person, deletes all entries about the person, of any agent and in any tier,
    with earlier versions, derived entries, archives and the contents of events. Run the command
    again after an interruption. The suppression ledger records the erasure, so that a restore of an
    older backup repeats it.

    Asks a server, which erases in the tenant of the key, or opens the store that --data or --store
    names, also beside a server.
    """
    given = [name for name in (agent, user, person) if name is not None]
    if len(given) != 1:
        raise click.UsageError("give either a person, as in `memorywall forget ana`, or --agent")
    name = _check_name(given[0], is_agent=agent is not None)
    opens = names_store(configuration, url)
    if opens:
        require_database(configuration.settings)
    else:
        _check_server(key)
    if not yes:
        where = f"the tenant {tenant}" if opens else "the tenant of this API key"
        what = f"everything that {name} owns" if agent else f"everything about {name}"
        click.confirm(f"Erase {what} in {where} permanently?", abort=True)
    if opens:
        storage = configuration.settings
        # Without a server, no other process is delayed by erasure.
        storage = replace(storage, erasure_deadline=_ERASE_WITHIN, ledger=ledger or storage.ledger)
        gone = _erase(storage, tenant, name, is_agent=agent is not None)
    else:
        from memorywall.sdk.client import Client

        with named_by_options(), Client(url, key) as client:
            forget_name = client.forget_agent if agent else client.forget
            gone = forget_name(name, wait=LONGEST_WAIT)
    _print(gone)
    if not any(gone.entries.values()):
        click.echo(
            f"No entry was {'of' if agent else 'about'} {name}. Names have capital letters as they"
            " were written.",
            err=True,
        )
    if not gone.in_ledger:
        click.echo(_NOT_IN_LEDGER, err=True)
    if gone.bytes_left_in_files:
        when = "The next start of the server" if opens else "The server soon"
        click.echo(f"{when} overwrites the remaining bytes.", err=True)
    click.echo(_KEPT if agent else _KEPT_OF_SUBJECT, err=True)


def _check_name(name: str, *, is_agent: bool) -> str:
    """Returns the name of an agent or a person. Raises ValidationError."""
    if is_agent:
        return check_agent("--agent", name, is_new=False)
    from memorywall.service.access.subjects import check_subject

    return check_subject("USER", name, is_new=False)


def _check_server(key: str | None) -> None:
    if key is None:
        raise ConfigurationError(
            "give --data for a directory, --store for PostgreSQL, or --url and --key for a server"
        )
    source = click.get_current_context().get_parameter_source
    for option in _OF_STORES:
        if source(option) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--{option} is for --data and --store; a server has its own")


def _erase(storage: Settings, tenant: str, name: str, *, is_agent: bool) -> Gone:
    from memorywall.operations.erasure import agent_view, subject_view
    from memorywall.service.erasure.entry_erasure import forget
    from memorywall.service.erasure.subject_erasure import erase_subject

    async def erase(service: SharedServices) -> Gone:
        if is_agent:
            return agent_view(await forget(service, tenant, name, patience=_PATIENCE))
        return subject_view(await erase_subject(service, tenant, name, patience=_PATIENCE))

    return administer(storage, erase, erases=True)


def _print(gone: Gone) -> None:
    rows: list[tuple[str, object]] = [
        (f"{tier} entries", number) for tier, number in sorted(gone.entries.items())
    ]
    if isinstance(gone, ForgetAgentResponse):
        rows += [
            ("stored replies", gone.stored_replies),
            ("limits", gone.limits),
            ("memberships", gone.groups),
            ("API keys revoked", gone.api_keys),
            ("data keys destroyed", gone.data_keys),
        ]
    else:
        rows += [
            ("of these derived", gone.derived),
            ("earlier versions", gone.versions),
            ("contents of events", gone.events),
            ("namespaces", gone.namespaces),
            ("API keys revoked", gone.api_keys),
            ("receipt", gone.receipt or "none"),
        ]
    print_table(("what", "gone"), rows)
