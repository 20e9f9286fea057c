"""`pincite admin`: the schema and the keys, straight in the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from core.domain.access import Principal, Scope
from core.ports.catalog import AccessCatalog, Catalog
from core.settings import load_settings
from pincite.cli.context import load_running_settings
from pincite.cli.output import print_table, talk

admin_app = typer.Typer(help="The catalog's schema, and keys.", no_args_is_help=True)
keys_app = typer.Typer(help="API keys of a tenant.", no_args_is_help=True)
admin_app.add_typer(keys_app, name="keys")

Tenant = Annotated[str | None, typer.Option(help="The tenant's name; the configured one if none.")]


@contextmanager
def _open_catalog() -> Iterator[Catalog]:
    from core.factory import Adapters

    with closing(Adapters(load_running_settings())) as adapters:
        yield adapters.catalog


def _tenant_id(access: AccessCatalog, tenant: str | None) -> str:
    return access.ensure_tenant(tenant or load_settings().tenant)


@admin_app.command("migrate")
def migrate() -> None:
    """Bring the catalog's schema to this release's. Every server does so when it starts."""
    with _open_catalog() as catalog:
        catalog.migrate()
    typer.echo("the catalog has this release's schema")


@keys_app.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="What or whom the key is for.")],
    scope: Annotated[
        list[Scope] | None, typer.Option(help="What it may do; repeatable. search if none.")
    ] = None,
    collection: Annotated[
        list[str] | None, typer.Option(help="Only these collections; repeatable. All if none.")
    ] = None,
    days: Annotated[int | None, typer.Option(help="Expires after so many days.", min=1)] = None,
    tenant: Tenant = None,
) -> None:
    """Make a key; it is shown this once."""
    with _open_catalog() as catalog:
        created = catalog.access.create_key(
            _tenant_id(catalog.access, tenant),
            name=name,
            scopes=frozenset(scope or [Scope.SEARCH]),
            collections=frozenset(collection) if collection else None,
            expires_at=datetime.now(UTC) + timedelta(days=days) if days else None,
        )
    talk.print(f"{created.key_id}: keep this, it cannot be shown again")
    typer.echo(created.secret)


@keys_app.command("ls")
def list_keys(tenant: Tenant = None) -> None:
    """All keys of the tenant, without their secrets."""
    with _open_catalog() as catalog:
        tenant_id = _tenant_id(catalog.access, tenant)
        found = catalog.access.keys(Principal.system(tenant_id, "admin"))
    print_table(
        ["key", "name", "scopes", "collections", "expires", "revoked"],
        [
            [
                key.key_id,
                key.name,
                " ".join(sorted(key.scopes)),
                "all" if key.collections is None else " ".join(sorted(key.collections)),
                "" if key.expires_at is None else f"{key.expires_at:%Y-%m-%d}",
                "" if key.revoked_at is None else f"{key.revoked_at:%Y-%m-%d}",
            ]
            for key in found
        ],
    )


@keys_app.command("revoke")
def revoke_key(key_id: str, tenant: Tenant = None) -> None:
    """Make a key useless from now on."""
    with _open_catalog() as catalog:
        tenant_id = _tenant_id(catalog.access, tenant)
        catalog.access.revoke_key(Principal.system(tenant_id, "admin"), key_id)
    typer.echo(f"{key_id}  revoked")
