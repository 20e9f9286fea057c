"""One frozen settings object: arguments > environment > pincite.toml > profile defaults.

Environment names are PINCITE_SECTION__NAME. Unknown PINCITE_* names are refused, since a silent
typo is a setting that does nothing. There is no module-level object: each process builds one at its
entry point with `load_settings` and passes it down.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings import SettingsError as PydanticSettingsError

from core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCE_URL = "https://github.com/pincite/pincite"
_CORES = os.cpu_count() or 2
_MIB = 1024 * 1024


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CatalogSettings(Section):
    url: str = Field("", description="SQLAlchemy URL; empty: SQLite in the data directory")
    pool_size: int = 8


class ObjectsSettings(Section):
    """The S3 store. An empty endpoint means the embedded one."""

    endpoint: str = ""
    access_key: str = ""
    secret_key: SecretStr = SecretStr("")
    region: str = "us-east-1"
    buckets: dict[str, str] = Field(
        default={"documents": "default"}, description="bucket -> tenant name"
    )
    read_only_buckets: tuple[str, ...] = ()
    artifacts_bucket: str = "pincite-artifacts"
    retention_superseded_days: int = Field(30, ge=0)
    reconcile_s: float = Field(3.0, gt=0, description="seconds between bucket listings")
    accept_deletes: bool = False
    timeout_s: float = 30.0


class BrokerSettings(Section):
    url: SecretStr = SecretStr("")


class IndexSettings(Section):
    url: str = ""
    api_key: SecretStr = SecretStr("")
    alias: str = "pincite"
    timeout_s: float = 30.0
    upsert_points: int = Field(128, ge=1, le=1000)


class ModelsSettings(Section):
    url: str = ""
    api_key: SecretStr = SecretStr("")
    embedder: str = Field("minilm", description="a name of `pincite models ls`, or a directory")
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="of the layers; auto: bf16 on a CPU with AMX, else fp32"
    )
    threads: int = Field(max(1, _CORES // 2 + _CORES % 2), ge=1)
    max_batch_passages: int = Field(8, ge=1)
    timeout_s: float = 60.0


class EngineSettings(Section):
    """Our own inference engine: `pincite serve engine`, a child of `pincite up`."""

    model: str = Field(
        "smollm2", description="a name of `pincite models ls`, or a path; empty: no engine"
    )
    api_key: SecretStr = Field(SecretStr(""), description="the internal one; empty: made once")
    extra_api_keys: SecretStr = Field(
        SecretStr(""), description="with commas; their callers share no cache blocks"
    )
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    threads: int = Field(max(1, _CORES // 2), ge=1)
    max_model_len: int = Field(4_096, ge=256)
    max_num_seqs: int = Field(8, ge=1)
    max_num_batched_tokens: int = Field(256, ge=16)
    kv_cache_bytes: int = Field(0, ge=0, description="0: by device")
    max_waiting: int = Field(32, ge=1)


class GeneratorSettings(Section):
    """The language model that writes answers: any OpenAI-compatible URL. Empty: our engine."""

    url: str = ""
    api_key: SecretStr = SecretStr("")
    model: str = Field("", description="empty: the first one that the server lists")
    timeout_s: float = Field(120.0, gt=0, description="of a whole generation")
    first_token_timeout_s: float = Field(20.0, gt=0, description="later: quotes instead")

    @property
    def server_url(self) -> str:
        """`url` without `/v1`, with which people write it as often as not."""
        return self.url.rstrip("/").removesuffix("/v1")


class ParserSettings(Section):
    max_file_bytes: int = 200 * _MIB
    max_pages: int = 5_000
    max_page_chars: int = 500_000
    max_render_pixels: int = 40_000_000
    memory_bytes: int = 2 * 1024 * _MIB
    page_timeout_s: float = 10.0
    document_timeout_s: float = 1_800.0
    pages_per_part: int = Field(32, ge=1, le=32)
    recycle_documents: int = 200
    recycle_rss_bytes: int = 600 * _MIB


class ChunkerSettings(Section):
    target_fraction: float = Field(0.8, gt=0, le=1)
    prefix_fraction: float = Field(0.2, ge=0, lt=1)
    min_tokens: int = 40


class WorkerSettings(Section):
    concurrency: int = Field(1, ge=1)
    lease_s: float = Field(
        60.0, gt=0, description="renewed on progress; a killed worker costs this"
    )
    max_attempts: int = Field(3, ge=1)
    retry_base_s: float = 2.0
    republish_after_s: float = Field(
        30.0, description="a published part nobody leased after this is announced again"
    )
    embed_chunks_per_part: int = Field(64, ge=1)
    index_chunks_per_part: int = Field(256, ge=1)


class SweeperSettings(Section):
    tick_s: float = 0.25
    lease_sweep_s: float = 2.0
    purge_s: float = 5.0
    purge_after_s: float = Field(60.0, ge=60, description="dead points outlive running questions")
    orphan_scan_s: float = 3_600.0
    leadership_s: float = 15.0


class RetrievalSettings(Section):
    candidates: int = Field(100, ge=1)
    passages: int = Field(8, ge=1)
    fusion: Literal["dbsf", "rrf"] = "dbsf"
    legs: Literal["hybrid", "dense", "lexical"] = "hybrid"
    rerank_passages: int = Field(12, ge=0)


class AnswerSettings(Section):
    mode: Literal["auto", "extractive", "generative"] = Field(
        "auto", description="auto: written where the generator passed the gate, else quotes"
    )
    max_quotes: int = Field(3, ge=1)
    max_question_chars: int = 2_000
    max_tokens: int = Field(256, ge=1, description="of a written answer")
    max_prompt_tokens: int = Field(2_048, ge=256, description="of a written answer's prompt")
    max_history_turns: int = Field(6, ge=0, description="of a conversation, in the prompt")
    evidence: Literal["auto", "sentences", "passages"] = Field(
        "auto", description="what the generator reads; auto: passages in a window of 16,384 tokens"
    )


class ApiSettings(Section):
    host: str = "127.0.0.1"
    port: int = 0
    public_url: str = ""
    allowed_hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
    metrics_token: SecretStr = SecretStr("")
    max_upload_bytes: int = 200 * _MIB
    upload_idle_s: float = Field(60.0, gt=0, description="an upload may stand still")
    max_body_bytes: int = Field(1_000_000, ge=1, description="of every request but uploads")
    max_answers: int = Field(8, ge=1, description="answers made at once; more are told to wait")
    max_uploads: int = Field(4, ge=1, description="uploads taken at once")
    heartbeat_s: float = Field(15.0, gt=0, description="of a silent event stream")
    threads: int = Field(16, ge=2, description="for everything else")
    session_days: int = Field(30, ge=1)


class StackSettings(Section):
    """Only for `pincite up`. Paths replace what the packages bring."""

    port_base: int = Field(0, description="first port of the block; 0: chosen once")
    valkey_binary: str = ""
    weed_binary: str = ""
    start_timeout_s: float = 60.0


class LogSettings(Section):
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    format: Literal["auto", "json", "console"] = "auto"


class Settings(BaseSettings):
    """All of them. `profile` only picks defaults; no code branches on it."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="PINCITE_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
    )

    profile: Literal["embedded", "cluster"] = "embedded"
    data_dir: Path = Path(".pincite")
    tenant: str = Field("default", description="the tenant of the embedded stack")
    catalog: CatalogSettings = CatalogSettings()
    objects: ObjectsSettings = ObjectsSettings()
    broker: BrokerSettings = BrokerSettings()
    index: IndexSettings = IndexSettings()
    models: ModelsSettings = ModelsSettings()
    engine: EngineSettings = EngineSettings()
    generator: GeneratorSettings = GeneratorSettings()
    parser: ParserSettings = ParserSettings()
    chunker: ChunkerSettings = ChunkerSettings()
    worker: WorkerSettings = WorkerSettings()
    sweeper: SweeperSettings = SweeperSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    answer: AnswerSettings = AnswerSettings()
    api: ApiSettings = ApiSettings()
    stack: StackSettings = StackSettings()
    log: LogSettings = LogSettings()

    @property
    def catalog_url(self) -> str:
        """The configured catalog, or the embedded SQLite file."""
        return self.catalog.url or f"sqlite:///{self.data_dir.resolve() / 'catalog.sqlite3'}"

    @property
    def models_dir(self) -> Path:
        return self.data_dir / "models"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, environment, file, profile defaults; no .env file and no secrets directory."""
        del dotenv_settings, file_secret_settings
        file = TomlConfigSettingsSource(settings_cls, _config_file())
        sources = (init_settings, env_settings, file)
        profile = next((p for source in sources if (p := source().get("profile"))), None)
        defaults = _CLUSTER_DEFAULTS if profile == "cluster" else {}
        return (*sources, InitSettingsSource(settings_cls, defaults))


_CLUSTER_DEFAULTS: dict[str, Any] = {
    "objects": {"reconcile_s": 300.0},
    "api": {"host": "0.0.0.0", "port": 8000},  # a container's own address
}
_CONFIG_VARIABLE = "PINCITE_CONFIG"  # names the settings file
_TEST_PREFIX = "PINCITE_TEST_"  # switches of the test suite


def load_settings(overrides: Mapping[str, Any] | None = None) -> Settings:
    """The settings of this process; `overrides` are nested names as in the file.

    Raises SettingsError naming each wrong value, unknown name or unreadable file.
    """
    _refuse_unknown_names()
    try:
        settings = Settings(**(overrides or {}))
    except ValidationError as error:
        lines = [
            f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"
            for detail in error.errors()
        ]
        raise SettingsError(
            "these settings are wrong: " + "; ".join(lines),
            hint="PINCITE_SECTION__NAME in the environment, [section] name in pincite.toml",
        ) from error
    except (PydanticSettingsError, OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"the settings cannot be read: {error}") from error
    if settings.profile == "cluster":
        _require_cluster_secrets(settings)
    return settings


def settings_environ(settings: Settings) -> dict[str, str]:
    """The settings as environment variables for a child process, secrets included; they load back
    to an equal object."""
    found: dict[str, str] = {}
    for name, value in settings:
        if isinstance(value, Section):
            for inner, inner_value in value:
                found[f"PINCITE_{name}__{inner}".upper()] = _to_text(inner_value)
        else:
            found[f"PINCITE_{name}".upper()] = _to_text(value)
    return found


def _to_text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | dict):
        return json.dumps(value)
    return str(value)


def _config_file() -> Path:
    return Path(os.environ.get(_CONFIG_VARIABLE) or "pincite.toml")


def _refuse_unknown_names() -> None:
    """pydantic-settings ignores an unknown top-level name; a typo would silently do nothing."""
    unknown = [
        name
        for name in os.environ
        if name.upper().startswith("PINCITE_")
        and not name.upper().startswith(_TEST_PREFIX)
        and name.upper() != _CONFIG_VARIABLE
        and not _is_known(name.upper().removeprefix("PINCITE_").lower())
    ]
    if unknown:
        raise SettingsError(
            f"unknown settings in the environment: {', '.join(sorted(unknown))}",
            hint="names are PINCITE_SECTION__NAME, for instance PINCITE_API__PORT",
        )
    named = os.environ.get(_CONFIG_VARIABLE)
    if named and not Path(named).is_file():
        raise SettingsError(f"{_CONFIG_VARIABLE}: there is no file {named}")


def _is_known(path: str) -> bool:
    first, _, second = path.partition("__")
    field = Settings.model_fields.get(first)
    if field is None:
        return False
    section = field.annotation
    if isinstance(section, type) and issubclass(section, Section):
        return second in section.model_fields
    return not second


def _require_cluster_secrets(settings: Settings) -> None:
    missing = [
        name
        for name, value in {
            "catalog.url": settings.catalog.url,
            "objects.endpoint": settings.objects.endpoint,
            "objects.access_key": settings.objects.access_key,
            "objects.secret_key": settings.objects.secret_key.get_secret_value(),
            "broker.url": settings.broker.url.get_secret_value(),
            "index.url": settings.index.url,
            "models.url": settings.models.url,
        }.items()
        if not value
    ]
    if missing:
        raise SettingsError(
            f"the cluster profile needs: {', '.join(missing)}",
            hint="set them in the environment or pincite.toml; there are no defaults for these",
        )
