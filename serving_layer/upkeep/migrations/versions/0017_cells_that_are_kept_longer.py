"""Cells that are joined within a time are kept longer, by that time, than the view retains."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    comment = "the column that says how long ago a cell was, where `retain` goes by it"
    before = "the key that says how long ago a group was, where `retain` goes by it"
    op.alter_column("cell_table", "retained", comment=comment, existing_comment=before, schema="lamina")
    longer = sa.Column(
        "longer",
        sa.BigInteger(),
        nullable=False,
        server_default=sa.text("0"),
        comment="microseconds for which its cells are kept beyond what the view retains",
    )
    op.add_column("cell_table", longer, schema="lamina")
