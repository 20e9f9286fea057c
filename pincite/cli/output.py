"""How commands print: tables for people on a terminal, JSON for programs."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

talk = Console(stderr=True, highlight=False)


def print_json(data: Any) -> None:
    typer.echo(json.dumps(data, ensure_ascii=False, indent=2))


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    """A table on stdout, as wide as it needs to be when that is not a terminal."""
    console = Console(highlight=False, soft_wrap=True)
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*row)
    if not console.is_terminal:
        console.width = 400
    console.print(table)


def human_bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1024 or unit == "GB":
            return f"{size:.0f} {unit}" if unit in ("B", "kB", "MB") else f"{size:.2f} {unit}"
        size /= 1024
    return ""


def human_age(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
