"""A record is bad for a source. A topic may have several sources, and another of them may be able to read it."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Until now a topic had one source. A query without progress belongs to a dropped source.
SOURCE = """coalesce((
  SELECT q.name FROM lamina.query AS q
  WHERE q.topic = old.topic
  ORDER BY EXISTS (SELECT FROM lamina.progress AS p WHERE p.query = q.name) DESC, q.name
  LIMIT 1
), old.topic)"""


def upgrade() -> None:
    """Applies the change."""
    comments = {"quarantine": "the one for which it is bad: a topic may have several", "bad_count": None}
    for table, comment in comments.items():
        op.add_column(table, sa.Column("source", sa.Text(), comment=comment), schema="lamina")
        op.execute(f"UPDATE lamina.{table} AS old SET source = {SOURCE}")
        op.alter_column(table, "source", existing_type=sa.Text(), nullable=False, schema="lamina")
    op.drop_constraint("bad_count_pkey", "bad_count", schema="lamina")
    op.create_primary_key("bad_count_pkey", "bad_count", ["source", "error"], schema="lamina")
    op.drop_index("quarantine_oldest", "quarantine", schema="lamina")
    op.create_index(
        "quarantine_oldest",
        "quarantine",
        ["source", "quarantined_at"],
        schema="lamina",
        postgresql_include=["size"],
    )
