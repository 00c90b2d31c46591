"""The installed parts, the tables whose locks serialize processes, and the notes for an exchange."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "installed",
        sa.Column("part", sa.Text(), nullable=False, comment="functions, rights, limits, or a view of operators"),
        sa.Column("fingerprint", sa.Text(), nullable=False, comment="of the text that was run last"),
        sa.PrimaryKeyConstraint("part", name=op.f("installed_pkey")),
        schema="lamina",
        comment="what was installed: a part is run again only when its text has changed",
    )
    for name, comment in (
        ("rebuilding", "its lock is held by the one process that runs all steps of a rebuild"),
        ("archiving", "its lock is held by the one process that writes the master log"),
    ):
        op.create_table(
            name,
            sa.Column("nothing", sa.Text(), nullable=True, comment="no row is ever written"),
            schema="lamina",
            comment=comment,
        )
    op.create_table(
        "noted",
        sa.Column(
            "id", sa.BigInteger(), sa.Identity(), nullable=False, comment="the keys are in realtime.differing_<id>"
        ),
        sa.Column("cell_table", sa.Text(), nullable=False),
        sa.Column("new", sa.BigInteger(), nullable=False),
        sa.Column("old", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("noted_pkey")),
        schema="lamina",
        comment="the cells in which two live generations differ, for their exchange; without a row, the table is"
        " dropped",
    )
