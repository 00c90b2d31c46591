"""The history: the micro-batches, hand-overs and versions that changed the numbers of views, for `lamina blame`."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# The state of each view at the beginning of the history, without the time at which it was shown.
SHOWN = """
INSERT INTO lamina.history (at, view, generation, definition)
SELECT to_timestamp(0), v.name, p.generation, c.definition
FROM lamina.view AS v
LEFT JOIN lamina.publication AS p ON p.view = v.name
LEFT JOIN lamina.compiled AS c ON c.kind = 'view' AND c.name = v.name
WHERE v.kind = 'derived' OR p.generation IS NOT NULL
ORDER BY v.position
"""


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "history",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.Column("query", sa.Text(), comment="whose progress moved: by a micro-batch, or by a leap"),
        sa.Column("partitions", postgresql.ARRAY(sa.Integer()), comment="in which it moved"),
        sa.Column("first", postgresql.ARRAY(sa.BigInteger()), comment="of each, the first offset"),
        sa.Column("next", postgresql.ARRAY(sa.BigInteger()), comment="of each, the offset after the last"),
        sa.Column("view", sa.Text(), comment="which shows another generation or definition from now on"),
        sa.Column("generation", sa.BigInteger(), comment="the one it shows; of a query, the one that leapt"),
        sa.Column("definition", sa.Text(), comment="its SELECT in lamina.definition"),
        sa.CheckConstraint("(query IS NULL) <> (view IS NULL)", name=op.f("history_of_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("history_pkey")),
        schema="lamina",
        comment="what moved the numbers of views, in order: each micro-batch, and each change of what a view shows",
    )
    op.create_index(
        "history_shown",
        "history",
        ["view", "id"],
        schema="lamina",
        postgresql_where=sa.text("view IS NOT NULL"),
    )
    op.execute(SHOWN)
