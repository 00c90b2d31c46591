"""A view's freshness target, which alarms and metrics compare with its freshness, and the seconds of rebuild steps."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0024"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    comment = "how far it may be behind; NULL without a target"
    op.add_column("view", sa.Column("fresh_within", sa.Text(), comment=comment), schema="lamina")
    op.add_column(
        "rebuild",
        sa.Column("seconds", postgresql.JSONB(), server_default="{}", nullable=False, comment="by finished step"),
        schema="lamina",
    )
