"""Seconds of micro-batches by phase: the console draws the last hour of a source."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

PHASES = ("read", "compute", "stage", "merge", "commit")


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "micro_batch_seconds",
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("minute", sa.DateTime(timezone=True), nullable=False),
        sa.Column("micro_batches", sa.BigInteger(), nullable=False),
        *(sa.Column(phase, sa.Float(), nullable=False) for phase in PHASES),
        sa.PrimaryKeyConstraint("query", "minute", name=op.f("micro_batch_seconds_pkey")),
        schema="lamina",
        comment="seconds that the micro-batches of each minute spent in each phase, for a day",
    )
