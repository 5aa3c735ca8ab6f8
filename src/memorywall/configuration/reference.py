"""Writes docs/settings.md from the table of settings."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from memorywall.configuration.values import requirement, shown
from memorywall.settings import OTHER_VARIABLES, SETTINGS, Setting

_TOP = """# Settings

`python -m memorywall.configuration.reference` writes this page from the table of settings. Run
`make docs` after a change.

A setting gets its value from the first of these sources that gives one:

1. the flag of `memorywall serve` and `memorywall config show`,
2. the environment variable,
3. the settings file,
4. the default.

`memorywall config show` prints each setting with its value and its source. Commands that open a
store read the same environment variables and the same file as the server.

## The settings file

The file is TOML. A key is the name of a setting:

```toml
port = 7400
log_level = "info"
episodic_capacity = 5000
query_timeout = 5
```

`--config FILE` names the file, or the variable `MEMORYWALL_CONFIG`. Without them, the file is
`memorywall.toml` in the data directory, if it exists. Only one file is read. `data` is allowed in a
file that is named. A relative path in a file is relative to the directory of the file.

An unknown name in the file, or an unknown variable that begins with `MEMORYWALL_`, is an error that
suggests the nearest name. The variables that Kubernetes sets for a service are ignored. An empty
variable counts as absent; only an empty `MEMORYWALL_KEY` is an error.

A secret has no flag, because other users can read the command lines of processes. A settings file
that contains a secret, or a URL with a password, must have mode 0600. No command shows a secret.

## Table

Numbers are given without their unit. A flag of several names is one flag; the later names are
older. A flag of a setting that is true or false also has the form `--no-...`. `--recall-memory` is
`--index-cache-bytes` in megabytes. [Embedders](recall.md#embedders) describes the values of
`embedder`.

"""
_OTHERS = """
## Other variables

These variables are no settings of a server.

"""


def reference() -> str:
    """The whole page."""
    table = _table(
        ("Setting", "Meaning", "Value", "Default", "Flag", "Variable"), map(_row, SETTINGS)
    )
    others = [(f"`{name}`", meaning) for name, meaning in OTHER_VARIABLES.items()]
    return _TOP + table + _OTHERS + _table(("Variable", "Meaning"), others)


def _row(setting: Setting) -> tuple[str, ...]:
    return (
        f"`{setting.name}`",
        setting.description,
        requirement(setting).removesuffix(" that is not empty"),
        default_text(setting),
        _codes(setting.flags) or "none",
        _codes(setting.variables),
    )


def default_text(setting: Setting) -> str:
    """The default as the page shows it."""
    value = shown(setting, setting.default)
    if value in (None, "not set", []):
        return "none"
    if isinstance(value, bool):
        return f"`{value}`".lower()
    return f"{value:,g}" if isinstance(value, float) else f"`{value}`"


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [headings, ("---",) * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(reference())
