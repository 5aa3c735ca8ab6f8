"""All settings: one frozen record, whose fields are the rows of the table of settings.

A setting is one field of `Settings`. Its name in a settings file, its environment variable, its
flag of `memorywall serve`, `memorywall config show` and docs/settings.md follow from the field.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from types import NoneType
from typing import Any, Final, get_args, get_origin, get_type_hints

DATABASE_NAME = "memory.db"
DEFAULT_DATA = "memorywall-data"
VARIABLE_PREFIX = "MEMORYWALL_"
CONFIG_ENVIRONMENT = "MEMORYWALL_CONFIG"
EMBEDDER_ENVIRONMENT = "MEMORYWALL_EMBEDDER"
KEY_ENVIRONMENT = "MEMORYWALL_KEY"
LEDGER_ENVIRONMENT = "MEMORYWALL_LEDGER"
STORE_ENVIRONMENT = "MEMORYWALL_STORE"
DEFAULT_TENANT = "default"
DEFAULT_PORT = 7377
EPISODIC_CAPACITY = 1_000
WORKING_CAPACITY_PER_TASK = 1_000


def _setting(default: Any, description: str, **properties: Any) -> Any:
    """A field of `Settings`; the properties are those of `Setting`."""
    return field(
        default=default,
        repr=not (properties.get("secret") or properties.get("url")),
        metadata={"setting": {"description": description, **properties}},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The settings of a memorywall process.

    sqlite_path: the SQLite file; the key-encryption key and the lock are files beside it

    The other fields are described where they are declared.
    """

    sqlite_path: Path
    database_url: str | None = _setting(
        None,
        "A PostgreSQL database, `postgresql://...`, instead of a file in the data directory.",
        flags=("--store",),
        variables=(STORE_ENVIRONMENT, "MEMORYWALL_DATABASE_URL"),
        url=True,
    )
    pool_size: int = _setting(
        10,
        "The most connections to PostgreSQL of one server.",
        older_flag="--store-connections",
        minimum=2,
    )
    query_timeout: float = _setting(
        10.0,
        "The time until a request without an answer from PostgreSQL fails with 503.",
        unit="seconds",
        older_flag="--store-deadline",
        minimum=0.1,
    )
    encryption_key: str | None = _setting(
        None,
        "The key-encryption key, 32 bytes in base64, instead of the key file. While a new key"
        " replaces an old one: both, the old one first, separated by a space.",
        variables=(KEY_ENVIRONMENT, "MEMORYWALL_ENCRYPTION_KEY"),
        secret=True,
    )
    ledger: Path | None = _setting(  # noqa: RUF009 - a field, which nothing shares
        None,
        "The directory of the suppression ledger; without it `memory.db.ledger` in the data"
        " directory, and none on PostgreSQL.",
    )
    host: str = _setting("127.0.0.1", "The address to listen on.")
    port: int = _setting(
        DEFAULT_PORT,
        "The port; 0 selects a free port, which the server prints.",
        minimum=0,
        maximum=65_535,
    )
    allow_remote: bool = _setting(
        False,
        "Allow an address that other machines can connect to; the server refuses it otherwise.",
    )
    log_level: str = _setting(
        "warning", "The lowest level to log.", choices=("debug", "info", "warning", "error")
    )
    episodic_capacity: int = _setting(
        EPISODIC_CAPACITY,
        "Episodic entries per agent that has no capacity of its own.",
        unit="entries",
        minimum=1,
    )
    working_capacity_per_task: int = _setting(
        WORKING_CAPACITY_PER_TASK,
        "Working entries per task.",
        unit="entries",
        older_flag="--working-capacity",
        minimum=1,
    )
    expiry_interval: float = _setting(
        60.0,
        "The time between two sweeps of expired entries.",
        unit="seconds",
        older_flag="--sweep-interval",
        minimum=0.1,
    )
    erasure_deadline: float = _setting(
        20.0,
        "The time until deleted bytes are overwritten in the files of SQLite.",
        unit="seconds",
        minimum=0.1,
    )
    idempotency_lifetime: timedelta = _setting(  # noqa: RUF009 - a field, which nothing shares
        timedelta(hours=24),
        "The lifetime of a response that is stored for an `Idempotency-Key`.",
        unit="seconds",
        minimum=1,
    )
    withdrawn_retention: timedelta = _setting(  # noqa: RUF009 - a field, which nothing shares
        timedelta(days=30),
        "How long withdrawn memory is kept, so that a correction or retraction can be undone.",
        unit="seconds",
        minimum=1,
    )
    namespace_default: str = _setting(
        "read", "The default level of a new namespace.", choices=("none", "read", "write")
    )
    attachment_limit: int = _setting(
        16 * 1024 * 1024, "The largest size of an attachment.", unit="bytes", minimum=1
    )
    embedder: str = _setting(
        "none",
        "The embedder of recall: none (words only), static, local, onnx:FOLDER, or the URL of an"
        " embeddings endpoint with #MODEL.",
        url=True,
    )
    embedder_key: str | None = _setting(None, "The API key of an embedding service.", secret=True)
    embedder_query_prefix: str = _setting(
        "",
        "The text before each query, for models of onnx:FOLDER and of services that were trained"
        " with one, such as `query: `.",
    )
    embedder_document_prefix: str = _setting(
        "", "The text before each document, likewise, such as `passage: `."
    )
    embedder_threads: int = _setting(1, "The number of cores that embed one text.", minimum=1)
    dense_weight: float | None = _setting(
        None,
        "The weight of meaning, if words have weight 1; without it the embedder's default.",
        minimum=0,
    )
    index_cache_bytes: int = _setting(
        512 * 1024 * 1024,
        "The size of the search index in memory, besides shards in use.",
        unit="bytes",
        minimum=1,
    )
    summary_model: str | None = _setting(
        None,
        "The base URL of a model with OpenAI's interface that writes summaries, with #MODEL;"
        " without it summaries are extractive.",
        url=True,
    )
    summary_model_key: str | None = _setting(
        None, "The API key of the model that writes summaries.", secret=True
    )
    summary_model_timeout: float = _setting(
        20.0,
        "The time after which the extractive summary replaces that of the model.",
        unit="seconds",
        minimum=0.1,
        # The job that waits for the model holds its lease for 60 seconds.
        maximum=45.0,
    )
    turn_weights: tuple[str, ...] = _setting(
        (),
        "Weights of turns for contexts by importance that differ from the defaults: system 1,"
        " first_user 0.95, tool_result 0.6, user 0.5, assistant 0.4.",
        pattern=r"(?:system|first_user|tool_result|user|assistant)=(?:0(?:\.\d+)?|1(?:\.0+)?)",
        form="a class of turns and its weight from 0 to 1, such as user=0.7",
    )
    recall_author_field: str = _setting(
        "author", "The field of a value that names its author.", older_flag="--author-field"
    )
    recall_date_field: str = _setting(
        "date",
        "The field of a value that contains its date, in ISO 8601; a month or a year will do.",
        older_flag="--date-field",
    )
    personal_data: str = _setting(
        "keep",
        "Personal data in values of entries: keep it, mark entries with tags such as"
        " `personal_data:card`, or mask it before it is stored.",
        choices=("keep", "mark", "mask"),
    )
    task_episodes: str = _setting(
        "reported",
        "The tasks of which long-term memory keeps an episode: those whose agent reports one,"
        " these and all failed ones, or all completed and failed ones.",
        choices=("reported", "failed", "all"),
    )
    worthiness: str = _setting(
        "mark",
        "Remembered texts that are not worth keeping: judge none, mark them in the reply, or refuse"
        " them. A tenant may choose another.",
        choices=("off", "mark", "refuse"),
    )
    access_log: bool = _setting(True, "Log each request as one line of JSON.")
    principal_rate: float | None = _setting(
        None, "Requests per second of one principal.", minimum=0.001
    )
    tenant_rate: float | None = _setting(None, "Requests per second of one tenant.", minimum=0.001)
    rate_burst: float = _setting(
        2.0, "The time whose requests may come at once.", unit="seconds", minimum=0
    )
    tenant_concurrency: int = _setting(
        128, "Requests of one tenant that run at the same time; more wait.", minimum=1
    )
    principal_streams: int = _setting(
        32,
        "Streams of events and waiting reads of changes that a principal has open at a server.",
        minimum=1,
    )
    tenant_streams: int = _setting(
        128, "The same of a tenant. Each write of the tenant wakes all of them.", minimum=1
    )
    body_limit: int = _setting(
        1024 * 1024,
        "The largest body of a request, other than a batch or an attachment.",
        unit="bytes",
        minimum=1,
    )
    batch_body_limit: int = _setting(
        16 * 1024 * 1024,
        "The largest body of a batch and of a JSON-RPC request.",
        unit="bytes",
        minimum=1,
    )
    client_timeout: float = _setting(
        30.0,
        "The time that a client may take to send the head of a request, or pause while it sends a"
        " body or reads a reply.",
        unit="seconds",
        minimum=0.1,
    )
    shutdown_timeout: float = _setting(
        10.0, "The time that a stopping server waits for requests.", unit="seconds", minimum=0
    )
    cors_origins: tuple[str, ...] = _setting(
        (),
        "The origins whose pages may call the server from a browser, such as"
        " `https://app.example`.",
        older_flag="--cors-origin",
        pattern=r"https?://[^/?#\s*]+",
        form="a scheme and a host, such as https://app.example",
    )
    public_url: str | None = _setting(
        None,
        "The URL under which clients reach the server, such as `https://memory.example`; without it"
        " that of the request.",
    )
    token_issuers: Path | None = _setting(  # noqa: RUF009 - a field, which nothing shares
        None,
        "The identity providers whose tokens are accepted beside API keys, a TOML file.",
        is_file=True,
    )
    openwop_off: tuple[str, ...] = _setting(
        (),
        "The families of OpenWOP that are not offered, such as `workspace`.",
        pattern=r"[a-z]+(\.[a-z]+)?",
        form="the name of a family, such as memory.compaction",
    )
    openwop_retention: timedelta = _setting(  # noqa: RUF009 - a field, which nothing shares
        timedelta(days=30),
        "The time after its start for which an OpenWOP run can be replayed.",
        unit="seconds",
        minimum=1,
    )
    openwop_test_seams: bool = _setting(
        False,
        "Whether the routes and workflows of OpenWOP's tests are served; on this machine only.",
    )
    tls_cert: Path | None = _setting(  # noqa: RUF009 - a field, which nothing shares
        None, "The certificate chain of the server, a PEM file.", is_file=True
    )
    tls_key: Path | None = _setting(  # noqa: RUF009 - a field, which nothing shares
        None, "The private key of the certificate, a PEM file.", is_file=True
    )

    @property
    def ledger_directory(self) -> Path | None:
        """The directory of the suppression ledger: beside the SQLite file if the settings name
        none; None for PostgreSQL, because several servers need one directory that they share."""
        if self.ledger is not None or self.database_url is not None:
            return self.ledger
        return self.sqlite_path.with_name(self.sqlite_path.name + ".ledger")

    @property
    def key_file(self) -> Path:
        """The file of the key-encryption key, unless the environment contains the key."""
        return self.sqlite_path.with_name(self.sqlite_path.name + ".key")


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A row of the table of settings.

    name: the name in a settings file and in `Settings`
    kind: str, int, float, bool, timedelta, Path, or tuple for a list of texts
    default: in the type of `Settings`; None for none
    unit: of the number; a timedelta is given in seconds
    choices: the only allowed texts; empty for any
    minimum, maximum: of the number, inclusive; None for no limit
    pattern: a regular expression that each text of a list must match; "" for any
    form: what such a text is, for error messages
    is_file: whether a path is that of a file
    secret: whether the value is never shown
    url: whether the value may be a URL with a password, which is never shown
    flags: options of `memorywall serve`, the usual one first; a secret has none, because other
        users can read the command lines of processes
    variables: environment variables, the usual one first
    """

    name: str
    kind: type
    default: Any
    description: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    pattern: str = ""
    form: str = ""
    is_file: bool = False
    secret: bool = False
    url: bool = False
    flags: tuple[str, ...]
    variables: tuple[str, ...]


def make_setting(
    name: str, kind: Any, default: Any, *, older_flag: str = "", **properties: Any
) -> Setting:
    """A row of the table, with the flag and the variable that follow from its name.

    kind: a type annotation
    older_flag: a further flag, which earlier versions used; "" for none
    """
    named = [one for one in get_args(kind) or (kind,) if one is not NoneType]
    flag = "--" + name.replace("_", "-")
    flags = () if properties.get("secret") else (flag, *((older_flag,) if older_flag else ()))
    derived = {"flags": flags, "variables": (VARIABLE_PREFIX + name.upper(),)}
    return Setting(
        name=name,
        kind=tuple if get_origin(kind) is tuple else named[0],
        default=default,
        **{**derived, **properties},
    )


DATA: Final = make_setting(
    "data",
    Path,
    Path(DEFAULT_DATA),
    description="The data directory. With PostgreSQL it contains only keys.",
)
"""The directory of `Settings.sqlite_path`."""


def _rows() -> tuple[Setting, ...]:
    kinds = get_type_hints(Settings)
    return tuple(
        make_setting(one.name, kinds[one.name], one.default, **one.metadata["setting"])
        for one in fields(Settings)
        if "setting" in one.metadata
    )


SETTINGS: Final = (DATA, *_rows())
"""The table of settings, in the order in which it is shown."""

OTHER_VARIABLES: Final = {
    CONFIG_ENVIRONMENT: "The settings file, as `--config` names it.",
    "MEMORYWALL_URL": "The URL of the server, for the SDK and the command line.",
    "MEMORYWALL_API_KEY": "The API key, for the SDK and the command line.",
    "MEMORYWALL_AGENT": "The agent to act for on the command line.",
    "MEMORYWALL_PASSPHRASE": "The passphrase of the keys in a backup, for `backup` and `restore`.",
    "MEMORYWALL_FENCING_TOKEN": "Set by `memorywall claims hold` for the command that it runs.",
}
"""Environment variables that are no settings, and what they are for."""
