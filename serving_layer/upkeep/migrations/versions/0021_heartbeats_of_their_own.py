"""A heartbeat rewrites a narrow row each second instead of the query's row."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "heartbeat",
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column(
            "heard_at", sa.DateTime(timezone=True), nullable=False, comment="when its writer last said that it lives"
        ),
        sa.ForeignKeyConstraint(
            ["query"], ["lamina.query.name"], name=op.f("heartbeat_query_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("query", name=op.f("heartbeat_pkey")),
        schema="lamina",
        comment="the newest sign of life of each query's writer; it does not wait for the lock of the query",
        postgresql_with={"fillfactor": 50},
    )
    op.execute(
        "INSERT INTO lamina.heartbeat (query, heard_at) SELECT name, heard_at FROM lamina.query"
        " WHERE heard_at IS NOT NULL"
    )
    op.drop_column("query", "heard_at", schema="lamina")
