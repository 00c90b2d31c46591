"""The ids of counted events, for streams with UNIQUE."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "ids",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False, comment="the ids are in realtime.ids_<id>"),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column(
            "begins",
            sa.BigInteger(),
            nullable=True,
            comment="from this time of Kafka's on (microseconds since 1970); NULL for all",
        ),
        sa.Column("ends", sa.BigInteger(), nullable=True, comment="and below this one"),
        sa.PrimaryKeyConstraint("id", name="ids_pkey"),
        sa.ForeignKeyConstraint(["query"], ["lamina.query.name"], name="ids_query_fkey", ondelete="CASCADE"),
        schema="lamina",
        comment="tables of the ids of counted events, by Kafka's time; one for all where they are kept for ever",
    )
    counted = "records that are copies of a counted one"
    differed = "of them, those that differ from the counted one and should have been counted in its place"
    for name, comment in (("duplicates", counted), ("conflicts", differed)):
        column = sa.Column(name, sa.BigInteger(), nullable=False, server_default="0", comment=comment)
        op.add_column("query", column, schema="lamina")
    newest = sa.Column("newest", sa.BigInteger(), comment="microseconds since 1970 of the newest event with an id")
    op.add_column("progress", newest, schema="lamina")
