"""The schemas that records are written with, so that the log can be decoded without the registry."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "schema",
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False, comment="the number, or the UUID, that the registry has for it"),
        sa.Column("kind", sa.Text(), comment="AVRO, PROTOBUF or JSON; NULL if the registry had none with the id"),
        sa.Column("text", sa.Text()),
        sa.Column("references", JSONB(), comment="names and texts of the schemas that it names, in order"),
        sa.Column("kept_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("topic", "id", name="schema_pkey"),
        schema="lamina",
        comment="schemas of a registry, each kept before the first record is counted that was written with it",
    )
