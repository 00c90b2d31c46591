"""The history of the bookkeeping schema, as Alembic migrations."""
