"""The tables of schema `lamina`: the state of queries, generations and rebuilds.

Each fact is stored once. A micro-batch's effect and its progress are rows of the same database, so one transaction
writes both. `serving_layer/upkeep/migrations` builds these tables. A test compares the two.
"""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    DateTime,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    func,
)
from sqlalchemy.dialects.postgresql import BIT, JSONB

from serving_layer.postgres.phases import PHASES
from serving_layer.postgres.states import GenerationState, OneOf, RebuildKind, RebuildState, Stop, WriterKind, only

SCHEMA = "lamina"

SIZE = "100 + octet_length(error) + coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)"
"""SQL of the size of a quarantined record, in bytes."""

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    },
)


def _now(name: str) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now())


installed = Table(
    "installed",
    metadata,
    Column("part", Text, primary_key=True, comment="functions, rights, limits, or a view of operators"),
    Column("fingerprint", Text, nullable=False, comment="of the text that was run last"),
    comment="what was installed: a part is run again only when its text has changed",
)

declaration = Table(
    "declaration",
    metadata,
    Column("path", Text, primary_key=True, comment="file of the catalog, relative to its folder"),
    Column("sql", Text, nullable=False),
    _now("applied_at"),
    comment="the catalog as it was last applied",
)

compiled = Table(
    "compiled",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("position", Integer, nullable=False, comment="a view comes after the views it reads"),
    Column("texts", JSONB, nullable=False, comment="the compiled value with all of its texts"),
    _now("compiled_at"),
    Column("definition", Text, comment="of a view: its SELECT in lamina.definition"),
    CheckConstraint("kind IN ('source', 'view')", name="kind"),
    comment="what the deployed catalog was compiled to: what runs, whatever this Lamina would make of the declarations",
)

definition = Table(
    "definition",
    metadata,
    Column("id", Text, primary_key=True, comment="the beginning of the SHA-256 of the texts"),
    Column("view", Text, nullable=False),
    Column("texts", JSONB, nullable=False, comment="a catalog of this view, and of what it reads"),
    _now("first_deployed_at"),
    comment="every SELECT that was ever deployed: receipts name it, and are verified by it",
)

version = Table(
    "version",
    metadata,
    Column("view", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("texts", JSONB, nullable=False, comment="the compiled view with all of its texts"),
    Column("sources", JSONB, nullable=False, comment="the compiled sources that its cells are fed by"),
    _now("compiled_at"),
    comment="the versions of views beside the deployed catalog that have cells: computed now, or kept to return to",
)

preview = Table(
    "preview",
    metadata,
    Column("name", Text, primary_key=True, comment="of the schema that holds its views"),
    Column("sources", JSONB, nullable=False, comment="the compiled sources of its catalog"),
    _now("made_at"),
    comment="catalogs whose views are served beside the deployed ones, each in a schema of its own",
)

previewed = Table(
    "previewed",
    metadata,
    Column("preview", Text, ForeignKey(preview.c.name, ondelete="CASCADE"), primary_key=True),
    Column("view", Text, primary_key=True),
    Column("position", Integer, nullable=False, comment="a view comes after the views it reads"),
    Column("texts", JSONB, nullable=False, comment="the compiled view with all of its texts"),
    Column("places", ARRAY(Text), nullable=False, comment="the tables of cells that it is made of"),
    comment="the views of previews; a generation whose cells one of them is made of is not retired as surplus",
)

query = Table(
    "query",
    metadata,
    Column("name", Text, primary_key=True),
    Column("topic", Text, nullable=False),
    Column("topic_id", Text, nullable=False, comment="Kafka's id of the topic: a topic is its id, not its name"),
    Column("fence", BigInteger, nullable=False, server_default="0", comment="token of the newest writer"),
    Column("writer", Text, comment="who holds the fence token: host and process id"),
    Column("writer_kind", OneOf(WriterKind), comment="what holds the fence token: a speed layer, a leap or a skip"),
    Column("deaths", Integer, nullable=False, server_default="0", comment="writers in a row that committed nothing"),
    Column("stopped", Text, comment="why the query refuses to go on; NULL while it may run"),
    _now("created_at"),
    Column("committed_at", DateTime(timezone=True), comment="when its last micro-batch was committed"),
    Column("newest", DateTime(timezone=True), comment="greatest Kafka timestamp below progress"),
    Column("caught_up_at", DateTime(timezone=True), comment="since when, at the latest, it lacks no record of before"),
    Column("waiting", BigInteger, comment="the fewest records seen waiting for some seconds since none did"),
    Column("waiting_at", DateTime(timezone=True), comment="when there were last so few"),
    Column(
        "duplicates",
        BigInteger,
        nullable=False,
        server_default="0",
        comment="records that are copies of a counted one",
    ),
    Column(
        "conflicts",
        BigInteger,
        nullable=False,
        server_default="0",
        comment="of them, those that differ from the counted one and should have been counted in its place",
    ),
    only("writer_kind", WriterKind),
    comment="one row per streaming query; the row is the lock of everything that moves its progress",
)

heartbeat = Table(
    "heartbeat",
    metadata,
    Column("query", Text, ForeignKey(query.c.name, ondelete="CASCADE"), primary_key=True),
    Column("heard_at", DateTime(timezone=True), nullable=False, comment="when its writer last said that it lives"),
    comment="the newest sign of life of each query's writer; it does not wait for the lock of the query",
    # Half of each page stays free, so an update stays in its page and touches no index.
    postgresql_with={"fillfactor": 50},
)

progress = Table(
    "progress",
    metadata,
    Column("query", Text, ForeignKey(query.c.name, ondelete="CASCADE"), primary_key=True),
    Column("topic", Text, primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("start_offset", BigInteger, nullable=False, comment="the first offset that Lamina answers for"),
    Column("next_offset", BigInteger, nullable=False, comment="every record below it is in Postgres"),
    Column("tail", Text, comment="Kafka's last batch below it: by this a log that lost its end is known"),
    Column("newest", BigInteger, comment="microseconds since 1970 of the newest event with an id"),
    Column("log_time", BigInteger, comment="microseconds since 1970: a table's greatest Kafka timestamp below it"),
    comment="per query, topic and partition, the offset below which every record is in Postgres",
)

ids = Table(
    "ids",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True, comment="the ids are in realtime.ids_<id>"),
    Column("query", Text, ForeignKey(query.c.name, ondelete="CASCADE"), nullable=False),
    Column("begins", BigInteger, comment="from this time of Kafka's on (microseconds since 1970); NULL for all"),
    Column("ends", BigInteger, comment="and below this one"),
    comment="tables of the ids of counted events, by Kafka's time; one for all where they are kept for ever",
)

view = Table(
    "view",
    metadata,
    Column("name", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("version", Text, nullable=False, comment="fingerprint of the texts its cells are computed by"),
    Column("position", Integer, nullable=False, comment="a view comes after the views it reads"),
    Column("final", Text, nullable=False, comment="the body of the analyst's view"),
    Column("columns", JSONB, nullable=False),
    Column("comment", Text),
    Column("served", Text, comment="the body that the analyst's view has now; NULL while there is none"),
    Column("reads", ARRAY(Text), nullable=False, comment="the views it reads"),
    Column("keep_generations", Integer, nullable=False, server_default="1"),
    Column("keep_versions", Integer, nullable=False, server_default="1"),
    Column("on_difference", Text, nullable=False, server_default="publish"),
    Column("retain", Text, comment="how long ago a group may be that is kept; NULL for all"),
    Column("fresh_within", Text, comment="how far it may be behind; NULL without a target"),
    _now("applied_at"),
    Column("before", JSONB, nullable=False, server_default="[]", comment="what it was, for snapshots of before a move"),
    CheckConstraint("kind IN ('aggregate', 'row', 'derived')", name="kind"),
    CheckConstraint("on_difference IN ('publish', 'hold')", name="on_difference"),
    comment="the views that are declared now",
)

cell_table = Table(
    "cell_table",
    metadata,
    Column("name", Text, primary_key=True),
    Column("view", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("query", Text, ForeignKey(query.c.name), nullable=False),
    Column("ddl", Text, nullable=False),
    Column("merge", Text, nullable=False),
    Column("keys", ARRAY(Text), nullable=False),
    Column("partials", ARRAY(Text), nullable=False),
    Column("noise", ARRAY(Text), nullable=False, comment="per partial: the size of numbers whose rounding it may be"),
    Column("retained", Text, comment="the column that says how long ago a cell was, where `retain` goes by it"),
    Column(
        "longer",
        BigInteger,
        nullable=False,
        server_default="0",
        comment="microseconds for which its cells are kept beyond what the view retains",
    ),
    Column(
        "prepared_at",
        DateTime(timezone=True),
        comment="when its writer had prepared for it, or tried to",
    ),
    comment="one row per table of cells of a view version: what feeds it and how cells merge into it",
)

rebuild = Table(
    "rebuild",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("views", ARRAY(Text), nullable=False),
    Column("leap", Boolean, nullable=False, server_default="false"),
    Column("key", Text, comment="who began it: a scheduler that repeats its request finds it again"),
    Column("step", Text, nullable=False, comment="the last step that was finished"),
    Column("seconds", JSONB, nullable=False, server_default="{}", comment="by finished step"),
    Column("state", OneOf(RebuildState), nullable=False, server_default="running"),
    Column("lease_until", DateTime(timezone=True), comment="a scheduled rebuild lives until then between its steps"),
    _now("started_at"),
    Column("ended_at", DateTime(timezone=True)),
    Column("error", Text),
    Column(
        "kind",
        OneOf(RebuildKind),
        nullable=False,
        server_default="rebuild",
        comment="what it computes: the declared versions, or new ones of an apply or a preview",
    ),
    Column("preview", Text, comment="of the kind `preview`: its name"),
    Column("stopped", OneOf(Stop), comment="how a person stopped it; NULL if nobody did"),
    only("state", RebuildState),
    only("kind", RebuildKind),
    only("stopped", Stop),
    comment="the runs of the batch layer",
)

generation = Table(
    "generation",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("view", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("state", OneOf(GenerationState), nullable=False),
    Column("rebuild", BigInteger, ForeignKey(rebuild.c.id)),
    Column("since", DateTime(timezone=True), comment="groups of before are not kept; NULL for all"),
    _now("opened_at"),
    Column("live_at", DateTime(timezone=True)),
    Column("shown_until", DateTime(timezone=True), comment="when another was handed over in its place"),
    Column("retired_at", DateTime(timezone=True)),
    Column("dropped_at", DateTime(timezone=True)),
    Column("shown_at", DateTime(timezone=True), comment="when it was handed over, other than by a rollback"),
    Column("spark", Text, comment="the version of Spark that computed it; NULL if it is not known"),
    only("state", GenerationState),
    comment="a generation of a view is its cells, opened at a cut: building, then live, then retired",
)

cut = Table(
    "cut",
    metadata,
    Column("generation", BigInteger, ForeignKey(generation.c.id, ondelete="CASCADE"), primary_key=True),
    Column("query", Text, primary_key=True),
    Column("topic", Text, primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("offset", BigInteger, nullable=False),
    Column("tail", Text, comment="Kafka's last batch below it"),
    comment="the progress of each query that feeds a generation, at the moment the generation was opened",
)

generation_cells = Table(
    "generation_cells",
    metadata,
    Column("generation", BigInteger, ForeignKey(generation.c.id, ondelete="CASCADE"), primary_key=True),
    Column("cell_table", Text, ForeignKey(cell_table.c.name), primary_key=True),
    Column("place", Text, nullable=False, comment="the table that holds the cells now"),
    Column("attempt", Integer, nullable=False, server_default="0", comment="tasks of an older attempt load nothing"),
    Column("loaded_at", DateTime(timezone=True), comment="when the cells below the cut were complete"),
    Column(
        "absorbed", Integer, nullable=False, server_default="0", comment="realtime tables below it are in the cells"
    ),
    Column("realtime", Integer, nullable=False, server_default="0", comment="the one that micro-batches merge into"),
    comment="one row per table of cells of a generation: whether its batch view is loaded, and its realtime tables",
)

archived = Table(
    "archived",
    metadata,
    Column("query", Text, ForeignKey(query.c.name, ondelete="CASCADE"), primary_key=True),
    Column("topic", Text, primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("held", BigInteger, nullable=False),
    _now("archived_at"),
    comment="what the master log said it held after the last archive run; the log itself is the truth",
)

load = Table(
    "load",
    metadata,
    Column("generation", BigInteger, primary_key=True),
    Column("cell_table", Text, primary_key=True),
    Column("part", Integer, primary_key=True),
    ForeignKeyConstraint(
        ["generation", "cell_table"],
        [generation_cells.c.generation, generation_cells.c.cell_table],
        ondelete="CASCADE",
        name="load_generation_fkey",
    ),
    comment="the parts of a batch view that are loaded: a part that is computed twice is loaded once",
)

publication = Table(
    "publication",
    metadata,
    Column("view", Text, primary_key=True),
    Column("generation", BigInteger, ForeignKey(generation.c.id), nullable=False),
    _now("handed_over_at"),
    comment="the one live generation that each view shows: its cells are where readers read",
)

history = Table(
    "history",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    _now("at"),
    Column("query", Text, comment="whose progress moved: by a micro-batch, or by a leap"),
    Column("partitions", ARRAY(Integer), comment="in which it moved"),
    Column("first", ARRAY(BigInteger), comment="of each, the first offset"),
    Column("next", ARRAY(BigInteger), comment="of each, the offset after the last"),
    Column("view", Text, comment="which shows another generation or definition from now on"),
    Column("generation", BigInteger, comment="the one it shows; of a query, the one that leapt"),
    Column("definition", Text, comment="its SELECT in lamina.definition"),
    CheckConstraint("(query IS NULL) <> (view IS NULL)", name="of"),
    comment="what moved the numbers of views, in order: each micro-batch, and each change of what a view shows",
)
Index("history_shown", history.c.view, history.c.id, postgresql_where=history.c.view.is_not(None))

freshness_history = Table(
    "freshness_history",
    metadata,
    Column("minute", DateTime(timezone=True), primary_key=True),
    Column("behind", JSONB, nullable=False, comment="seconds, by query"),
    comment="how far each query was behind, a row a minute, for a week",
)

freshness_target = Table(
    "freshness_target",
    metadata,
    Column("view", Text, primary_key=True),  # a foreign key would wait for an apply
    Column("since", DateTime(timezone=True), nullable=False, comment="the first minute that was noted"),
    Column("minute", DateTime(timezone=True), nullable=False, comment="the newest minute that was noted"),
    Column("met", BIT(1440), nullable=False, comment="of each minute of a day, up to the newest: was it within"),
    comment="in which minutes each view was within its fresh_within of then",
)

micro_batch_seconds = Table(
    "micro_batch_seconds",
    metadata,
    Column("query", Text, primary_key=True),  # a foreign key would wait for the lock of a micro-batch
    Column("minute", DateTime(timezone=True), primary_key=True),
    Column("micro_batches", BigInteger, nullable=False),
    *(Column(phase, Float, nullable=False) for phase in PHASES),
    comment="seconds that the micro-batches of each minute spent in each phase, for a day",
)

rebuilding = Table(
    "rebuilding",
    metadata,
    Column("nothing", Text, comment="no row is ever written"),
    comment="its lock is held by the one process that runs all steps of a rebuild",
)

archiving = Table(
    "archiving",
    metadata,
    Column("nothing", Text, comment="no row is ever written"),
    comment="its lock is held by the one process that writes the master log",
)

noted = Table(
    "noted",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True, comment="the keys are in realtime.differing_<id>"),
    Column("cell_table", Text, nullable=False),
    Column("new", BigInteger, nullable=False),
    Column("old", BigInteger, nullable=False),
    comment="the cells in which two live generations differ, for their exchange; without a row, the table is dropped",
)

proof = Table(
    "proof",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("rebuild", BigInteger, ForeignKey(rebuild.c.id)),
    Column("view", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("against", BigInteger, nullable=False, comment="the live generation it was compared with"),
    Column("cells", BigInteger, nullable=False),
    Column("differing", BigInteger, nullable=False),
    Column("examples", JSONB, nullable=False),
    _now("proved_at"),
    UniqueConstraint("generation", "against"),
    comment="the comparison, cell by cell, of two live generations in one snapshot",
)

checked = Table(
    "checked",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("rebuild", BigInteger, ForeignKey(rebuild.c.id), comment="whose generations it is about; NULL: live views"),
    Column("view", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("counts", Text, nullable=False, comment="what failing counts: rows, keys, or the view as a whole"),
    Column("blocks", Boolean, nullable=False, comment="is a generation that fails it kept from readers?"),
    Column("failing", BigInteger, nullable=False),
    Column("examples", JSONB, nullable=False),
    _now("checked_at"),
    CheckConstraint("counts IN ('row', 'key', 'whole')", name="counts"),
    comment="the last result of each check of a view: in a rebuild, and of the live view",
)

quarantine = Table(
    "quarantine",
    metadata,
    Column("source", Text, nullable=False, comment="the one for which it is bad: a topic may have several"),
    Column("topic", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("error", Text, nullable=False),
    Column("timestamp", DateTime(timezone=True)),
    Column("key", LargeBinary),
    Column("value", LargeBinary),
    Column("value_bytes", Integer, comment="how long the whole value is, of which the first are kept"),
    _now("quarantined_at"),
    Column(
        "size",
        Integer,
        Computed(SIZE, persisted=True),
        comment="bytes that the row counts for against the bound of its source",
    ),
    comment="records that could not be parsed, within bounds; they are in the master log, too",
)
Index("quarantine_place", quarantine.c.topic, quarantine.c.partition, quarantine.c.offset)
Index("quarantine_oldest", quarantine.c.source, quarantine.c.quarantined_at, postgresql_include=["size"])

bad_count = Table(
    "bad_count",
    metadata,
    Column("source", Text, primary_key=True),
    Column("topic", Text, nullable=False),
    Column("error", Text, primary_key=True),
    Column("records", BigInteger, nullable=False),
    _now("first"),
    _now("last"),
    comment="how many records went to quarantine, by reason; exact, also of those that are no longer kept",
)

schema = Table(
    "schema",
    metadata,
    Column("topic", Text, primary_key=True),
    Column(
        "ask_again", Integer, primary_key=True, comment="the number in OPTIONS of the sources that count the answer"
    ),
    Column("id", Text, primary_key=True, comment="the number, or the UUID, that the registry has for it"),
    Column(
        "kind",
        Text,
        comment="AVRO, PROTOBUF or JSON; NULL if the registry had none with the id; ABOVE for all ids above `text`",
    ),
    Column("text", Text),
    Column("references", JSONB, comment="names and texts of the schemas that it names, in order"),
    _now("kept_at"),
    comment="schemas of a registry, each kept before the first record is counted that was written with it",
)

skipped = Table(
    "skipped",
    metadata,
    Column("topic_id", Text, primary_key=True, comment="Kafka's id of the topic"),
    Column("partition", Integer, primary_key=True),
    Column("offset", BigInteger, primary_key=True),
    Column("topic", Text, nullable=False),
    Column("reason", Text, nullable=False),
    _now("skipped_at"),
    Column("tail", Text, comment="the record batch that holds it, as the broker describes it"),
    comment="records that an operator skipped by name: no view counts them, and the master log does not read them",
)
