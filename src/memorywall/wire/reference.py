"""The HTTP reference in Markdown, made from the table of operations.

`python -m memorywall.wire.reference` prints it; `make docs` writes it to docs/reference.md.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from memorywall.records.errors import (
    ConfigurationError,
    MemoryConflictError,
    MemorywallError,
)
from memorywall.wire.openapi import build
from memorywall.wire.operations import OPERATIONS, Operation
from memorywall.wire.service import problem

_Schema = dict[str, Any]

_OPENING = """\
# HTTP reference

<!-- Made from the table of operations with `make docs`; edit that table, not this page. -->

A running server shows the same at `/docs`, where every operation can be tried, and as OpenAPI 3.1
at `/openapi.json`.
"""

_CONVENTIONS = """\
## Conventions

**Key.** Every operation that names a permission wants an API key, as `X-API-Key: KEY` or as
`Authorization: Bearer KEY`. `X-Agent-ID` names the agent the request speaks for: the key's own,
or any agent when the key has `act_as`.

**Versions.** A reply that is one entry, namespace, intent or task has its version as `ETag`. Send
it back as `If-Match`: `3`, `"3"` and `W/"3"` mean the same. `*` is refused.

**Fencing.** Leases and claims come with a `fencing_token`. Send it back as `Fencing-Token` with
what is done under them: it is refused with 409 `FENCED` when that lease or claim is over.

**Repeating a request.** Where `Idempotency-Key` is listed, the same key with the same body gives
the first reply again for 24 hours. With another body it is refused.

**Strictness.** An unknown query parameter is refused with 400 and an unknown body field with 422;
both are named in the reply, what was sent in them is not.

**Times** are RFC 3339 in UTC with milliseconds, such as `2026-02-02T02:40:00.000Z`. A time in a
request needs an offset.
"""

_ERRORS = """\
## Error codes

Every error is a problem document (RFC 9457) of the media type `application/problem+json`. Switch
on `error`: the texts may change. The fields are those of [Problem](#problem).

```json
{example}
```

The SDK raises each as the exception named here. A path that is not served answers with 404
`NOT_FOUND`, one that does not take the method with 405 `METHOD_NOT_ALLOWED`.
"""


def reference() -> str:
    """The whole page."""
    document = build("")
    described = {
        one["operationId"]: one for path in document["paths"].values() for one in path.values()
    }
    schemas: dict[str, _Schema] = document["components"]["schemas"]
    parts = [_OPENING, _overview(), _CONVENTIONS]
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
    """Every operation in a line, the groups of them in bold between."""
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
    """One operation: its request line, parameters, body, reply and errors."""
    needs = "Open." if operation.public else f"Needs {_permission(operation)}."
    if operation.permission is not None:
        needs = needs[:-1] + " and what the rule of its tier or intent asks for."
    parts = [
        f"### {operation.name}\n",
        f"```http\n{operation.method} {_path(operation)}\n```\n",
        f"{operation.summary} {needs} Source: {operation.source}.\n",
    ]
    if described["parameters"]:
        parts.append("**Parameters**\n")
        parts.append(_parameters(described["parameters"]))
    if operation.content == "bytes":
        parts.append("**Body**\n")
        parts.append("The bytes themselves, `application/octet-stream`.\n")
    elif operation.body is not None:
        schema = schemas[operation.body.__name__]
        parts.append("**Body**\n")
        parts.append(_described(schema))
        parts.append(_fields(schema))
    parts.append("**Reply**\n")
    parts.append(_reply(operation, described))
    parts.append("**Errors**\n")
    parts.append(
        _table(
            ("Status", "Code", "When"),
            ((str(one.status), f"`{one.code}`", _when(one)) for one in _sorted(operation.errors)),
        )
    )
    return "\n".join(parts)


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
    if not lines:
        lines.append(f"{operation.status} {success['description']}, without a body.\n")
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
    """What the schema itself says of the value."""
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
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}{_limits(schema, 'Items')}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_kind(schema['additionalProperties'])}"
    return kind + _limits(schema, "imum")


def _limits(schema: _Schema, unit: str) -> str:
    """The bounds of a number (`minimum`) or of a list (`minItems`)."""
    least, most = schema.get("min" + unit), schema.get("max" + unit)
    if least is None and most is None:
        return ""
    return f", {least or 0} to {most}" if most is not None else f", {least} and up"


def _choices(schema: _Schema) -> str:
    return ", ".join(f"`{one}`" for one in schema["enum"])


def _schema_section(name: str, schema: _Schema) -> str:
    parts = [f"### {_title(name)}\n", _described(schema)]
    parts.append(_fields(schema) if "properties" in schema else f"One of {_choices(schema)}.\n")
    return "\n".join(parts)


def _title(name: str) -> str:
    """A schema's heading, with an anchor of its own where an operation is called the same."""
    names = {operation.name for operation in OPERATIONS}
    return f"{name} object" if name.lower() in names else name


def _described(schema: _Schema) -> str:
    """A type's docstring, whose later lines still have their indentation."""
    return inspect.cleandoc(schema.get("description", "")) + "\n"


def _linked(schemas: dict[str, _Schema]) -> list[str]:
    """The schemas with a section of their own: not those that only operations spell out."""
    spelled_out = {
        kind.__name__
        for operation in OPERATIONS
        for kind in (operation.query, operation.body)
        if kind is not None
    }
    return sorted(schemas.keys() - spelled_out | set(_references(schemas)))


def _references(node: Any) -> Iterator[str]:
    """The names of all schemas that others refer to."""
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
    """An error and all below it, without those that only keep a server from starting."""
    if error is not ConfigurationError:
        yield error
        for narrower in error.__subclasses__():
            # Other rooms may narrow an error; the page must not depend on which are loaded.
            if narrower.__module__ == MemorywallError.__module__:
                yield from _served(narrower)


def _sorted(errors: Iterable[type[MemorywallError]]) -> list[type[MemorywallError]]:
    return sorted(errors, key=lambda one: (one.status, one.code))


def _when(error: type[MemorywallError]) -> str:
    """The first paragraph of the error's docstring; of the root only its title."""
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
    """A link to a heading, by default the one of this name."""
    return f"[{name}](#{(heading or name).lower().replace(' ', '-')})"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table without the columns that would be empty."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    used = [index for index in range(len(headings)) if any(row[index] for row in cells)]
    lines = [[headings[index] for index in used], ["---"] * len(used)]
    lines.extend([row[index] for index in used] for row in cells)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(reference())
