"""A generation that is handed over again, other than by a rollback, counts as shown from that time on."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    comment, before = "when it was handed over, other than by a rollback", "when it was first handed over"
    op.alter_column("generation", "shown_at", comment=comment, existing_comment=before, schema="lamina")
