"""`memorywall promotions`, and `memorywall promote`."""

from __future__ import annotations

from typing import Any

import click

from memorywall.cli.client_command import Client, memory_command
from memorywall.cli.output import as_fields, as_table
from memorywall.cli.plain_commands import Plain, add_plain_commands
from memorywall.cli.table_options import given_options, table_options
from memorywall.wire.promotions import PromoteRequest, PromotionQuery, PromotionResponse

_LIST = as_table("promotion=id", "decision", "to", "candidate", "result", "rule", "score")


def explain(promotion: PromotionResponse) -> None:
    """Prints what a person can follow."""
    result = "" if promotion.result is None else f" as {promotion.result}"
    word = "would be " if promotion.dry_run else ""
    to = "for" if promotion.decision == "rejected" else "to"
    click.echo(
        f"{promotion.candidate} (version {promotion.candidate_version}, {promotion.source_tier})"
        f" {word}{promotion.decision} {to} {promotion.to} `{promotion.namespace}`{result}."
    )
    click.echo(f"Why: {promotion.reason} ({promotion.rule}).")
    if promotion.score is not None:
        click.echo(f"Score: {promotion.score:.2f}, the weighted mean of what is known:")
    for part in promotion.parts:
        value = "unknown" if part.value is None else f"{part.value:.2f}"
        seen = "" if part.observations is None else f", {part.observations} outcomes"
        name = part.name.replace("_", " ")
        click.echo(f"  {name}: {value} (at least {part.floor:g}, weight {part.weight:g}{seen})")
    for one in promotion.superseded:
        click.echo(f"It superseded {one}.")
    if promotion.decided_at is not None:
        click.echo(f"Decided for {promotion.promoted_by} at {promotion.decided_at}.")
    if promotion.id is not None:
        click.echo(f"Promotion: {promotion.id}")


_FIELDS = as_fields("promotion=id", "decision", "candidate", "version=candidate_version",
                    "from=source_tier", "to", "namespace", "result", "rule", "reason", "score",
                    "by=promoted_by", "at=decided_at")  # fmt: skip


@click.group()
def command() -> None:
    """Show what was promoted to longer-lasting memory and why, and take it back."""


add_plain_commands(
    command,
    Plain("list", "promotions.list", "list_promotions",
          "List the decisions of the agent, newest first.", _LIST,
          [table_options(PromotionQuery, "decision", "candidate", "result", "limit")]),
    Plain("show ID", "promotions.get", "get_promotion", "Show the decision ID.", _FIELDS),
    Plain("explain ID", "promotions.get", "get_promotion",
          "Explain the decision ID: its score, its parts and its reason.", explain),
    Plain("revert ID", "promotions.revert", "revert_promotion",
          "Take the promotion ID back, with what was derived from its result.", explain),
)  # fmt: skip


@memory_command(command, explain)
@table_options(PromoteRequest, "to", "namespace", "dry_run")
@click.option("--result-key", help="The key of the result; default: its id.")
@click.argument("entry_id", metavar="ID")
def promote(
    client: Client, entry_id: str, result_key: str | None, **options: Any
) -> PromotionResponse:
    """Promote an entry to a tier that lasts longer, if it is worth it."""
    return client.promotions.promote(entry_id, key=result_key, **given_options(options))
