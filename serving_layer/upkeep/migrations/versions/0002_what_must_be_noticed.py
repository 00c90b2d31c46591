"""Columns by which a stalled query, a dead writer and a log without its end are detected."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    for column in (
        sa.Column("heard_at", sa.DateTime(timezone=True), comment="when its writer last said that it lives"),
        sa.Column(
            "waiting", sa.BigInteger(), comment="the fewest records seen waiting for some seconds since none did"
        ),
        sa.Column("waiting_at", sa.DateTime(timezone=True), comment="when there were last so few"),
    ):
        op.add_column("query", column, schema="lamina")
    op.alter_column(
        "query", "caught_up_at", schema="lamina", comment="since when, at the latest, it lacks no record of before"
    )
    tail = "Kafka's last batch below it"
    comment = f"{tail}: by this a log that lost its end is known"
    op.add_column("progress", sa.Column("tail", sa.Text(), comment=comment), schema="lamina")
    op.add_column("cut", sa.Column("tail", sa.Text(), comment=tail), schema="lamina")
