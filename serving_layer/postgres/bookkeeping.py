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


def _from_zero(name: str, kind: type[Integer], comment: str) -> Column[object]:
    """A number that is 0 at first."""
    return Column(name, kind, nullable=False, server_default="0", comment=comment)


installed = Table(
    "installed",
    metadata,
    Column("part", Text, primary_key=True, comment="functions, rights, limits, or an operators' view"),
    Column("fingerprint", Text, nullable=False, comment="hash of the text that ran last"),
    comment="the installed parts: a part runs again only if its text has changed",
)

declaration = Table(
    "declaration",
    metadata,
    Column("path", Text, primary_key=True, comment="file of the catalog, relative to its folder"),
    Column("sql", Text, nullable=False),
    _now("applied_at"),
    comment="the catalog that was applied last",
)

compiled = Table(
    "compiled",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("position", Integer, nullable=False, comment="a view comes after the views it reads"),
    Column("texts", JSONB, nullable=False, comment="the compiled source or view with all its texts"),
    _now("compiled_at"),
    Column("definition", Text, comment="id of a view's SELECT in lamina.definition"),
    CheckConstraint("kind IN ('source', 'view')", name="kind"),
    comment="the compiled texts of the deployed catalog, which run even after an upgrade of Lamina",
)

definition = Table(
    "definition",
    metadata,
    Column("id", Text, primary_key=True, comment="the beginning of the SHA-256 of the texts"),
    Column("view", Text, nullable=False),
    Column("texts", JSONB, nullable=False, comment="a catalog of this view and everything it reads"),
    _now("first_deployed_at"),
    comment="every SELECT that was ever deployed: receipts name it and are verified with it",
)

version = Table(
    "version",
    metadata,
    Column("view", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("texts", JSONB, nullable=False, comment="the compiled view with all its texts"),
    Column("sources", JSONB, nullable=False, comment="the compiled sources that feed its cells"),
    _now("compiled_at"),
    comment="view versions with cells that the deployed catalog lacks: being computed, or kept for a return",
)

preview = Table(
    "preview",
    metadata,
    Column("name", Text, primary_key=True, comment="name of the schema that holds its views"),
    Column("sources", JSONB, nullable=False, comment="the compiled sources of its catalog"),
    _now("made_at"),
    comment="catalogs whose views are served next to the deployed ones, each in its own schema",
)

previewed = Table(
    "previewed",
    metadata,
    Column("preview", Text, ForeignKey(preview.c.name, ondelete="CASCADE"), primary_key=True),
    Column("view", Text, primary_key=True),
    Column("position", Integer, nullable=False, comment="a view comes after the views it reads"),
    Column("texts", JSONB, nullable=False, comment="the compiled view with all its texts"),
    Column("places", ARRAY(Text), nullable=False, comment="the tables that hold its cells"),
    comment="the views of previews. A generation that one of them reads is not retired",
)

query = Table(
    "query",
    metadata,
    Column("name", Text, primary_key=True),
    Column("topic", Text, nullable=False),
    Column("topic_id", Text, nullable=False, comment="Kafka's id of the topic: another if it is recreated"),
    _from_zero("fence", BigInteger, "token of the newest writer"),
    Column("writer", Text, comment="holder of the fence token: host and process id"),
    Column("writer_kind", OneOf(WriterKind), comment="kind of the holder: a speed layer, a leap or a skip"),
    _from_zero("deaths", Integer, "consecutive writers that committed nothing"),
    Column("stopped", Text, comment="reason why the query has stopped. NULL while it may run"),
    _now("created_at"),
    Column("committed_at", DateTime(timezone=True), comment="when its last micro-batch was committed"),
    Column("newest", DateTime(timezone=True), comment="greatest Kafka timestamp below progress"),
    Column("caught_up_at", DateTime(timezone=True), comment="last time it had counted every earlier record"),
    Column("waiting", BigInteger, comment="smallest backlog since the query last had none"),
    Column("waiting_at", DateTime(timezone=True), comment="when the backlog last shrank"),
    _from_zero("duplicates", BigInteger, "records that are copies of a counted one"),
    _from_zero(
        "conflicts", BigInteger, "copies that differ from the counted record and should have been counted instead"
    ),
    only("writer_kind", WriterKind),
    comment="one row per streaming query. The row is the lock for everything that moves its progress",
)

heartbeat = Table(
    "heartbeat",
    metadata,
    Column("query", Text, ForeignKey(query.c.name, ondelete="CASCADE"), primary_key=True),
    Column("heard_at", DateTime(timezone=True), nullable=False, comment="when its writer sent the last heartbeat"),
    comment="the last heartbeat of each query's writer. It does not wait for the lock of the query",
    # Half of each page stays free, so an update stays in its page and touches no index.
    postgresql_with={"fillfactor": 50},
)

progress = Table(
    "progress",
    metadata,
    Column("query", Text, ForeignKey(query.c.name, ondelete="CASCADE"), primary_key=True),
    Column("topic", Text, primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("start_offset", BigInteger, nullable=False, comment="the first offset that counts"),
    Column("next_offset", BigInteger, nullable=False, comment="every record below it is in Postgres"),
    Column("tail", Text, comment="Kafka's last batch below it, which shows if a topic has lost its end"),
    Column("newest", BigInteger, comment="Kafka's time of the newest event with an id, in microseconds since 1970"),
    Column("log_time", BigInteger, comment="greatest Kafka time below it, in microseconds since 1970"),
    comment="per query, topic and partition, the offset below which every record is in Postgres",
)

ids = Table(
    "ids",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True, comment="the ids are in realtime.ids_<id>"),
    Column("query", Text, ForeignKey(query.c.name, ondelete="CASCADE"), nullable=False),
    Column("begins", BigInteger, comment="first Kafka time of the ids, in microseconds since 1970. NULL for all times"),
    Column("ends", BigInteger, comment="end of these Kafka times. NULL for all times"),
    comment="tables of the ids of counted events, by Kafka's time. Ids that are never forgotten have one table",
)

view = Table(
    "view",
    metadata,
    Column("name", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("version", Text, nullable=False, comment="fingerprint of the texts that compute its cells"),
    Column("position", Integer, nullable=False, comment="a view comes after the views it reads"),
    Column("final", Text, nullable=False, comment="the body of the analyst's view"),
    Column("columns", JSONB, nullable=False),
    Column("comment", Text),
    Column("served", Text, comment="the present body of the analyst's view. NULL while there is none"),
    Column("reads", ARRAY(Text), nullable=False, comment="the views it reads"),
    Column("keep_generations", Integer, nullable=False, server_default="1"),
    Column("keep_versions", Integer, nullable=False, server_default="1"),
    Column("on_difference", Text, nullable=False, server_default="publish"),
    Column("retain", Text, comment="age up to which groups are kept. NULL for all"),
    Column("fresh_within", Text, comment="how far it may be behind. NULL without a target"),
    _now("applied_at"),
    Column("before", JSONB, nullable=False, server_default="[]", comment="older forms, for older snapshots"),
    CheckConstraint("kind IN ('aggregate', 'row', 'derived')", name="kind"),
    CheckConstraint("on_difference IN ('publish', 'hold')", name="on_difference"),
    comment="the declared views",
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
    Column("noise", ARRAY(Text), nullable=False, comment="for each partial, the column whose rounding it may hold"),
    Column("retained", Text, comment="the column that dates a cell for `retain`"),
    _from_zero("longer", BigInteger, "microseconds for which its cells are kept beyond the view's `retain`"),
    Column("prepared_at", DateTime(timezone=True), comment="when its writer prepared for it, or tried to"),
    comment="one row per table of cells of a view version: its query and its merge",
)

rebuild = Table(
    "rebuild",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("views", ARRAY(Text), nullable=False),
    Column("leap", Boolean, nullable=False, server_default="false"),
    Column("key", Text, comment="the scheduler's key, by which a repeated request finds its rebuild"),
    Column("step", Text, nullable=False, comment="the last finished step"),
    Column("seconds", JSONB, nullable=False, server_default="{}", comment="seconds of each finished step"),
    Column("state", OneOf(RebuildState), nullable=False, server_default="running"),
    Column("lease_until", DateTime(timezone=True), comment="until then a scheduled rebuild is alive between two steps"),
    _now("started_at"),
    Column("ended_at", DateTime(timezone=True)),
    Column("error", Text),
    Column(
        "kind",
        OneOf(RebuildKind),
        nullable=False,
        server_default="rebuild",
        comment="its purpose: to recompute declared versions, or to compute new ones for an apply or a preview",
    ),
    Column("preview", Text, comment="name of the preview, if that is its kind"),
    Column("stopped", OneOf(Stop), comment="how a person stopped it. NULL if nobody did"),
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
    Column("since", DateTime(timezone=True), comment="beginning of the oldest groups that it keeps. NULL for all"),
    _now("opened_at"),
    Column("live_at", DateTime(timezone=True)),
    Column("shown_until", DateTime(timezone=True), comment="when another generation replaced it"),
    Column("retired_at", DateTime(timezone=True)),
    Column("dropped_at", DateTime(timezone=True)),
    Column("shown_at", DateTime(timezone=True), comment="when it was handed over, except by a rollback"),
    Column("spark", Text, comment="the version of Spark that computed it. NULL if unknown"),
    only("state", GenerationState),
    comment="a generation holds the cells of a view, opened at a cut. It is building, then live, then retired",
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
    comment="the progress of each query that feeds a generation, at the moment of its opening",
)

generation_cells = Table(
    "generation_cells",
    metadata,
    Column("generation", BigInteger, ForeignKey(generation.c.id, ondelete="CASCADE"), primary_key=True),
    Column("cell_table", Text, ForeignKey(cell_table.c.name), primary_key=True),
    Column("place", Text, nullable=False, comment="the table that now holds the cells"),
    _from_zero("attempt", Integer, "tasks of an older attempt load nothing"),
    Column("loaded_at", DateTime(timezone=True), comment="when the cells below the cut were complete"),
    _from_zero("absorbed", Integer, "realtime tables with a lower number are merged into the cells"),
    _from_zero("realtime", Integer, "number of the newest realtime table"),
    comment="one row per table of cells of a generation: its place, its load, and its realtime tables",
)

archived = Table(
    "archived",
    metadata,
    Column("query", Text, ForeignKey(query.c.name, ondelete="CASCADE"), primary_key=True),
    Column("topic", Text, primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("held", BigInteger, nullable=False),
    _now("archived_at"),
    comment="the offsets in the master log after the last archive run. The log itself is the truth",
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
    comment="the loaded parts of batch views. A part that is computed twice is loaded once",
)

publication = Table(
    "publication",
    metadata,
    Column("view", Text, primary_key=True),
    Column("generation", BigInteger, ForeignKey(generation.c.id), nullable=False),
    _now("handed_over_at"),
    comment="the live generation that each view shows",
)

history = Table(
    "history",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    _now("at"),
    Column("query", Text, comment="query whose progress moved, by a micro-batch or a leap"),
    Column("partitions", ARRAY(Integer), comment="partitions in which it moved"),
    Column("first", ARRAY(BigInteger), comment="first counted offset of each partition"),
    Column("next", ARRAY(BigInteger), comment="offset after the last counted one of each partition"),
    Column("view", Text, comment="view that shows another generation or definition from now on"),
    Column("generation", BigInteger, comment="generation that the view shows, or that leapt"),
    Column("definition", Text, comment="id of the view's SELECT in lamina.definition"),
    CheckConstraint("(query IS NULL) <> (view IS NULL)", name="of"),
    comment="everything that moved the numbers of views, in order: micro-batches, leaps, hand-overs and changes",
)
Index("history_shown", history.c.view, history.c.id, postgresql_where=history.c.view.is_not(None))

freshness_history = Table(
    "freshness_history",
    metadata,
    Column("minute", DateTime(timezone=True), primary_key=True),
    Column("behind", JSONB, nullable=False, comment="seconds behind, by query"),
    comment="how far each query was behind: a row a minute, for a week",
)

freshness_target = Table(
    "freshness_target",
    metadata,
    Column("view", Text, primary_key=True),  # a foreign key would wait for an apply
    Column("since", DateTime(timezone=True), nullable=False, comment="the first minute"),
    Column("minute", DateTime(timezone=True), nullable=False, comment="the newest minute"),
    Column("met", BIT(1440), nullable=False, comment="a bit for each minute of a day: 1 if it was met"),
    comment="the minutes in which each view met its fresh_within",
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
    comment="notes of the cells that differ between two live generations. A table of keys without a row is dropped",
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
    Column("rebuild", BigInteger, ForeignKey(rebuild.c.id), comment="NULL for live views"),
    Column("view", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("counts", Text, nullable=False, comment="the unit of `failing`: rows, keys, or the whole view"),
    Column("blocks", Boolean, nullable=False, comment="true if a failure keeps the generation from readers"),
    Column("failing", BigInteger, nullable=False),
    Column("examples", JSONB, nullable=False),
    _now("checked_at"),
    CheckConstraint("counts IN ('row', 'key', 'whole')", name="counts"),
    comment="the last result of each check of a view, in a rebuild and on the live view",
)

quarantine = Table(
    "quarantine",
    metadata,
    Column("source", Text, nullable=False, comment="the source for which it is bad"),
    Column("topic", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("error", Text, nullable=False),
    Column("timestamp", DateTime(timezone=True)),
    Column("key", LargeBinary),
    Column("value", LargeBinary),
    Column("value_bytes", Integer, comment="bytes of the whole value, whose beginning is stored"),
    _now("quarantined_at"),
    Column("size", Integer, Computed(SIZE, persisted=True), comment="bytes that count towards the bound of the source"),
    comment="records that could not be parsed, within bounds. The master log holds them too",
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
    comment="number of records that went to quarantine, by reason, including those that are no longer stored",
)

schema = Table(
    "schema",
    metadata,
    Column("topic", Text, primary_key=True),
    Column("ask_again", Integer, primary_key=True, comment="the number in OPTIONS of the sources that use the answer"),
    Column("id", Text, primary_key=True, comment="its number or UUID in the registry"),
    Column(
        "kind",
        Text,
        comment="AVRO, PROTOBUF or JSON. NULL if the registry had none with this id. ABOVE for all ids above `text`",
    ),
    Column("text", Text),
    Column("references", JSONB, comment="names and texts of the schemas that it references, in order"),
    _now("kept_at"),
    comment="schemas of a registry, each kept before the first record written with it is counted",
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
    Column("tail", Text, comment="the record batch that holds it, as described by the broker"),
    comment="records that an operator skipped by name. No view counts them",
)
