"""The command line of `python -m engine.server`. Keys come from the environment only: arguments
can be read by everybody on the machine."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.config import EngineConfig
from engine.errors import InvalidRequest
from engine.server.limits import RequestLimits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INTERNAL_KEY: Final = "PINCITE_ENGINE__API_KEY"
FURTHER_KEYS: Final = "PINCITE_ENGINE__EXTRA_API_KEYS"
_DESCRIPTION = """Serve a model over OpenAI's HTTP interface.

Keys are read from the environment: PINCITE_ENGINE__API_KEY is the internal one, whose callers may
keep tenants apart in the cache; PINCITE_ENGINE__EXTRA_API_KEYS are further ones, with commas in
between. Exit status: 0 stopped cleanly, 2 wrong usage, 3 the port is taken, 4 the model cannot be
loaded, 1 the engine failed.
"""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Everything that is chosen for one server."""

    config: EngineConfig
    model_name: str
    host: str
    port: int
    internal_key: str
    further_keys: tuple[str, ...]
    allowed_hosts: tuple[str, ...] = ()
    has_aliases: bool = False
    limits: RequestLimits = field(default_factory=RequestLimits)
    stop_grace_s: float = 3.0
    log_level: str = "INFO"
    log_format: str = "auto"


def parse_options(argv: Sequence[str] | None, environ: Mapping[str, str]) -> ServerOptions:
    """Args: the arguments without the program's name, and the environment.

    Raises InvalidRequest for values that do not fit together; argparse ends the process (2) for
    what is no valid argument.
    """
    found = _parser().parse_args(argv)
    internal_key, further_keys = _keys(environ)
    if found.no_auth:
        internal_key, further_keys = "", ()
    elif not (internal_key or further_keys):
        raise InvalidRequest(
            f"{INTERNAL_KEY} is not set: set it to a random secret, or say --no-auth for an open "
            "server on loopback",
            param="no_auth",
        )
    model: Path = found.model
    return ServerOptions(
        config=_config(found),
        model_name=found.served_model_name or model.resolve().name.removesuffix(".gguf"),
        host=found.host,
        port=found.port,
        internal_key=internal_key,
        further_keys=further_keys,
        allowed_hosts=tuple(found.allowed_host),
        has_aliases=found.metrics_alias_vllm,
        limits=RequestLimits(max_body_bytes=found.max_body_bytes),
        stop_grace_s=found.stop_grace_s,
        log_level=found.log_level,
        log_format=found.log_format,
    )


def set_thread_variables(config: EngineConfig) -> None:
    """For OpenMP and its kin, which read them when torch is imported. Threads that spin at a
    barrier take the cores from the processes beside this one."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, str(config.num_threads))
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _keys(environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    further = environ.get(FURTHER_KEYS, "").split(",")
    return environ.get(INTERNAL_KEY, "").strip(), tuple(
        key.strip() for key in further if key.strip()
    )


def _config(found: argparse.Namespace) -> EngineConfig:
    return EngineConfig(
        model=found.model,
        served_model_name=found.served_model_name,
        device=found.device,
        dtype=found.dtype,
        attention_backend=found.attention_backend,
        threads=found.threads,
        block_size=found.block_size,
        max_model_len=found.max_model_len or None,
        max_num_seqs=found.max_num_seqs,
        max_num_batched_tokens=found.max_num_batched_tokens,
        kv_cache_bytes=found.kv_cache_bytes or None,
        num_blocks=found.num_blocks or None,
        enable_prefix_caching=not found.no_prefix_caching,
        max_waiting=found.max_waiting,
        conversion_dir=found.conversion_dir,
    )


def _parser() -> argparse.ArgumentParser:
    defaults = EngineConfig(model=Path())
    parser = argparse.ArgumentParser(
        prog="python -m engine.server",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    model = parser.add_argument_group("model")
    model.add_argument("--model", type=Path, required=True, help="a GGUF file or a directory")
    model.add_argument("--served-model-name", default="", help="the name that requests ask for")
    model.add_argument("--conversion-dir", type=Path, help="where a converted GGUF is kept")
    model.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    model.add_argument(
        "--dtype", choices=("auto", "float32", "bfloat16", "float16"), default="auto"
    )
    model.add_argument(
        "--attention-backend", choices=("auto", "reference", "cpu", "triton"), default="auto"
    )
    model.add_argument("--threads", type=_count, default=0, help="0: by the number of cores")

    limits = parser.add_argument_group("limits")
    limits.add_argument("--max-model-len", type=_count, default=0, help="0: what the model allows")
    limits.add_argument("--max-num-seqs", type=_count, default=defaults.max_num_seqs)
    limits.add_argument(
        "--max-num-batched-tokens", type=_count, default=defaults.max_num_batched_tokens
    )
    limits.add_argument("--max-waiting", type=_count, default=defaults.max_waiting)
    limits.add_argument("--block-size", type=_count, default=defaults.block_size)
    limits.add_argument("--kv-cache-bytes", type=_count, default=0, help="0: by device")
    limits.add_argument("--num-blocks", type=_count, default=0, help="instead of bytes")
    limits.add_argument("--no-prefix-caching", action="store_true")
    limits.add_argument("--max-body-bytes", type=_count, default=RequestLimits().max_body_bytes)

    server = parser.add_argument_group("server")
    server.add_argument("--host", default="127.0.0.1")
    server.add_argument("--port", type=_count, default=8000)
    server.add_argument("--allowed-host", action="append", default=[], metavar="NAME")
    server.add_argument("--no-auth", action="store_true", help="no key, on loopback only")
    server.add_argument(
        "--metrics-alias-vllm", action="store_true", help="metrics once more as vllm:*"
    )
    server.add_argument("--stop-grace-s", type=float, default=3.0, help="for open streams")
    server.add_argument(
        "--log-level", choices=("DEBUG", "INFO", "WARNING", "ERROR"), default="INFO"
    )
    server.add_argument("--log-format", choices=("auto", "json", "console"), default="auto")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number
