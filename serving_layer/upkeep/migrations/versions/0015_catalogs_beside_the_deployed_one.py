"""Previews: catalogs whose views are served next to the deployed ones."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "preview",
        sa.Column("name", sa.Text(), nullable=False, comment="of the schema that holds its views"),
        sa.Column("sources", JSONB(), nullable=False, comment="the compiled sources of its catalog"),
        sa.Column("made_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("preview_pkey")),
        schema="lamina",
        comment="catalogs whose views are served beside the deployed ones, each in a schema of its own",
    )
    op.create_table(
        "previewed",
        sa.Column("preview", sa.Text(), nullable=False),
        sa.Column("view", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False, comment="a view comes after the views it reads"),
        sa.Column("texts", JSONB(), nullable=False, comment="the compiled view with all of its texts"),
        sa.Column("places", ARRAY(sa.Text()), nullable=False, comment="the tables of cells that it is made of"),
        sa.PrimaryKeyConstraint("preview", "view", name=op.f("previewed_pkey")),
        sa.ForeignKeyConstraint(
            ["preview"], ["lamina.preview.name"], name=op.f("previewed_preview_fkey"), ondelete="CASCADE"
        ),
        schema="lamina",
        comment="the views of previews; a generation whose cells one of them is made of is not retired as surplus",
    )
    shown = sa.Column("shown_at", sa.DateTime(timezone=True), comment="when it was first handed over")
    op.add_column("generation", shown, schema="lamina")
    op.execute(
        "UPDATE lamina.generation SET shown_at = live_at"
        " WHERE shown_until IS NOT NULL OR id IN (SELECT generation FROM lamina.publication)"
    )
