"""Quarantine is bounded. Its counts are stored separately and stay exact when records are removed."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

SIZE = "100 + octet_length(error) + coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)"


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "bad_count",
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("records", sa.BigInteger(), nullable=False),
        sa.Column("first", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("last", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("topic", "error", name=op.f("bad_count_pkey")),
        schema="lamina",
        comment="how many records went to quarantine, by reason; exact, also of those that are no longer kept",
    )
    op.execute(
        "INSERT INTO lamina.bad_count (topic, error, records, first, last)"
        " SELECT topic, left(error, 500), count(*), min(quarantined_at), max(quarantined_at) FROM lamina.quarantine"
        " GROUP BY 1, 2"
    )
    op.drop_constraint("quarantine_pkey", "quarantine", schema="lamina")
    value_bytes = sa.Column(
        "value_bytes", sa.Integer(), comment="how long the whole value is, of which the first are kept"
    )
    op.add_column("quarantine", value_bytes, schema="lamina")
    op.execute("UPDATE lamina.quarantine SET value_bytes = octet_length(value)")
    size = sa.Column(
        "size",
        sa.Integer(),
        sa.Computed(SIZE, persisted=True),
        comment="bytes that the row counts for against the bound of its source",
    )
    op.add_column("quarantine", size, schema="lamina")
    op.create_index("quarantine_place", "quarantine", ["topic", "partition", "offset"], schema="lamina")
    op.create_index(
        "quarantine_oldest",
        "quarantine",
        ["topic", "quarantined_at"],
        schema="lamina",
        postgresql_include=["size"],
    )
    op.create_table_comment(
        "quarantine",
        "records that could not be parsed, within bounds; they are in the master log, too",
        existing_comment="records that could not be parsed, as they came; they are in the master log, too",
        schema="lamina",
    )
