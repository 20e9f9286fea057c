"""The command line: keys from the environment only, values that fit together."""

from pathlib import Path

import pytest

from engine.errors import InvalidRequest
from engine.server.access import is_loopback, make_access
from engine.server.options import ServerOptions, parse_options

KEYS = {"PINCITE_ENGINE__API_KEY": "internal"}


def parsed(*argv: str, **environ: str) -> ServerOptions:
    return parse_options(["--model", "/models/tiny.gguf", *argv], environ or KEYS)


def test_defaults() -> None:
    options = parsed()
    assert options.model_name == "tiny"
    assert (options.host, options.internal_key, options.further_keys) == (
        "127.0.0.1",
        "internal",
        (),
    )
    assert options.config.max_model_len is None
    assert options.config.kv_cache_bytes is None
    assert options.config.enable_prefix_caching
    assert not options.has_aliases


def test_every_limit_reaches_the_engine() -> None:
    options = parsed(
        *("--device", "cpu", "--dtype", "bfloat16", "--attention-backend", "reference"),
        *("--threads", "2", "--max-model-len", "512", "--max-num-seqs", "3"),
        *("--max-num-batched-tokens", "32", "--max-waiting", "0", "--block-size", "8"),
        *("--kv-cache-bytes", "4096", "--num-blocks", "9", "--no-prefix-caching"),
        *("--conversion-dir", "/cache", "--served-model-name", "n", "--metrics-alias-vllm"),
    )
    config = options.config
    assert (config.device, config.dtype, config.attention_backend) == (
        "cpu",
        "bfloat16",
        "reference",
    )
    assert (config.threads, config.max_model_len, config.max_num_seqs) == (2, 512, 3)
    assert (config.max_num_batched_tokens, config.max_waiting, config.block_size) == (32, 0, 8)
    assert (config.kv_cache_bytes, config.num_blocks) == (4096, 9)
    assert not config.enable_prefix_caching
    assert config.conversion_dir == Path("/cache")
    assert (options.model_name, options.has_aliases) == ("n", True)


@pytest.mark.parametrize(
    ("path", "name"),
    [("/m/Qwen2.5-0.5B", "Qwen2.5-0.5B"), ("/m/x.Q4_1.gguf", "x.Q4_1"), ("/m/smollm2/", "smollm2")],
)
def test_the_name_is_that_of_the_file_or_directory(path: str, name: str) -> None:
    assert parse_options(["--model", path], KEYS).model_name == name


def test_keys_come_from_the_environment() -> None:
    environ = {"PINCITE_ENGINE__API_KEY": " a ", "PINCITE_ENGINE__EXTRA_API_KEYS": "b, c,,"}
    options = parsed(**environ)
    assert (options.internal_key, options.further_keys) == ("a", ("b", "c"))
    only_further = parsed(PINCITE_ENGINE__EXTRA_API_KEYS="b")
    assert (only_further.internal_key, only_further.further_keys) == ("", ("b",))


def test_a_server_without_keys_must_be_asked_for() -> None:
    with pytest.raises(InvalidRequest, match="PINCITE_ENGINE__API_KEY"):
        parsed(HOME="/")
    assert parsed("--no-auth", **KEYS).internal_key == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "engine", ""])
def test_a_server_that_others_reach_needs_a_key(host: str) -> None:
    with pytest.raises(InvalidRequest, match="without an API key"):
        make_access(host, "", ())
    access = make_access(host, "key", ())
    assert access.allowed_hosts is None
    assert not access.has_open_metrics
    assert make_access(host, "", ("key",), ("Engine",)).allowed_hosts is not None


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.9.1"])
def test_loopback_restricts_the_host_header(host: str) -> None:
    assert is_loopback(host)
    access = make_access(host, "", ())
    assert access.allowed_hosts is not None
    assert {"127.0.0.1", "localhost", "[::1]", host} <= access.allowed_hosts
    assert access.has_open_metrics


@pytest.mark.parametrize(
    "argv", [["--port", "-1"], ["--threads", "x"], ["--device", "tpu"], ["--what"], ["--port"]]
)
def test_wrong_usage_ends_with_status_2(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(*argv)
    assert ended.value.code == 2
    assert "usage: python -m engine.server" in capsys.readouterr().err


def test_limits_that_do_not_fit_together() -> None:
    with pytest.raises(InvalidRequest, match="max_num_batched_tokens"):
        parsed("--max-num-seqs", "64", "--max-num-batched-tokens", "32")
