"""The table of settings, and what follows from it: sources, flags, display and docs/settings.md."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from memorywall.cli.main import commands
from memorywall.configuration.reader import SETTINGS_FILE, read_configuration
from memorywall.configuration.values import checked_value, shown, value_from_text
from memorywall.records.errors import ConfigurationError
from memorywall.settings import DATA, DATABASE_NAME, SETTINGS, Setting, Settings, make_setting
from tests.cli.shell import misuse, refuse, run, succeed
from tests.support.backend import environment_of

_PAGE = Path(__file__).parent.parent / "docs" / "settings.md"
_BY_NAME = {one.name: one for one in SETTINGS}
_ENTRIES = make_setting("entries", int, 3, description="", minimum=1, maximum=9)
_NAMES = make_setting("names", tuple[str, ...], (), description="")


def _read(
    environment: dict[str, str] | None = None, file: Path | None = None, **given: Any
) -> dict[str, Any]:
    """What is not the default, with its origin."""
    found = read_configuration(given, file=file, environment=environment or {})
    return {
        name: (found.values[name], found.origins[name])
        for name in found.values
        if found.is_given(name)
    }


def _refusal(environment: dict[str, str] | None = None, **options: Any) -> str:
    with pytest.raises(ConfigurationError) as refusal:
        read_configuration(options.pop("given", {}), environment=environment or {}, **options)
    return refusal.value.detail


def _file(directory: Path, text: str, *, name: str = SETTINGS_FILE, mode: int = 0o600) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text(text)
    file.chmod(mode)
    return file


# The table


def test_every_field_of_settings_is_a_row_with_its_default() -> None:
    defaults = {one.name: one.default for one in fields(Settings) if one.name != "sqlite_path"}
    assert {one.name: one.default for one in SETTINGS if one is not DATA} == defaults
    assert read_configuration({}, environment={}).settings == Settings(
        sqlite_path=DATA.default / DATABASE_NAME
    )


def test_flags_and_variables_are_unique_and_a_secret_has_no_flag() -> None:
    for names in ([*one.flags] for one in SETTINGS), ([*one.variables] for one in SETTINGS):
        every = [name for found in names for name in found]
        assert len(every) == len(set(every)) > 0
    assert {one.name for one in SETTINGS if not one.flags} == {
        one.name for one in SETTINGS if one.secret
    } == {"encryption_key", "embedder_key", "summary_model_key"}  # fmt: skip
    assert all(one.variables and one.description.endswith(".") for one in SETTINGS)


def test_the_server_takes_the_flag_of_every_setting() -> None:
    serve = commands.get_command(click.Context(commands), "serve")
    assert serve is not None
    flags = {option for one in serve.params for option in one.opts}
    table = {flag for one in SETTINGS for flag in one.flags}
    assert flags == table | {"--config", "--dev", "--recall-memory"}


def test_the_page_is_what_the_command_prints() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "memorywall.configuration.reference"],
        capture_output=True,
        check=True,
    )
    assert _PAGE.read_bytes() == printed.stdout, "run `make docs`"


def test_the_example_of_the_page_is_a_settings_file(tmp_path: Path) -> None:
    example = _PAGE.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    file = _file(tmp_path, example)
    assert _read(file=file).keys() == tomllib.loads(example).keys()


# Sources


def test_a_flag_precedes_the_environment_the_file_and_the_default(tmp_path: Path) -> None:
    file = _file(tmp_path, "pool_size = 3\nport = 3\nhost = '::1'\n")
    variables = {"MEMORYWALL_POOL_SIZE": "4", "MEMORYWALL_PORT": "4"}
    assert _read(variables, data=tmp_path, pool_size=5) == {
        "data": (tmp_path, "flag"),
        "pool_size": (5, "flag"),
        "port": (4, "environment MEMORYWALL_PORT"),
        "host": ("::1", f"file {file}"),
    }


def test_the_named_file_is_read_instead_of_that_of_the_directory(tmp_path: Path) -> None:
    _file(tmp_path / "data", "port = 1\n")
    named = _file(tmp_path, "data = 'data'\npool_size = 3\n", name="other.toml")
    expected = {
        "data": (tmp_path / "data", f"file {named}"),
        "pool_size": (3, f"file {named}"),
    }
    assert _read(file=named) == expected
    assert _read({"MEMORYWALL_CONFIG": str(named)}) == expected
    assert "cannot move" in _refusal(given={"data": _file(tmp_path / "d", "data = 'x'").parent})
    assert "cannot be read" in _refusal(file=tmp_path / "missing.toml")


def test_none_and_older_names_of_variables_count(tmp_path: Path) -> None:
    variables = {"MEMORYWALL_STORE": "postgresql://h/d"}
    assert _read(variables, database_url=None)["database_url"] == (None, "flag")
    assert _read({"MEMORYWALL_DATABASE_URL": "u"})["database_url"][0] == "u"
    both = {**variables, "MEMORYWALL_DATABASE_URL": "u"}
    assert "are the same setting" in _refusal(both)
    assert _read({"MEMORYWALL_STORE": ""}) == {}
    assert "MEMORYWALL_KEY" in _refusal({"MEMORYWALL_KEY": ""})


def test_variables_that_kubernetes_sets_are_ignored() -> None:
    assert _read({
        "MEMORYWALL_PORT": "tcp://10.0.0.1:7377",
        "MEMORYWALL_SERVICE_HOST": "10.0.0.1",
        "MEMORYWALL_SERVICE_PORT_HTTP": "7377",
        "MEMORYWALL_PORT_7377_TCP_ADDR": "10.0.0.1",
        "MEMORYWALL_REPLICA_SERVICE_HOST": "10.0.0.2",
    }) == {}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("MEMORYWALL_POOLSIZE", "MEMORYWALL_POOL_SIZE"),
        ("MEMORYWALL_STORE_CONNECTIONS", "MEMORYWALL_POOL_SIZE"),
        ("MEMORYWALL_DATABSE_URL", "MEMORYWALL_DATABASE_URL"),
        ("MEMORYWALL_API_KYE", "MEMORYWALL_API_KEY"),
    ],
)
def test_an_unknown_variable_is_an_error_that_suggests_the_nearest(name: str, nearest: str) -> None:
    said = _refusal({name: "secret-value"})
    assert name in said
    assert said.endswith(f"do you mean {nearest}?")
    assert "secret-value" not in said


@pytest.mark.parametrize(
    "name", ["MEMORYWALL_RECALL_MEMORY", "MEMORYWALL_RECALL_DENSE", "MEMORYWALL_MEMORY"]
)
def test_an_unknown_variable_that_resembles_no_other_suggests_none(name: str) -> None:
    assert _refusal({name: "1"}).endswith("see `memorywall config show` for all settings")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("poolsize = 3", "do you mean `pool_size`?"),
        ("sweep_interval = 3", "do you mean `expiry_interval`?"),
        ("zzzz = 3", "see `memorywall config show`"),
        ("[server]\nport = 3", "there is no setting `server`"),
        ("port = '7377'", "`port` in {file} must be a whole number from 0 to 65535"),
        ("port = true", "must be a whole number"),
        ("port = 1.5", "must be a whole number"),
        ("log_level = 'loud'", "must be one of debug, info, warning, error"),
        ("embedder = ''", "must be a text that is not empty"),
        ("allow_remote = 1", "must be true or false"),
        ("idempotency_lifetime = inf", "must be a number of seconds, at least 1"),
        ("dense_weight = nan", "must be a number, at least 0"),
        ("port = ", "is not valid TOML"),
    ],
)
def test_a_file_with_an_unusable_line_is_refused(text: str, said: str, tmp_path: Path) -> None:
    file = _file(tmp_path, text)
    assert said.format(file=file) in _refusal(file=file)


def test_a_file_with_a_secret_must_be_private(tmp_path: Path) -> None:
    for line in ("embedder_key = 'sk-1'", "database_url = 'postgresql://u:sk-1@h/d'"):
        said = _refusal(file=_file(tmp_path, line, mode=0o640))
        assert "chmod 600" in said
        assert "sk-1" not in said
        assert _read(file=_file(tmp_path, line))
    assert _read(file=_file(tmp_path, "database_url = 'postgresql://u@h/d'", mode=0o644))


# Values


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (_BY_NAME["pool_size"], " 20 ", 20),
        (_BY_NAME["query_timeout"], "2.5", 2.5),
        (_BY_NAME["idempotency_lifetime"], "60", timedelta(minutes=1)),
        (_BY_NAME["allow_remote"], "Yes", True),
        (_BY_NAME["allow_remote"], "0", False),
        (_BY_NAME["data"], "/srv", Path("/srv")),
        (_BY_NAME["log_level"], "info", "info"),
        (_NAMES, "a, b,,c", ("a", "b", "c")),
    ],
)
def test_a_text_becomes_the_value(setting: Setting, text: str, value: Any) -> None:
    found = value_from_text(setting, text, "HERE")
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["0", "10", "x-secret", "1.0", "", "9" * 400])
def test_an_unusable_text_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        value_from_text(_ENTRIES, text, "HERE")
    assert refusal.value.detail == "HERE must be a whole number from 1 to 9"


def test_a_list_of_texts_contains_only_texts() -> None:
    assert checked_value(_NAMES, ["a"], "HERE") == ("a",)
    for wrong in ("a", [1], {"a": 1}):
        with pytest.raises(ConfigurationError, match="a list of texts"):
            checked_value(_NAMES, wrong, "HERE")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:hush@h:5/db?password=hush&a=b", "postgresql://u@h:5/db (password set)"),
        ("postgresql://h1:1,h2:2/db?target=x", "postgresql://h1:1,h2:2/db"),
        ("postgresql://u@[::1]:5/db", "postgresql://u@[::1]:5/db"),
        ("https://h/v1/embeddings#model@256", "https://h/v1/embeddings#model@256"),
        *(
            (f"postgresql://u:{hush}@h/db", "set")
            for hush in ("12/hush", "12?hush", "12#hush", "h@hush", "hush/")
        ),
    ],
)
def test_a_password_in_a_url_is_not_shown(url: str, expected: str) -> None:
    assert shown(_BY_NAME["database_url"], url) == expected
    settings = Settings(sqlite_path=Path("d"), database_url=url, embedder=url)
    assert "hush" not in repr(settings)


# Commands


def test_config_show_prints_each_setting_its_value_and_its_source(tmp_path: Path) -> None:
    file = _file(tmp_path, "port = 1\nembedder_key = 'sk-1'\n")
    variables = {"MEMORYWALL_STORE": "postgresql://u:hush@h/d", "MEMORYWALL_QUERY_TIMEOUT": "2"}
    line = ["config", "show", "--data", str(tmp_path), "--recall-memory", "2"]
    table = succeed(*line, "--idempotency-lifetime", "60", variables=variables)
    rows = [row.split("  ") for row in table.splitlines()[2:]]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert [row[0] for row in cells] == [one.name for one in SETTINGS]
    values = {row[0]: row[1:] for row in cells}
    assert values["database_url"][0] == "postgresql://u@h/d (password set)"
    assert values["embedder_key"] == ["set", f"file {file}"]
    assert values["encryption_key"] == ["not set", "default"]
    assert values["query_timeout"] == ["2 seconds", "environment MEMORYWALL_QUERY_TIMEOUT"]
    assert values["idempotency_lifetime"] == ["60 seconds", "flag"]
    assert values["index_cache_bytes"] == ["2097152 bytes", "flag"]
    told = json.loads(succeed(*line, "--json", variables=variables))
    assert told["file"] == str(file)
    assert {row["name"]: row["value"] for row in told["settings"]}["port"] == 1
    for text in (table, json.dumps(told)):
        assert "hush" not in text
        assert "sk-1" not in text


def test_a_command_refuses_an_unknown_setting_and_reads_the_file(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    said = refuse("keys", "list", *data, variables={"MEMORYWALL_POOLSIZE": "3"})
    assert said.endswith("do you mean MEMORYWALL_POOL_SIZE?")
    assert run("--version", variables={"MEMORYWALL_POOLSIZE": "3"}).returncode == 0
    file = _file(tmp_path, "port = 'http'")
    assert "`port`" in refuse("keys", "list", *data, "--config", str(file))
    assert "--pool-size" in misuse("config", "show", "--pool-size", "1")


def test_the_directory_may_come_from_a_variable_or_a_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    succeed("keys", "create", "--data", str(data), "--agent", "ada")
    file = _file(tmp_path, "data = 'data'\n")
    store = environment_of(data)
    listed = [
        succeed("tenants", "list", variables={**store, "MEMORYWALL_DATA": str(data)}),
        succeed("tenants", "list", variables={**store, "MEMORYWALL_CONFIG": str(file)}),
        succeed("tenants", "list", "--config", str(file), variables=store),
    ]
    assert set(listed) == {succeed("tenants", "list", "--data", str(data))}
