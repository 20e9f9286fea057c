"""`pincite eval`: measuring what may answer."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.errors import SettingsError
from core.factory import create_generator, system_clock
from core.settings import load_settings
from pincite.cli.context import load_running_settings
from pincite.cli.output import print_json, print_table, talk

if TYPE_CHECKING:
    from query.gate import GateResult

eval_app = typer.Typer(help="Measure what may answer.", no_args_is_help=True)


@eval_app.callback()
def evaluation() -> None:
    """Measure what may answer."""


@eval_app.command("gate")
def gate(
    asks_all: Annotated[
        bool, typer.Option("--all", help="Go on when a pass is out of reach.")
    ] = False,
    num_at_once: Annotated[
        int, typer.Option("--concurrency", min=1, max=64, help="Questions asked at a time.")
    ] = 4,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole result.")] = False,
) -> None:
    """Ask the configured generator 100 questions and decide whether it may write answers.

    Exit status 0 when it passed, 1 when it failed. The verdict is kept in the data directory and
    read by `answer.mode = "auto"`.
    """
    import anyio

    from query.gate import run_gate, store_gate

    settings = load_settings()
    if not settings.generator.url:  # the engine of the running stack
        settings = load_running_settings()
    generator = create_generator(settings)
    if generator is None:
        raise SettingsError(
            "there is no generator to try",
            hint="start the stack with an engine (`pincite up`), or set generator.url",
        )

    async def ask() -> GateResult:
        return await run_gate(
            generator,
            settings,
            system_clock().now(),
            num_at_once=num_at_once,
            asks_all=asks_all,
            on_progress=_report,
        )

    result = anyio.run(ask)
    path = store_gate(settings.data_dir, result)
    if as_json:
        print_json(asdict(result))
    else:
        _print_result(result, path)
    if not result.has_passed:
        raise typer.Exit(1)


def _report(num_done: int, num_questions: int) -> None:
    if num_done % 10 == 0:
        talk.print(f"{num_done} of {num_questions} questions")


def _print_result(result: GateResult, path: Path) -> None:
    from query.gate.thresholds import THRESHOLDS

    rows = []
    for threshold in THRESHOLDS:
        value = getattr(result.figures, threshold.figure)
        shown = str(value) if isinstance(value, int) else f"{value:.2f}"
        bound = f"{'at most' if threshold.is_maximum else 'at least'} {threshold.bound:g}"
        verdict = "missed" if threshold.figure in result.failing else "ok"
        rows.append([threshold.figure.replace("_", " "), shown, bound, verdict])
    print_table(["figure", "measured", "needed", ""], rows)
    asked = f"{result.num_asked} of {result.num_questions} questions asked"
    if result.has_passed:
        typer.echo(f"PASS: {result.model} ({asked})")
        typer.echo('With answer.mode = "auto" it writes the answers from now on.')
    else:
        typer.echo(f"FAIL: {result.model} ({asked})")
        typer.echo('With answer.mode = "auto" answers are quotes, with the reason gate_failed.')
    talk.print(f"kept in {path}", soft_wrap=True)
