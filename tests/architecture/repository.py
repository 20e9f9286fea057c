"""The repository as the architecture tests read it: its files and their syntax trees."""

import ast
import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("core", "ingest", "query", "engine", "workers", "pincite")
# Python that is ours but not in the distribution.
COMPANIONS = ("bench", "evals", "examples", "tests")


@functools.cache
def committed_files() -> tuple[Path, ...]:
    """Every file that git tracks or would add, relative to the root, sorted."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    return tuple(sorted(Path(name) for name in listed if name and (ROOT / name).is_file()))


def python_files(*folders: str) -> list[Path]:
    """Committed Python files below these top-level folders, relative to the root."""
    return [path for path in committed_files() if path.suffix == ".py" and path.parts[0] in folders]


@functools.cache
def source(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@functools.cache
def syntax_tree(path: Path) -> ast.Module:
    return ast.parse(source(path), filename=str(path))


def module_name(path: Path) -> str:
    """`core/ports/clock.py` -> `core.ports.clock`; a package's `__init__.py` -> the package."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
