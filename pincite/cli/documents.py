"""`pincite docs` and `pincite jobs`: files in, their state, and runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from core.errors import InvalidInput, PinciteError, TimedOut
from pincite.cli.context import open_client
from pincite.cli.output import human_bytes, print_json, print_table, talk
from pincite.client import Client

documents_app = typer.Typer(help="Documents.", no_args_is_help=True)
jobs_app = typer.Typer(help="Ingest jobs.", no_args_is_help=True)

_UNFINISHED = {"queued", "processing"}
_POLL_S = 0.5
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@documents_app.command("add")
def add(
    paths: Annotated[list[Path], typer.Argument(help="Files, or directories of files.")],
    collection: Annotated[
        str,
        typer.Option(help="Where to put them; a directory's subfolders become part of the key."),
    ] = "default",
    wait: Annotated[bool, typer.Option(help="Wait until they are searchable or refused.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds to wait with --wait.")] = 600.0,
) -> None:
    """Upload files; prints a document id for each. Exit status 1 when one was refused."""
    failed = 0
    accepted: list[str] = []
    with open_client() as client:
        for path, target in _files(paths, collection):
            try:
                outcome = client.add_document(path, collection=target)
            except PinciteError as error:
                failed += 1
                talk.print(f"{path}: {error.message}", style="red", markup=False)
                continue
            accepted.append(outcome["document_id"])
            note = "" if outcome["is_new"] else "  (unchanged)"
            typer.echo(f"{outcome['document_id']}  {outcome['key']}{note}")
        if wait:
            failed += sum(not _is_good(d) for d in wait_for(client, accepted, timeout_s=timeout))
    raise typer.Exit(1 if failed else 0)


def _files(paths: list[Path], collection: str) -> list[tuple[Path, str]]:
    """(file, collection) for files and, below directories, all files that are not hidden."""
    found: list[tuple[Path, str]] = []
    for path in paths:
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                inner = file.relative_to(path)
                if file.is_file() and not any(part.startswith(".") for part in inner.parts):
                    found.append((file, "/".join([collection, *inner.parts[:-1]])))
        elif path.is_file():
            found.append((path, collection))
        else:
            raise InvalidInput(f"there is no file or directory {path}")
    return found


def _is_good(document: dict[str, Any]) -> bool:
    return document["status"] in {"ready", "partial"}


def wait_for(client: Client, document_ids: list[str], *, timeout_s: float) -> list[dict[str, Any]]:
    """Wait until none is queued or processing, with a progress bar on a terminal.

    Raises TimedOut.
    """
    deadline = time.monotonic() + timeout_s
    finished: dict[str, dict[str, Any]] = {}
    columns = (
        TextColumn("ingesting"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[now]}"),
    )
    with Progress(*columns, console=talk, disable=not talk.is_terminal) as progress:
        bar = progress.add_task("", total=len(document_ids), now="")
        while len(finished) < len(document_ids):
            for document_id in document_ids:
                if document_id in finished:
                    continue
                document = client.document(document_id)
                if document["status"] not in _UNFINISHED:
                    finished[document_id] = document
                    progress.advance(bar)
                else:
                    progress.update(bar, now=f"{document['title']}: {document['status']}")
            if len(finished) < len(document_ids):
                if time.monotonic() > deadline:
                    left = len(document_ids) - len(finished)
                    raise TimedOut(
                        f"{left} documents are still being ingested", hint="pincite docs ls"
                    )
                time.sleep(_POLL_S)
    return [finished[document_id] for document_id in document_ids]


@documents_app.command("ls")
def list_documents(
    status: Annotated[str | None, typer.Option(help="Only this status.")] = None,
    collection: Annotated[str | None, typer.Option(help="Only this collection.")] = None,
    as_json: AsJson = False,
) -> None:
    """All documents with their derived status, newest first."""
    with open_client() as client:
        documents = list(client.documents(status=status, collection=collection))
    if as_json:
        print_json(documents)
        return
    print_table(
        ["document", "status", "key", "pages", "chunks", "size", "problem"],
        [
            [
                d["document_id"],
                d["status"],
                d["key"],
                f"{d['pages_done']}/{d['pages_total'] if d['pages_total'] is not None else '?'}",
                str(d["num_chunks"] if d["num_chunks"] is not None else ""),
                human_bytes(d["size_bytes"]),
                (d["problem"] or {}).get("message", ""),
            ]
            for d in documents
        ],
    )


@documents_app.command("show")
def show(document_id: str) -> None:
    """Everything about one document, as JSON."""
    with open_client() as client:
        print_json(client.document(document_id))


@documents_app.command("rm")
def remove(document_ids: list[str]) -> None:
    """Delete documents for good: bytes, text, vectors, pictures and quotes in old answers."""
    with open_client() as client:
        for document_id in document_ids:
            client.delete_document(document_id)
            typer.echo(f"{document_id}  deleted")


@jobs_app.command("ls")
def list_jobs(as_json: AsJson = False) -> None:
    """Ingest jobs, newest first."""
    with open_client() as client:
        jobs = list(client.jobs())
    if as_json:
        print_json(jobs)
        return
    print_table(
        ["job", "document", "version", "status", "problem"],
        [
            [
                job["job_id"],
                job["document_id"],
                str(job["version_seq"]),
                job["status"],
                (job["problem"] or {}).get("message", ""),
            ]
            for job in jobs
        ],
    )


@jobs_app.command("show")
def show_job(job_id: str) -> None:
    """One job with its parts by stage, as JSON."""
    with open_client() as client:
        print_json(client.job(job_id))


@jobs_app.command("retry")
def retry(job_id: str) -> None:
    """Try the failed parts of a job again, with new attempts."""
    with open_client() as client:
        print_json(client.retry_job(job_id))


@jobs_app.command("cancel")
def cancel(job_id: str) -> None:
    """Stop an unfinished job."""
    with open_client() as client:
        print_json(client.cancel_job(job_id))
