"""The examples at the end of each command's help, which for a group are the first ones of its
commands. A test parses each of them."""

from __future__ import annotations

from typing import Final

import click

_ID = "mem_01M7YX77HF4QFTG3HXAJC8PJ5M"
_FILE = "mem_01M7YX77 att_01M7YX77"
_TASK = "task_01M7YX77HF4QFTG3HXAJC8PJ5M"
_CLAIM = "lease_01M7YX77HF4QFTG3HXAJC8PJ5M"
_INTENT = "intent_01M7YX77HF4QFTG3HXAJC8PJ5M"
_SESSION = "019c1c38-a400-7041-ba08-859bb130777f"
_DATA = "--data memorywall-data"

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "init": ("init --data /srv/memorywall",),
    "serve": ("serve --dev", "serve --data /srv/memorywall --port 7400 --log-level info"),
    "status": ("status", f"status {_DATA} --json"),
    "doctor": (f"doctor {_DATA}", "doctor --config /etc/memorywall.toml --json"),
    "config show": (f"config show {_DATA}", "config show --pool-size 20 --json"),
    "migrate": (f"migrate {_DATA}", "migrate --store postgresql://owner@db.example/memory"),
    "copy": ("copy --from memorywall-data --to postgresql://owner@db/memory",),
    "backup create": (
        f"backup create monday.backup {_DATA}",
        f"backup create monday.backup {_DATA} --with-keys",
    ),
    "backup verify": (f"backup verify monday.backup {_DATA}",),
    "backup list": ("backup list backups --quick",),
    "restore": ("restore monday.backup --data /srv/restored",),
    "keys create": (
        f"keys create {_DATA} --agent billing",
        f"keys create {_DATA} --agent ana --kind user",
    ),
    "keys list": (f"keys list {_DATA}",),
    "keys rotate-master": (
        f"keys rotate-master {_DATA}",
        f"keys rotate-master {_DATA} --status",
        f"keys rotate-master {_DATA} --retire",
    ),
    "keys rotate": (
        f"keys rotate mw_cnkbyid6 {_DATA}",
        f"keys rotate mw_cnkbyid6 {_DATA} --overlap 0",
    ),
    "keys revoke": (f"keys revoke mw_cnkbyid6 {_DATA}",),
    "keys rotate-data": (f"keys rotate-data {_DATA} --agent billing",),
    "keys rotate-digest": (f"keys rotate-digest {_DATA}",),
    "tenants create": (f"tenants create acme {_DATA}",),
    "tenants list": (f"tenants list {_DATA}",),
    "worthiness": ("worthiness",),
    "worthiness set": ("worthiness set refuse",),
    "tenants quota": (f"tenants quota acme --entries 100000 {_DATA}",),
    "watch": ("watch --namespace 'invoices*'", "watch --scope team:red --once"),
    "schemas list": ("schemas list customers",),
    "schemas get": ("schemas get customers customer",),
    "schemas put": ("schemas put customers customer customer.json --version 1.0.0",),
    "schemas delete": ("schemas delete customers customer",),
    "schemas check": ("schemas check customers",),
    "kinds": ("kinds", "kinds turn"),
    "facts add": ("facts add Ann lives_in Bern --valid-from 2026-03-01 --about ann",),
    "facts query": ('facts query "?person lives_in Bern" "not ?person likes tea"',),
    "facts walk": ("facts walk Ann --hops 3 --relation knows --valid-at 2026-01-01",),
    "facts check": ("facts check @ontology.json --namespace company",),
    "groups list": ("groups list",),
    "groups create": ("groups create support",),
    "groups show": ("groups show support --json",),
    "groups delete": ("groups delete support",),
    "groups add": ("groups add support billing",),
    "groups remove": ("groups remove support billing",),
    "namespaces list": ("namespaces list",),
    "namespaces used": ("namespaces used --limit 20",),
    "namespaces show": ("namespaces show policies --json",),
    "namespaces update": (
        "namespaces update policies --default none",
        "namespaces update customers --indexed-path value.tier",
    ),
    "namespaces grant": (
        "namespaces grant policies billing write",
        "namespaces grant policies group:support read",
    ),
    "namespaces revoke": ("namespaces revoke policies billing",),
    "merge": ("""merge customers ana '{"address": {"city": "Turin"}, "fax": null}'""",),
    "capacity": (f"capacity {_DATA} --agent billing 5000",),
    "forget": ("forget ana", f"forget {_DATA} --agent billing"),
    "tiers": ("tiers", f"tiers {_DATA} --agent admin"),
    "tiers set": ("tiers set episodic --capacity 500 --eviction lfu",),
    "tiers evict": (
        "tiers evict episodic --target 500 --of billing --dry-run",
        "tiers evict session --target 0 --of billing --policy oldest",
    ),
    "remember": ("remember 'Ana prefers invoices as PDF' --user ana",),
    "recall": ("recall 'How does Ana want her invoices?' --user ana",),
    "get": ("get invoices progress", f"get {_ID} --json"),
    "set": ("set invoices progress '{\"done\": 23}' --tag batch",),
    "put": ("put counters visits '{\"n\": 10}'",),
    "query": ("query --namespace 'invoices*' --tag batch --limit 20",),
    "history": (f"history {_ID} --limit 5",),
    "search": (
        "search retry after a declined card --namespace 'learned*'",
        "search refunds --origin document --source https://example.com",
    ),
    "attachments list": (f"attachments list {_ID}",),
    "attachments add": (f"attachments add {_ID} invoice.pdf",),
    "attachments save": (f"attachments save {_FILE} --output invoice.pdf",),
    "attachments delete": (f"attachments delete {_FILE}",),
    "delete": ("delete --namespace 'drafts*' --yes", f"delete {_ID}"),
    "claims list": ("claims list",),
    "claims acquire": ("claims acquire deployments/production --ttl 60 --wait 10",),
    "claims renew": (f"claims renew {_CLAIM} --ttl 60",),
    "claims hold": ("claims hold deployments/production -- ./deploy.sh",),
    "claims release": (f"claims release {_CLAIM}",),
    "intents list": ("intents list --json",),
    "intents create": ("intents create 'Close the books of March'",),
    "intents show": (f"intents show {_INTENT}",),
    "intents log": (f"intents log {_INTENT} --limit 20",),
    "tasks list": ("tasks list --status ready",),
    "tasks create": (f"tasks create {_INTENT} reconcile",),
    "tasks show": (f"tasks show {_TASK}",),
    "tasks assign": (f"tasks assign {_TASK} billing",),
    "tasks cancel": (f"tasks cancel {_TASK}",),
    "tasks explain": (f"tasks explain {_TASK}",),
    "tasks working list": (f"tasks working list {_TASK}",),
    "tasks working read": (f"tasks working read {_TASK} hypothesis",),
    "tasks working begin": (f"tasks working begin {_TASK}",),
    "tasks working end": (f"tasks working end {_TASK}",),
    "tasks working keep": (
        f"tasks working keep {_TASK} hypothesis 'The webhook signature expired'",
    ),
    "tasks working mark": (f"tasks working mark {_TASK} hypothesis",),
    "tasks working tick": (f"tasks working tick {_TASK}",),
    "sessions create": ("sessions create --user ana --idle-timeout PT30M",),
    "sessions list": ("sessions list --user ana --status active",),
    "sessions show": (f"sessions show {_SESSION}",),
    "sessions update": (f"sessions update {_SESSION} --title Tax",),
    "sessions add": (
        f"sessions add {_SESSION} user Hello",
        f"sessions add {_SESSION} -",
    ),
    "sessions turns": (f"sessions turns {_SESSION} --after 20",),
    "sessions checkpoint": (f"sessions checkpoint {_SESSION}",),
    "sessions checkpoints": (f"sessions checkpoints {_SESSION}",),
    "sessions resume": (f"sessions resume {_SESSION} --json",),
    "sessions fork": (f"sessions fork {_SESSION} --at 12",),
    "sessions close": (f"sessions close {_SESSION}",),
    "sessions events": (f"sessions events {_SESSION}",),
    "sessions token": (f"sessions token {_SESSION} --ttl PT10M",),
    "sessions archive": (f"sessions archive {_SESSION}",),
    "sessions match": ("sessions match --user ana 'About my refund again'",),
    "sessions export": (f"sessions export {_SESSION}",),
    "promote": (f"promote {_ID} --to episodic --dry-run",),
    "promotions list": ("promotions list --decision deferred",),
    "promotions promote": (f"promotions promote {_ID} --to episodic",),
    "promotions show": (f"promotions show {_ID} --json",),
    "promotions explain": (f"promotions explain {_ID}",),
    "promotions revert": (f"promotions revert {_ID}",),
    "episodes recall": ("episodes recall refund an order --profile execution",),
    "profile": ("profile ann", "profile ann --tokens 200"),
    "supersede": (f"supersede {_ID} --by NEWER_ID",),
    "reinstate": (f"reinstate {_ID}",),
    "correct": (f"correct {_ID} Linz --reason moved",),
    "retract": (f"retract {_ID} --reason wrong",),
    "undo": (f"undo {_ID}",),
    "confirm": (f"confirm {_ID}",),
    "sessions delete": (f"sessions delete {_SESSION}",),
    "sessions remove-turns": (f"sessions remove-turns {_SESSION} 12",),
    "sessions clear": (f"sessions clear {_SESSION}",),
    "sessions participants": (f"sessions participants {_SESSION}",),
    "context": (
        f"context --session {_SESSION} Hi",
        "context --shared global 'What did I order?'",
    ),
    "workflow validate": ("workflow validate flow.yaml",),
    "workflow run": (f"workflow run flow.yaml {_DATA}",),
    "openwop describe": ("openwop describe --url http://127.0.0.1:7400",),
    "openwop run": (f"openwop run hello.json {_DATA}", "openwop run hello.json --inputs '{}'"),
    "events": ("events --limit 20", "events --follow"),
    "jobs list": ("jobs list --url http://127.0.0.1:7400", f"jobs list {_DATA}"),
    "jobs run": (f"jobs run expire {_DATA}",),
    "jobs pause": (f"jobs pause embed {_DATA}",),
    "jobs resume": (f"jobs resume embed {_DATA} --tenant acme",),
    "mcp": (f"mcp {_DATA}", f"mcp {_DATA} --import memory.jsonl"),
    "connect": ("connect claude-code", f"connect codex {_DATA} --dry-run", "connect cursor --undo"),
    "hook": ("hook claude-code --status", "hook claude-code --drain"),
    "call": ("call query_entries --namespace invoices", "call create_entry --help"),
    "summary": ("summary --agent billing",),
    "export": ("export --namespace 'learned*' --output learned.jsonl",),
    "import": ("import learned.jsonl --skip-existing",),
    "import-chat": (
        "import-chat chat.jsonl --namespace chats/ana",
        "import-chat --connection claude-code",
    ),
    "verify": (f"verify {_DATA}",),
    "completion": ("completion bash > ~/.memorywall-complete.bash", "completion fish"),
}
_SHOWN_OF_A_GROUP = 3


def add_examples(command: click.Command, name: str) -> None:
    """Ends the help of a command, and of each subcommand, with its examples.

    name: the words after `memorywall`
    """
    shown = list(EXAMPLES.get(name, ()))
    if isinstance(command, click.Group):
        for word, inner in command.commands.items():
            add_examples(inner, f"{name} {word}")
        inside = (EXAMPLES[one][0] for one in EXAMPLES if one.rpartition(" ")[0] == name)
        shown = [*shown, *inside][:_SHOWN_OF_A_GROUP]
    if shown:
        lines = "\n".join(f"  memorywall {one}" for one in shown)
        command.epilog = f"\b\nExamples:\n{lines}"
