"""The minutes of a day in which each view met its freshness target, as one bit each, so reading them is cheap."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0028"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change. The shares count from the first minute after it."""
    op.create_table(
        "freshness_target",
        sa.Column("view", sa.Text(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False, comment="the first minute that was noted"),
        sa.Column("minute", sa.DateTime(timezone=True), nullable=False, comment="the newest minute that was noted"),
        sa.Column(
            "met",
            postgresql.BIT(1440),
            nullable=False,
            comment="of each minute of a day, up to the newest: was it within",
        ),
        sa.PrimaryKeyConstraint("view", name=op.f("freshness_target_pkey")),
        schema="lamina",
        comment="in which minutes each view was within its fresh_within of then",
    )
