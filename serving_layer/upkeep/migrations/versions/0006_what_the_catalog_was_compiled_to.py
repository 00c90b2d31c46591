"""The compiled texts of the deployed catalog, which another Lamina keeps running."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "compiled",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False, comment="a view comes after the views it reads"),
        sa.Column("texts", JSONB(), nullable=False, comment="the compiled value with all of its texts"),
        sa.Column("compiled_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.CheckConstraint("kind IN ('source', 'view')", name=op.f("compiled_kind_check")),
        sa.PrimaryKeyConstraint("kind", "name", name=op.f("compiled_pkey")),
        schema="lamina",
        comment="what the deployed catalog was compiled to: what runs, whatever this Lamina would make of the"
        " declarations",
    )
    op.create_table_comment("declaration", "the catalog as it was last applied", schema="lamina")
