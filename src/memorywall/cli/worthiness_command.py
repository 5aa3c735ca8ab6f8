"""`memorywall worthiness`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import click

from memorywall.cli.client_command import Client, client_command, client_options, open_client
from memorywall.cli.options import json_option
from memorywall.cli.output import as_table, print_json
from memorywall.records.worthiness import Verdict, WorthinessMode
from memorywall.wire.worthiness import WorthinessResponse

_DEFAULT = "default"
_RULES = as_table(
    ("keeps", lambda rule: "yes" if rule.worthy else "no"),
    "rule=name",
    ("texts", lambda rule: "" if rule.count is None else str(rule.count)),
    "description",
)


@click.group(invoke_without_command=True)
@client_options
@json_option
@click.pass_context
def command(context: click.Context, /, as_json: bool, **place: Any) -> None:
    """Show the rules that say which texts are worth keeping, and how often each has decided, or
    set what happens to the others."""
    if context.invoked_subcommand is None:
        with open_client(**place) as client:
            (print_json if as_json else _show)(client.worthiness())


def _show(found: WorthinessResponse) -> None:
    _RULES(found.rules)
    own = "the tenant" if found.is_own else "the server"
    click.echo(f"mode: {found.mode}, set by {own}", err=True)


@client_command(command, _show, name="set")
@click.argument("mode", type=click.Choice([*(one.value for one in WorthinessMode), _DEFAULT]))
def set_(client: Client, mode: str) -> WorthinessResponse:
    """Set what the tenant does with texts that are not worth keeping: off judges none, mark says so
    in the reply, refuse stores none of them, and default is what the settings of the server say."""
    return client.set_worthiness(None if mode == _DEFAULT else mode)


def tell_verdicts(verdicts: Iterable[Verdict | None]) -> None:
    """Prints how many new entries of an import are not worth keeping, by rule."""
    junk = [one for one in verdicts if one is not None and not one.worthy]
    if not junk:
        return
    rules = Counter(one.rule for one in junk).most_common()
    shown = ", ".join(f"{rule} ({count})" for rule, count in rules)
    refused = sum(one.refused for one in junk)
    click.echo(f"not worth keeping: {len(junk):,} ({refused:,} refused); {shown}", err=True)
