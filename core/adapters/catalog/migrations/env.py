"""Alembic's entry: runs on the connection and in the transaction that `migrating` opened."""

from alembic import context

from core.adapters.catalog.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
