"""Reads the settings of a process: a flag overrides the environment, the environment overrides the
settings file, and the file overrides the default."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memorywall.configuration.values import checked_value, is_secret, value_from_text
from memorywall.records.argument_names import nearest_name
from memorywall.records.errors import ConfigurationError
from memorywall.settings import (
    CONFIG_ENVIRONMENT,
    DATA,
    DATABASE_NAME,
    KEY_ENVIRONMENT,
    OTHER_VARIABLES,
    SETTINGS,
    VARIABLE_PREFIX,
    Settings,
)

SETTINGS_FILE: Final = "memorywall.toml"
FLAG: Final = "flag"
DEFAULT: Final = "default"
_BY_NAME: Final = {one.name: one for one in SETTINGS}
_BY_VARIABLE: Final = {name: one for one in SETTINGS for name in one.variables}
_ALIASES: Final = {
    alias: one
    for one in SETTINGS
    for alias in (one.name, *(flag[2:].replace("-", "_") for flag in one.flags))
}
_MEANT_NAMES: Final = {alias: f"`{one.name}`" for alias, one in _ALIASES.items()}
_MEANT_VARIABLES: Final = {
    **{alias.upper(): one.variables[0] for alias, one in _ALIASES.items()},
    **{name.removeprefix(VARIABLE_PREFIX): name for name in (*_BY_VARIABLE, *OTHER_VARIABLES)},
}
"""The setting that a user means by a name: also by the name of a flag, in the form of a key or of a
variable without its prefix. The prefix would make all variables similar."""
_OF_THE_TESTS = re.compile(r"MEMORYWALL_(?:CHAOS|SEED|TEST_\w+)")
_OF_KUBERNETES = re.compile(
    r"MEMORYWALL_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?"
    r"|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)"
)
"""Kubernetes sets these in every container for a service whose name begins with `memorywall`."""
_ADDRESS = re.compile(r"(?:tcp|udp|sctp)://\S*")
"""The value of `MEMORYWALL_PORT` that Kubernetes sets for a service of the name `memorywall`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The settings of a process and where each value comes from.

    data: the data directory
    values: by the name of the setting, of all settings
    origins: the same names: `flag`, `environment NAME`, `file PATH` or `default`
    file: the settings file, None without one
    """

    data: Path
    values: Mapping[str, Any]
    origins: Mapping[str, str]
    file: Path | None

    @property
    def settings(self) -> Settings:
        """The settings as a process uses them."""
        given = {name: value for name, value in self.values.items() if name != DATA.name}
        return Settings(sqlite_path=self.data / DATABASE_NAME, **given)

    def is_given(self, name: str) -> bool:
        """Whether the setting has a value from a flag, the environment or the file."""
        return self.origins[name] != DEFAULT


def read_configuration(
    given: Mapping[str, Any],
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Configuration:
    """Reads the settings of a process.

    given: values of flags by the name of the setting, in its type; None counts as a value
    file: the settings file; default: the file that MEMORYWALL_CONFIG names, or `memorywall.toml`
        in the data directory if it exists
    environment: default: the environment of the process

    Raises ConfigurationError for an unknown name, an unusable value or an unreadable file.
    """
    variables = _read_variables(os.environ if environment is None else environment)
    named = file or variables.pop(CONFIG_ENVIRONMENT, (None, ""))[0]
    stored: dict[str, Any] = {}
    if named is not None:
        stored = _read_file(named)
    data = Path(_first(DATA.name, given, variables, stored, named)[0])
    if named is None and (data / SETTINGS_FILE).is_file():
        named = data / SETTINGS_FILE
        stored = _read_file(named)
        if DATA.name in stored:
            raise ConfigurationError(
                f"`data` in {named} cannot move the directory that contains the file; remove it,"
                " or name the file with --config"
            )
    found = {one.name: _first(one.name, given, variables, stored, named) for one in SETTINGS}
    return Configuration(
        data=data,
        values={name: value for name, (value, _) in found.items()},
        origins={name: origin for name, (_, origin) in found.items()},
        file=named,
    )


def _first(
    name: str,
    given: Mapping[str, Any],
    variables: Mapping[str, tuple[Any, str]],
    stored: Mapping[str, Any],
    file: Path | None,
) -> tuple[Any, str]:
    """The value of a setting with the highest precedence, and its origin."""
    if name in given:
        return given[name], FLAG
    if name in variables:
        value, variable = variables[name]
        return value, f"environment {variable}"
    if name in stored:
        return stored[name], f"file {file}"
    return _BY_NAME[name].default, DEFAULT


def _read_variables(environment: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    """The values of variables by the name of the setting, with the name of the variable."""
    found: dict[str, tuple[Any, str]] = {}
    for variable in sorted(one for one in environment if one.startswith(VARIABLE_PREFIX)):
        text, setting = environment[variable], _BY_VARIABLE.get(variable)
        if setting is None:
            _check_other(variable)
            if variable == CONFIG_ENVIRONMENT and text:
                found[CONFIG_ENVIRONMENT] = Path(text), variable
            continue
        # An empty variable is an absent one, except that of the key: a secret that was not
        # delivered must not make the server create another key.
        is_absent = not text and variable != KEY_ENVIRONMENT
        if is_absent or (setting.name == "port" and _ADDRESS.fullmatch(text)):
            continue
        if setting.name in found:
            raise ConfigurationError(
                f"{variable} and {found[setting.name][1]} are the same setting; set one of them"
            )
        found[setting.name] = value_from_text(setting, text, variable), variable
    return found


def _check_other(variable: str) -> None:
    """Raises ConfigurationError for a variable that nothing reads."""
    known = variable in OTHER_VARIABLES or _OF_THE_TESTS.fullmatch(variable)
    if not known and not _OF_KUBERNETES.fullmatch(variable):
        advice = _advice(variable.removeprefix(VARIABLE_PREFIX), _MEANT_VARIABLES)
        raise ConfigurationError(f"there is no setting {variable} (environment); {advice}")


def _read_file(file: Path) -> dict[str, Any]:
    """The values of a settings file by the name of the setting."""
    # Imported here, because most processes have no settings file.
    import tomllib

    try:
        with file.open("rb") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            content = tomllib.load(stream)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file} is not UTF-8; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{file} is not valid TOML: {error}") from None
    found = {}
    for name, value in content.items():
        setting = _BY_NAME.get(name)
        if setting is None:
            raise ConfigurationError(
                f"there is no setting `{name}` ({file}); {_advice(name, _MEANT_NAMES)}"
            )
        found[name] = checked_value(setting, value, f"`{name}` in {file}")
        if is_secret(setting, found[name]) and mode & 0o077:
            raise ConfigurationError(
                f"{file} contains a secret, `{name}`, and can be read by others; `chmod 600` it"
            )
        if setting.kind is Path:
            # A relative path means the same wherever the command is started.
            found[name] = file.parent / found[name]
    return found


def _advice(name: str, known: Mapping[str, str]) -> str:
    """Suggests the known name that is nearest to an unknown one."""
    # The names of settings have words in common.
    nearest = nearest_name(name, known, likeness=0.7)
    if nearest is None:
        return "see `memorywall config show` for all settings"
    return f"do you mean {known[nearest]}?"
