"""The versions of a view besides the declared one, and the form of a view in snapshots from before a move."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "version",
        sa.Column("view", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("texts", JSONB(), nullable=False, comment="the compiled view with all of its texts"),
        sa.Column("sources", JSONB(), nullable=False, comment="the compiled sources that its cells are fed by"),
        sa.Column("compiled_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.PrimaryKeyConstraint("view", "version", name=op.f("version_pkey")),
        schema="lamina",
        comment="the versions of views beside the deployed catalog that have cells: computed now, or kept to return to",
    )
    kept = sa.Column("keep_versions", sa.Integer(), server_default="1", nullable=False)
    op.add_column("view", kept, schema="lamina")
    comment = "what it was, for snapshots of before a move"
    before = sa.Column("before", JSONB(), server_default="[]", nullable=False, comment=comment)
    op.add_column("view", before, schema="lamina")
