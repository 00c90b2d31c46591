"""A skipped record is identified by its record batch, which Kafka may lose."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    comment = "the record batch that holds it, as the broker describes it"
    op.add_column("skipped", sa.Column("tail", sa.Text(), comment=comment), schema="lamina")
