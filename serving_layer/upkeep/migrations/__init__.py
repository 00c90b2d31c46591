"""The history of the bookkeeping's schema, as Alembic migrations."""
