"""The log times that the records of tables have reached. They identify the newest record of a key."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change. What is not known yet, the speed layer asks the master log for."""
    reached = "microseconds since 1970: a table's greatest Kafka timestamp below it"
    op.add_column("progress", sa.Column("log_time", sa.BigInteger(), comment=reached), schema="lamina")
