"""The number of consecutive writers of a query that died before they committed anything."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    comment = "writers in a row that committed nothing"
    deaths = sa.Column("deaths", sa.Integer(), server_default="0", nullable=False, comment=comment)
    op.add_column("query", deaths, schema="lamina")
