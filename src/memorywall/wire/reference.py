"""The HTTP reference in Markdown, made from the table of operations.

`python -m memorywall.wire.reference` prints it; `make docs` writes it to docs/reference.md.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from memorywall.records.errors import (
    ConfigurationError,
    MemoryConflictError,
    MemorywallError,
)
from memorywall.wire.json_rpc import RPC_SCHEMAS
from memorywall.wire.openapi import build
from memorywall.wire.operation import COMMON_ERRORS, MERGE_PATCH
from memorywall.wire.operations import OPERATIONS, Operation
from memorywall.wire.service import problem

_Schema = dict[str, Any]

_OPENING = """\
# HTTP reference

<!-- Made from the operations table by `make docs`. Edit the table, not this page. -->

A running server shows the reference at `/docs`, with a form for every operation, and serves OpenAPI
3.1 at `/openapi.json`.
"""

_CONVENTIONS = """\
## Conventions

**Key.** Every operation with a permission requires an API key, as `X-API-Key: KEY` or as
`Authorization: Bearer KEY`. `X-Agent-ID` names the agent that the request acts for: the key's own
agent, or any agent if the key has `act_as`. Besides the permission, the rule of the tier or of the
intent must allow the operation.

**Versions.** A response with one entry, namespace, intent or task has its version as `ETag`. An
update sends the version as `If-Match`: `3`, `"3"` and `W/"3"` are equivalent. `*` is
refused, except by `PUT /memory` in a namespace where the last write wins.
`If-None-Match: *` of a `PUT` creates and never replaces; it takes no version.

**Fencing.** Leases and claims have a `fencing_token`. A request under a lease sends the token as
`Fencing-Token`. The server refuses the request with 409 `FENCED` if the lease is not live.

**Repeating a request.** If an operation lists `Idempotency-Key`, the same key with the same body
and precondition returns the first response for 24 hours. The same key with another body is refused.

**Strictness.** An unknown query parameter is refused with 400 and an unknown body field with 422.
The response names them and does not repeat their values.

**Times** are RFC 3339 in UTC with milliseconds, such as `2026-02-02T02:40:00.000Z`. A time in a
request needs an offset. A date, such as `2026-02-02`, stands for its beginning in UTC, and in
`valid_at` and `valid_until` for its end; `expires_at` and `ends_at` take no date.
"""

_COMMON = """\
## Common errors

An operation lists its own errors only. These follow from what it accepts.
[Error codes](#error-codes) says when each occurs.
"""

_ERRORS = """\
## Error codes

Every error is a problem document (RFC 9457) of the media type `application/problem+json`. Programs
should use `error`; texts may change. The fields are those of [ProblemDetails](#problemdetails).

```json
{example}
```

The SDK raises the exception in the table. An unknown path gets 404 `NOT_FOUND`, and a method that a
path does not support gets 405 `METHOD_NOT_ALLOWED`.
"""


def reference() -> str:
    """The whole page."""
    document = build("")
    described = {
        one["operationId"]: one for path in document["paths"].values() for one in path.values()
    }
    schemas: dict[str, _Schema] = document["components"]["schemas"]
    # docs/json-rpc.md describes them; the first has a choice of all operations.
    schemas = {name: one for name, one in schemas.items() if name not in RPC_SCHEMAS}
    parts = [_OPENING, _overview(), _CONVENTIONS, _headers(described), _common_errors()]
    for group in _groups():
        parts.append(f"## {group}\n")
        parts.extend(
            _operation(operation, described[operation.name], schemas)
            for operation in OPERATIONS
            if operation.group == group
        )
    parts.append(_error_codes())
    parts.append("## Schemas\n")
    parts.extend(_schema_section(name, schemas[name]) for name in _linked(schemas))
    return "\n".join(parts)


def _overview() -> str:
    """A table with one line per operation and a bold line per group."""
    rows: list[tuple[str, ...]] = []
    for group in _groups():
        rows.append((f"**{_link(group)}**", "", "", ""))
        rows.extend(
            (_link(one.name), f"`{one.method} {_path(one)}`", one.summary, _permission(one))
            for one in OPERATIONS
            if one.group == group
        )
    return _table(("Operation", "Request", "What it does", "Permission"), rows)


def _groups() -> list[str]:
    return list(dict.fromkeys(operation.group for operation in OPERATIONS))


def _operation(operation: Operation, described: dict[str, Any], schemas: dict[str, _Schema]) -> str:
    """The section of one operation: request line, parameters, body, response and errors."""
    needs = "Open." if operation.public else f"Needs {_permission(operation)}."
    parts = [
        f"### {operation.name}\n",
        f"```http\n{operation.method} {_path(operation)}\n```\n",
        f"{operation.summary} {needs} Source: {operation.source}.\n",
    ]
    headers = [one for one in described["parameters"] if one["in"] == "header"]
    if parameters := [one for one in described["parameters"] if one not in headers]:
        parts.append("**Parameters**\n")
        parts.append(_parameters(parameters))
    if headers:
        names = (f"`{one['name']}`{' (required)' * one['required']}" for one in headers)
        parts.append(f"**[Headers](#headers)** {', '.join(names)}.\n")
    if operation.content == "bytes":
        parts.append("**Body**\n")
        parts.append("The bytes themselves, `application/octet-stream`.\n")
    elif operation.body is not None:
        schema = schemas[operation.body.__name__]
        parts.append("**Body**\n")
        parts.append(_described(schema))
        parts.append(_fields(schema))
    if operation.merge_patch is not None:
        schema = schemas[operation.merge_patch.__name__]
        parts.append(f"**Body of the type `{MERGE_PATCH}`**\n")
        parts.append(_described(schema))
        parts.append(_fields(schema))
    parts.append("**Reply**\n")
    parts.append(_reply(operation, described))
    errors = ", ".join(f"{one.status} `{one.code}`" for one in _sorted(operation.raises))
    own = f"{errors}, and the" if errors else "The"
    parts.append(f"**Errors** {own} [common ones](#common-errors).\n")
    return "\n".join(parts)


def _headers(described: dict[str, dict[str, Any]]) -> str:
    """The headers of all operations, each with each of its meanings once."""
    every = (one for operation in described.values() for one in operation["parameters"])
    rows = ((f"`{one['name']}`", one["description"]) for one in every if one["in"] == "header")
    return "## Headers\n\n" + _table(("Header", "Meaning"), dict.fromkeys(rows))


def _common_errors() -> str:
    """The errors that follow from properties of an operation."""
    rows = (
        (str(error.status), f"`{error.code}`", common.of)
        for common in COMMON_ERRORS
        for error in _sorted(common.errors)
    )
    return _COMMON + "\n" + _table(("Status", "Code", "Operations"), rows)


def _parameters(parameters: Iterable[dict[str, Any]]) -> str:
    rows = (
        (
            f"`{one['name']}`",
            one["in"],
            _kind(one["schema"]),
            "yes" if one["required"] else "",
            one.get("description") or _meaning(one["schema"]),
        )
        for one in parameters
    )
    return _table(("Name", "In", "Type", "Required", "Meaning"), rows)


def _reply(operation: Operation, described: dict[str, Any]) -> str:
    success = described["responses"][str(operation.status)]
    if operation.media == "bytes":
        headers = ", ".join(f"`{name}`" for name in success["headers"])
        return (
            f"{operation.status} {success['description']}: the bytes themselves, of the media type"
            f" they were attached with. Headers: {headers}.\n"
        )
    lines = [
        f"{operation.status} {success['description']}, `{media}`: {_kind(content['schema'])}.\n"
        for media, content in success.get("content", {}).items()
    ]
    if operation.created is not None:
        made = described["responses"][str(operation.created)]["description"]
        lines.append(f"{operation.created} {made}, likewise, if there was no entry.\n")
    if operation.defers:
        lines.append(f"202 {described['responses']['202']['description']}\n")
    if operation.recognizes:
        lines.append(f"200 {described['responses']['200']['description']}\n")
    if not lines:
        lines.append(f"{operation.status} {success['description']}, without a body.\n")
    if operation.is_conditional:
        lines.append(f"304 {described['responses']['304']['description']}\n")
    if operation.empty:
        lines.append(f"204 {described['responses']['204']['description']}\n")
    return "\n".join(lines)


def _fields(schema: _Schema) -> str:
    required = schema.get("required", [])
    rows = (
        (
            f"`{name}`",
            _kind(part),
            "yes" if name in required else "",
            _default(part),
            _meaning(part),
        )
        for name, part in schema["properties"].items()
    )
    return _table(("Field", "Type", "Required", "Default", "Meaning"), rows)


def _default(schema: _Schema) -> str:
    default = schema.get("default")
    return "" if default is None else f"`{msgspec.json.encode(default).decode()}`"


def _meaning(schema: _Schema) -> str:
    """The description in the schema of a value."""
    said = [
        one["description"] for one in (schema, *schema.get("anyOf", ())) if "description" in one
    ]
    return said[0] if said else ""


def _kind(schema: _Schema) -> str:
    """A type in words, with a link where it has a section of its own."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _link(name, _title(name))
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if "enum" in schema:
        return _choices(schema)
    kind: str = schema.get("type", "anything")
    if kind == "array" and "prefixItems" in schema:
        return f"[{', '.join(_kind(one) for one in schema['prefixItems'])}]"
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}{_limits(schema, 'Items')}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_kind(schema['additionalProperties'])}"
    return kind + _limits(schema, "imum")


def _limits(schema: _Schema, unit: str) -> str:
    """The bounds of a number (`minimum`) or of a list (`minItems`)."""
    least, most = schema.get("min" + unit), schema.get("max" + unit)
    above, below = schema.get("exclusiveMin" + unit), schema.get("exclusiveMax" + unit)
    if above is not None or below is not None:
        words = {"above": above, "from": least, "below": below, "at most": most}
        texts = [f"{word} {limit}" for word, limit in words.items() if limit is not None]
        return f", {' and '.join(texts)}"
    if least is None and most is None:
        return ""
    return f", {least or 0} to {most}" if most is not None else f", {least} and up"


def _choices(schema: _Schema) -> str:
    return ", ".join(f"`{one}`" for one in schema["enum"])


def _schema_section(name: str, schema: _Schema) -> str:
    parts = [f"### {_title(name)}\n", _described(schema)]
    if "properties" in schema:
        parts.append(_fields(schema))
    else:
        parts.append(f"One of {_choices(schema)}.\n" if "enum" in schema else f"{_kind(schema)}.\n")
    return "\n".join(parts)


def _title(name: str) -> str:
    """The heading of a schema. It gets a suffix if an operation has the same name."""
    names = {operation.name for operation in OPERATIONS}
    return f"{name} object" if name.lower() in names else name


def _described(schema: _Schema) -> str:
    """The docstring of a type without its indentation."""
    return inspect.cleandoc(schema.get("description", "")) + "\n"


def _linked(schemas: dict[str, _Schema]) -> list[str]:
    """The schemas with a section of their own, without those that only one operation shows."""
    spelled_out = {
        kind.__name__
        for operation in OPERATIONS
        for kind in (operation.query, operation.body, operation.merge_patch)
        if kind is not None
    }
    return sorted(schemas.keys() - spelled_out | set(_references(schemas)))


def _references(node: Any) -> Iterator[str]:
    """The names of all schemas that other schemas refer to."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rpartition("/")[2]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _references(child)


def _error_codes() -> str:
    conflict = MemoryConflictError("the entry is at version 4", current_version=4)
    example = msgspec.json.format(msgspec.json.encode(problem(conflict)), indent=2).decode()
    rows = (
        (str(one.status), f"`{one.code}`", f"`{one.__name__}`", _when(one))
        for one in _sorted(_served(MemorywallError))
    )
    table = _table(("Status", "Code", "Exception", "When"), rows)
    return _ERRORS.replace("{example}", example) + "\n" + table


def _served(error: type[MemorywallError]) -> Iterator[type[MemorywallError]]:
    """An error and its subclasses, without errors that only occur at the start of a server."""
    if error is not ConfigurationError:
        yield error
        for narrower in error.__subclasses__():
            # Other packages may subclass an error; the page must not depend on loaded packages.
            if narrower.__module__ == MemorywallError.__module__:
                yield from _served(narrower)


def _sorted(errors: Iterable[type[MemorywallError]]) -> list[type[MemorywallError]]:
    return sorted(errors, key=lambda one: (one.status, one.code))


def _when(error: type[MemorywallError]) -> str:
    """The first paragraph of the error's docstring; for the root error its title."""
    if error is MemorywallError:
        return f"{error.title}; the server's log says more."
    return " ".join(inspect.cleandoc(error.__doc__ or error.title).split("\n\n")[0].split())


def _path(operation: Operation) -> str:
    return operation.path.replace(":path}", "}")


def _permission(operation: Operation) -> str:
    if operation.permission is not None:
        return f"`{operation.permission}`"
    return "" if operation.public else "any key"


def _link(name: str, heading: str = "") -> str:
    """A link to a heading; the heading is the name by default."""
    anchor = re.sub(r"[^\w\- ]", "", (heading or name).lower()).replace(" ", "-")
    return f"[{name}](#{anchor})"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table without empty columns."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    used = [index for index in range(len(headings)) if any(row[index] for row in cells)]
    lines = [[headings[index] for index in used], ["---"] * len(used)]
    lines.extend([row[index] for index in used] for row in cells)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(reference())
