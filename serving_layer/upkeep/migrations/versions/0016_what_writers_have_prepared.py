"""Writers record that they have run the statements of a version that will be opened soon."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    prepared = sa.Column(
        "prepared_at", sa.DateTime(timezone=True), comment="when its writer had prepared for it, or tried to"
    )
    op.add_column("cell_table", prepared, schema="lamina")
