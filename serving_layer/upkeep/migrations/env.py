"""Alembic's entry: runs the migrations over the connection that `serving_layer.upkeep.install` opened."""

from alembic import context

from serving_layer.postgres.bookkeeping import SCHEMA, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table_schema=SCHEMA,
    include_schemas=True,
    include_name=lambda name, kind, _: kind != "schema" or name == SCHEMA,
)
with context.begin_transaction():
    context.run_migrations()
