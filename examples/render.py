"""Renders the sample bucket: ``python examples/render.py OUT_DIR``.

Each ``examples/sources/<collection>/<name>.txt`` becomes ``OUT_DIR/<collection>/<name>.pdf``, so a
path under OUT_DIR is the key of the object in the bucket. Equal sources give equal bytes.
"""

import sys
from pathlib import Path

if not __package__:  # started as a script: the folder above is not yet on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.rendering.pages import render_pages
from examples.rendering.scan import render_scan
from examples.rendering.source import read_source

SOURCES = Path(__file__).resolve().parent / "sources"


def render_all(out_dir: Path) -> list[Path]:
    """Renders every source under ``out_dir`` (made when missing) and returns the files, sorted.

    Raises SourceError when a source is not in the language of ``examples.rendering.source``.
    """
    written: list[Path] = []
    for path in sorted(SOURCES.rglob("*.txt")):
        source = read_source(path, SOURCES)
        is_scan = source.get("layout") == "scan"
        target = out_dir / source.key
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(render_scan(source) if is_scan else render_pages(source))
        written.append(target)
    return sorted(written)


def main(arguments: list[str]) -> int:
    """Command line: one argument, the output folder; prints the paths written."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write("usage: python examples/render.py OUT_DIR\n")
        return 2
    for path in render_all(Path(arguments[0])):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
