"""A registry's answers by the sources' `ask_again`. A missing schema can be requested again under another number."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change. Sources have said nothing so far: 0."""
    op.add_column(
        "schema",
        sa.Column(
            "ask_again",
            sa.Integer(),
            nullable=False,
            server_default="0",
            comment="the number in OPTIONS of the sources that count the answer",
        ),
        schema="lamina",
    )
    op.alter_column("schema", "ask_again", server_default=None, schema="lamina")
    op.alter_column(
        "schema",
        "kind",
        comment="AVRO, PROTOBUF or JSON; NULL if the registry had none with the id; ABOVE for all ids above `text`",
        schema="lamina",
    )
    op.drop_constraint("schema_pkey", "schema", schema="lamina")
    op.create_primary_key("schema_pkey", "schema", ["topic", "ask_again", "id"], schema="lamina")
