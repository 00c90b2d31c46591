"""The bookkeeping, as first published."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        "declaration",
        sa.Column("path", sa.Text(), nullable=False, comment="file of the catalog, relative to its folder"),
        sa.Column("sql", sa.Text(), nullable=False),
        sa.Column("applied_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("path", name=op.f("declaration_pkey")),
        schema="lamina",
        comment="the catalog as it was last applied: what the speed layer and every rebuild compile",
    )
    op.create_table(
        "quarantine",
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("timestamp", sa.DateTime(timezone=True), nullable=True),
        sa.Column("key", sa.LargeBinary(), nullable=True),
        sa.Column("value", sa.LargeBinary(), nullable=True),
        sa.Column("quarantined_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("topic", "partition", "offset", name=op.f("quarantine_pkey")),
        schema="lamina",
        comment="records that could not be parsed, as they came; they are in the master log, too",
    )
    op.create_table(
        "query",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column(
            "topic_id", sa.Text(), nullable=False, comment="Kafka's id of the topic: a topic is its id, not its name"
        ),
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False, comment="token of the newest writer"),
        sa.Column("writer", sa.Text(), nullable=True, comment="who holds the fence token: host and process id"),
        sa.Column("stopped", sa.Text(), nullable=True, comment="why the query refuses to go on; NULL while it may run"),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column(
            "committed_at", sa.DateTime(timezone=True), nullable=True, comment="when its last micro-batch was committed"
        ),
        sa.Column(
            "newest", sa.DateTime(timezone=True), nullable=True, comment="greatest Kafka timestamp below progress"
        ),
        sa.Column(
            "caught_up_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="when progress was last seen at the end of the topic",
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("query_pkey")),
        schema="lamina",
        comment="one row per streaming query; the row is the lock of everything that moves its progress",
    )
    op.create_table(
        "rebuild",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("views", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("leap", sa.Boolean(), server_default="false", nullable=False),
        sa.Column(
            "key",
            sa.Text(),
            nullable=True,
            comment="who began it: a scheduler that repeats its request finds it again",
        ),
        sa.Column("step", sa.Text(), nullable=False, comment="the last step that was finished"),
        sa.Column("state", sa.Text(), server_default="running", nullable=False),
        sa.Column(
            "lease_until",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="a scheduled rebuild lives until then between its steps",
        ),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint("state IN ('running', 'done', 'held', 'failed')", name=op.f("rebuild_state_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("rebuild_pkey")),
        schema="lamina",
        comment="the runs of the batch layer",
    )
    op.create_table(
        "view",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False, comment="fingerprint of the texts its cells are computed by"),
        sa.Column("position", sa.Integer(), nullable=False, comment="a view comes after the views it reads"),
        sa.Column("final", sa.Text(), nullable=False, comment="the body of the analyst's view"),
        sa.Column("columns", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column(
            "served",
            sa.Text(),
            nullable=True,
            comment="the body that the analyst's view has now; NULL while there is none",
        ),
        sa.Column("reads", sa.ARRAY(sa.Text()), nullable=False, comment="the views it reads"),
        sa.Column("keep_generations", sa.Integer(), server_default="1", nullable=False),
        sa.Column("on_difference", sa.Text(), server_default="publish", nullable=False),
        sa.Column("retain", sa.Text(), nullable=True, comment="how long ago a group may be that is kept; NULL for all"),
        sa.Column("applied_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("kind IN ('aggregate', 'row', 'derived')", name=op.f("view_kind_check")),
        sa.CheckConstraint("on_difference IN ('publish', 'hold')", name=op.f("view_on_difference_check")),
        sa.PrimaryKeyConstraint("name", name=op.f("view_pkey")),
        schema="lamina",
        comment="the views that are declared now",
    )
    op.create_table(
        "archived",
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("archived_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["query"], ["lamina.query.name"], name=op.f("archived_query_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("query", "topic", "partition", name=op.f("archived_pkey")),
        schema="lamina",
        comment="what the master log said it held after the last archive run; the log itself is the truth",
    )
    op.create_table(
        "cell_table",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("view", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("ddl", sa.Text(), nullable=False),
        sa.Column("merge", sa.Text(), nullable=False),
        sa.Column("keys", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("partials", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column(
            "noise",
            sa.ARRAY(sa.Text()),
            nullable=False,
            comment="per partial: the size of numbers whose rounding it may be",
        ),
        sa.Column(
            "retained",
            sa.Text(),
            nullable=True,
            comment="the key that says how long ago a group was, where `retain` goes by it",
        ),
        sa.ForeignKeyConstraint(["query"], ["lamina.query.name"], name=op.f("cell_table_query_fkey")),
        sa.PrimaryKeyConstraint("name", name=op.f("cell_table_pkey")),
        schema="lamina",
        comment="one row per table of cells of a view version: what feeds it and how cells merge into it",
    )
    op.create_table(
        "generation",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("view", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("rebuild", sa.BigInteger(), nullable=True),
        sa.Column(
            "since",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="groups of before are not kept; NULL for all",
        ),
        sa.Column("opened_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("live_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "shown_until",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="when another was handed over in its place",
        ),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("dropped_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state IN ('building', 'live', 'retired')", name=op.f("generation_state_check")),
        sa.ForeignKeyConstraint(["rebuild"], ["lamina.rebuild.id"], name=op.f("generation_rebuild_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("generation_pkey")),
        schema="lamina",
        comment="a generation of a view is its cells, opened at a cut: building, then live, then retired",
    )
    op.create_table(
        "progress",
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("start_offset", sa.BigInteger(), nullable=False, comment="the first offset that Lamina answers for"),
        sa.Column("next_offset", sa.BigInteger(), nullable=False, comment="every record below it is in Postgres"),
        sa.ForeignKeyConstraint(["query"], ["lamina.query.name"], name=op.f("progress_query_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("query", "topic", "partition", name=op.f("progress_pkey")),
        schema="lamina",
        comment="per query, topic and partition, the offset below which every record is in Postgres",
    )
    op.create_table(
        "proof",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("rebuild", sa.BigInteger(), nullable=True),
        sa.Column("view", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("against", sa.BigInteger(), nullable=False, comment="the live generation it was compared with"),
        sa.Column("cells", sa.BigInteger(), nullable=False),
        sa.Column("differing", sa.BigInteger(), nullable=False),
        sa.Column("examples", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("proved_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["rebuild"], ["lamina.rebuild.id"], name=op.f("proof_rebuild_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("proof_pkey")),
        sa.UniqueConstraint("generation", "against", name=op.f("proof_generation_key")),
        schema="lamina",
        comment="the comparison, cell by cell, of two live generations in one snapshot",
    )
    op.create_table(
        "cut",
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["generation"], ["lamina.generation.id"], name=op.f("cut_generation_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("generation", "query", "topic", "partition", name=op.f("cut_pkey")),
        schema="lamina",
        comment="the progress of each query that feeds a generation, at the moment the generation was opened",
    )
    op.create_table(
        "generation_cells",
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("cell_table", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False, comment="the table that holds the cells now"),
        sa.Column(
            "attempt",
            sa.Integer(),
            server_default="0",
            nullable=False,
            comment="tasks of an older attempt load nothing",
        ),
        sa.Column(
            "loaded_at", sa.DateTime(timezone=True), nullable=True, comment="when the cells below the cut were complete"
        ),
        sa.Column(
            "absorbed",
            sa.Integer(),
            server_default="0",
            nullable=False,
            comment="realtime tables below it are in the cells",
        ),
        sa.Column(
            "realtime",
            sa.Integer(),
            server_default="0",
            nullable=False,
            comment="the one that micro-batches merge into",
        ),
        sa.ForeignKeyConstraint(
            ["cell_table"], ["lamina.cell_table.name"], name=op.f("generation_cells_cell_table_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["generation"], ["lamina.generation.id"], name=op.f("generation_cells_generation_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("generation", "cell_table", name=op.f("generation_cells_pkey")),
        schema="lamina",
        comment="one row per table of cells of a generation: whether its batch view is loaded, and its realtime tables",
    )
    op.create_table(
        "publication",
        sa.Column("view", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("handed_over_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["generation"], ["lamina.generation.id"], name=op.f("publication_generation_fkey")),
        sa.PrimaryKeyConstraint("view", name=op.f("publication_pkey")),
        schema="lamina",
        comment="the one live generation that each view shows: its cells are where readers read",
    )
    op.create_table(
        "load",
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("cell_table", sa.Text(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["generation", "cell_table"],
            ["lamina.generation_cells.generation", "lamina.generation_cells.cell_table"],
            name="load_generation_fkey",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("generation", "cell_table", "part", name=op.f("load_pkey")),
        schema="lamina",
        comment="the parts of a batch view that are loaded: a part that is computed twice is loaded once",
    )
