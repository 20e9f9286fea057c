"""Which processes the stack has and how each is run: one function a process."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from core.settings import Settings, settings_environ
from pincite.model_store import find_model
from pincite.supervisor.binaries import valkey_binary, weed_binary
from pincite.supervisor.child import ChildSpec
from pincite.supervisor.embedded import has_own_engine
from pincite.supervisor.readiness import file_is_newer, http_answers, valkey_answers
from pincite.supervisor.seaweed import seaweed_arguments, write_security

if TYPE_CHECKING:
    from pathlib import Path

    from pincite.supervisor.ports import PortBlock
    from pincite.supervisor.secrets import StackSecrets

_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "VIRTUAL_ENV")
_THREAD_NAMES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# glibc otherwise keeps eight heaps a core, each with what its threads have freed.
_MALLOC = {"MALLOC_ARENA_MAX": "2"}


def stack_specs(
    configured: Settings, filled: Settings, ports: PortBlock, secrets: StackSecrets
) -> list[ChildSpec]:
    """Every process to start, in order. `configured` is what the person set, `filled` adds our own
    servers: a server whose URL was configured is left out."""
    specs: list[ChildSpec] = []
    if not configured.broker.url.get_secret_value():
        specs.append(_broker(filled, ports, secrets))
    if not configured.objects.endpoint:
        specs.append(_objects(filled, ports, secrets))
    if not configured.index.url:
        specs.append(_index(filled, ports, secrets))
    if not configured.models.url:
        specs.append(_models(filled, ports, secrets))
    if has_own_engine(configured):
        specs.append(_engine(filled, ports))
    return [*specs, _api(filled), _worker(filled), _sweeper(filled)]


def _broker(settings: Settings, ports: PortBlock, secrets: StackSecrets) -> ChildSpec:
    directory = _directory(settings, "valkey")
    config = directory / "valkey.conf"
    config.touch(mode=0o600)
    config.write_text(  # a file, since arguments can be read by everybody
        f"port {ports.broker}\nbind 127.0.0.1\nrequirepass {secrets.broker_password}\n"
        f'dir "{directory}"\nappendonly yes\nappendfsync everysec\nsave ""\n'
        "maxmemory-policy noeviction\n",
        encoding="utf-8",
    )
    return ChildSpec(
        name="broker",
        arguments=[valkey_binary(settings), str(config)],
        environ=_base_environ(threads=1),
        working_dir=directory,
        is_ready=lambda: valkey_answers(ports.broker, secrets.broker_password),
        wave=0,
        death_signal=signal.SIGTERM,
    )


def _objects(settings: Settings, ports: PortBlock, secrets: StackSecrets) -> ChildSpec:
    directory = _directory(settings, "seaweedfs")
    write_security(directory, secrets)
    buckets = [*settings.objects.buckets, settings.objects.artifacts_bucket]
    return ChildSpec(
        name="objects",
        arguments=seaweed_arguments(weed_binary(settings), directory, ports),
        environ=_base_environ(threads=1)
        | {
            "AWS_ACCESS_KEY_ID": secrets.s3_access_key,
            "AWS_SECRET_ACCESS_KEY": secrets.s3_secret_key,
            "S3_BUCKET": ",".join(buckets),
            "GOGC": "30",  # not GOMEMLIMIT: weed then collects all the time, 16 % of a core idle
            "GOMAXPROCS": "2",
        },
        working_dir=directory,
        is_ready=lambda: http_answers(ports.s3, "/", (200, 403)),
        wave=0,
        stop_signal=signal.SIGINT,
    )


def _index(settings: Settings, ports: PortBlock, secrets: StackSecrets) -> ChildSpec:
    return ChildSpec(
        name="index",
        arguments=[
            sys.executable,
            "-m",
            "pincite.servers.index",
            "--data-dir",
            str(_directory(settings, "index")),
            "--host",
            "127.0.0.1",
            "--port",
            str(ports.index),
        ],
        environ=_base_environ(threads=1) | {"PINCITE_INDEX__API_KEY": secrets.index_key},
        working_dir=settings.data_dir,
        is_ready=lambda: http_answers(ports.index, "/readyz"),
        wave=0,
        death_signal=signal.SIGTERM,
    )


def _models(settings: Settings, ports: PortBlock, secrets: StackSecrets) -> ChildSpec:
    model_dir = find_model(settings.models.embedder, settings.data_dir)
    return ChildSpec(
        name="models",
        arguments=[
            sys.executable,
            "-m",
            "pincite.servers.models",
            "--model-dir",
            str(model_dir),
            "--host",
            "127.0.0.1",
            "--port",
            str(ports.models),
        ],
        environ=_base_environ(threads=settings.models.threads)
        | _compiled_code(16)
        | {
            "PINCITE_MODELS__API_KEY": secrets.models_key,
            "PINCITE_MODELS__DEVICE": settings.models.device,
            "PINCITE_MODELS__PRECISION": settings.models.precision,
            "PINCITE_MODELS__THREADS": str(settings.models.threads),
            "PINCITE_MODELS__MAX_BATCH_PASSAGES": str(settings.models.max_batch_passages),
            "HF_HUB_OFFLINE": "1",
        },
        working_dir=settings.data_dir,
        is_ready=lambda: http_answers(ports.models, "/readyz"),
        wave=0,
    )


def _engine(settings: Settings, ports: PortBlock) -> ChildSpec:
    engine = settings.engine
    model = find_model(engine.model, settings.data_dir, "generator")
    options: dict[str, object] = {
        "--model": model,
        "--host": "127.0.0.1",
        "--port": ports.engine,
        "--device": engine.device,
        "--dtype": engine.dtype,
        "--threads": engine.threads,
        "--max-model-len": engine.max_model_len,
        "--max-num-seqs": engine.max_num_seqs,
        "--max-num-batched-tokens": engine.max_num_batched_tokens,
        "--kv-cache-bytes": engine.kv_cache_bytes,
        "--max-waiting": engine.max_waiting,
        "--log-level": settings.log.level,
        "--log-format": settings.log.format,
    }
    if not model.is_relative_to(settings.models_dir):  # a file of the person's own stays alone
        options["--conversion-dir"] = _directory(settings, "engine")
    return ChildSpec(
        name="engine",
        arguments=[
            *(sys.executable, "-m", "engine.server"),
            *(str(part) for option in options.items() for part in option),
        ],
        environ=_base_environ(threads=engine.threads)
        | _compiled_code(64)
        | {
            "PINCITE_ENGINE__API_KEY": engine.api_key.get_secret_value(),
            "PINCITE_ENGINE__EXTRA_API_KEYS": engine.extra_api_keys.get_secret_value(),
            # Threads that spin at each barrier take the cores from the processes beside it.
            "OMP_WAIT_POLICY": "PASSIVE",
        },
        working_dir=settings.data_dir,
        is_ready=lambda: http_answers(ports.engine, "/readyz"),
        wave=0,
        stop_grace_s=8.0,  # open streams get three seconds to end
    )


def _api(settings: Settings) -> ChildSpec:
    return ChildSpec(
        name="api",
        arguments=_serve("api"),
        environ=our_environ(settings),
        working_dir=settings.data_dir,
        is_ready=lambda: http_answers(settings.api.port, "/livez"),
        wave=1,
    )


def _worker(settings: Settings) -> ChildSpec:
    return ChildSpec(
        name="worker",
        arguments=_serve("worker"),
        environ=our_environ(settings) | {"REMAP_SIGTERM": "SIGQUIT"},
        working_dir=settings.data_dir,
        is_ready=file_is_newer(_liveness_file(settings, "worker"), time.time()),
        wave=1,
        stop_grace_s=10.0,  # leases give back what it cannot finish
    )


def _sweeper(settings: Settings) -> ChildSpec:
    return ChildSpec(
        name="sweeper",
        arguments=_serve("sweeper"),
        environ=our_environ(settings),
        working_dir=settings.data_dir,
        is_ready=file_is_newer(_liveness_file(settings, "sweeper"), time.time()),
        wave=1,
    )


def _serve(role: str) -> list[str]:
    return [sys.executable, "-m", "pincite.cli", "serve", role]


def _liveness_file(settings: Settings, role: str) -> Path:
    return settings.data_dir / f"{role}.alive"


def _compiled_code(num_shapes: int) -> dict[str, str]:
    """oneDNN and torch keep compiled code for a thousand shapes of input. Texts are of any length,
    so most of it never serves again: some 300 MB in an embedder after its first documents."""
    return {
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": str(num_shapes),
        "LRU_CACHE_CAPACITY": str(num_shapes),
    }


def _directory(settings: Settings, name: str) -> Path:
    directory = settings.data_dir / name
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def _base_environ(*, threads: int) -> dict[str, str]:
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    budget = {name: str(threads) for name in _THREAD_NAMES}
    return (
        passed
        | budget
        | _MALLOC
        | {
            "TOKENIZERS_PARALLELISM": "false",
            "PYTHONUNBUFFERED": "1",
            "PYTHONSAFEPATH": "1",  # never import from the data directory
        }
    )


def our_environ(settings: Settings) -> dict[str, str]:
    """Of a process that reads our settings: all of them, and of the person's only what it needs."""
    return _base_environ(threads=1) | settings_environ(settings)
