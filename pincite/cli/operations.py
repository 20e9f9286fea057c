"""`pincite ops` and `pincite config`: what runs, what waits, and how to connect."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from core.errors import PinciteError, SettingsError
from core.settings import load_settings, settings_environ
from pincite.cli.context import api_url, load_running_settings, open_client
from pincite.cli.output import human_age, human_bytes, print_json, print_table, talk
from pincite.supervisor.run_state import find_process, read_run_state

ops_app = typer.Typer(help="Processes and the ingest queue.", no_args_is_help=True)
config_app = typer.Typer(help="Settings and connection details.", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_SECRET_NAMES = ("SECRET_KEY", "API_KEY", "TOKEN", "BROKER__URL", "CATALOG__URL")


@ops_app.command("status")
def status(as_json: AsJson = False) -> None:
    """Processes with memory and ports, queue depth and oldest age."""
    settings = load_settings()
    processes = _process_rows(settings.data_dir)
    try:
        with open_client() as client:
            ingest: dict[str, Any] | None = client.ingest_state()
    except PinciteError as error:
        talk.print(f"the API does not answer: {error.message}", style="yellow", markup=False)
        ingest = None
    if as_json:
        print_json({"data_dir": str(settings.data_dir), "processes": processes, "ingest": ingest})
        return
    print_table(
        ["process", "pid", "state", "memory", "ports"],
        [
            [
                row["name"],
                str(row["pid"]),
                row["state"],
                human_bytes(row["rss_bytes"]),
                " ".join(map(str, row["ports"])),
            ]
            for row in processes
        ],
    )
    total = sum(row["rss_bytes"] for row in processes)
    typer.echo(f"memory of all processes: {human_bytes(total)}")
    if ingest is None:
        raise typer.Exit(4)
    typer.echo(
        f"queue depth: {ingest['queue_depth']} parts, oldest {human_age(ingest['oldest_age_s'])}"
    )
    documents = ", ".join(f"{count} {name}" for name, count in ingest["documents"].items() if count)
    typer.echo(f"documents: {documents or 'none'}")


def _process_rows(data_dir: Path) -> list[dict[str, Any]]:
    state = read_run_state(data_dir)
    if state is None:
        return []
    rows = []
    for recorded in state.processes:
        process = find_process(recorded)
        row: dict[str, Any] = {
            "name": recorded.name,
            "pid": recorded.pid,
            "state": "ended" if process is None else "running",
            "rss_bytes": 0,
            "ports": [],
        }
        if process is not None:
            with contextlib.suppress(psutil.Error):
                family = [process, *process.children(recursive=True)]
                row["rss_bytes"] = sum(member.memory_info().rss for member in family)
                row["ports"] = sorted(
                    {
                        connection.laddr.port
                        for connection in process.net_connections(kind="tcp")
                        if connection.status == psutil.CONN_LISTEN
                    }
                )
        rows.append(row)
    return rows


@config_app.command("s3")
def show_s3(as_json: AsJson = False) -> None:
    """Endpoint, bucket and credentials of the object store, ready to be pasted."""
    objects = load_running_settings().objects
    facts = {
        "AWS_ENDPOINT_URL_S3": objects.endpoint,
        "AWS_ACCESS_KEY_ID": objects.access_key,
        "AWS_SECRET_ACCESS_KEY": objects.secret_key.get_secret_value(),
        "AWS_DEFAULT_REGION": objects.region,
        "BUCKET": next(iter(objects.buckets), ""),
    }
    if as_json:
        print_json(facts)
        return
    for name, value in facts.items():
        typer.echo(f"export {name}='{value}'")


@config_app.command("show")
def show() -> None:
    """All settings in force, secrets hidden."""
    try:
        settings = load_running_settings()
    except SettingsError:
        settings = load_settings()
    for name, value in settings_environ(settings).items():
        is_secret = any(part in name for part in _SECRET_NAMES) and value
        typer.echo(f"{name}={'***' if is_secret else value}")


@config_app.command("check")
def check() -> None:
    """Read the settings; says what is wrong, or where the API is."""
    settings = load_settings()
    typer.echo(f"settings are fine: profile {settings.profile}, data in {settings.data_dir}")
    with contextlib.suppress(SettingsError):
        typer.echo(f"API: {api_url(load_running_settings())}")
