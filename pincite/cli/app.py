"""The root command and the edge where errors become exit codes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from core.errors import ErrorKind, PinciteError
from pincite import __version__
from pincite.cli import (
    admin,
    demo,
    doctor,
    documents,
    evaluation,
    models,
    operations,
    questions,
    stack,
)

_EXIT_CODES = {
    ErrorKind.INVALID: 2,
    ErrorKind.NOT_FOUND: 3,
    ErrorKind.UNAVAILABLE: 4,
    ErrorKind.OVERLOADED: 4,
    ErrorKind.TIMEOUT: 4,
}

app = typer.Typer(
    name="pincite",
    help="Answers from your documents that quote the line and show the page.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("up")(stack.up)
app.command("demo")(demo.demo)
app.command("search")(questions.search)
app.command("ask")(questions.ask)
app.command("doctor")(doctor.doctor)
app.add_typer(stack.serve_app, name="serve")
app.add_typer(documents.documents_app, name="docs")
app.add_typer(documents.jobs_app, name="jobs")
app.add_typer(operations.ops_app, name="ops")
app.add_typer(operations.config_app, name="config")
app.add_typer(models.models_app, name="models")
app.add_typer(evaluation.eval_app, name="eval")
app.add_typer(admin.admin_app, name="admin")


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"pincite {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Answers from your documents that quote the line and show the page."""


def main() -> None:
    """Run the command line; exit status 0, 1, 2 (usage), 3 (not found) or 4 (unavailable)."""
    try:
        app()
    except PinciteError as error:
        typer.secho(f"error: {error.message}", err=True, fg="red")
        if error.hint:
            typer.echo(f"hint: {error.hint}", err=True)
        if request_id := error.context.get("request_id"):
            typer.echo(f"request: {request_id}", err=True)
        sys.exit(_EXIT_CODES.get(error.kind, 1))
    except KeyboardInterrupt:
        sys.exit(130)
