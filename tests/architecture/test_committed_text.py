"""What a public repository must not hold: paths and hosts of a machine, secrets, big binaries."""

import re
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT, committed_files

MAX_FILE_BYTES = 500_000
BINARY_SUFFIXES = frozenset(
    {".bin", ".gz", ".onnx", ".pdf", ".pt", ".safetensors", ".so", ".sqlite3", ".whl", ".zip"}
)
# Written so that this file does not match itself.
FORBIDDEN = {
    "a path of somebody's machine": re.compile(
        r"(?<![\w.{}])/(?:work|root|opt|Users|home)/(?!\.)[a-z]\w*/|/tmp/[a-z]+_?lab"
    ),
    "a package registry": re.compile(
        r"pythonhosted[.]org|pypi[.]org/simple|registry[.]npmjs|download[.]pytorch[.]org"
        r"|https?://[^\s/]*(?:pypi|nexus|artifactory)[^\s]*"
    ),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n"),
    "an access key": re.compile(r"\b(?:AKIA[0-9A-Z]{16}|ghp_\w{36}|sk-[A-Za-z0-9]{32,})\b"),
    "credentials in a URL": re.compile(r"://[^\s/:@{}$<>'\"]+:[^\s/@{}$<>'\"]{12,}@(?!\.)\w"),
}


def findings(text: str) -> list[str]:
    return [what for what, pattern in FORBIDDEN.items() if pattern.search(text)]


@pytest.mark.parametrize("path", committed_files(), ids=str)
def test_file_is_small_text_about_no_particular_machine(path: Path) -> None:
    assert path.suffix not in BINARY_SUFFIXES, "generate it, or fetch it at set-up"
    content = (ROOT / path).read_bytes()
    assert len(content) <= MAX_FILE_BYTES
    assert not findings(content.decode("utf-8"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("open('/wo" + "rk/main/x')", ["a path of somebody's machine"]),
        ("/ho" + "me/ada/project/", ["a path of somebody's machine"]),
        ("https://files.python" + "hosted.org/x", ["a package registry"]),
        ("-----BEGIN RSA PRIVATE " + "KEY-----\nMII", ["a private key"]),
        ("redis://user:abcdef" + "ghijklm@broker/0", ["credentials in a URL"]),
        ("AK" + "IA" + "ABCDEFGHIJKLMNOP", ["an access key"]),
        ("https://github.com/pincite/pincite and .venv/bin/pip, PINCITE_DATA_DIR=/data", []),
        ("redis://:${VALKEY_PASSWORD:?set in .env}@valkey:6379/0", []),
    ],
)
def test_the_patterns_find_what_they_should(text: str, found: list[str]) -> None:
    assert findings(text) == found
