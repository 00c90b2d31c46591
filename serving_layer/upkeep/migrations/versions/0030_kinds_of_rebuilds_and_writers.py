"""The kind of a rebuild and of a writer, and how a person stopped a rebuild, in columns of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change, and fills it from the texts that said so: a key, an error, and the name of a writer."""
    computes = "what it computes: the declared versions, or new ones of an apply or a preview"
    kind = sa.Column("kind", sa.Text(), nullable=False, server_default="rebuild", comment=computes)
    op.add_column("rebuild", kind, schema="lamina")
    for table, name, comment in (
        ("rebuild", "preview", "of the kind `preview`: its name"),
        ("rebuild", "stopped", "how a person stopped it; NULL if nobody did"),
        ("query", "writer_kind", "what holds the fence token: a speed layer, a leap or a skip"),
    ):
        op.add_column(table, sa.Column(name, sa.Text(), comment=comment), schema="lamina")
    op.execute("""
        UPDATE lamina.rebuild SET kind = 'apply', key = NULL WHERE key = 'apply'
    """)
    op.execute("""
        UPDATE lamina.rebuild SET kind = 'preview', preview = substr(key, length('apply --preview ') + 1), key = NULL
        WHERE starts_with(key, 'apply --preview ')
    """)
    op.execute("""
        UPDATE lamina.rebuild SET stopped = CASE error WHEN 'it was given up' THEN 'given up' ELSE 'interrupted' END
        WHERE error IN ('it was given up', 'it was interrupted')
    """)
    op.execute("""
        UPDATE lamina.query SET writer_kind = CASE
            WHEN writer ~ '^rebuild [0-9]+ [(]leap[)]$' THEN 'leap'
            WHEN writer ~ '^skip of [^ ]+ [0-9]+:[0-9]+$' THEN 'skip'
            ELSE 'speed layer'
        END
        WHERE writer IS NOT NULL
    """)
    for table, name, values in (
        ("rebuild", "kind", "'rebuild', 'apply', 'preview'"),
        ("rebuild", "stopped", "'interrupted', 'given up'"),
        ("query", "writer_kind", "'speed layer', 'leap', 'skip'"),
    ):
        constraint = op.f(f"{table}_{name}_check")
        op.create_check_constraint(constraint, table, f"{name} IN ({values})", schema="lamina")
