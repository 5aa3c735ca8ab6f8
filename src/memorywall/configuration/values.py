"""Values of settings: from text or TOML, and for display."""

from __future__ import annotations

import re
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from memorywall.records.errors import ConfigurationError
from memorywall.settings import Setting

_TRUTH: Final = {"true": True, "yes": True, "on": True, "1": True}
_UNTRUTH: Final = {"false": False, "no": False, "off": False, "0": False}
_KINDS: Final = {
    str: "a text that is not empty",
    int: "a whole number",
    float: "a number",
    timedelta: "a number",
    bool: "true or false",
    Path: "a path",
    tuple: "a list of texts",
}
_WITH_PASSWORD: Final = " (password set)"  # noqa: S105 - no password
_UNCLEAR: Final = "set"
_LARGEST: Final = 10**12
"""A bound of numbers without a maximum, so that each can be converted to any unit."""
_URL = re.compile(
    r"(?P<scheme>[\w+]+)://(?:(?P<user>[^:@/?#]*)(?P<password>:[^@/?#]*)?@)?"
    r"(?P<place>(?:[\w.,-]|\[[\da-fA-F:]+\]|:\d+(?=[,/?#]|$))*(?:/[^?#@]*)?)"
    r"(?:\?[^@#]*)?(?P<fragment>#[\w./:-]+(?:@\d+)?)?"
)


def value_from_text(setting: Setting, text: str, where: str) -> Any:
    """The value of a setting from the text of an environment variable; a list has commas.

    where: names the source in an error
    Raises ConfigurationError, which does not repeat the text.
    """
    value: Any = text.strip()
    try:
        if setting.kind is int:
            value = int(value)
        elif setting.kind in (float, timedelta):
            value = float(value)
        elif setting.kind is bool:
            value = {**_TRUTH, **_UNTRUTH}[value.lower()]
        elif setting.kind is tuple:
            value = [part.strip() for part in value.split(",") if part.strip()]
    except (ValueError, KeyError):
        raise _refusal(setting, where) from None
    return checked_value(setting, value, where)


def checked_value(setting: Setting, value: Any, where: str) -> Any:
    """The value of a setting in its type, from a value of a TOML file; see `value_from_text`."""
    if not _has_kind(setting, value) or not _is_allowed(setting, value):
        raise _refusal(setting, where)
    if setting.kind is timedelta:
        return timedelta(seconds=value)
    return setting.kind(value)


def _has_kind(setting: Setting, value: Any) -> bool:
    if setting.kind is tuple:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if setting.kind is bool:
        return isinstance(value, bool)
    if setting.kind in (float, timedelta):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if setting.kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str)


def _is_allowed(setting: Setting, value: Any) -> bool:
    if isinstance(value, str):
        return bool(value) and (not setting.choices or value in setting.choices)
    if isinstance(value, list):
        return not setting.pattern or all(re.fullmatch(setting.pattern, one) for one in value)
    if isinstance(value, bool):
        return True
    # Both comparisons with NaN are false.
    least = -_LARGEST if setting.minimum is None else setting.minimum
    most = _LARGEST if setting.maximum is None else setting.maximum
    return bool(least <= value <= most)


def requirement(setting: Setting) -> str:
    """Returns the requirement for a value, such as `a number of seconds of at least 0.1`."""
    if setting.choices:
        return "one of " + ", ".join(setting.choices)
    if setting.form:
        return f"{_KINDS[setting.kind]}, each {setting.form}"
    words = _KINDS[setting.kind] + (f" of {setting.unit}" if setting.unit else "")
    if setting.maximum is not None:
        return f"{words} from {setting.minimum or 0:g} to {setting.maximum:g}"
    return words if setting.minimum is None else f"{words}, at least {setting.minimum:g}"


def _refusal(setting: Setting, where: str) -> ConfigurationError:
    return ConfigurationError(f"{where} must be {requirement(setting)}")


def is_secret(setting: Setting, value: Any) -> bool:
    """Whether the value is secret, wholly or in part."""
    text = str(shown(setting, value))
    return setting.secret or (setting.url and (text == _UNCLEAR or text.endswith(_WITH_PASSWORD)))


def shown(setting: Setting, value: Any) -> str | int | float | bool | list[str] | None:
    """The value for display: a secret as `set` or `not set`, a URL without its password and
    parameters, a duration in seconds; None for none."""
    if setting.secret:
        return "not set" if value is None else "set"
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, tuple):
        return list(value)
    if setting.url and value is not None and "://" in value:
        return _without_password(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def _without_password(url: str) -> str:
    """The URL without password and parameters; `set` if its parts cannot be told apart."""
    parts = _URL.fullmatch(url)
    if parts is None:
        return _UNCLEAR
    user = "" if parts["user"] is None else parts["user"] + "@"
    bare = f"{parts['scheme']}://{user}{parts['place']}{parts['fragment'] or ''}"
    return bare + (_WITH_PASSWORD if parts["password"] or "password=" in url else "")


def is_loopback(host: str) -> bool:
    """Whether a host, a name or an address, is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
