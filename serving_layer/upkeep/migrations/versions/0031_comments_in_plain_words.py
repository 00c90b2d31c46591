"""Comments of tables and columns in plain words."""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

COMMENTS = {
    "installed": {
        "": "the installed parts: a part runs again only if its text has changed",
        "part": "functions, rights, limits, or an operators' view",
        "fingerprint": "hash of the text that ran last",
    },
    "declaration": {
        "": "the catalog that was applied last",
    },
    "compiled": {
        "": "the compiled texts of the deployed catalog, which run even after an upgrade of Lamina",
        "texts": "the compiled source or view with all its texts",
        "definition": "id of a view's SELECT in lamina.definition",
    },
    "definition": {
        "": "every SELECT that was ever deployed: receipts name it and are verified with it",
        "texts": "a catalog of this view and everything it reads",
    },
    "version": {
        "": "view versions with cells that the deployed catalog lacks: being computed, or kept for a return",
        "texts": "the compiled view with all its texts",
        "sources": "the compiled sources that feed its cells",
    },
    "preview": {
        "": "catalogs whose views are served next to the deployed ones, each in its own schema",
        "name": "name of the schema that holds its views",
    },
    "previewed": {
        "": "the views of previews. A generation that one of them reads is not retired",
        "texts": "the compiled view with all its texts",
        "places": "the tables that hold its cells",
    },
    "query": {
        "": "one row per streaming query. The row is the lock for everything that moves its progress",
        "topic_id": "Kafka's id of the topic: another if it is recreated",
        "writer": "holder of the fence token: host and process id",
        "writer_kind": "kind of the holder: a speed layer, a leap or a skip",
        "deaths": "consecutive writers that committed nothing",
        "stopped": "reason why the query has stopped. NULL while it may run",
        "caught_up_at": "last time it had counted every earlier record",
        "waiting": "smallest backlog since the query last had none",
        "waiting_at": "when the backlog last shrank",
        "conflicts": "copies that differ from the counted record and should have been counted instead",
    },
    "heartbeat": {
        "": "the last heartbeat of each query's writer. It does not wait for the lock of the query",
        "heard_at": "when its writer sent the last heartbeat",
    },
    "progress": {
        "start_offset": "the first offset that counts",
        "tail": "Kafka's last batch below it, which shows if a topic has lost its end",
        "newest": "Kafka's time of the newest event with an id, in microseconds since 1970",
        "log_time": "greatest Kafka time below it, in microseconds since 1970",
    },
    "ids": {
        "": "tables of the ids of counted events, by Kafka's time. Ids that are never forgotten have one table",
        "begins": "first Kafka time of the ids, in microseconds since 1970. NULL for all times",
        "ends": "end of these Kafka times. NULL for all times",
    },
    "view": {
        "": "the declared views",
        "version": "fingerprint of the texts that compute its cells",
        "served": "the present body of the analyst's view. NULL while there is none",
        "retain": "age up to which groups are kept. NULL for all",
        "fresh_within": "how far it may be behind. NULL without a target",
        "before": "older forms, for older snapshots",
    },
    "cell_table": {
        "": "one row per table of cells of a view version: its query and its merge",
        "noise": "for each partial, the column whose rounding it may hold",
        "retained": "the column that dates a cell for `retain`",
        "longer": "microseconds for which its cells are kept beyond the view's `retain`",
        "prepared_at": "when its writer prepared for it, or tried to",
    },
    "rebuild": {
        "key": "the scheduler's key, by which a repeated request finds its rebuild",
        "step": "the last finished step",
        "seconds": "seconds of each finished step",
        "lease_until": "until then a scheduled rebuild is alive between two steps",
        "kind": "its purpose: to recompute declared versions, or to compute new ones for an apply or a preview",
        "preview": "name of the preview, if that is its kind",
        "stopped": "how a person stopped it. NULL if nobody did",
    },
    "generation": {
        "": "a generation holds the cells of a view, opened at a cut. It is building, then live, then retired",
        "since": "beginning of the oldest groups that it keeps. NULL for all",
        "shown_until": "when another generation replaced it",
        "shown_at": "when it was handed over, except by a rollback",
        "spark": "the version of Spark that computed it. NULL if unknown",
    },
    "cut": {
        "": "the progress of each query that feeds a generation, at the moment of its opening",
    },
    "generation_cells": {
        "": "one row per table of cells of a generation: its place, its load, and its realtime tables",
        "place": "the table that now holds the cells",
        "absorbed": "realtime tables with a lower number are merged into the cells",
        "realtime": "number of the newest realtime table",
    },
    "archived": {
        "": "the offsets in the master log after the last archive run. The log itself is the truth",
    },
    "load": {
        "": "the loaded parts of batch views. A part that is computed twice is loaded once",
    },
    "publication": {
        "": "the live generation that each view shows",
    },
    "history": {
        "": "everything that moved the numbers of views, in order: micro-batches, leaps, hand-overs and changes",
        "query": "query whose progress moved, by a micro-batch or a leap",
        "partitions": "partitions in which it moved",
        "first": "first counted offset of each partition",
        "next": "offset after the last counted one of each partition",
        "view": "view that shows another generation or definition from now on",
        "generation": "generation that the view shows, or that leapt",
        "definition": "id of the view's SELECT in lamina.definition",
    },
    "freshness_history": {
        "": "how far each query was behind: a row a minute, for a week",
        "behind": "seconds behind, by query",
    },
    "freshness_target": {
        "": "the minutes in which each view met its fresh_within",
        "since": "the first minute",
        "minute": "the newest minute",
        "met": "a bit for each minute of a day: 1 if it was met",
    },
    "noted": {
        "": "notes of the cells that differ between two live generations. A table of keys without a row is dropped",
    },
    "checked": {
        "": "the last result of each check of a view, in a rebuild and on the live view",
        "rebuild": "NULL for live views",
        "counts": "the unit of `failing`: rows, keys, or the whole view",
        "blocks": "true if a failure keeps the generation from readers",
    },
    "quarantine": {
        "": "records that could not be parsed, within bounds. The master log holds them too",
        "source": "the source for which it is bad",
        "value_bytes": "bytes of the whole value, whose beginning is stored",
        "size": "bytes that count towards the bound of the source",
    },
    "bad_count": {
        "": "number of records that went to quarantine, by reason, including those that are no longer stored",
    },
    "schema": {
        "": "schemas of a registry, each kept before the first record written with it is counted",
        "ask_again": "the number in OPTIONS of the sources that use the answer",
        "id": "its number or UUID in the registry",
        "kind": "AVRO, PROTOBUF or JSON. NULL if the registry had none with this id. ABOVE for all ids above `text`",
        "references": "names and texts of the schemas that it references, in order",
    },
    "skipped": {
        "": "records that an operator skipped by name. No view counts them",
        "tail": "the record batch that holds it, as described by the broker",
    },
}
"""Comments by table and column. The empty column stands for the table itself.

The tables `rebuilding` and `archiving` are left out, because a process may hold their locks for hours.
"""


def upgrade() -> None:
    """Replaces the comments."""
    for table, columns in COMMENTS.items():
        for column, comment in columns.items():
            if column:
                op.alter_column(table, column, comment=comment, schema="lamina")
            else:
                op.create_table_comment(table, comment, schema="lamina")
