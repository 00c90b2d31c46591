"""Every SELECT that was deployed, by which a receipt is verified."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "definition",
        sa.Column("id", sa.Text(), nullable=False, comment="the beginning of the SHA-256 of the texts"),
        sa.Column("view", sa.Text(), nullable=False),
        sa.Column("texts", JSONB(), nullable=False, comment="a catalog of this view, and of what it reads"),
        sa.Column("first_deployed_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("definition_pkey")),
        schema="lamina",
        comment="every SELECT that was ever deployed: receipts name it, and are verified by it",
    )
    column = sa.Column("definition", sa.Text(), comment="of a view: its SELECT in lamina.definition")
    op.add_column("compiled", column, schema="lamina")
