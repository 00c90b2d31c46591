"""The last result of each check of a view."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "checked",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("rebuild", sa.BigInteger(), comment="whose generations it is about; NULL: live views"),
        sa.Column("view", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "counts", sa.Text(), nullable=False, comment="what failing counts: rows, keys, or the view as a whole"
        ),
        sa.Column("blocks", sa.Boolean(), nullable=False, comment="is a generation that fails it kept from readers?"),
        sa.Column("failing", sa.BigInteger(), nullable=False),
        sa.Column("examples", postgresql.JSONB(), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("counts IN ('row', 'key', 'whole')", name=op.f("checked_counts_check")),
        sa.ForeignKeyConstraint(["rebuild"], ["lamina.rebuild.id"], name=op.f("checked_rebuild_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("checked_pkey")),
        schema="lamina",
        comment="the last result of each check of a view: in a rebuild, and of the live view",
    )
