"""`pincite up` and `pincite serve ...`."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from core.domain.access import Scope
from core.ids import new_login_code
from core.settings import Settings, load_settings
from pincite.cli.context import api_url
from pincite.cli.output import talk
from pincite.supervisor.secrets import StackSecrets, read_secrets
from pincite.supervisor.stack import our_environ
from pincite.supervisor.supervisor import Progress, Supervisor, stop_on_signals

serve_app = typer.Typer(
    help="One process of the stack in the foreground; settings come from the environment.",
    no_args_is_help=True,
)
_LOGIN_CODE_LIFE = timedelta(hours=1)


def up(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress lines.")] = False,
    accept_deletes: Annotated[
        bool, typer.Option("--accept-deletes", help="Let any number of missing documents go.")
    ] = False,
) -> None:
    """Start the whole stack here and watch over it until Ctrl-C."""
    overrides = {"objects": {"accept_deletes": True}} if accept_deletes else {}
    supervisor = start_stack(load_settings(overrides), show_progress=not quiet)
    typer.echo(f"Pincite is ready: {login_url(supervisor.settings)}")
    talk.print("put files into the bucket (see `pincite config s3`); Ctrl-C stops everything")
    serve_until_stopped(supervisor)


def start_stack(settings: Settings, *, show_progress: bool) -> Supervisor:
    """Start and wait until all is ready. Raises what `Supervisor.start` raises."""

    def report(progress: Progress) -> None:
        if show_progress and progress.state != "starting":
            talk.print(f"  {progress.seconds:5.1f} s  {progress.name} {progress.state}")

    supervisor = Supervisor(settings, prepare=_prepare, on_progress=report)
    stop_on_signals(supervisor)
    if show_progress:
        talk.print(f"starting the stack in {supervisor.settings.data_dir}")
    supervisor.start()
    return supervisor


def serve_until_stopped(supervisor: Supervisor) -> None:
    try:
        supervisor.watch()
    finally:
        talk.print("stopping")
        supervisor.stop()


def login_url(settings: Settings) -> str:
    """The page's URL with a new single-use code (valid for an hour)."""
    from core.factory import Adapters

    code = new_login_code()
    with closing(Adapters(settings)) as adapters:
        access = adapters.catalog.access
        access.create_key(
            access.ensure_tenant(settings.tenant),
            name="login code",
            scopes=frozenset(Scope),
            expires_at=datetime.now(UTC) + _LOGIN_CODE_LIFE,
            secret=code,
            is_single_use=True,
        )
    return f"{api_url(settings)}/login?code={code}"


def _prepare(settings: Settings, _secrets: StackSecrets) -> None:
    """`pincite serve prepare` as a process of its own: what it imports (the S3 client, the
    migrations) would stay in the memory of this one, which lives as long as the stack."""
    command = [sys.executable, "-m", "pincite.cli", "serve", "prepare"]
    status = subprocess.run(command, env=our_environ(settings), check=False).returncode
    if status:  # it has said why
        raise typer.Exit(status if status > 0 else 1)


@serve_app.command("prepare", hidden=True)
def prepare() -> None:
    """Migrate, and make the tenant, the admin key and the buckets, unless they are there."""
    from core.factory import Adapters

    settings = load_settings()
    with closing(Adapters(settings)) as adapters:
        adapters.catalog.migrate()
        access = adapters.catalog.access
        access.create_key(
            access.ensure_tenant(settings.tenant),
            name="admin key of this data directory",
            scopes=frozenset(Scope),
            secret=read_secrets(settings.data_dir).admin_key,
        )
        for bucket in (*settings.objects.buckets, settings.objects.artifacts_bucket):
            adapters.object_store.ensure_bucket(bucket)


@serve_app.command("api")
def serve_api() -> None:
    """The REST API and the page."""
    from pincite.servers.api import main

    main(load_settings())


@serve_app.command("worker")
def serve_worker() -> None:
    """A Celery worker."""
    from workers.lifecycle import run_worker

    run_worker(load_settings())


@serve_app.command("sweeper")
def serve_sweeper() -> None:
    """Outbox relay, lease sweep, reconcile and purge."""
    from workers.sweeper import run_sweeper

    run_sweeper(load_settings())


@serve_app.command(
    "index",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def serve_index(context: typer.Context) -> None:
    """The vector index (the arguments of `python -m pincite.servers.index`)."""
    from pincite.servers.index.__main__ import main

    raise typer.Exit(main(context.args))


@serve_app.command(
    "models",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def serve_models(context: typer.Context) -> None:
    """The embedder (the arguments of `python -m pincite.servers.models`)."""
    from pincite.servers.models.__main__ import main

    raise typer.Exit(main(context.args))


@serve_app.command(
    "engine",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def serve_engine(context: typer.Context) -> None:
    """The language model (the arguments of `python -m engine.server`)."""
    from engine.server.__main__ import run

    run(context.args)
