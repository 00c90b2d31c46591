"""Records that an operator skips by name."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "skipped",
        sa.Column("topic_id", sa.Text(), nullable=False, comment="Kafka's id of the topic"),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("skipped_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("topic_id", "partition", "offset", name=op.f("skipped_pkey")),
        schema="lamina",
        comment="records that an operator skipped by name: no view counts them, and the master log does not read them",
    )
