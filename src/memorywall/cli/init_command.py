"""`memorywall init`."""

from __future__ import annotations

import shlex

import click

from memorywall.cli.options import administer, json_option
from memorywall.cli.output import print_json
from memorywall.cli.setting_options import located
from memorywall.configuration.reader import Configuration
from memorywall.configuration.values import is_secret
from memorywall.records.identifiers import is_same_name
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.service.administration.tenants import create_key, create_tenant, list_keys
from memorywall.service.requests.services import SharedServices
from memorywall.settings import DEFAULT_TENANT, SETTINGS

_PERMISSIONS = [one for one in Permission if one is not Permission.ACT_AS]


@click.command()
@located
@click.option("--tenant", default=DEFAULT_TENANT, show_default=True, help="The first tenant.")
@click.option("--agent", default="admin", show_default=True, help="The name of the administrator.")
@json_option
def command(configuration: Configuration, tenant: str, agent: str, as_json: bool) -> None:
    """Create a data directory with a key file, a tenant and an administrator key.

    Prints the key once, and the next two commands. A repetition changes nothing and prints no key.
    """

    async def work(service: SharedServices) -> tuple[str | None, str]:
        await create_tenant(service, tenant)
        for known in await list_keys(service, tenant):
            if is_same_name(agent, known.principal) and known.revoked_at is None:
                return None, known.prefix
        text, made = await create_key(service, tenant, agent, PrincipalKind.SERVICE, _PERMISSIONS)
        return text, made.prefix

    configuration.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    key, prefix = administer(configuration.settings, work, may_create=True)
    following = _next_commands(configuration, key)
    if as_json:
        print_json(
            {
                "data": str(configuration.data),
                "tenant": tenant,
                "created": key is not None,
                "prefix": prefix,
                "key": key,
                "next": following,
            }
        )
        return
    if key is None:
        click.echo(f"nothing to do: the tenant {tenant} has the administrator key {prefix}")
    else:
        click.echo(f"created the tenant {tenant} in {configuration.data}")
        click.echo(f"the administrator key, shown only once: {key}")
    click.echo("next:")
    for line in following:
        click.echo(f"  {line}")


def _next_commands(configuration: Configuration, key: str | None) -> list[str]:
    serve = f"memorywall serve --data {shlex.quote(str(configuration.data))}"
    url = configuration.values["database_url"]
    if configuration.origins["database_url"] == "flag":
        setting = next(one for one in SETTINGS if one.name == "database_url")
        # A password is not printed again.
        serve += " --store " + ("URL" if is_secret(setting, url) else shlex.quote(url))
    return [serve, f"MEMORYWALL_API_KEY={key or 'KEY'} memorywall status"]
