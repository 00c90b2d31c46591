"""The version of Spark that computed a generation, for receipts and for `lamina plan`."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change. The version is not known for existing generations."""
    meaning = "the version of Spark that computed it; NULL if it is not known"
    op.add_column("generation", sa.Column("spark", sa.Text(), comment=meaning), schema="lamina")
