"""Seconds behind by source and minute, which the console draws as a line."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "freshness_history",
        sa.Column("minute", sa.DateTime(timezone=True), nullable=False),
        sa.Column("behind", postgresql.JSONB(), nullable=False, comment="seconds, by query"),
        sa.PrimaryKeyConstraint("minute", name=op.f("freshness_history_pkey")),
        schema="lamina",
        comment="how far each query was behind, a row a minute, for a week",
    )
